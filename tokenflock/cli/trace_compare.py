"""tokenflock trace compare: several checkpoints, or traces of one, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .bars import bar_on_stderr
from .errors import in_a_sentence
from .held import held
from .plainly import printable
from .trace import (
    COMPARE,
    FILE,
    JSON,
    LAYERS,
    OUT,
    OVERWRITE,
    PRECISION,
    REFERENCE,
    SPLIT,
    TOKENS,
    TRUNCATE,
    WINDOW,
    WITHOUT_FIRST,
    texts_given,
    trace_app,
    traced,
)

if TYPE_CHECKING:
    from ..trajectory import Trajectory

# Columns of the widest table: whatever the terminal has, no number is cut.
WIDEST = 10_000


@trace_app.command(COMPARE)
@in_a_sentence
def compare_traces(
    given: list[str] = typer.Argument(
        ...,
        metavar="A B [C ...] [TEXT]",
        help="Traced folders or checkpoints; a text for the latter.",
    ),
    file: Path | None = FILE,
    tokens: Path | None = TOKENS,
    split: str | None = SPLIT,
    truncate: bool = TRUNCATE,
    window: int | None = WINDOW,
    precision: str | None = PRECISION,
    reference_beta: float | None = REFERENCE,
    without_first: bool = WITHOUT_FIRST,
    layers: str | None = LAYERS,
    out: Path | None = OUT,
    overwrite: bool = OVERWRITE,
    as_json: bool = JSON,
) -> None:
    """Put two or more checkpoints, or traces of one, side by side; differences are taken from A.

    Examples:

    - Interventions: `tokenflock trace MODEL "..." --out runs/full`, then
      `tokenflock trace MODEL "..." --no-mlp --out runs/bare`, then
      `tokenflock trace compare runs/full runs/bare --out runs/both`

    - Checkpoints on one text: `tokenflock trace compare early/ middle/ late/ "some text"`
    """
    from ..tracing.compare import compare as compared
    from ..tracing.compare_page import write_compare
    from ..tracing.output import asked_layers, check_trace_place, is_traced, shown_layers

    if out is not None:
        check_trace_place(out, overwrite)
    asked = asked_layers(layers)
    places, text = _places_and_text(given)
    fresh = [place for place in places if not is_traced(place)]
    source = texts_given(text, file, tokens, needed=bool(fresh))
    _require_use(source, fresh)
    runs = []
    for place in places:
        if place not in fresh:
            runs.append(_stored(place))
            continue
        with bar_on_stderr(f"trace {place.name}") as tell:
            runs.append(
                traced(
                    place,
                    source,
                    tell,
                    split=split,
                    truncate=truncate,
                    window=window,
                    precision=precision,
                    reference_beta=reference_beta,
                    states=False,
                    without_first=without_first,
                )
            )
    found = compared(*runs)
    rows = shown_layers(asked, len(found["depth"]) - 1)
    if out is not None:
        with held(out):
            write_compare(runs, out)
    if as_json:
        typer.echo(json.dumps(found, allow_nan=False))
    else:
        _tell_comparison(found, rows, out)


def _places_and_text(given: list[str]) -> tuple[list[Path], str | None]:
    """What is on disk is compared; the last word is a text if there is no such file or folder."""
    from ..errors import InputError
    from ..tracing.files import locate

    last = Path(given[-1]).expanduser()
    text = None if _exists(last) else given[-1]
    places = given if text is None else given[:-1]
    if len(places) < 2:
        # With one folder and a word it is the second folder that is missing.
        located = [locate(place) for place in given]
        raise InputError(f"compare needs at least two traces or checkpoints, got {located[0]}")
    if text is not None and "/" in text and not any(letter.isspace() for letter in text):
        typer.echo(
            f"tokenflock: there is no file or folder {text}: it is read as the text", err=True
        )
    return [locate(place) for place in places], text


def _exists(path: Path) -> bool:
    """Whether there is such a path; a long text is no name of a file."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _require_use(source: dict[str, Any], fresh: list[Path]) -> None:
    """Refuse a text that nothing would read."""
    from ..errors import InputError

    if not source or fresh:
        return
    name, value = next(iter(source.items()))
    if name == "text":
        raise InputError(
            f"there is no file or folder {value!r}, and stored traces have been read already: they need "
            "no text"
        )
    raise InputError(
        f"--{name}: stored traces have been read already and need no text; leave it out"
    )


def _tell_comparison(found: dict[str, Any], rows: list[int], out: Path | None) -> None:
    from rich.console import Console

    from ..tracing.output import comparison_table, layers_left_out

    console = Console(markup=False, highlight=False)
    table = comparison_table(found, rows)
    # Wider than the terminal where need be: a number that is cut says something else.
    wanted = console.measure(table, options=console.options.update(max_width=WIDEST)).maximum
    Console(markup=False, highlight=False, width=max(console.width, wanted)).print(table)
    left_out = layers_left_out(rows, len(found["depth"]) - 1)
    if left_out:
        console.print(left_out)
    for line in found["words"]:
        typer.echo(line)
    if out is not None:
        typer.echo(printable(f"{out}: {', '.join(sorted(item.name for item in out.iterdir()))}"))


def _stored(place: Path) -> Trajectory:
    from ..store import read

    return read(place)
