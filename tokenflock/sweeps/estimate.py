"""What a sweep will take, told before it starts, and refused where there is not so much."""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from ..errors import StoreError
from ..memory import require_bytes
from .cost import mean_cell_seconds
from .layout import Layout
from .plan import Sweep
from .workers import WINDOW

MIB = 2.0**20


@dataclass(frozen=True)
class Estimate:
    """Sizes in bytes, before compression; `seconds` is a guess within a factor of ten."""

    cells: int
    blocks: int
    batch: int
    disk: float
    memory: float
    seconds: float


def estimate(sweep: Sweep, layout: Layout, workers: int) -> Estimate:
    """Each worker holds a block and the sums of a cell; a few more blocks wait to be written."""
    batch = math.prod(sweep.grid.block_shape)
    block = batch * layout.cell_bytes
    return Estimate(
        cells=sweep.grid.size,
        blocks=sweep.grid.block_count,
        batch=batch,
        disk=float(sweep.grid.size * layout.cell_bytes),
        memory=float(block * (2 * WINDOW * workers + 1) + workers * layout.working_bytes),
        seconds=sweep.grid.size * mean_cell_seconds(sweep) / workers,
    )


def refuse_too_much(needed: Estimate, folder: Path, done: float = 0.0) -> None:
    """Before anything is written; `done` is the fraction that lies on the disk already."""
    require_bytes(
        needed.memory,
        f"the workers of this sweep and their blocks of {needed.batch} cells",
        "use fewer --workers, lower --batch, save less often, or observe less",
    )
    left, free = needed.disk * (1.0 - done), free_bytes(folder)
    if left > free:
        raise StoreError(
            f"{needed.cells} cells need up to {in_words(left)} of disk (before compression), and "
            f"{folder} has {in_words(free)}; save less often, observe less, or choose another --out"
        )


def free_bytes(folder: Path) -> float:
    """Room on the disk a folder is on, or will be on."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return float(shutil.disk_usage(place).free)


def in_words(size: float) -> str:
    """A size in MiB, or GiB if it is large."""
    return f"{size / MIB:.3g} MiB" if size < 1024 * MIB else f"{size / MIB / 1024:.3g} GiB"


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
