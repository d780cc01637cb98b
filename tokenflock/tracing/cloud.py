"""Statistics of one set of tokens: one hidden state of a model, cosines to clusters to rank.

Every number that the engine also knows (effective_rank, clusters, order_parameter, scaled_energy,
gram_histogram) has the engine's definition, with equal masses 1/n. It is computed here in torch,
because a trace reads a state of another length at every text and must not compile for each.

All sums are float64, whatever the model ran in. Inner products then carry 1e-15, and the squared
chord |x - y|^2 = 2 - 2<x, y> decides "closer than an angle a" with an error of 1e-15/a rad: the
engine's differences (needed where tokens meet to 1e-8) would cost O(n^2 d) outside of BLAS, for
angles of 0.05 rad and more. Float32 states are themselves only known to 1e-7 rad.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, require

if TYPE_CHECKING:
    from torch import Tensor

CLUSTER_ANGLE = 0.1415  # rad; the cosine 0.99 of published measurements
ANGLES = (0.05, CLUSTER_ANGLE, 0.45)
BINS = 64
FINE_BINS = 256 * BINS  # quantiles are known to 2/16384 = 1.2e-4
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SMALLEST_ANGLE = 1e-5  # below it the rounding of 2 - 2<x, y> decides who is close
NEGLIGIBLE_GAIN = 1e-6
BLOCK_PAIRS = 2**18  # 2 MB of float64: a block stays in the cache through all its uses


@dataclass(frozen=True)
class Affine:
    """The map x -> gain x + bias with which a normalisation layer ends (`bias` None: RMSNorm)."""

    gain: Tensor
    bias: Tensor | None = None

    @cached_property
    def inverse_gain(self) -> Tensor:
        """1/gain; 0 where |gain| < 1e-6 max|gain|, whose coordinates hold only rounding."""
        import torch

        gain = self.gain.detach().to(torch.float64)
        size = gain.abs()
        kept = size >= NEGLIGIBLE_GAIN * size.max().clamp(min=torch.finfo(gain.dtype).tiny)
        return torch.where(kept, 1.0 / torch.where(kept, gain, 1.0), 0.0)

    def undo(self, hidden: Tensor) -> Tensor:
        """(hidden - bias)/gain in float64, 0 in the coordinates that are left out. O(n d)."""
        import torch

        require(
            hidden.shape[-1] == self.gain.numel(),
            f"the normalisation acts on {self.gain.numel()} coordinates, the hidden state has "
            f"{hidden.shape[-1]}; give the norm that this state leaves",
        )
        states = hidden.detach().to(torch.float64)
        return (states if self.bias is None else states - self.bias.detach()) * self.inverse_gain


def sphere_tokens(hidden: Tensor, affine: Affine | None = None) -> Tensor:
    """x_i = normalise((h_i - bias)/gain), float64 (n, d); normalise(h_i) without `affine`. O(n d).

    A zero vector has no direction and stays zero: its cosine with every token is 0, it is a cluster
    of its own, and it adds nothing to the rank.
    """
    states = _states(hidden) if affine is None else affine.undo(_states(hidden))
    return _normalise(states)[0]


def cloud(
    hidden: Tensor,
    affine: Affine | None = None,
    *,
    reference_beta: float,
    angles: Sequence[float] = ANGLES,
    cluster_angle: float = CLUSTER_ANGLE,
    first: bool = True,
    tokens: Tensor | None = None,
    rows: int | None = None,
) -> dict[str, float | int | np.ndarray]:
    """All statistics of one hidden state h (n, d), with x the sphere tokens of it.

    mean_cosine: mean of cos(h_i, h_j) over i != j, and mean_cosine_rest without the first token
    (only with `first`); sphere_cosine: the same of x. Pairs: see `_Pairs`. Second moment of x:
    see `_moment`. Norms of h: see `_sizes`. Means over no pair (n = 1) are NaN. Who has the
    `sphere_tokens` already gives them as `tokens`; `affine` is then not read.

    O(n^2 d + min(n, d)^3) time, O(n d) memory: pairs are visited in blocks of `rows` rows, which
    change no number beyond rounding.
    """
    angles = _checked_angles(angles, cluster_angle)
    states = _states(hidden)
    directions, norms = _normalise(states)
    if tokens is None:
        tokens = directions if affine is None else _normalise(affine.undo(states))[0]
    pairs = _visit_pairs(tokens, angles, float(reference_beta), rows)
    raw = _Resultant.of(directions)
    sphere = raw if tokens is directions else _Resultant.of(tokens)
    found = {
        "mean_cosine": raw.mean_cosine(),
        "sphere_cosine": sphere.mean_cosine(),
        "order_parameter": sphere.length(),
        "clusters": int(pairs.counts[angles.index(cluster_angle)]),
        "clusters_at": pairs.counts,
        "cosine_histogram": pairs.histogram,
        "cosine_quantiles": pairs.quantiles,
        "scaled_energy": pairs.energy,
        **_moment(tokens, pairs.gram),
        **_sizes(states, norms),
    }
    if first:
        found["mean_cosine_rest"] = raw.without(directions[0].cpu().numpy()).mean_cosine()
    return found


def spectrum_rank(spectrum: np.ndarray) -> np.ndarray:
    """exp of the entropy of a non-negative spectrum (last axis) normalised to sum one; 0 if zero."""
    positive = np.maximum(spectrum, 0.0)
    total = positive.sum(axis=-1, keepdims=True)
    shares = positive / np.where(total > 0, total, 1.0)
    entropy = -np.sum(shares * np.log(np.where(shares > 0, shares, 1.0)), axis=-1)
    return np.where(total[..., 0] > 0, np.exp(entropy), 0.0)


def _checked_angles(angles: Sequence[float], cluster_angle: float) -> tuple[float, ...]:
    chosen = tuple(float(angle) for angle in angles)
    require(
        all(SMALLEST_ANGLE <= angle < math.pi for angle in chosen),
        f"cluster angles must lie in [{SMALLEST_ANGLE}, pi) rad, got {chosen}",
    )
    require(
        float(cluster_angle) in chosen,
        f"the cluster angle {cluster_angle} must be one of the angles {chosen}; add it to them",
    )
    return chosen


def _states(hidden: Tensor) -> Tensor:
    import torch

    require(
        hidden.ndim == 2 and hidden.numel() > 0,
        f"a hidden state has the shape (tokens, coordinates), got {tuple(hidden.shape)}; "
        "give one text at a time",
    )
    return hidden.detach().to(torch.float64)


def _normalise(states: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors (zero stays zero) and norms; refuses NaN and infinity, which no mean survives."""
    import torch

    norms = torch.linalg.vector_norm(states, dim=-1)
    if not math.isfinite(float(norms.sum())):
        raise InputError(
            "a hidden state holds NaN or infinity: the model overflowed; run it in float32, or "
            "look at the layers before"
        )
    return states / norms.clamp(min=torch.finfo(norms.dtype).tiny)[:, None], norms


@dataclass(frozen=True)
class _Resultant:
    """sum_i x_i and sum_i |x_i|^2 of unit (or zero) vectors, from which means over pairs follow."""

    together: np.ndarray
    apart: float
    n: int

    @staticmethod
    def of(directions: Tensor) -> _Resultant:
        return _Resultant(
            directions.sum(0).cpu().numpy(), float(directions.norm()) ** 2, len(directions)
        )

    def without(self, one: np.ndarray) -> _Resultant:
        """The same vectors but one."""
        return _Resultant(self.together - one, self.apart - float(one @ one), self.n - 1)

    def mean_cosine(self) -> float:
        """sum_{i != j} <x_i, x_j>/(n (n - 1)) = (|sum_i x_i|^2 - sum_i |x_i|^2)/(n (n - 1))."""
        if self.n < 2:
            return math.nan
        return (float(self.together @ self.together) - self.apart) / (self.n * (self.n - 1))

    def length(self) -> float:
        """|sum_i x_i|/n, Kuramoto's order parameter."""
        return math.sqrt(float(self.together @ self.together)) / self.n


def _sizes(states: Tensor, norms: Tensor) -> dict[str, float | int | np.ndarray]:
    """Norms |h_i| (mean, median, largest, all), and the coordinate k with most of sum_i h_ik^2."""
    lengths, energies = norms.cpu().numpy(), states.square().sum(0).cpu().numpy()
    total, dimension = float(energies.sum()), int(energies.argmax())
    ranked, middle = np.sort(lengths), len(lengths) // 2
    return {
        "norm": float(lengths.mean()),
        "norm_median": float(ranked[middle] + ranked[-1 - middle]) / 2.0,
        "norm_max": float(ranked[-1]),
        "norms": lengths,
        "outlier_share": float(energies[dimension]) / total if total > 0 else math.nan,
        "outlier_dimension": dimension,
    }


def _moment(tokens: Tensor, gram: Tensor | None) -> dict[str, float]:
    """effective_rank and anisotropy (largest share) of the eigenvalues of M = sum_i x_i x_i^T / n.

    X X^T has the same non-zero eigenvalues as X^T X: the smaller one is taken, and the pairs have
    already computed (the upper triangle of) the first. O(n d min(n, d)).
    """
    import torch

    matrix = tokens.T @ tokens if gram is None else gram
    values = np.maximum(torch.linalg.eigvalsh(matrix, UPLO="U").cpu().numpy(), 0.0)
    total = values.sum()
    largest = float(values[-1] / total) if total > 0 else math.nan
    return {"effective_rank": float(spectrum_rank(values)), "anisotropy": largest}


@dataclass(frozen=True)
class _Pairs:
    """What the inner products of all pairs of sphere tokens say.

    counts: connected components of tokens within each angle. histogram: fractions of the pairs
    i != j in 64 equal bins of [-1, 1], the last one closed. quantiles: smallest c with
    P(cosine <= c) >= q, to 1.2e-4. energy: sum_ij e^{beta (<x_i, x_j> - 1)}/n^2. gram: its upper
    triangle where it is the smaller moment matrix (n <= d), so O(n d) memory.
    """

    counts: np.ndarray
    histogram: np.ndarray
    quantiles: np.ndarray
    energy: float
    gram: Tensor | None


def _visit_pairs(
    tokens: Tensor, angles: tuple[float, ...], beta: float, rows: int | None
) -> _Pairs:
    """Blocks of rows of the upper triangle: rows i..i+b against the columns from i on."""
    n, d = tokens.shape
    block = max(1, min(n, BLOCK_PAIRS // n if rows is None else rows))
    gram = tokens.new_empty(n, n) if n <= d else None
    fine = np.zeros(FINE_BINS + 1, dtype=np.int64)
    labels = [np.arange(n, dtype=np.int32) for _ in angles]
    energy = 0.0
    for start in range(0, n, block):
        cosines = tokens[start : start + block] @ tokens[start:].T
        if gram is not None:
            gram[start : start + block, start:] = cosines
        for which, angle in enumerate(angles):
            close = (cosines >= math.cos(angle)).cpu().numpy()
            labels[which] = join(labels[which], close, start)
        fine += _fine_counts(cosines)
        energy += _ordered(cosines.sub_(1.0).mul_(beta).exp_(), _total)
    counts = np.array([np.count_nonzero(label == np.arange(n)) for label in labels])
    return _Pairs(counts, *_law(fine), energy / n**2, gram)


def _ordered(block: Tensor, count: Callable[[Tensor], Any]) -> Any:
    """`count` over the ordered pairs of a block: its square part is symmetric, the rest met once."""
    size = len(block)
    everything = count(block)
    return everything if block.shape[1] == size else 2 * everything - count(block[:, :size])


def _total(values: Tensor) -> float:
    return float(values.sum())


def _fine_counts(cosines: Tensor) -> np.ndarray:
    """Ordered pairs i != j of a block by fine bin; one bin more for cosines of 1 and above."""
    import torch

    index = cosines.add(1.0).mul_(FINE_BINS // 2).to(torch.int32)
    index.fill_diagonal_(FINE_BINS + 1)

    def count(part: Tensor) -> np.ndarray:
        return torch.bincount(part.flatten(), minlength=FINE_BINS + 2).cpu().numpy()

    return _ordered(index, count)[: FINE_BINS + 1]


def _law(fine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Histogram (the last bin closed) and quantiles from the fine counts; NaN without a pair."""
    fine[-2] += fine[-1]
    fine = fine[:-1]
    cumulative = np.cumsum(fine)
    total = cumulative[-1]
    if total == 0:
        return np.full(BINS, math.nan), np.full(len(QUANTILES), math.nan)
    wanted = np.asarray(QUANTILES) * total
    at = np.searchsorted(cumulative, wanted)
    within = 1.0 - (cumulative[at] - wanted) / fine[at]  # linear inside the bin
    return fine.reshape(BINS, -1).sum(1) / total, 2.0 * (at + within) / FINE_BINS - 1.0


def join(labels: np.ndarray, close: np.ndarray, start: int = 0) -> np.ndarray:
    """Component labels after the edges of a block: `close` (b, m), rows and columns from `start`.

    A label is the smallest index of its component. Every row and column still next to another
    component takes its first such neighbour, the larger label hooks below the smaller, paths are
    compressed (Boruvka; the engine's `component_labels`): O(b m) a round, O(log n) rounds, and no
    list of edges, which in a collapsed cloud are n^2 many.
    """
    if np.count_nonzero(close) == np.count_nonzero(close.diagonal()):
        return labels
    while True:
        here = labels[start:]
        outside = close & (here[: len(close), None] != here[None, :])
        row, column = _first_neighbours(outside)
        if not len(row):
            return labels
        labels = _hook(labels, here[row], here[column])


def _first_neighbours(outside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first edge of each row; of each column too, where the block is not symmetric."""
    rows, columns = outside.shape
    column = outside.argmax(axis=1)
    row = np.flatnonzero(outside[np.arange(rows), column])
    column = column[row]
    if columns == rows:
        return row, column
    above = np.ascontiguousarray(outside[:, rows:].T)
    first = above.argmax(axis=1)
    below = np.flatnonzero(above[np.arange(columns - rows), first])
    return np.concatenate([row, first[below]]), np.concatenate([column, rows + below])


def _hook(labels: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    parents = np.arange(len(labels), dtype=labels.dtype)
    np.minimum.at(parents, np.maximum(one, other), np.minimum(one, other))
    while True:
        further = parents[parents]
        if np.array_equal(further, parents):
            return parents[labels]
        parents = further
