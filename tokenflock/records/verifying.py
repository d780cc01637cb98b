"""Whether a result is as it was written: every byte of it is read, which a list does not do by itself."""

from __future__ import annotations

from pathlib import Path

from ..errors import StoreError
from ..results.checksums import damage_of
from ..results.names import SEGMENTS
from ..results.part_names import chained
from .facts import Facts, called_damaged
from .finding import is_own_folder, store_of

SHOWN = 3


def verified(folder: Path, facts: Facts) -> Facts:
    """The facts of a result; of a damaged one with what is wrong."""
    if facts.columns["damage"] is not None:
        return facts
    damage = sweep_damage(folder) if facts.columns["kind"] == "sweep" else run_damage(folder)
    return facts if damage is None else called_damaged(facts, damage)


def sweep_damage(folder: Path) -> str | None:
    """What is wrong with a sweep: every file against the mark that its journal keeps of it."""
    # Only here, since xarray takes half a second to load.
    from ..sweeps.checked_reading import open_sweep

    try:
        open_sweep(folder)
    except StoreError as error:
        return str(error)
    return None


def run_damage(folder: Path) -> str | None:
    """What is wrong with a run or a trace, whole or in parts."""
    wrong = [told for store in _stores(folder) if (told := damage_of(store)) is not None]
    more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return "; ".join(wrong[:SHOWN]) + more if wrong else None


def _stores(folder: Path) -> list[Path]:
    store = store_of(folder)
    if store is None or store.parent.name != SEGMENTS:
        return [] if store is None else [store]
    parts = chained(path.name for path in store.parent.iterdir())
    found = [store.parent / name for name in parts] or [store]
    return [part for part in found if is_own_folder(part)]
