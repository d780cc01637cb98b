"""How strongly a late token of a causal model depends on the token at an earlier position.

The theory of 2605.09213 has tokens e^{i theta} on the circle and the correlation
N Cov(e^{i theta_N(t)}, e^{i theta_k(0)}), whose real part is N Cov<x_N(t), x_k(0)>. On a trained network
x_N(l) is the direction of the hidden state at the read position N after layer l (a sphere token of
`trace`), and the token at position k is drawn anew while all others are fixed, R times:

    covariance_l(k) = N/(R-1) sum_r <x_N^r(l) - mean, x_k^r(0) - mean>    the theory's number
    response_l(k)   =   1/(R-1) sum_r |x_N^r(l) - mean|^2                 what moved at all

The covariance sees content only where the network carries it in the directions in which it was embedded;
values and MLPs turn it, and the response, the variance E Var(x_N | all tokens but k), does not mind.
Replacing one token while the others are fixed is the variance reduction of the theory's cyclic shifts:
the part of x_N that does not depend on token k, which is of order one, cancels in every difference. The
same replacements are used at all positions of a prompt, so that profiles are smoother than their errors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import require, require_whole
from ..progress import NotedReport
from ..provenance import provenance
from .api import forward_pass
from .architecture import Architecture
from .hooks import AttentionSeen, Listener
from .interventions import Interventions
from .load import Checkpoint, open_checkpoint
from .retrieval_prompts import Pool, Prompts, make_prompts
from .state_statistics import NormAffine, sphere_tokens
from .tokenise import Words

if TYPE_CHECKING:
    import xarray as xr
    from torch import Tensor

# With fewer positions a profile has no beginning, middle and end.
SHORTEST = 8
AXES = ("prompt", "set", "layer", "position")


def retrieval_response(
    model: str | Path | Any,
    text: str | Sequence[str] | None = None,
    *,
    words: Sequence[Words] | None = None,
    random: int | None = None,
    length: int | None = None,
    positions: int | Sequence[int] = 16,
    read: int | None = None,
    draws: int = 8,
    sets: int = 2,
    pool: Pool = "vocabulary",
    split: str | None = None,
    change: Interventions | None = None,
    precision: str | None = None,
    tokenizer: Any = None,
    seed: int = 0,
    report: NotedReport | None = None,
) -> xr.Dataset:
    """The response of the read position to a replaced token, by layer and position, with errors.

    model -- a causal model: a folder, a .gguf file, or a transformers model in memory.
    text, words or random -- prompts: texts, tokens, or that many prompts of independent tokens of the pool
        (the hypothesis of the theory).
    length -- tokens read of every prompt (default: as many as the shortest has; 64 if random).
    positions -- how many positions, evenly spread from the first token to the read one, or which (from 1).
    read -- the position whose states are read (default: the last).
    draws, sets -- `sets` times `draws` different replacements, from the `pool`: all ordinary tokens of the
        "vocabulary", or those that occur in the "prompts".

    Variables: `response`, `covariance` (layer, position), with `_error` (one standard error, over prompts;
    over sets where there is one prompt) and `_samples` (prompt, set, layer, position). Cost: prompts x
    sets x positions forward passes of `draws` texts; memory that of one of them.
    """
    started = time.perf_counter()
    tell = report or (lambda done, note: None)
    tell(0.0, "loading")
    checkpoint = model if isinstance(model, Checkpoint) else open_checkpoint(model, precision)
    checkpoint.tokenizer = tokenizer or checkpoint.tokenizer
    change = _checked_change(change)
    _check_counts(draws, sets, seed)
    for name, number in (("length", length), ("random", random), ("read", read)):
        if number is not None:
            require_whole(name, number)
    prompts = make_prompts(checkpoint, text, words, random, length, split, pool, seed)
    require(
        prompts.length >= SHORTEST,
        f"the prompts have {prompts.length} tokens; a profile over positions needs {SHORTEST} or more: "
        "give longer texts or a larger length",
    )
    late = _read_position(read, prompts.length)
    places = _positions(positions, late, prompts.length)
    architecture = Architecture.of(checkpoint.model)
    _require_causal(architecture, change, prompts)
    samples = _samples(architecture, change, prompts, places, late, (sets, draws), tell)
    tell(1.0, "done")
    facts = {
        "model": checkpoint.name,
        "family": architecture.kind,
        "layers": architecture.passes * change.repeat,
        "length": prompts.length,
        "read": late,
        "prompts": len(prompts.ids),
        "sets": sets,
        "draws": draws,
        "pool": pool,
        "source": prompts.source,
        "seed": seed,
        "interventions": change.changed(),
        "notes": [*change.sentences(), *checkpoint.notes],
        "seconds": time.perf_counter() - started,
        **provenance(),
    }
    return _dataset(samples, places, late, facts)


def _checked_change(change: Interventions | None) -> Interventions:
    change = Interventions() if change is None else change
    require(
        change.start == "text",
        f"the response is to a replaced token of the prompt, and start={change.start!r} starts elsewhere; "
        "leave start as it is",
    )
    return change


def _check_counts(draws: int, sets: int, seed: int) -> None:
    require_whole("draws", draws)
    require_whole("sets", sets)
    require_whole("seed", seed, 0)
    require(draws >= 2, f"a variance needs 2 or more replacements, got draws={draws}")
    require(sets >= 1, f"there must be at least one set of replacements, got sets={sets}")


def _read_position(read: int | None, length: int) -> int:
    late = length if read is None else read
    require(
        2 <= late <= length,
        f"the read position must lie between 2 and {length}, the length of the prompts, got {late}",
    )
    return late


def _positions(positions: int | Sequence[int], late: int, length: int) -> np.ndarray:
    """Positions from 1, increasing: those given, or evenly spread from the first to the read one."""
    if isinstance(positions, int | float | np.number):
        require_whole("positions", positions)
        require(positions >= 2, f"a profile needs 2 or more positions, got {positions}")
        return np.unique(np.linspace(1, late, min(positions, late)).round().astype(int))
    given = np.unique(np.asarray(positions, dtype=float))
    require(
        given.size > 0 and bool(np.all((given >= 1) & (given <= length) & (given % 1 == 0))),
        f"positions are whole numbers from 1 to {length}, the length of the prompts, got {list(positions)}",
    )
    return given.astype(int)


# --- the measurement ---


@dataclass
class _Directions(Listener):
    """Unit vectors of chosen positions: after every layer, and before the first."""

    late: int
    early: int
    read: list[np.ndarray] = field(default_factory=list)
    start: np.ndarray | None = None

    def state(self, index: int, hidden: Tensor, affine: NormAffine | None) -> None:
        if index == 0:
            self.start = _directions(hidden[:, self.early - 1], affine)
        self.read.append(_directions(hidden[:, self.late - 1], affine))


def _directions(hidden: Tensor, affine: NormAffine | None) -> np.ndarray:
    return sphere_tokens(hidden, affine).cpu().numpy()


def _samples(
    architecture: Architecture,
    change: Interventions,
    prompts: Prompts,
    places: np.ndarray,
    late: int,
    counts: tuple[int, int],
    tell: NotedReport,
) -> dict[str, np.ndarray]:
    """Response and covariance of every prompt, set of replacements, layer and position."""
    sets, draws = counts
    rows, total = [], len(prompts.ids) * sets * len(places)
    for index, ids in enumerate(prompts.ids):
        for number in range(sets):
            drawn = prompts.replacements(index, number, draws)
            for place in places:
                tell(len(rows) / total, f"prompt {index + 1} of {len(prompts.ids)}, token {place}")
                heard = _Directions(late, int(place))
                _run(architecture, change, heard, _replaced(ids, int(place), drawn))
                rows.append(_second_moments(heard, late))
    shape = (len(prompts.ids), sets, len(places), -1)
    found = np.asarray(rows).reshape(*shape[:3], 2, -1)
    return {
        name: np.moveaxis(found[:, :, :, part], 2, 3)
        for part, name in enumerate(("response", "covariance"))
    }


def _replaced(ids: np.ndarray, place: int, drawn: np.ndarray) -> np.ndarray:
    """Copies of a prompt, each with another token at a position (from 1)."""
    copies = np.repeat(ids[None], len(drawn), axis=0)
    copies[:, place - 1] = drawn
    return copies


def _run(
    architecture: Architecture, change: Interventions, listener: Listener, copies: np.ndarray
) -> AttentionSeen:
    import torch

    device = next(architecture.model.parameters()).device
    return forward_pass(
        architecture, change, listener, {"input_ids": torch.tensor(copies, device=device)}
    )


def _second_moments(heard: _Directions, late: int) -> tuple[list[float], list[float]]:
    """(response, covariance) by layer."""
    assert heard.start is not None
    start = heard.start - heard.start.mean(axis=0)
    spare = len(start) - 1
    moved = [state - state.mean(axis=0) for state in heard.read]
    return (
        [float(np.sum(state**2)) / spare for state in moved],
        [late * float(np.sum(state * start)) / spare for state in moved],
    )


@dataclass
class _Everything(Listener):
    """The last hidden state of every token."""

    last: Tensor | None = None

    def state(self, index: int, hidden: Tensor, affine: NormAffine | None) -> None:
        self.last = hidden


def _require_causal(architecture: Architecture, change: Interventions, prompts: Prompts) -> None:
    """Another last token must leave all earlier states as they were; masks are believed as well."""
    import torch

    ids = prompts.ids[0]
    drawn = prompts.replacements(0, 0, 2)
    other = drawn[0] if drawn[0] != ids[-1] else drawn[1]
    heard = _Everything()
    seen = _run(architecture, change, heard, _replaced(ids, len(ids), np.asarray([ids[-1], other])))
    assert heard.last is not None
    states = heard.last[:, :-1].double()
    moved = torch.linalg.vector_norm(states[1] - states[0]) / torch.linalg.vector_norm(states[0])
    resolution = torch.finfo(heard.last.dtype).eps ** 0.5
    masked = seen.causal or seen.calls == 0 or not change.attention
    require(
        masked and float(moved) < resolution,
        f"{architecture.kind} is not causal: its early tokens see the late ones, so that no token is a "
        "memory of those before it; give a causal language model (GPT-2, Llama, ...)",
    )


# --- the result ---


def _dataset(
    samples: dict[str, np.ndarray], places: np.ndarray, late: int, facts: dict[str, Any]
) -> xr.Dataset:
    import xarray as xr

    variables: dict[str, Any] = {}
    for name, values in samples.items():
        variables[f"{name}_samples"] = (AXES, values)
        variables[name] = (AXES[2:], values.mean(axis=(0, 1)))
        variables[f"{name}_error"] = (AXES[2:], standard_error(values))
    layers = samples["response"].shape[2]
    coords = {
        "layer": np.arange(layers),
        "position": places,
        "s0": ("position", places / late),
    }
    return xr.Dataset(variables, coords=coords, attrs=facts)


def independent(values: np.ndarray) -> np.ndarray:
    """The independent units of samples (prompt, set, ...): prompts; of one prompt, its sets."""
    return values.mean(axis=1) if len(values) > 1 else values[0]


def standard_error(values: np.ndarray) -> np.ndarray:
    """Of the mean over (prompt, set, ...), from its independent units; NaN where there is one."""
    units = independent(values)
    if len(units) == 1:
        return np.full(units.shape[1:], np.nan)
    return units.std(axis=0, ddof=1) / np.sqrt(len(units))
