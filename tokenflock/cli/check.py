"""tokenflock check: run claims of the ledger and print their verdicts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from ..compiled_programs import compile_quickly
from .errors import INTERRUPTED
from .scale import Scale

if TYPE_CHECKING:
    from ..ledger import Claim, Report

STYLES = {"holds": "green", "fails": "bold red", "inconclusive": "yellow"}


def check(
    claim: str | None = typer.Argument(
        None, metavar="ID", help="One claim, such as 2312.10794v4/thm-6.8 (default: all of them)."
    ),
    paper: str | None = typer.Option(
        None, "--paper", metavar="P", help="Only the claims of one paper, such as 2312.10794."
    ),
    scale: Scale = typer.Option(
        Scale.quick, "--scale", help="quick: minutes in all. paper: the papers' own sizes."
    ),
    seed: int = typer.Option(0, "--seed", metavar="S", min=0, help="Seed of all random draws."),
    settings: list[str] = typer.Option(
        [],
        "--set",
        metavar="NAME=VALUE",
        help="Move a parameter of the claim given by ID: --set n=64 --set beta=6. Repeatable.",
    ),
    jobs: int | None = typer.Option(
        None, "--jobs", metavar="N", min=1, help="Processes (default: one per core; one on a GPU)."
    ),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
) -> None:
    """Check what the papers claim: measured beside predicted, with a control that must fail.

    Examples:

    - All of them: `tokenflock check`

    - One theorem: `tokenflock check 2312.10794v4/thm-6.8`

    - Move a hypothesis: `tokenflock check 2312.10794v4/thm-6.8 --set n=64 --set beta=6`

    - One paper, for a program: `tokenflock check --paper 2411.04990 --json`

    What there is: `tokenflock list claims`. The table of all verdicts: docs/ledger.md.

    Exit codes: 0 all hold, 1 a claim fails or a run broke off, 2 bad usage or input,
    3 inconclusive, 130 interrupted.
    """
    if scale is Scale.quick:
        # Most of what a claim costs at this size is compiling it.
        compile_quickly()
    from ..ledger.batch import summary

    chosen = _chosen(claim, paper, settings)
    values = _parsed(settings)
    if values:
        chosen[0].values(scale.value, values)
    reports = _watched(chosen, scale.value, seed, values, jobs, quiet=as_json)
    totals = summary(reports)
    if as_json:
        answer = {"claims": [_plain(report) for report in reports], "summary": totals}
        typer.echo(json.dumps(answer, allow_nan=False))
    elif len(reports) > 1:
        _print_totals(totals)
    raise typer.Exit(_exit_code(totals))


def _chosen(claim: str | None, paper: str | None, settings: list[str]) -> list[Claim]:
    from ..errors import InputError
    from ..ledger import all_claims, find_claim, find_paper

    if claim is not None and paper is not None:
        raise InputError("give a claim's ID or --paper, not both")
    if settings and claim is None:
        raise InputError("--set moves the parameters of one claim; give its ID before it")
    if claim is not None:
        return [find_claim(claim)]
    if paper is None:
        return all_claims()
    return [each for each in find_paper(paper).claims if not each.asks]


def _parsed(settings: list[str]) -> dict[str, str]:
    from ..errors import InputError

    values = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise InputError(f"--set takes NAME=VALUE, got {text!r}; for example --set n=64")
        if name.strip() in values:
            raise InputError(f"--set {name.strip()} is given twice; choose one value")
        values[name.strip()] = value.strip()
    return values


def _watched(
    chosen: list[Claim],
    scale: Any,
    seed: int,
    values: dict[str, str],
    jobs: int | None,
    quiet: bool,
) -> list[Report]:
    """The reports in the order of the ledger, each printed as soon as its turn has come."""
    from ..integrate.progress import make_bar
    from ..ledger import check, check_many

    names = [claim.id for claim in chosen]
    stream = (
        iter([check(names[0], scale, seed, **values)])
        if values
        else check_many(names, scale, seed, jobs)
    )
    found: dict[str, Report] = {}
    shown = 0
    bar = make_bar("check")
    bar.live.transient = True  # it makes room for the lines
    try:
        for report in stream:
            found[report.id] = report
            bar.update(bar.task_ids[0], completed=len(found) / len(names), note=report.id)
            while shown < len(names) and names[shown] in found:
                if not quiet:
                    bar.stop()
                    _print_line(found[names[shown]], alone=len(names) == 1)
                    bar.start()
                shown += 1
    except KeyboardInterrupt:
        bar.stop()
        typer.echo(f"tokenflock: interrupted after {len(found)} of {len(names)} claims", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bar.stop()
    return [found[name] for name in names]


def _print_line(report: Report, alone: bool) -> None:
    """One line on stdout; a claim checked alone tells the rest of its story below it."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    line = Text.assemble(
        (f"{report.verdict:<13}", STYLES[report.verdict]),
        (report.id, "bold"),
        f"  {report.evidence}",
        ("  CONTROL DID NOT FAIL" if report.control_failed is False else "", "yellow"),
        (f"  [outside: {'; '.join(report.outside)}]" if report.outside else "", "yellow"),
        (f"  {report.seconds:.1f} s", "dim"),
    )
    console.print(line)
    if alone:
        for row in _story(report):
            console.print(Text(row))


def _story(report: Report) -> list[str]:
    """Statement, hypotheses, control and misprints of one claim."""
    given = ", ".join(f"{name}={value}" for name, value in report.settings.items())
    rows = [f"  says       {report.says}", f"  where      {report.paper}, {report.where}"]
    rows.append(f"  with       {given}; seed {report.seed}, scale {report.scale}")
    if report.outside:
        rows.append(f"  OUTSIDE    the hypotheses: needs {'; needs '.join(report.outside)}")
    for entry in report.comparisons:
        rows.append(
            f"  {entry['verdict']:<11}{entry['what']}: measured {entry['measured']:.8g} "
            f"{entry['relation']} {entry['predicted']:.8g} (tolerance {entry['tolerance']:.2g}, "
            f"numerical error {entry['numerical_error']:.1e})"
        )
    rows += [_trial("control", report.control)] if report.control else []
    rows += [_trial("misprint", trial) for trial in report.errata]
    return [*rows, f"  note       {report.note}"] if report.note else rows


def _trial(kind: str, trial: dict[str, Any]) -> str:
    changed = ", ".join(f"{name}={value}" for name, value in trial["settings"].items())
    fate = "fails, as it must" if trial["failed"] else "DID NOT FAIL"
    return f"  {kind:<11}{changed}: {fate} ({written(trial)}); {trial['why']}"


def written(trial: dict[str, Any]) -> str:
    """What a trial measured, beside what the claim predicts."""
    return f"{trial['what']}: {trial['measured']:.6g} against {trial['predicted']:.6g}"


def _print_totals(totals: dict[str, Any]) -> None:
    typer.echo(
        f"{totals['claims']} claims: {totals['holds']} hold, {totals['fails']} fail, "
        f"{totals['inconclusive']} inconclusive; {totals['controls_failed']} controls failed, "
        f"as they must; {totals['seconds']:.0f} s of computing"
    )


def _exit_code(totals: dict[str, Any]) -> int:
    if totals["fails"] or totals["broke_off"]:
        return 1
    return 3 if totals["inconclusive"] else 0


def _plain(report: Report) -> dict[str, Any]:
    """The report as strict JSON, in which a number that is none is null."""
    from dataclasses import asdict

    return _without_nan(asdict(report))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_without_nan(entry) for entry in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value
