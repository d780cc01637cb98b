"""tokenflock list: what models, observables, examples, claims and figures there are, and what was run."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer


class Thing(StrEnum):
    """What can be listed."""

    models = "models"
    observables = "observables"
    examples = "examples"
    claims = "claims"
    figures = "figures"
    runs = "runs"


def list_things(
    what: Thing = typer.Argument(..., help="What to list."),
    folders: list[Path] = typer.Argument(
        None, metavar="[FOLDER]...", help="Where to look for runs (default: runs, or here)."
    ),
    where: str | None = typer.Option(
        None, "--where", metavar="CONDITION", help='Only runs that fulfil it: "beta > 4".'
    ),
    sort: str | None = typer.Option(
        None, "--sort", metavar="COLUMN", help="Order of the runs; -COLUMN for the last first."
    ),
    rebuild: bool = typer.Option(False, "--rebuild", help="Make the index of runs anew."),
    verify: bool = typer.Option(
        False,
        "--verify",
        help="Read every number of the runs, too, and name those that are not as they were written.",
    ),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
) -> None:
    """List models, observables, examples, claims, figures, or the runs, traces and sweeps in folders.

    Examples:

    - What there is: `tokenflock list models`

    - What was run: `tokenflock list runs`, or in other folders: `tokenflock list runs ~/thesis old`

    - A search: `tokenflock list runs --where "beta > 4 and model == 'SA'" --sort -created`

    - What is damaged? `tokenflock list runs --verify --where "outcome == 'damaged'"`

    A list is made from the label, the summary and the journal of a result, and names those in which these
    are damaged. It does not read the numbers: --verify does, which takes as long as reading the files.

    A condition is SQL's: == != < > and or not in like between, texts in single quotes. Columns are path,
    kind, title, model, label, id, outcome, created, seconds, version, device, cells, done, failed, damage,
    and the settings of a spec: beta, n, t1, or with their path where several are nested alike:
    "tokens.seed". A sweep is listed if any of its cells fulfils it.
    """
    if what is Thing.runs:
        from .list_runs import list_runs

        list_runs(folders or [], where, sort, rebuild, as_json, verify)
        return
    if folders or where or sort or rebuild or verify:
        from ..errors import InputError

        raise InputError(
            "folders, --where, --sort, --rebuild and --verify belong to tokenflock list runs, not "
            f"{what}"
        )
    rows = rows_of(what)
    sweeps = _sweeps() if what is Thing.examples else []
    if as_json:
        typer.echo(json.dumps({what.value: rows, **({"sweeps": sweeps} if sweeps else {})}))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("parameters")
    table.add_column("what it is")
    for row in [*rows, *sweeps]:
        cells = (row["name"], ", ".join(row["parameters"]), row["says"])
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table)


def rows_of(what: str) -> list[dict[str, Any]]:
    """Name, parameters and one sentence of every thing of a kind."""
    listings = {
        "models": _models,
        "observables": _observables,
        "examples": _examples,
        "claims": _claims,
        "figures": _figures,
    }
    return listings[str(what)]()


def _first_sentence(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


def _parameters(function: object) -> list[str]:
    """Parameters with their defaults; a slot that may stay empty is in brackets."""
    import inspect

    if not callable(function):
        return []
    return [_written(name, p.default) for name, p in inspect.signature(function).parameters.items()]


def _written(name: str, default: object) -> str:
    import inspect

    if default is inspect.Parameter.empty:
        return name
    return f"[{name}]" if default is None else f"{name}={default!r}"


def _models() -> list[dict]:
    from ..models import MODELS

    return [
        {"name": name, "parameters": _parameters(make), "says": _first_sentence(make.__doc__)}
        for name, make in MODELS.items()
    ]


def _observables() -> list[dict]:
    from ..observables import OBSERVABLES, Observable

    rows = []
    for name, thing in sorted(OBSERVABLES.items()):
        fixed = isinstance(thing, Observable)
        says = thing.says if fixed else _first_sentence(thing.__doc__)
        rows.append({"name": name, "parameters": [] if fixed else _parameters(thing), "says": says})
    return rows


def _examples() -> list[dict]:
    import tomllib

    from ..lab.catalogue import example_names, example_text

    rows = []
    for name in example_names():
        table = tomllib.loads(example_text(name))
        model = table["model"]
        shown = [model["name"], *([f"beta={model['beta']}"] if "beta" in model else [])]
        rows.append({"name": name, "parameters": shown, "says": table.get("says", "")})
    return rows


def _sweeps() -> list[dict]:
    import tomllib

    from ..sweeps.catalogue import sweep_example_names, sweep_example_text

    rows = []
    for name in sweep_example_names():
        table = tomllib.loads(sweep_example_text(name))
        shown = [table["model"]["name"], *(f"{axis}=..." for axis in table["sweep"]["axes"])]
        says = f"{table['says']} (tokenflock sweep --example {name})"
        rows.append({"name": name, "parameters": shown, "says": says})
    return rows


def _claims() -> list[dict]:
    from ..ledger import all_claims, asking_claims

    return [
        {
            "name": claim.id,
            "parameters": [f"{name}={value}" for name, value in claim.given.items()],
            "says": claim.says + (f" (needs --set {claim.asks}=...)" if claim.asks else ""),
        }
        for claim in [*all_claims(), *asking_claims()]
    ]


def _figures() -> list[dict]:
    from ..ledger import all_figures

    return [
        {
            "name": figure.id,
            "parameters": [f"{name}={value}" for name, value in figure.quick.items()],
            "says": f"{figure.title}: {figure.shows}",
        }
        for figure in all_figures()
    ]
