"""tokenflock bench: measure ourselves beside the peers, and write the numbers down."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .bars import bar_on_stderr
from .errors import INTERRUPTED

if TYPE_CHECKING:
    from ..applications.benchmarks import Benchmark


class Scale(StrEnum):
    """quick: under a minute each. full: more repeats, larger sizes, peers measured and not scaled."""

    quick = "quick"
    full = "full"


def bench(
    name: str | None = typer.Argument(
        None, metavar="NAME", help="One benchmark (default: all that this machine can run)."
    ),
    scale: Scale = typer.Option(Scale.quick, "--scale", help="quick: under a minute each."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
    out: Path | None = typer.Option(
        None,
        "--out",
        metavar="FILE",
        help="Also write the JSON object here; without NAME, a folder that gets NAME.json of each.",
    ),
    listing: bool = typer.Option(False, "--list", help="List the benchmarks and leave."),
) -> None:
    """Measure speed, memory and error beside the peers that are installed.

    Ours and the peers run in turn in the same process; numbers are medians, the ratio is ours
    against the best peer (above 1 is better), the spread is half the range of our repeats.

    Examples:

    - What there is: `tokenflock bench --list`

    - One of them: `tokenflock bench dense-cpu`

    - For a program: `tokenflock bench spectral-circle --json --out circle.json`

    Peers come with `pip install "tokenflock[bench]"`. Committed numbers: docs/benchmarks.md.

    Exit codes: 0 measured, 1 a benchmark failed, 2 bad usage or input, 130 interrupted.
    """
    from ..applications.benchmarks import all_benchmarks

    if listing:
        _list(all_benchmarks(), as_json)
        return
    chosen = _chosen(name)
    targets = _targets(chosen, out, single=name is not None)
    results = [_measured(one, scale.value, targets.get(one.name), as_json) for one in chosen]
    if as_json:
        answer = results[0] if name is not None else {"benchmarks": results}
        typer.echo(json.dumps(answer, allow_nan=False))


def _chosen(name: str | None) -> list[Benchmark]:
    """The benchmark asked for, or all that run here; says which do not."""
    from ..applications.benchmarks import all_benchmarks, find_benchmark

    if name is not None:
        found = find_benchmark(name)
        found.require_device()
        return [found]
    chosen = [one for one in all_benchmarks() if one.runs_here()]
    left_out = [one.name for one in all_benchmarks() if one not in chosen]
    if left_out:
        typer.echo(f"tokenflock: no GPU here, left out: {', '.join(left_out)}", err=True)
    return chosen


def _targets(chosen: list[Benchmark], out: Path | None, single: bool) -> dict[str, Path]:
    """Where each result is written."""
    from ..applications.benchmarks.files import check_file, check_folder

    if out is None:
        return {}
    if single:
        check_file(out)
        return {chosen[0].name: out}
    check_folder(out)
    return {one.name: out / f"{one.name}.json" for one in chosen}


def _measured(one: Benchmark, scale: Any, target: Path | None, quiet: bool) -> dict[str, Any]:
    """Run one benchmark under a bar, write it, show it."""
    from ..applications.benchmarks.files import write

    try:
        with bar_on_stderr(one.name, stays=False) as report:
            result = one.run(scale, report)
    except KeyboardInterrupt:
        typer.echo(f"tokenflock: interrupted; {one.name} is not written", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if target is not None:
        write(result, target)
    if not quiet:
        _show(result, target)
    return result


def _list(benchmarks: list[Benchmark], as_json: bool) -> None:
    rows = [{"name": one.name, "device": one.device, "says": one.says} for one in benchmarks]
    if as_json:
        typer.echo(json.dumps({"benchmarks": rows}))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        typer.echo(f"{row['name']:<{width}}  {row['says']}")


def _show(result: dict[str, Any], target: Path | None) -> None:
    """A table per case: ours, then every peer; below it the bars, and who is missing."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"{result['name']}: {result['machine']}, {result['seconds']:.0f} s", "bold"))
    for row in result["rows"]:
        console.print(Text(f"\n{row['case']}"))
        console.print(_table(row))
        for line, style in bar_lines(row):
            console.print(Text(f"  {line}", style))
        for line in row["missing"]:
            console.print(Text(f"  without {line}", "dim"))
    console.print(Text("" if target is None else f"\n{target}"))


def _table(row: dict[str, Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    for _ in range(3):
        table.add_column(no_wrap=True)
    for name, value, times, error in table_rows(row):
        table.add_row(*(Text(cell) for cell in (f"  {name}", value, times, error)))
    return table


def table_rows(row: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Who, the number, how much better ours is, the error."""
    from ..applications.benchmarks.core import UNITS

    spread = "" if row["spread"] is None else f"spread {100 * row['spread']:.0f} %"
    rows = [("ours", f"{row['ours']:.3g} {row['unit']}", spread, _error(row["error"]))]
    for name, value in row["peers"].items():
        times = row["ours"] / value if UNITS[row["unit"]] else value / row["ours"]
        error = _error(row["peer_errors"].get(name))
        rows.append((name, f"{value:.3g} {row['unit']}", f"{times:.3g} x", error))
    return rows


def _error(value: float | None) -> str:
    return "" if value is None else f"error {value:.1e}"


def bar_lines(row: dict[str, Any]) -> list[tuple[str, str]]:
    """What was promised of this row and whether it is met, with a colour."""
    fates = {True: ("met", "green"), False: ("NOT MET", "bold red"), None: ("peer missing", "dim")}
    lines = []
    for bar in row["bars"]:
        fate, style = fates[bar["met"]]
        measured = "" if bar["measured"] is None else f" ({bar['measured']:.3g})"
        lines.append((f"{bar['says']}: {fate}{measured}", style))
    return lines
