"""A sweep as planned: its axes, its cells and the blocks they are computed in, from a spec alone."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import tomli_w

from ..errors import InputError, require
from ..lab.files import content, load, put, validated
from ..lab.spec import RunSpec
from ..results.bounds import MOST_AXES, MOST_CELLS
from .cost import default_batch
from .grid import Axis, Grid, Index, block_shape
from .spec import derived_seed, make_axes, read_axis, read_table

SWEEP = "sweep"
# Positions of a long axis at which its values are checked before anything is computed.
CHECKED = 64
DECIDES_NOTHING = ("title", "says", "output")


@dataclass(frozen=True)
class Sweep:
    """A checked sweep.

    text -- the spec as TOML; reading it gives this sweep again;
    id -- twelve digits of everything that decides the numbers (how cells are batched does not);
    spec -- the run of the first cell, with everything resolved.
    """

    table: dict[str, Any]
    axes: tuple[Axis, ...]
    grid: Grid
    own_seeds: tuple[str, ...]
    root: int
    text: str
    id: str
    spec: RunSpec

    @property
    def title(self) -> str:
        """Its name."""
        return self.spec.title

    @property
    def says(self) -> str:
        """What it shows."""
        return self.spec.says

    @property
    def paths(self) -> dict[str, list[str]]:
        """The settings of the run that each axis sets."""
        own = list(self.own_seeds)
        return {a.name: [*a.settings] or (own if a.is_seed else []) for a in self.axes}

    def coordinates(self, index: Index) -> dict[str, Any]:
        """Where a cell lies, by the names of the axes."""
        return {
            axis.name: axis.values[position].item()
            for axis, position in zip(self.axes, index, strict=True)
        }

    def settings(self, index: Index) -> dict[str, Any]:
        """What a cell sets, by the paths of the run spec."""
        found = {
            path: values[position]
            for axis, position in zip(self.axes, index, strict=True)
            for path, values in axis.settings.items()
        }
        if self.own_seeds:
            here = self.coordinates(index)
            found |= {path: derived_seed(self.root, path, here) for path in self.own_seeds}
        return found

    def cell_table(self, index: Index) -> dict[str, Any]:
        """The table of the run of one cell."""
        table = copy.deepcopy({name: part for name, part in self.table.items() if name != SWEEP})
        for path, value in self.settings(index).items():
            put(table, path.split("."), value, "sweep axis")
        return table

    def cell_spec(self, index: Index) -> RunSpec:
        """The run of one cell."""
        return validated(self.cell_table(index), f"the cell {self.says_where(index)}")

    def says_where(self, index: Index) -> str:
        """The coordinates of a cell in words."""
        parts = self.coordinates(index).items()
        return ", ".join(f"{name} = {value}" for name, value in parts)


def parse_sweep(text: str, overrides: list[str] | None = None, source: str = "the sweep") -> Sweep:
    """A checked sweep from TOML and `path=value` overrides."""
    return make_sweep(load(text, overrides, source, more=(SWEEP,)), source)


def make_sweep(table: dict[str, Any], source: str = "the sweep") -> Sweep:
    """A checked sweep from a table."""
    asked = read_table(table.get(SWEEP), source)
    run = {name: part for name, part in table.items() if name != SWEEP}
    if isinstance(run.setdefault("save", {}), dict):
        # Tokens at every time of every cell are rarely what a sweep is for.
        run["save"].setdefault("states", False)
    read = {key: read_axis(key, given, source) for key, given in asked.axes.items()}
    _check_size({key: axis.length for key, axis in read.items()}, source)
    axes, own_seeds = make_axes(read, run, asked.seed, source)
    _check_axes(axes, own_seeds, source)
    shape = tuple(len(axis) for axis in axes)
    draft = Sweep(
        run, axes, Grid(shape, shape), own_seeds, asked.seed, "", "", RunSpec.model_construct()
    )
    first = _checked_first(draft, source)
    _check_values(draft, source)
    batch = asked.batch or default_batch(first, math.prod(shape))
    written = {
        "batch": batch,
        "seed": asked.seed,
        "axes": {
            key: axis.model_dump(by_alias=True, exclude_none=True) for key, axis in read.items()
        },
    }
    grid = Grid(shape, block_shape(shape, batch))
    full = tomli_w.dumps({**run, SWEEP: written})
    return Sweep(
        run, axes, grid, own_seeds, asked.seed, full, _identity(run, written, first), first
    )


def _check_axes(axes: tuple[Axis, ...], own_seeds: tuple[str, ...], source: str) -> None:
    names = [name for axis in axes for name in (axis.name, *axis.beside)]
    paths = [*own_seeds, *(path for axis in axes for path in axis.settings)]
    for what, found in (("name", names), ("setting", paths)):
        twice = sorted({entry for entry in found if found.count(entry) > 1})
        require(
            not twice,
            f"{source}: two axes have the {what} {', '.join(twice)}; zip them, or rename one with "
            "set = ...",
        )


def _check_size(lengths: dict[str, int], source: str) -> None:
    """Before any value is made."""
    require(
        len(lengths) <= MOST_AXES,
        f"{source} has {len(lengths)} axes; the limit is {MOST_AXES}; zip those that change together",
    )
    cells = math.prod(lengths.values())
    shape = " x ".join(f"{length} {name}" for name, length in lengths.items())
    require(
        cells <= MOST_CELLS,
        f"{source} asks for {float(cells):.4g} cells ({shape}); the limit is {MOST_CELLS:,}; use coarser "
        "axes or fewer seeds",
    )


def _checked_first(draft: Sweep, source: str) -> RunSpec:
    """The run of the first cell: a sweep whose first cell is no run is refused."""
    first = (0,) * len(draft.axes)
    spec = validated(draft.cell_table(first), source)
    beta = getattr(spec.model, "beta", None)
    require(
        not isinstance(beta, list),
        f"{source}: in a sweep model.beta is one number per cell; make it an axis: "
        "[sweep.axes] beta = [...]",
    )
    require(
        getattr(spec.tokens, "samples", None) is None,
        f"{source}: in a sweep tokens.samples is an axis: [sweep.axes] seed = {{ seeds = N }}",
    )
    return spec


def _check_values(draft: Sweep, source: str) -> None:
    """Values of each axis, the others at their first: what no cell can use is refused at once."""
    for position, axis in enumerate(draft.axes):
        if axis.is_seed:
            continue
        for value in _spread(axis):
            index = tuple(value if place == position else 0 for place in range(len(draft.axes)))
            where = f"{source}: sweep axis {axis.name} = {axis.values[value].item()}"
            validated(draft.cell_table(index), where)


def _spread(axis: Axis) -> Iterator[int]:
    """Positions to check: all of a short axis; some, and the extremes of every setting, of a long one."""
    chosen = {*np.unique(np.linspace(0, len(axis) - 1, CHECKED).astype(int)).tolist()}
    for values in axis.settings.values():
        if len(values) > CHECKED and not any(isinstance(value, str) for value in values):
            chosen |= {int(np.argmin(values)), int(np.argmax(values))}
    yield from sorted(chosen)


def _identity(run: dict[str, Any], written: dict[str, Any], first: RunSpec) -> str:
    decisive = {
        "run": {name: part for name, part in run.items() if name not in DECIDES_NOTHING},
        "axes": written["axes"],
        "seed": written["seed"],
        "first": {k: v for k, v in content(first).items() if k not in DECIDES_NOTHING},
    }
    try:
        text = json.dumps(decisive, sort_keys=True)
    except TypeError as error:
        raise InputError(f"a spec holds numbers, texts, lists and tables: {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()[:12]
