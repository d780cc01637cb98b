"""Opening any result: runs and traces in memory, sweeps read from disk as they are used, trained models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..doors import door
from ..errors import InputError, StoreError
from ..results.identity import PART_OF, require_same
from ..results.names import INITIAL, SEGMENTS, STORE, SWEEP_STORE, TRAINING
from ..results.strict_json import restored
from .facts import Facts, facts_of, reason_of
from .finding import attributes, store_of

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Result:
    """A result that was named: its folder, its store, and what they say."""

    folder: Path
    store: Path
    facts: Facts
    labels: dict[str, Any]

    @property
    def kind(self) -> str:
        """run, trace or sweep."""
        return self.facts.columns["kind"]

    def dataset(self) -> xr.Dataset:
        """Its arrays; a damaged file is refused, of a sweep when it comes to be read."""
        if self.kind == "sweep":
            from ..sweeps.checked_reading import open_sweep

            return open_sweep(self.folder, verify=False)
        from ..store import read

        return read(self.folder).dataset


def open(path: str | Path, *, verify: bool = True) -> Any:
    """What is stored in a folder: whatever computed it gave the same.

    A run or a trace is a Trajectory, finished or not; a sweep an xarray.Dataset, whose arrays are read when
    they are used; a training its trained classifier. A store (trajectory.zarr, sweep.zarr) may be named, too.

    verify -- read every file of a sweep once and refuse a damaged one now; without it a damaged chunk is
        refused when it is read. Runs and trainings are always read whole, and checked.
    """
    folder = Path(path)
    try:
        if not folder.exists():
            raise StoreError(f"{folder} does not exist")
        is_sweep = folder.name == SWEEP_STORE or (folder / SWEEP_STORE).exists()
        is_training = (folder / TRAINING).exists()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot open {str(path)!r}: {error}") from error
    if is_sweep:
        from ..sweeps.checked_reading import open_sweep

        return open_sweep(folder, verify)
    if is_training:
        return door("open_training")(folder)
    from ..store import read

    return read(folder)


def find_result(path: str | Path) -> Result:
    """The result in a folder, or of a store, or a sentence."""
    folder = Path(path).expanduser()
    try:
        exists = folder.is_dir()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot look into {str(path)!r}: {error}") from error
    if not exists:
        raise InputError(f"there is no folder {path}; see tokenflock list runs")
    if folder.name in (STORE, SWEEP_STORE) and folder.absolute().parent.is_dir():
        # What belongs to a store (its summary, its journal) lies beside it.
        folder = folder.absolute().parent
    store, facts = store_of(folder), _facts(folder)
    if store is None or facts is None:
        raise InputError(
            f"{path} is not a run, a trace or a sweep; give a folder that tokenflock run, trace or sweep "
            "has made (tokenflock list runs shows them)"
        )
    labels = restored(attributes(store) or {})
    if store.parent.name == SEGMENTS:
        _require_own_part(store, labels)
    return Result(folder, store, facts, labels)


def _facts(folder: Path) -> Facts | None:
    try:
        return facts_of(folder)
    except Exception as error:
        raise StoreError(
            f"{folder} is damaged: {reason_of(error)}; take the folder from a copy, or compute it again"
        ) from error


def _require_own_part(part: Path, labels: dict[str, Any]) -> None:
    """Refuse to describe a run by a part of another, as opening and resuming it do."""
    first = restored(attributes(part.parent / INITIAL) or {}).get(PART_OF)
    if isinstance(first, dict):
        require_same(
            part,
            labels.get(PART_OF),
            first,
            "take the folder from a copy, or run it again with --overwrite or another --out",
        )
