"""trace: what the statistics of a checkpoint cost beside its forward pass, in time and in memory.

Times are of contestants in one process, in turn. Memory is that of a fresh process (`python -m
tokenflock.applications.benchmarks.trace ours MODEL N`): the peak of its resident memory during the run,
less what it held after the model was made and a few tokens had passed through it.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping

import numpy as np

from ...compiled_programs import return_free_memory
from .core import OURS, BenchJob, Row, benchmark
from .lenses import (
    ATTENTIONS,
    HIDDEN,
    LENS,
    SHAPES,
    attentions_of,
    checkpoint_of,
    lens_of,
    mean_cosines,
    random_words,
    with_hidden_states,
    with_statistics,
    with_trace,
)
from .memory import fresh_process, taken_by
from .peers import gather
from .timing import Contestant, again

# Tracing takes less than twice the time of the forward pass beside it.
PROMISED = 0.5
# Memory grows like n, where every attention matrix together would grow like n^2.
LARGEST_EXPONENT = 1.3
LEAST_SAVING = 10.0
PROMISED_FROM = 4096
WARM_UP = 16


@benchmark(
    "trace",
    says="a forward pass of a checkpoint with the statistics of every layer and head",
    quick={
        "models": (("GPT-2 small", 512),),
        "texts": 4,
        "memory_of": (("GPT-2 small", 512),),
        "growing": "a small Llama",
        "sizes": (512, 2048),
        "repeats": 5,
        "budget": 10.0,
        "rest": 0.25,
    },
    full={
        "models": (
            ("GPT-2 small", 512),
            ("SmolLM2-135M", 512),
            ("MiniLM-L6", 256),
            ("ALBERT of rxnmapper", 82),
        ),
        "texts": 8,
        "memory_of": (("GPT-2 small", 512), ("SmolLM2-135M", 512)),
        "sizes": (512, 1024, 2048, 4096),
        "repeats": 9,
        "budget": 20.0,
    },
)
def trace(job: BenchJob) -> list[Row]:
    """Times per model, memory per model, memory against the number of tokens."""
    rows = []
    steps = 2 * len(job.models) + len(job.memory_of) + len(job.sizes)
    for model, n in job.models:
        for measure in (_pass, _call):
            job.report(len(rows) / steps, f"{model}, n = {n}")
            rows.append(measure(job, model, n))
    for model, n in job.memory_of:
        job.report(len(rows) / steps, f"memory of {model}, n = {n}")
        rows.append(_memory(model, n))
    taken = {}
    for n in job.sizes:
        job.report((len(rows) + len(taken)) / steps, f"memory at n = {n}")
        taken[n] = peak(OURS, job.growing, n)
    return [*rows, *_growth(job.growing, taken)]


# --- time ---


def _pass(job: BenchJob, model: str, n: int) -> Row:
    """One text: all statistics beside the forward pass."""
    checkpoint, words = checkpoint_of(model), random_words(n)
    peers = {
        HIDDEN: lambda: lambda: with_hidden_states(checkpoint, words)[-1],
        LENS: lambda: _lens(model, n),
    }
    field = gather(job, lambda: lambda: with_statistics(checkpoint, words), peers)
    direct = mean_cosines(with_hidden_states(checkpoint, words))
    row = _raced(job, f"{model}, one text of {n} tokens: a pass with statistics", field.contestants)
    row.error = float(np.max(np.abs(field.outputs[OURS] - direct)))
    row.missing = field.missing
    return row.bar_against(HIDDEN, PROMISED)


def _call(job: BenchJob, model: str, n: int) -> Row:
    """Several texts as a user traces them: with the spectra of the weights and the theory.

    No bar: the spectra are read once per model, so the ratio is a matter of how many texts there are.
    """
    checkpoint, words = checkpoint_of(model), random_words(n)
    contestants = {
        OURS: lambda: with_trace(checkpoint, words, job.texts),
        HIDDEN: again(lambda: with_hidden_states(checkpoint, words), job.texts),
    }
    for call in contestants.values():
        call()
    return _raced(job, f"{model}, {job.texts} texts of {n} tokens: flock.trace", contestants)


def _lens(model: str, n: int) -> Contestant:
    """TransformerLens on a copy of its own; the first output, on the host."""
    run, words = lens_of(checkpoint_of(model)), random_words(n)
    return lambda: run(words)[0]


def _raced(job: BenchJob, case: str, contestants: Mapping[str, Contestant]) -> Row:
    samples = job.race(contestants)
    seconds = {name: taken.median for name, taken in samples.items()}
    return Row(case, seconds.pop(OURS), "s", peers=seconds, spread=samples[OURS].spread)


# --- memory ---


def _memory(model: str, n: int) -> Row:
    peers, missing = {}, []
    for name in (HIDDEN, ATTENTIONS, LENS):
        try:
            peers[name] = peak(name, model, n)
        except ImportError:
            missing.append(f"{name}: not installed")
        except RuntimeError as error:
            missing.append(f"{name}: {error}"[:160])
    row = Row(
        f"{model}, {n} tokens: memory of flock.trace", peak(OURS, model, n), "GB", peers=peers
    )
    row.missing = missing
    return row.bar_against(ATTENTIONS, 1.0).bar_against(LENS, 1.0)


def _growth(model: str, taken: Mapping[int, float]) -> list[Row]:
    """A row per n beside all attention matrices, and the exponent p of memory ~ n^p."""
    *_, shape = SHAPES[model]
    matrices = shape["num_hidden_layers"] * shape["num_attention_heads"]
    stored = "every n x n matrix in float32 (computed)"
    rows = [
        Row(f"{model}, {n} tokens: memory", size, "GB", peers={stored: 4e-9 * matrices * n * n})
        for n, size in taken.items()
    ]
    sizes = list(taken)
    if sizes[-1] >= PROMISED_FROM:
        rows[-1].bar_against(stored, LEAST_SAVING)
    exponent = float(np.polyfit(np.log(sizes), np.log(list(taken.values())), 1)[0])
    growth = Row(f"growth of memory from {sizes[0]} to {sizes[-1]} tokens", exponent, "exponent")
    return [*rows, growth.bar_below(LARGEST_EXPONENT)]


def peak(contestant: str, model: str, n: int) -> float:
    """Gigabytes above the model's own in a fresh process."""
    return fresh_process(__name__, contestant, model, n)["gigabytes"]


def probe(contestant: str, model: str, n: int) -> dict[str, float]:
    """Make the model, pass a few tokens through it, then n."""
    look = PROBES[contestant](checkpoint_of(model))
    look(random_words(WARM_UP))
    words = random_words(n)
    return_free_memory()
    return {"gigabytes": taken_by(lambda: look(words))}


PROBES: dict[str, Callable[..., Callable[..., object]]] = {
    OURS: lambda checkpoint: functools.partial(with_trace, checkpoint),
    HIDDEN: lambda checkpoint: functools.partial(with_hidden_states, checkpoint),
    ATTENTIONS: attentions_of,
    LENS: lens_of,
}

if __name__ == "__main__":
    asked, model, n = sys.argv[1:]
    try:
        print(json.dumps(probe(asked, model, int(n))))
    except ImportError:
        sys.exit(3)
