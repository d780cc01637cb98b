"""Results as files that other programs read: CSV, Parquet, NumPy archives.

A table has one row per combination of coordinates and one column per array over the same dimensions;
arrays over other dimensions go to a file of their own. A NumPy archive holds all arrays in one file.
Everything is written piece by piece under a hidden name and moved into place at the end.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError, require_extra
from ..names import nearest
from ..results.atomic import complete_files
from ..results.locking import only_writer_of
from ..results.places import check_parent
from ..results.strict_json import plain
from .opening import Result
from .tables import Group, groups, write_csv, write_npz, write_parquet

FORMATS = ("csv", "parquet", "npz")
SHOWN = 12


def export(
    result: Result,
    to: str,
    out: Path | None = None,
    arrays: list[str] | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write a result as files of a format; what was written, with rows and bytes."""
    if to not in FORMATS:
        raise InputError(f"--to takes {', '.join(FORMATS)}, got {to!r}{nearest(to, FORMATS)}")
    if to == "parquet":
        require_extra("--to parquet", "pyarrow.parquet", "parquet", "or use --to csv or npz")
    if out is not None and not out.name:
        raise InputError(f"--out {str(out)!r} is a folder; give the name of a file")
    dataset = result.dataset()
    chosen = _chosen(dataset, arrays)
    place = Path(f"{_plain_name(result)}.{to}") if out is None else _with_ending(out, to)
    tables = groups(dataset, chosen)
    about = _about(result, dataset, chosen)
    if to == "npz":
        jobs = {place: lambda path: write_npz(path, dataset, chosen, about)}
    else:
        write = write_csv if to == "csv" else write_parquet
        jobs = {_place(place, table, tables): _job(write, table, about) for table in tables}
    _check_places([*jobs], overwrite)
    with only_writer_of(place):
        _write_all(jobs, overwrite)
    rows = {} if to == "npz" else {"rows": sum(table.rows for table in tables)}
    return {
        "files": [str(path) for path in jobs],
        "bytes": sum(path.stat().st_size for path in jobs),
        "arrays": chosen,
        **rows,
        **_unfinished(dataset),
    }


def _job(write: Callable[..., None], table: Group, about: str) -> Callable[[Path], None]:
    return lambda path: write(path, table, about)


def _chosen(dataset: Any, arrays: list[str] | None) -> list[str]:
    known = [str(name) for name in dataset.data_vars]
    for name in arrays or []:
        if name not in known:
            shown = ", ".join(sorted(known)[:SHOWN])
            hint = nearest(name, known) or f"; it has {shown}"
            raise InputError(f"--arrays: this result has no array {name!r}{hint}")
    found = list(dict.fromkeys(arrays)) if arrays else sorted(known)
    if not found:
        raise InputError("this result has no arrays to export")
    return found


def _plain_name(result: Result) -> str:
    name = result.folder.absolute().name.removesuffix(".zarr")
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or result.kind


def _with_ending(out: Path, to: str) -> Path:
    """x becomes x.csv and x.v2 becomes x.v2.csv: a name ends as its format does; x.npz is no CSV."""
    ending = out.suffix.removeprefix(".").lower()
    if ending != to and ending in FORMATS:
        raise InputError(f"--out {out} ends in .{ending}, and --to {to} writes .{to}; change one")
    return out if ending == to or not out.name else out.with_name(f"{out.name}.{to}")


def _place(place: Path, table: Group, tables: list[Group]) -> Path:
    """The file of a table; the dimensions tell several apart."""
    if len(tables) == 1:
        return place
    return place.with_name(f"{place.stem}-{'-'.join(table.dims) or 'scalars'}{place.suffix}")


def _about(result: Result, dataset: Any, arrays: list[str]) -> str:
    """What the numbers are, as JSON beside them."""
    spec = result.labels.get("spec")
    content = {
        "title": result.facts.columns.get("title"),
        "id": result.facts.columns.get("id"),
        "kind": result.kind,
        "dims": {name: list(dataset[name].dims) for name in arrays},
        "spec": spec,
        **({"sweep": result.labels.get("sweep")} if result.kind == "sweep" else {}),
    }
    return json.dumps(plain(content), allow_nan=False)


def _unfinished(dataset: Any) -> dict[str, Any]:
    cells, done = dataset.attrs.get("cells"), dataset.attrs.get("cells_done")
    return {} if cells == done else {"cells": cells, "cells_done": done}


def _check_places(places: list[Path], overwrite: bool) -> None:
    for place in places:
        try:
            if "\0" in str(place):
                raise ValueError("a path has no null characters")
            exists, is_folder = os.path.lexists(place), place.is_dir()
        except (OSError, ValueError) as error:
            raise InputError(f"--out {str(place)!r} cannot be used: {error}") from error
        if is_folder:
            raise InputError(f"{place} is a folder; give the name of a file")
        if exists and not overwrite:
            raise InputError(
                f"{place} exists; choose another --out, or replace it with --overwrite"
            )
        if not exists:
            check_parent(place)


def _write_all(jobs: dict[Path, Callable[[Path], None]], overwrite: bool) -> None:
    """Each file is complete before the first gets its name; another process may have written meanwhile."""
    folder = next(iter(jobs)).parent
    with complete_files(folder, lambda: _check_places([*jobs], overwrite)) as scratch:
        for place, write in jobs.items():
            write(scratch / place.name)
