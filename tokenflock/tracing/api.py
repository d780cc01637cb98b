"""`trace`: run a checkpoint on a text and read its tokens layer by layer."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, SolveError, TokenflockError, require
from ..progress import NotedReport
from ..trajectory import Trajectory
from .architecture import Architecture
from .arrays import WEIGHT_AXES
from .collect import Collector
from .hooks import AttentionSeen, Listener
from .interventions import Interventions, intervened
from .load import Checkpoint, open_checkpoint
from .perturbation import SIZES, Growth, moved_copy
from .result import TraceFacts, assemble
from .spectra import head_maps
from .tokenise import Words, encode, fit, limit

if TYPE_CHECKING:
    from pathlib import Path

# One forward pass reads tokens, or whatever keywords the model's own forward takes.
Given = Words | Mapping[str, Any]
# With neither weights that can be read nor a stated beta, energies are read at this one.
FALLBACK_BETA = 1.0
PERTURBATION_SEED = 1


def trace(
    model: str | Path | Any,
    text: str | Sequence[str] | None = None,
    *,
    words: Sequence[Words] | None = None,
    inputs: Mapping[str, Any] | None = None,
    split: str | None = None,
    truncate: bool = False,
    window: int | None = None,
    change: Interventions | None = None,
    precision: str | None = None,
    reference_beta: float | None = None,
    states: bool = True,
    without_first: bool = False,
    attention_rank: bool = False,
    perturbation: bool = False,
    tokenizer: Any = None,
    report: NotedReport | None = None,
) -> Trajectory:
    """Run a checkpoint on one or several texts; the clock of the result is the layer.

    model -- a folder in the Hugging Face layout, a .gguf file, or a transformers model in memory.
    text -- one text or several; or `words` (tokens already made), or `inputs` (keywords of the model's
        own forward, batch of one, as `pixel_values` of a ViT).
    split -- how to cut a text where the checkpoint has only vocab.txt: a regular expression, "smiles".
    truncate, window -- what to do with a text longer than the model's context.
    change -- interventions, see `Interventions`; precision -- None as stored, "float32", "float64".
    reference_beta -- the beta of energies and of the equiangular theory; None takes the median of the
        heads' own, read from their weights, and the result states it.
    states -- keep the sphere tokens of every layer (one text): memory O(L n d) instead of O(n d).
    without_first -- leave the first token out of the statistics of states: decoders park attention on it.
    attention_rank, perturbation -- two statistics that cost more than the rest together.

    The original implementation runs, with hooks beside it; nothing is downloaded.
    """
    started = time.perf_counter()
    tell = report or (lambda done, note: None)
    tell(0.0, "loading")
    checkpoint = model if isinstance(model, Checkpoint) else open_checkpoint(model, precision)
    checkpoint.tokenizer = tokenizer or checkpoint.tokenizer
    change = Interventions() if change is None else change
    given = _given(checkpoint, text, words, inputs, split, truncate, window, without_first)
    if change.start == "permuted":
        given = [_permuted(each, change.seed) for each in given]
    architecture = Architecture.of(checkpoint.model)
    tell(0.0, "reading the weights")
    weights = _weight_statistics(architecture)
    beta = _reference_beta(reference_beta, weights, change.beta_scale)
    settings = {
        "width": architecture.width,
        "reference_beta": beta,
        "keep_states": states and len(given) == 1,
        "without_first": without_first,
        "attention_rank": attention_rank,
    }
    passes, seen = _passes(architecture, change, given, settings, tell)
    growth = rounding = None
    if perturbation:
        growth, actual = _growth(architecture, change, given[0], checkpoint.dtype, tell)
        rounding = growth.rounding(actual)
    facts = TraceFacts(
        model=_about(checkpoint, architecture, seen),
        labels=_labels(given, passes, without_first),
        interventions=change.changed(),
        notes=[
            *change.sentences(),
            *_asides(architecture, given, states, without_first),
            *checkpoint.notes,
        ],
        missing=[*architecture.missing(), *_unread(architecture, seen)],
        scheme=architecture.scheme,
        causal=seen.causal,
        width=architecture.width,
        reference_beta=beta,
        seconds=time.perf_counter() - started,
        rounding=rounding,
        without_first=without_first,
    )
    extra = {} if growth is None else {"perturbation_growth": np.asarray(growth.growth())}
    tell(1.0, "done")
    return assemble(facts, passes, _by_layer(architecture, weights, passes[0]), extra)


def _given(
    checkpoint: Checkpoint,
    text: str | Sequence[str] | None,
    words: Sequence[Words] | None,
    inputs: Mapping[str, Any] | None,
    split: str | None,
    truncate: bool,
    window: int | None,
    without_first: bool,
) -> list[Given]:
    """What goes into the model, one entry per forward pass."""
    require(
        sum(item is not None for item in (text, words, inputs)) == 1,
        "give one of text, words or inputs: what the model is to read",
    )
    if inputs is not None:
        return [inputs]
    if text is not None:
        texts = [text] if isinstance(text, str) else list(text)
        words = [encode(checkpoint, each, split=split) for each in texts]
    assert words is not None
    require(len(words) > 0, "there is no text; give at least one")
    most = limit(checkpoint)
    pieces: list[Given] = []
    for each in words:
        pieces.extend(fit(each, most, truncate, window))
    shortest = min(len(piece) for piece in pieces)
    require(
        not without_first or shortest > 2,
        f"a text has {shortest} tokens; without the first one at least two must be left",
    )
    return pieces


def _permuted(given: Given, seed: int) -> Given:
    """The same tokens in another order; special ones around the text keep their places."""
    if not isinstance(given, Words):
        raise InputError("start=permuted shuffles the tokens of a text; give a text or tokens")
    first, last = given.prefix, len(given) - given.suffix
    order = [*range(first), *np.random.default_rng(seed).permutation(range(first, last))]
    order = [int(place) for place in [*order, *range(last, len(given))]]
    ids, labels = ([part[place] for place in order] for part in (given.ids, given.labels))
    return dataclasses.replace(given, ids=ids, labels=labels)


def _passes(
    architecture: Architecture,
    change: Interventions,
    given: Sequence[Given],
    settings: dict,
    tell: NotedReport,
) -> tuple[list[Collector], AttentionSeen]:
    """One forward pass, and one collector, per text; and what was met on the way."""
    seen = AttentionSeen()
    passes, depth = [], architecture.passes * change.repeat
    for index, each in enumerate(given):

        def progress(layer: int, index: int = index) -> None:
            note = f"layer {layer} of {depth}"
            if len(given) > 1:
                note = f"text {index + 1} of {len(given)}, {note}"
            tell((index + layer / depth) / len(given), note)

        collector = Collector(**settings, progress=progress)
        seen = forward_pass(architecture, change, collector, _tensors(each, architecture, copies=1))
        require(
            len(collector.states) > 1,
            f"{architecture.kind} gives no hidden states, neither by its layers nor by "
            "output_hidden_states=True; trace cannot read it",
        )
        passes.append(collector)
    return passes, seen


def _tensors(given: Given, architecture: Architecture, copies: int) -> dict[str, Any]:
    import torch

    device = next(architecture.model.parameters()).device
    if isinstance(given, Words):
        return {"input_ids": torch.tensor([given.ids] * copies, device=device)}
    return {
        name: torch.cat([value] * copies).to(device) if isinstance(value, torch.Tensor) else value
        for name, value in given.items()
    }


def forward_pass(
    architecture: Architecture,
    change: Interventions,
    listener: Listener,
    inputs: dict[str, Any],
    moved: Callable[[Any], Any] | None = None,
) -> AttentionSeen:
    """The backbone's own forward with the listener beside it."""
    import torch

    caches = hasattr(architecture.config, "use_cache") and not architecture.encoder_of
    keywords: dict[str, Any] = {"use_cache": False} if caches else {}
    if architecture.family is None:
        keywords["output_hidden_states"] = True
    try:
        with (
            torch.no_grad(),
            _without_dropout(architecture.model),
            intervened(architecture, change, listener, moved) as seen,
        ):
            architecture.backbone(**inputs, **keywords)
    except TokenflockError:
        raise
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise SolveError(
            f"{architecture.kind} failed on this input ({type(error).__name__}: {reason}); check the tokens "
            "and the interventions, or use a shorter text"
        ) from error
    require(
        seen.calls > 0 or change.beta_scale == 1.0,
        f"--beta-scale reaches attention through transformers' registry of attention functions, and "
        f"{architecture.kind} computes its own",
    )
    return seen


@contextlib.contextmanager
def _without_dropout(model: Any) -> Iterator[None]:
    """Eval mode, given back as it was: a model in memory may be in the middle of its training."""
    before = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training


def _growth(
    architecture: Architecture,
    change: Interventions,
    given: Given,
    precision: str,
    tell: NotedReport,
) -> tuple[Growth, str]:
    """Two copies of a text, one moved a little; and the precision the model really computes in.

    A model in float64 may still compute parts in float32 (the RMSNorm of Llama does): then a
    perturbation of 1e-10 is lost at once, and the larger one of float32 tells.
    """
    tell(0.95, "growth of a perturbation")

    def measured(size: float) -> Growth:
        heard, inputs = Growth(), _tensors(given, architecture, copies=2)
        move = functools.partial(moved_copy, size=size, seed=PERTURBATION_SEED)
        forward_pass(architecture, change, heard, inputs, move)
        return heard

    found = measured(SIZES[precision])
    if precision != "float64":
        return found, precision
    coarse = measured(SIZES["float32"])
    return (found, precision) if found.agrees(coarse) else (coarse, "float32")


def _weight_statistics(architecture: Architecture) -> list[dict[str, np.ndarray]] | None:
    """Spectra of every distinct layer."""
    projections = architecture.projections()
    return None if projections is None else [head_maps(each) for each in projections]


def _reference_beta(
    stated: float | None, weights: list[dict[str, np.ndarray]] | None, scale: float
) -> float:
    if stated is not None:
        require(0 <= stated < float("inf"), f"reference_beta must be >= 0, got {stated}")
        return float(stated)
    if weights is None:
        return FALLBACK_BETA
    return scale * float(np.median([layer["beta_weights"] for layer in weights]))


def _by_layer(
    architecture: Architecture, weights: list[dict[str, np.ndarray]] | None, heard: Collector
) -> dict[str, np.ndarray]:
    """The spectra in the order in which the layers ran; a shared layer appears at every pass."""
    if weights is None:
        return {}
    place = {id(layer): index for index, layer in enumerate(architecture.layers)}
    rows = [weights[place[id(module)]] for module in heard.order]
    return {name: np.stack([row[name] for row in rows]) for name in WEIGHT_AXES}


def _unread(architecture: Architecture, seen: AttentionSeen) -> list[str]:
    """Why there are no statistics of the attention, if there are none."""
    if seen.calls == 0:
        return [
            f"{architecture.kind} computes its attention itself, not through transformers' registry of "
            "attention functions: entropy, sinks and temperatures of its heads are left out"
        ]
    return [
        f"{why}: entropy, sinks and temperatures of its heads are left out"
        for why in sorted(seen.unread)
    ]


def _about(
    checkpoint: Checkpoint, architecture: Architecture, seen: AttentionSeen
) -> dict[str, Any]:
    config = architecture.config
    return {
        "name": checkpoint.name,
        "source": checkpoint.source,
        "family": architecture.kind,
        "layers": architecture.passes,
        "distinct_layers": len(architecture.layers),
        "heads": getattr(config, "num_attention_heads", None),
        "width": architecture.width,
        "normalisation": architecture.scheme,
        "causal": seen.causal,
        "parameters": sum(part.numel() for part in architecture.backbone.parameters()),
        "dtype": str(checkpoint.model.dtype).removeprefix("torch."),
        "context": limit(checkpoint),
    }


def _labels(
    given: Sequence[Given], passes: Sequence[Collector], without_first: bool
) -> list[list[str]]:
    """What each token of the states is called."""
    skipped = 1 if without_first else 0
    return [
        each.labels[skipped:]
        if isinstance(each, Words)
        else [str(index + skipped) for index in range(heard.count)]
        for each, heard in zip(given, passes, strict=True)
    ]


def _asides(
    architecture: Architecture, given: Sequence[Given], states: bool, without_first: bool
) -> list[str]:
    notes = []
    if architecture.encoder_of:
        notes.append(
            f"the encoder of {architecture.encoder_of} is traced; its decoder does not run"
        )
    if without_first:
        notes.append("the first token is left out of the states (not out of the attention)")
    parts = [each for each in given if isinstance(each, Words) and each.part]
    if parts:
        notes.append(
            f"parts of a longer text are read: {parts[0].part}" + (", ..." if parts[1:] else "")
        )
    if states and len(given) > 1:
        notes.append("several texts: states are not kept, statistics are given text by text")
    return notes
