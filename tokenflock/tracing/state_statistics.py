"""Statistics of one set of tokens: one hidden state of a model, cosines to clusters to rank.

A number under the name of one of the engine's observables has its definition, with equal masses 1/n
(tests/tracing/test_one_definition.py); cosine_histogram is the engine's gram_histogram. It is computed
here in torch, because a trace reads a state of another length at every text and must not compile for
each.

Sums over tokens are float64, whatever the model ran in; pairs and spectra have the precision of the
states (`working_precision`). The squared chord |x - y|^2 = 2 - 2<x, y> decides "closer than an angle a"
with an error of epsilon/a rad: the engine's differences (needed where tokens meet to 1e-8) would cost
O(n^2 d) outside of BLAS, for angles of 0.05 rad and more.

States of one shape are read together (leading axis b): in a small model the calls cost more than
the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError, require
from .pair_statistics import BINS, BLOCK_PAIRS, QUANTILES, join, visit_pairs

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "ANGLES",
    "BINS",
    "BLOCK_PAIRS",
    "CLUSTER_ANGLE",
    "QUANTILES",
    "NormAffine",
    "batched_state_statistics",
    "join",
    "spectrum_rank",
    "sphere_tokens",
    "state_statistics",
    "working_precision",
]

CLUSTER_ANGLE = 0.1415  # rad; the cosine 0.99 of published measurements
ANGLES = (0.05, CLUSTER_ANGLE, 0.45)
SMALLEST_ANGLE = 1e-5  # below it the rounding of 2 - 2<x, y> decides who is close
NEGLIGIBLE_GAIN = 1e-6
Row = dict[str, float | int | np.ndarray]


@dataclass(frozen=True)
class NormAffine:
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

    def fits(self, width: int) -> None:
        """Refuse a hidden state of another width."""
        require(
            width == self.gain.numel(),
            f"the normalisation acts on {self.gain.numel()} coordinates, the hidden state has "
            f"{width}; give the norm that this state leaves",
        )


def sphere_tokens(hidden: Tensor, affine: NormAffine | None = None) -> Tensor:
    """x_i = normalise((h_i - bias)/gain), float64 (n, d); normalise(h_i) without `affine`. O(n d).

    A zero vector has no direction and stays zero: its cosine with every token is 0, it is a cluster
    of its own, and it adds nothing to the rank.
    """
    return _directions(_states(hidden)[None], [affine])[0]


def state_statistics(
    hidden: Tensor,
    affine: NormAffine | None = None,
    *,
    reference_beta: float,
    angles: Sequence[float] = ANGLES,
    cluster_angle: float = CLUSTER_ANGLE,
    first: bool = True,
    rows: int | None = None,
) -> Row:
    """All statistics of one hidden state h (n, d), with x the sphere tokens of it.

    mean_cosine: mean of cos(h_i, h_j) over i != j, and mean_cosine_rest without the first token
    (only with `first`); sphere_cosine: the same of x. Pairs: see `Pairs`. Second moment of x:
    see `_moments`. Norms of h: see `_sizes`. Means over no pair (n = 1) are NaN.

    O(n^2 d + min(n, d)^3) time, O(n d) memory: pairs are visited in blocks of `rows` rows, which
    change no number beyond rounding.
    """
    chosen = _checked_angles(angles, cluster_angle)
    found, _ = batched_state_statistics(
        _states(hidden)[None], [affine], reference_beta, hidden.dtype, chosen, rows
    )
    row = found[0]
    row["clusters"] = int(np.asarray(row["clusters_at"])[chosen.index(float(cluster_angle))])
    if not first:
        del row["mean_cosine_rest"]
    return row


def batched_state_statistics(
    states: Tensor,
    affines: Sequence[NormAffine | None],
    reference_beta: float,
    kind: Any,
    angles: tuple[float, ...] = ANGLES,
    rows: int | None = None,
) -> tuple[list[Row], Tensor]:
    """`state_statistics` of b states (b, n, d), and their sphere tokens.

    The states are float64 and came in the dtype `kind`. "clusters" are those at the angle 0.1415, if
    it is among the angles.
    """
    norms = _finite_norms(states)
    tokens = _directions(states, affines)
    near = tokens.to(working_precision(kind))
    pairs = visit_pairs(near, angles, float(reference_beta), rows)
    raw, sphere = _Resultants.weighted(states, norms), _Resultants.of(tokens)
    found = {
        "mean_cosine": raw.mean_cosine(),
        "mean_cosine_rest": raw.without_first().mean_cosine(),
        "sphere_cosine": sphere.mean_cosine(),
        "order_parameter": sphere.length(),
        "clusters_at": pairs.counts,
        "cosine_histogram": pairs.histogram,
        "cosine_quantiles": pairs.quantiles,
        "scaled_energy": pairs.energy,
        **_moments(near, pairs.gram),
        **_sizes(states, norms),
    }
    if CLUSTER_ANGLE in angles:
        found["clusters"] = pairs.counts[:, angles.index(CLUSTER_ANGLE)]
    return _rows(found), tokens


def _rows(found: dict[str, np.ndarray]) -> list[Row]:
    """One row per state: numbers as Python's own, arrays as they are."""
    values = [each.tolist() if each.ndim == 1 else list(each) for each in found.values()]
    return [dict(zip(found, row, strict=True)) for row in zip(*values, strict=True)]


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


def _finite_norms(states: Tensor) -> Tensor:
    """|h_i|, (b, n); refuses NaN and infinity, which no mean survives."""
    import torch

    norms = torch.linalg.vector_norm(states, dim=-1)
    if not math.isfinite(float(norms.sum())):
        raise InputError(
            "a hidden state holds NaN or infinity: the model overflowed; run it in float32, or "
            "look at the layers before"
        )
    return norms


def _directions(states: Tensor, affines: Sequence[NormAffine | None]) -> Tensor:
    """normalise((h - bias)/gain) of b states in float64 (zero stays zero), each with its own norm.

    0 in the coordinates that are left out. One new array of the size of the states. O(b n d).
    """
    import torch

    bias, scale = torch.zeros_like(states[:, :1]), torch.ones_like(states[:, :1])
    for place, affine in enumerate(affines):
        if affine is not None:
            affine.fits(states.shape[-1])
            scale[place] = affine.inverse_gain
            if affine.bias is not None:
                bias[place] = affine.bias.detach()
    tokens = (states - bias).mul_(scale)
    norms = torch.linalg.vector_norm(tokens, dim=-1, keepdim=True)
    return tokens.div_(norms.clamp_(min=torch.finfo(norms.dtype).tiny))


@dataclass(frozen=True)
class _Resultants:
    """sum_i x_i and sum_i |x_i|^2 of b sets of unit (or zero) vectors: means over pairs follow.

    together (b, d), apart (b,), first (b, d): the first vector of each set.
    """

    together: np.ndarray
    apart: np.ndarray
    first: np.ndarray
    n: int

    @staticmethod
    def of(directions: Tensor) -> _Resultants:
        import torch

        apart = torch.linalg.vector_norm(directions, dim=(1, 2)).square()
        return _Resultants._read(directions.sum(1), apart, directions[:, 0], directions.shape[1])

    @staticmethod
    def weighted(states: Tensor, norms: Tensor) -> _Resultants:
        """Of the directions h_i/|h_i|, without writing them down."""
        import torch

        positive = norms > 0
        weights = torch.where(positive, 1.0 / norms, 0.0)
        together = (weights[:, None] @ states)[:, 0]
        first = states[:, 0] * weights[:, :1]
        return _Resultants._read(together, positive.sum(1), first, states.shape[1])

    @staticmethod
    def _read(together: Tensor, apart: Tensor, first: Tensor, n: int) -> _Resultants:
        found = [part.cpu().numpy() for part in (together, apart, first)]
        return _Resultants(found[0], found[1], found[2], n)

    def without_first(self) -> _Resultants:
        """The same vectors but the first."""
        alone = np.square(self.first).sum(-1)
        return _Resultants(self.together - self.first, self.apart - alone, self.first, self.n - 1)

    def mean_cosine(self) -> np.ndarray:
        """sum_{i != j} <x_i, x_j>/(n (n - 1)) = (|sum_i x_i|^2 - sum_i |x_i|^2)/(n (n - 1))."""
        if self.n < 2:
            return np.full(len(self.apart), math.nan)
        return (np.square(self.together).sum(-1) - self.apart) / (self.n * (self.n - 1))

    def length(self) -> np.ndarray:
        """|sum_i x_i|/n, Kuramoto's order parameter."""
        return np.sqrt(np.square(self.together).sum(-1)) / self.n


def _sizes(states: Tensor, norms: Tensor) -> dict[str, np.ndarray]:
    """Norms |h_i| (mean, median, largest, all), and the coordinate k with most of sum_i h_ik^2."""
    lengths, energies = norms.cpu().numpy(), states.square().sum(1).cpu().numpy()
    total, largest = energies.sum(-1), energies.max(-1)
    ranked, middle = np.sort(lengths), lengths.shape[-1] // 2
    return {
        "norm": lengths.mean(-1),
        "norm_median": (ranked[:, middle] + ranked[:, -1 - middle]) / 2.0,
        "norm_max": ranked[:, -1],
        "norms": lengths,
        "outlier_share": _shares(largest, total),
        "outlier_dimension": energies.argmax(-1),
    }


def _shares(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """part/total, NaN where there is nothing to share."""
    return np.where(total > 0, part / np.where(total > 0, total, 1.0), math.nan)


def _moments(tokens: Tensor, gram: Tensor | None) -> dict[str, np.ndarray]:
    """effective_rank and anisotropy (largest share) of the eigenvalues of M = sum_i x_i x_i^T / n.

    X X^T has the same non-zero eigenvalues as X^T X: the smaller one is taken, and the pairs have
    already computed (the upper triangle of) the first. O(n d min(n, d)) for each state.
    """
    import torch

    matrix = tokens.mT @ tokens if gram is None else gram
    spectrum = torch.linalg.eigvalsh(matrix, UPLO="U").cpu().numpy().astype(float)
    values = np.maximum(spectrum, 0.0)
    return {
        "effective_rank": spectrum_rank(values),
        "anisotropy": _shares(values[:, -1], values.sum(-1)),
    }


def working_precision(kind: Any) -> Any:
    """float64 for states in float64; float32 for all others, which know no more digits.

    Half the time in the n^2 d and n^3 parts. Cosines then carry 2e-7, thresholds of 0.05 rad and
    more 4e-6 rad, the energy beta times 4e-7, the spectrum 1e-6 of its largest value: a total
    collapse reads an anisotropy of 1 - 2e-6 and a rank of 1 + 4e-5, other ranks carry 1e-6.
    """
    import torch

    return torch.float64 if kind == torch.float64 else torch.float32
