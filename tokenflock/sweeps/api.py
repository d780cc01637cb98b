"""Sweeps from Python: the same folder and the same numbers as `tokenflock sweep`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..lab.files import check_depth, read_text
from .checked_reading import open_sweep
from .conduct import Wishes, conduct
from .plan import Sweep, make_sweep, parse_sweep
from .watching import Silent, watcher

if TYPE_CHECKING:
    import xarray as xr


def sweep(
    spec: str | Path | Mapping[str, Any],
    folder: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    strict: bool = False,
    progress: bool = True,
) -> xr.Dataset:
    """Run a sweep into a folder and open its dataset, whose dimensions are the swept names.

    spec -- a run spec with a [sweep] table: the path of a TOML file, its text, or a nested dict;
    folder -- a new folder, or with `resume` one whose sweep is continued (nothing is computed twice);
    workers -- processes on this machine (default: one per core); scheduler -- or a dask cluster.

    Cells that fail are NaN and have their code in `outcome`; `strict` stops at the first. Processes of
    their own compute, whatever this one has done with JAX, if tokenflock[cluster] is installed; else this
    one does.
    """
    asked = _asked(spec)
    folder = Path(folder)
    wishes = Wishes(
        resume=resume,
        overwrite=overwrite,
        workers=workers,
        apart=True,
        scheduler=scheduler,
        strict=strict,
    )
    watch = watcher(asked.title) if progress else Silent()
    failed = True
    try:
        conduct(asked, folder, wishes, watch)
        failed = False
    finally:
        watch.stop(failed)
    return open_sweep(folder, verify=False)


def _asked(spec: str | Path | Mapping[str, Any]) -> Sweep:
    if isinstance(spec, Mapping):
        check_depth(spec, "the sweep")
        return make_sweep(_plain(spec))
    if isinstance(spec, str) and "\n" in spec:
        return parse_sweep(spec)
    if isinstance(spec, (str, Path)):
        return parse_sweep(read_text(Path(spec)), source=str(spec))
    raise InputError(
        f"a sweep is the path of a TOML file, its text or a dict, got {type(spec).__name__}"
    )


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in dicts and lists, as TOML would give it; the caller's own is left alone."""

    def copied(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): copied(part) for key, part in value.items()}
        if hasattr(value, "tolist"):  # numbers and arrays of numpy
            return value.tolist()
        return [copied(part) for part in value] if isinstance(value, (list, tuple)) else value

    return copied(table)
