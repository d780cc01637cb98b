"""tokenflock show, compare and export: stored results, looked at and taken elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .plainly import console, lines_of, number, print_notes, printable, size

if TYPE_CHECKING:
    from ..records.comparing import ArrayDifference, Comparison
    from ..records.opening import Result

JSON = typer.Option(False, "--json", help="One JSON object on stdout.")
SHOWN_FAILURES, SHOWN_SETTINGS, SHOWN_ROWS = 20, 60, 12


def show(
    run: Path = typer.Argument(..., metavar="RUN", help="The folder of a run, a trace or a sweep."),
    cell: str | None = typer.Option(
        None, "--cell", metavar="beta=4,seed=3", help="Print the run spec of one cell of a sweep."
    ),
    values: bool = typer.Option(False, "--values", help="With --cell: its numbers instead."),
    verify: bool = typer.Option(
        True, help="Read every number, and say what is not as it was written."
    ),
    as_json: bool = JSON,
) -> None:
    """Show what a stored run, trace or sweep is: outcome, health, spec, arrays, failures, damage.

    Examples:

    - Look: `tokenflock show runs/mine`

    - One cell of a sweep as a run: `tokenflock show runs/phase --cell beta=4,seed=3 > cell.toml`, then
      `tokenflock run cell.toml`

    - Its numbers: `tokenflock show runs/phase --cell beta=4,seed=3 --values --json`
    """
    from ..errors import InputError
    from ..records.opening import find_result

    if values and cell is None:
        raise InputError("--values needs --cell, for example --cell beta=4,seed=3")
    result = find_result(run)
    if cell is not None:
        _show_cell(result, cell, values, as_json)
        return
    from ..records.showing import describe_result

    content = describe_result(result, verify)
    if as_json:
        _echo_json(content)
    else:
        _print_result(content)


def _echo_json(content: dict[str, Any]) -> None:
    from ..results.strict_json import plain

    typer.echo(json.dumps(plain(content), allow_nan=False))


def _show_cell(result: Result, asked: str, values: bool, as_json: bool) -> None:
    from ..records.cells import cell_text, cell_values, find_cell, sweep_of

    sweep = sweep_of(result)
    index = find_cell(sweep, asked)
    where = sweep.coordinates(index)
    if not values:
        from ..lab.files import content

        if as_json:
            _echo_json(
                {"cell": where, "index": list(index), "spec": content(sweep.cell_spec(index))}
            )
        else:
            typer.echo(cell_text(sweep, index), nl=False)
        return
    found = cell_values(result, sweep, index)
    if as_json:
        arrays = {str(name): _array(found[name]) for name in (*found.coords, *found.data_vars)}
        _echo_json({"cell": where, "index": list(index), "arrays": arrays})
    else:
        typer.echo(", ".join(f"{name} = {printable(value)}" for name, value in where.items()))
        _print_values(found)


def _array(array: Any) -> dict[str, Any]:
    return {"dims": [str(dim) for dim in array.dims], "values": array.values.tolist()}


def _print_values(found: Any) -> None:
    """Single numbers, a dozen rows of what runs along time, and the shapes of the rest."""
    import numpy as np
    from rich.table import Table

    screen = console()
    series = [str(name) for name in found.data_vars if found[name].dims == ("time",)]
    for name in sorted(map(str, found.data_vars)):
        array = found[name]
        if not array.dims:
            value = array.values.item()
            word = meaning(value, array.attrs)
            screen.print(f"{printable(name)} = {number(value)}{f' ({word})' if word else ''}")
        elif name not in series:
            screen.print(f"{name}: {_shape(array.dims, array.shape)} (see --json)")
    if series:
        table = Table(box=None, pad_edge=False)
        for name in ("time", *series):
            table.add_column(name, justify="right")
        rows = np.unique(np.linspace(0, found.sizes["time"] - 1, SHOWN_ROWS).astype(int))
        for row in rows:
            table.add_row(*(number(found[name].values[row].item()) for name in ("time", *series)))
        screen.print(table)


def meaning(value: Any, about: dict[str, Any]) -> str:
    """The word that a number stands for, as CF's flag_values and flag_meanings have it; else nothing."""
    values, words = about.get("flag_values"), about.get("flag_meanings")
    if not isinstance(values, list) or not isinstance(words, str):
        return ""
    # A stranger's lists need not be equally long.
    pairs = zip(values, words.split(), strict=False)
    return next((printable(word) for flag, word in pairs if flag == value), "")


def _shape(dims: Any, shape: Any) -> str:
    return " x ".join(f"{count} {printable(dim)}" for dim, count in zip(dims, shape, strict=True))


def _print_result(content: dict[str, Any]) -> None:
    screen = console()
    for name in ("title", "says", "path", "kind", "model", "label", "id"):
        if content.get(name):
            screen.print(f"{name}: {printable(content[name])}")
    screen.print(f"outcome: {printable(_outcome(content))}")
    for name, value in (content.get("health") or {}).items():
        screen.print(f"  {printable(name)}: {number(value)}")
    for name in ("created", "seconds", "version", "device"):
        if content.get(name) is not None:
            screen.print(f"{name}: {number(content[name])}")
    screen.print(f"size: {size(content['bytes'])}")
    print_notes(screen, content.get("notes") or {})
    screen.print("arrays:")
    for array in content["arrays"]:
        says = f"  {printable(array['says'])}" if array["says"] else ""
        shape = _array_shape(array)
        screen.print(f"  {printable(array['name'])} ({shape}) {printable(array['dtype'])}{says}")
    _print_failures(screen, content.get("failures") or [])
    if content.get("toml"):
        screen.print(f"spec:\n\n{lines_of(content['toml'])}")


def _array_shape(array: dict[str, Any]) -> str:
    dims, shape = array["dims"], array["shape"]
    return _shape(dims, shape) if len(dims) == len(shape) else " x ".join(map(str, shape))


def _outcome(content: dict[str, Any]) -> str:
    told = f"{content.get('outcome', 'unknown')}"
    if content["kind"] == "sweep":
        done = content.get("done")
        told += f", {'?' if done is None else done} of {content['cells']} cells done"
        told += f", {content['failed']} failed" if content.get("failed") else ""
    said = content.get("damage") or content.get("advice")
    return f"{told}: {said}" if said else told


def _print_failures(screen: Any, failures: list[dict[str, Any]]) -> None:
    if not failures:
        return
    screen.print("failures:")
    for failure in failures[:SHOWN_FAILURES]:
        where = ", ".join(f"{name} = {value}" for name, value in failure["coordinates"].items())
        screen.print(f"  {printable(where)}: {printable(failure['says'])}")
    if len(failures) > SHOWN_FAILURES:
        screen.print(f"  and {len(failures) - SHOWN_FAILURES} more (see --json)")


def compare(
    first: Path = typer.Argument(..., metavar="A", help="A run, a trace or a sweep."),
    second: Path = typer.Argument(..., metavar="B", help="Another one."),
    tol: float | None = typer.Option(
        None,
        "--tol",
        metavar="X",
        help="Numbers may differ by X, absolutely or relative to the larger (default: not by a bit).",
    ),
    as_json: bool = JSON,
) -> None:
    """Compare two results: what differs in their specs, and how far their numbers are apart.

    Arrays are aligned by their coordinates: common times, common cells; nothing is interpolated.

    Examples:

    - To the last bit: `tokenflock compare runs/laptop runs/cluster`

    - Within rounding: `tokenflock compare runs/cpu runs/gpu --tol 1e-9`

    Exit codes: 0 equal, 1 different, 2 not comparable.
    """
    from ..records.comparing import compare as compare_results
    from ..records.opening import find_result

    found = compare_results(find_result(first), find_result(second), tol)
    if as_json:
        _echo_json({"a": str(first), "b": str(second), **found.as_json()})
    else:
        _print_comparison(found, printable(first), printable(second))
    if not found.equal:
        raise typer.Exit(1)


def _print_comparison(found: Comparison, first: str, second: str) -> None:
    screen = console()
    if not found.spec:
        screen.print("the specs are the same")
    for row in found.spec[:SHOWN_SETTINGS]:
        screen.print(f"{printable(row['path'])}: {_setting(row['a'])} | {_setting(row['b'])}")
    if len(found.spec) > SHOWN_SETTINGS:
        screen.print(f"and {len(found.spec) - SHOWN_SETTINGS} more settings (see --json)")
    for note in found.partly:
        screen.print(note)
    for array in found.arrays:
        screen.print(f"{printable(array.name)}: {_difference(array, found.tol)}")
    for names, only, other in zip(found.only_in, (first, second), (second, first), strict=True):
        if names:
            screen.print(f"only in {only}, not in {other}: {', '.join(map(printable, names))}")
    screen.print(_verdict(found))


def _setting(value: Any) -> str:
    return "-" if value is None else printable(value)


def _difference(array: ArrayDifference, tol: float | None) -> str:
    parts = [printable(array.note)] if array.note else []
    if array.compared and not array.different:
        return ", ".join([*parts, f"equal to the last bit ({array.compared} numbers)"])
    if array.different:
        where = ", ".join(f"{name} = {printable(value)}" for name, value in array.where.items())
        at = f" at {where}" if where else ""
        parts.append(
            f"{array.different} of {array.compared} differ, by at most {array.max_absolute:.3g}{at} "
            f"(relative {array.max_relative:.3g})"
        )
        if tol is not None:
            parts.append(
                "within the tolerance" if not array.outside else f"{array.outside} beyond it"
            )
    return ", ".join(parts)


def _verdict(found: Comparison) -> str:
    if not found.equal:
        return "different"
    return "equal to the last bit" if found.tol is None else f"equal within {found.tol:g}"


def export(
    run: Path = typer.Argument(..., metavar="RUN", help="The folder of a run, a trace or a sweep."),
    to: str = typer.Option(..., "--to", metavar="csv|parquet|npz", help="The format."),
    out: Path | None = typer.Option(
        None,
        "--out",
        metavar="FILE",
        help="The file; x becomes x.csv, x.parquet or x.npz (default: RUN.FORMAT in this folder).",
    ),
    arrays: str | None = typer.Option(
        None, "--arrays", metavar="A,B", help="Only these (default: all): tokenflock show RUN."
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace files that exist."),
    as_json: bool = JSON,
) -> None:
    """Write a result as tidy tables (CSV, Parquet) or as a NumPy archive.

    A table has one row per combination of coordinates; arrays over other dimensions go to a file of
    their own, named after these: `--out x` then writes x-time.csv, x-time-token-coordinate.csv, ...

    Examples:

    - For a spreadsheet or R: `tokenflock export runs/phase --to csv --arrays order_parameter`

    - For pandas, Polars, DuckDB: `tokenflock export runs/phase --to parquet`

    - For NumPy: `tokenflock export runs/mine --to npz --out mine.npz`
    """
    from ..records.exporting import export as export_result
    from ..records.opening import find_result

    wanted = None if arrays is None else [name.strip() for name in arrays.split(",")]
    written = export_result(find_result(run), to, out, wanted, overwrite)
    if "cells_done" in written:
        typer.echo(
            f"tokenflock: the sweep is not finished: {written['cells_done']} of {written['cells']} cells are "
            "done, and the others are NaN",
            err=True,
        )
    if as_json:
        _echo_json(written)
        return
    for file in written["files"]:
        typer.echo(printable(file))
