"""tokenflock trace: the theory's observables on a checkpoint, layer by layer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from .bars import bar_on_stderr
from .errors import in_a_sentence
from .held import held
from .plainly import printable

if TYPE_CHECKING:
    from ..trajectory import Trajectory

COMPARE = "compare"
RETRIEVAL = "retrieval"
PLAIN = "model"


class _ModelFirst(TyperGroup):
    """`trace compare A B` compares, `trace retrieval MODEL` replaces tokens; all else begins with MODEL."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(
            ctx, args if args[:1] in ([COMPARE], [RETRIEVAL]) else [PLAIN, *args]
        )


class _Nameless(TyperCommand):
    """The command behind `trace MODEL`: its usage shows no word between the two."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return super().make_context("", args, parent, **extra)


trace_app = typer.Typer(cls=_ModelFirst, add_completion=False, rich_markup_mode="markdown")

MODEL = typer.Argument(
    ..., metavar="MODEL", help="A folder in the Hugging Face layout, or a .gguf file."
)
TEXT = typer.Argument(None, metavar="TEXT", help="The text to read.")
FILE = typer.Option(
    None, "--file", metavar="F", help="Texts, one per line: means and bands over all of them."
)
TOKENS = typer.Option(
    None, "--tokens", metavar="F", help="Token ids or token strings instead of text, one per line."
)
SPLIT = typer.Option(
    None,
    "--split",
    metavar="REGEX",
    help="How to cut a text where the checkpoint has only vocab.txt; 'smiles' for reactions.",
)
TRUNCATE = typer.Option(False, "--truncate", help="Cut a text at the model's context length.")
WINDOW = typer.Option(
    None, "--window", metavar="N", min=2, help="Read a long text in windows of N tokens."
)
PRECISION = typer.Option(
    None, "--precision", metavar="DTYPE", help="float32, float64 or bfloat16 (default: as stored)."
)
REFERENCE = typer.Option(
    None,
    "--reference-beta",
    metavar="B",
    help="Beta of the energy and of the theory's curve (default: median of the heads' own).",
)
WITHOUT_FIRST = typer.Option(
    False, "--without-first", help="Leave the first token, often a sink, out of the states."
)
NO_MLP = typer.Option(False, "--no-mlp", help="Take the feed-forward block out of every layer.")
NO_ATTENTION = typer.Option(False, "--no-attention", help="Take attention out of every layer.")
REPEAT = typer.Option(
    1, "--repeat", metavar="K", help="Run the stack, or the shared layer, K times."
)
BETA_SCALE = typer.Option(
    1.0, "--beta-scale", metavar="S", help="Multiply attention scores by S (inverse temperature)."
)
SWAP = typer.Option(
    "none", "--swap-values", help="identity: attention moves tokens by plain averages (V = I)."
)
START = typer.Option(
    "text", "--start", help="random: Gaussian directions; permuted: the text's tokens shuffled."
)
SEED = typer.Option(0, "--seed", metavar="N", help="Seed of --start.")
OUT = typer.Option(None, "--out", metavar="DIR", help="Folder to write the result to.")
OVERWRITE = typer.Option(False, "--overwrite", help="Replace an earlier result in --out.")
LAYERS = typer.Option(
    None,
    "--layers",
    metavar="all|0,5,10-12",
    help="Layers of the table (default: about a dozen). 0 is the embedding.",
)
JSON = typer.Option(False, "--json", help="One JSON object on stdout.")


@trace_app.command(PLAIN, cls=_Nameless)
@in_a_sentence
def trace(
    model: Path = MODEL,
    text: str | None = TEXT,
    file: Path | None = FILE,
    tokens: Path | None = TOKENS,
    split: str | None = SPLIT,
    truncate: bool = TRUNCATE,
    window: int | None = WINDOW,
    out: Path | None = OUT,
    overwrite: bool = OVERWRITE,
    report: bool = typer.Option(
        False, "--report", help="Also write report.html and its pictures (into --out)."
    ),
    states: bool = typer.Option(
        False, "--states", help="Keep the tokens of every layer (memory O(L n d), not O(n d))."
    ),
    without_first: bool = WITHOUT_FIRST,
    no_mlp: bool = NO_MLP,
    no_attention: bool = NO_ATTENTION,
    repeat: int = REPEAT,
    beta_scale: float = BETA_SCALE,
    swap_values: Literal["none", "identity"] = SWAP,
    start: Literal["text", "random", "permuted"] = START,
    seed: int = SEED,
    precision: str | None = PRECISION,
    reference_beta: float | None = REFERENCE,
    layers: str | None = LAYERS,
    as_json: bool = JSON,
) -> None:
    """Follow the tokens of a text through a trained Transformer, with the theory's quantities.

    The original model runs (transformers + torch: `pip install "tokenflock[trace]"`), with hooks beside
    it; nothing is downloaded, and pickles are never executed.

    Examples:

    - Look: `tokenflock trace path/to/checkpoint "The quick brown fox jumps over the lazy dog."`

    - A page with pictures: `tokenflock trace path/to/checkpoint --file texts.txt --report --out runs/t`

    - Take a part out: `tokenflock trace path/to/checkpoint "..." --no-mlp --repeat 4`

    - Only vocab.txt: `tokenflock trace path/to/albert "CCO>>CC=O" --split smiles`

    - Several of them: `tokenflock trace compare runs/a runs/b runs/c`, or checkpoints and a text

    - What the last token knows of earlier ones: `tokenflock trace retrieval --help`

    Read it in Python: `run = tokenflock.open("runs/t"); run["mean_cosine"]`

    Exit codes: 0 fine, 1 the model failed, 2 bad usage or input, 130 interrupted.
    """
    from ..errors import InputError
    from ..tracing.interventions import Interventions
    from ..tracing.output import (
        asked_layers,
        check_trace_place,
        default_place,
        shown_layers,
        write,
    )
    from ..tracing.trace_values import depth

    place = default_place(model.name) if report and out is None else out
    if place is not None:
        check_trace_place(place, overwrite)
    if overwrite and out is None:
        raise InputError("--overwrite replaces the result in --out; name that folder")
    asked = asked_layers(layers)
    change = Interventions(
        mlp=not no_mlp,
        attention=not no_attention,
        repeat=repeat,
        beta_scale=beta_scale,
        swap_values=swap_values,
        start=start,
        seed=seed,
    )
    with held(place), bar_on_stderr(f"trace {model.name}") as tell:
        run = traced(
            model,
            texts_given(text, file, tokens),
            tell,
            split=split,
            truncate=truncate,
            window=window,
            change=change,
            precision=precision,
            reference_beta=reference_beta,
            states=states or report,
            without_first=without_first,
            attention_rank=report,
            perturbation=report,
        )
        shown = shown_layers(asked, depth(run))
        if place is not None:
            tell(1.0, "writing")
            write(run, place, overwrite, report=report)
    _tell(run, place, shown, as_json)


def texts_given(
    text: str | None, file: Path | None, tokens: Path | None, needed: bool = True
) -> dict[str, Any]:
    """Exactly one source of tokens."""
    from ..errors import InputError

    given = {"text": text, "file": file, "tokens": tokens}
    named = {name: value for name, value in given.items() if value is not None}
    if len(named) > 1:
        raise InputError(f"give one of TEXT, --file and --tokens, not {' and '.join(named)}")
    if needed and not named:
        raise InputError("there is nothing to read: give TEXT, --file F or --tokens F")
    return named


def traced(
    model: Path, given: dict[str, Any], tell: Callable[[float, str], None], **options: Any
) -> Trajectory:
    """Load once, then read text or tokens."""
    from ..tracing import trace as run_trace
    from ..tracing.load import open_checkpoint
    from ..tracing.tokenise import read_texts, read_tokens

    texts = read_texts(given["file"]) if "file" in given else given.get("text")
    tell(0.0, "loading")
    checkpoint = open_checkpoint(model, options.pop("precision"))
    words = read_tokens(checkpoint, given["tokens"]) if "tokens" in given else None
    return run_trace(checkpoint, texts, words=words, report=tell, **options)


def _tell(run: Trajectory, place: Path | None, shown: list[int], as_json: bool) -> None:
    """The JSON object, or a table and what happened in plain words."""
    from ..tracing.verdict import plain_words, summary, verdict

    if as_json:
        typer.echo(json.dumps(summary(run), allow_nan=False))
        return
    from rich.console import Console

    from ..tracing.output import layers_left_out, table
    from ..tracing.trace_values import depth

    console = Console(markup=False, highlight=False)
    console.print(table(run, shown))
    left_out = layers_left_out(shown, depth(run))
    if left_out:
        console.print(left_out)
    for line in plain_words(run):
        console.print(f"- {line}")
    found = verdict(run)
    console.print(f"verdict: {found.word} ({found.criterion})")
    if place is not None:
        console.print(
            printable(f"{place}: {', '.join(sorted(item.name for item in place.iterdir()))}")
        )
