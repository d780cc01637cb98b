"""tokenflock trace retrieval: what the last token of a causal model still knows of an earlier one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from .bars import bar_on_stderr
from .errors import in_a_sentence
from .held import held
from .plainly import printable
from .trace import (
    BETA_SCALE,
    FILE,
    JSON,
    MODEL,
    NO_ATTENTION,
    NO_MLP,
    OUT,
    OVERWRITE,
    PRECISION,
    RETRIEVAL,
    SPLIT,
    TEXT,
    TOKENS,
    texts_given,
    trace_app,
)

if TYPE_CHECKING:
    import xarray as xr


@trace_app.command(RETRIEVAL)
@in_a_sentence
def retrieval(
    model: Path = MODEL,
    text: str | None = TEXT,
    file: Path | None = FILE,
    tokens: Path | None = TOKENS,
    random: int | None = typer.Option(
        None, "--random", metavar="P", min=1, help="P prompts of independent random tokens."
    ),
    length: int | None = typer.Option(
        None,
        "--length",
        metavar="N",
        min=1,
        help="Tokens of every prompt (default: the shortest's).",
    ),
    positions: int = typer.Option(
        16, "--positions", metavar="K", min=2, help="Positions whose token is replaced."
    ),
    read: int | None = typer.Option(
        None, "--read", metavar="N", help="Position that is read, from 1 (default: the last)."
    ),
    draws: int = typer.Option(8, "--draws", metavar="R", help="Replacements of one token."),
    sets: int = typer.Option(2, "--sets", metavar="S", help="Independent sets of replacements."),
    pool: Literal["vocabulary", "prompts"] = typer.Option(
        "vocabulary", "--pool", help="Where replacements come from."
    ),
    split: str | None = SPLIT,
    no_mlp: bool = NO_MLP,
    no_attention: bool = NO_ATTENTION,
    beta_scale: float = BETA_SCALE,
    precision: str | None = PRECISION,
    seed: int = typer.Option(
        0, "--seed", metavar="N", min=0, help="Seed of replacements and prompts."
    ),
    out: Path | None = OUT,
    overwrite: bool = OVERWRITE,
    as_json: bool = JSON,
) -> None:
    """Replace one token of a prompt and measure how the last position answers, layer by layer.

    The counterpart, on a trained causal model, of the retrieval profile of 2605.09213 ("lost in the
    middle"): variance and covariance of the last token's direction over replacements of the token at
    relative position s0, all others fixed, with standard errors over prompts. It is a measurement beside
    the theory, not a check of it. Cost: prompts x sets x positions forward passes of R texts.

    Examples:

    - Prompts of a file: `tokenflock trace retrieval model.gguf --file texts.txt --length 64 --out runs/r`

    - Independent random tokens, as in the theory: `tokenflock trace retrieval model.gguf --random 8`

    Read it in Python: `flock.tracing.retrieval_response(model, texts)["response"]`
    """
    from ..errors import InputError
    from ..tracing.interventions import Interventions
    from ..tracing.load import open_checkpoint
    from ..tracing.retrieval import retrieval_response
    from ..tracing.retrieval_files import check_retrieval_place, write_retrieval
    from ..tracing.tokenise import read_texts, read_tokens

    if out is not None:
        check_retrieval_place(out, overwrite)
    if overwrite and out is None:
        raise InputError("--overwrite replaces the result in --out; name that folder")
    given = texts_given(text, file, tokens, needed=random is None)
    if given and random is not None:
        raise InputError(f"give a {next(iter(given))} or --random, not both")
    change = Interventions(mlp=not no_mlp, attention=not no_attention, beta_scale=beta_scale)
    with held(out), bar_on_stderr(f"retrieval {model.name}") as tell:
        tell(0.0, "loading")
        checkpoint = open_checkpoint(model, precision)
        data = retrieval_response(
            checkpoint,
            read_texts(given["file"]) if "file" in given else given.get("text"),
            words=read_tokens(checkpoint, given["tokens"]) if "tokens" in given else None,
            random=random,
            length=length,
            positions=positions,
            read=read,
            draws=draws,
            sets=sets,
            pool=pool,
            split=split,
            change=change,
            seed=seed,
            report=tell,
        )
        if out is not None:
            tell(1.0, "writing")
            write_retrieval(data, out)
    _tell(data, out, as_json)


def _tell(data: xr.Dataset, place: Path | None, as_json: bool) -> None:
    """The JSON object, or the last layer's profile and what it shows."""
    from ..tracing.retrieval_narrative import plain_words, summary

    if as_json:
        typer.echo(json.dumps(summary(data), allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table

    last = int(data.layer.values[-1])
    columns = ("response", "response_error", "covariance", "covariance_error")
    grid = Table(box=None, pad_edge=False, title=f"layer {last}", title_justify="left")
    for title in ("position", "s0", "response", "error", "covariance", "error"):
        grid.add_column(title, justify="right")
    for index, position in enumerate(data.position.values):
        numbers = (f"{data[name].values[last, index]:.3g}" for name in columns)
        grid.add_row(str(position), f"{data.s0.values[index]:.3f}", *numbers)
    console = Console(markup=False, highlight=False)
    console.print(grid)
    for line in plain_words(data):
        console.print(f"- {line}")
    if place is not None:
        console.print(
            printable(f"{place}: {', '.join(sorted(item.name for item in place.iterdir()))}")
        )
