"""Inner products of all pairs of tokens: clusters, histogram, quantiles and energy.

Several states of the same shape are visited together (leading axis b): a small state costs less than
the calls that read it. How many share a block depends on their size alone and changes no number
beyond the rounding of its sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

BINS = 64
FINE_BINS = 256 * BINS  # quantiles are known to 2/16384 = 1.2e-4
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BLOCK_PAIRS = 2**18  # at most 2 MB: a block stays in the cache through all its uses
BEYOND, ITSELF = (
    FINE_BINS,
    FINE_BINS + 1,
)  # bins of cosines of 1 and above, and of a token with itself

FEW_EDGES = 16  # one pair in so many is an edge: below it a list of edges is faster


@dataclass(frozen=True)
class Pairs:
    """What the inner products of all pairs of sphere tokens say, for each of b states.

    counts (b, angles): connected components of tokens within each angle. histogram (b, 64): fractions
    of the pairs i != j in equal bins of [-1, 1], the last one closed. quantiles: smallest c with
    P(cosine <= c) >= q, to 1.2e-4. energy (b,): sum_ij e^{beta (<x_i, x_j> - 1)}/n^2. gram: its upper
    triangle where it is the smaller moment matrix (n <= d), so O(n d) memory.
    """

    counts: np.ndarray
    histogram: np.ndarray
    quantiles: np.ndarray
    energy: np.ndarray
    gram: Tensor | None

    @staticmethod
    def joined(parts: list[Pairs]) -> Pairs:
        """Groups of states, one after the other."""
        import torch

        if len(parts) == 1:
            return parts[0]
        grams = [part.gram for part in parts if part.gram is not None]
        return Pairs(
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.histogram for part in parts]),
            np.concatenate([part.quantiles for part in parts]),
            np.concatenate([part.energy for part in parts]),
            torch.cat(grams) if grams else None,
        )


def visit_pairs(
    tokens: Tensor, angles: tuple[float, ...], beta: float, rows: int | None = None
) -> Pairs:
    """All pairs of b states (b, n, d), in blocks of `rows` rows. O(b n^2 d) time."""
    count, n, _ = tokens.shape
    together = max(1, BLOCK_PAIRS // n**2)
    block = max(1, min(n, BLOCK_PAIRS // n if rows is None else rows))
    groups = [tokens[start : start + together] for start in range(0, count, together)]
    return Pairs.joined([_visit(group, angles, beta, block) for group in groups])


def _visit(tokens: Tensor, angles: tuple[float, ...], beta: float, block: int) -> Pairs:
    """Blocks of rows of the upper triangle: rows i..i+b against the columns from i on."""
    count, n, d = tokens.shape
    whole = block == n
    gram = None if whole or n > d else tokens.new_empty(count, n, n)
    fine = np.zeros((count, 0 if whole else FINE_BINS + 1), dtype=np.int64)
    labels = [[np.arange(n, dtype=np.int32)] * len(angles) for _ in range(count)]
    energy = np.zeros(count)
    cosines = tokens
    for start in range(0, n, block):
        cosines = tokens[:, start : start + block] @ tokens[:, start:].mT
        if gram is not None:
            gram[:, start : start + block, start:] = cosines
        found = _fine_counts(cosines)
        _join_all(labels, cosines, found, angles, start)
        fine = found if whole else fine + found
        energy += _ordered((cosines - 1.0).mul_(beta).exp_(), _totals)
    counts = [[np.count_nonzero(each == np.arange(n)) for each in state] for state in labels]
    gram = cosines if whole and n <= d else gram
    return Pairs(np.array(counts), *_laws(fine), energy / n**2, gram)


def _ordered(block: Tensor, count: Callable[[Tensor], Any]) -> Any:
    """`count` over the ordered pairs of a block: its square part is symmetric, the rest met once."""
    size = block.shape[1]
    everything = count(block)
    return everything if block.shape[2] == size else 2 * everything - count(block[..., :size])


def _totals(values: Tensor) -> np.ndarray:
    import torch

    return values.sum((1, 2), dtype=torch.float64).cpu().numpy()


def _fine_counts(cosines: Tensor) -> np.ndarray:
    """Ordered pairs i != j of a block by state and fine bin; one bin more for 1 and above."""
    import torch

    states = len(cosines)
    index = (cosines + 1.0).mul_(FINE_BINS // 2).to(torch.int32)
    index.diagonal(dim1=1, dim2=2).fill_(ITSELF)
    if states > 1:  # each state has bins of its own
        index += torch.arange(0, states * (ITSELF + 1), ITSELF + 1, dtype=torch.int32)[
            :, None, None
        ].to(index.device)

    def count(part: Tensor) -> np.ndarray:
        found = torch.bincount(part.flatten(), minlength=states * (ITSELF + 1))
        return found.cpu().numpy().reshape(states, -1)

    return _ordered(index, count)[:, : BEYOND + 1]


def _laws(fine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Histograms (the last bin closed) and quantiles from the fine counts; NaN without a pair."""
    states = len(fine)
    fine[:, -2] += fine[:, -1]
    inside = fine[:, :-1].reshape(states, BINS, -1)
    coarse = inside.sum(2)
    total = int(coarse[0].sum())  # n (n - 1), the same for every state
    if total == 0:
        return np.full((states, BINS), math.nan), np.full((states, len(QUANTILES)), math.nan)
    return coarse / total, _quantiles(inside, coarse, np.asarray(QUANTILES) * total)


def _quantiles(inside: np.ndarray, coarse: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where the counts reach `wanted`, linear inside the fine bin: the coarse bin first."""
    until = np.cumsum(coarse, axis=1)
    state = np.arange(len(coarse))[:, None]
    bins = (until[:, None] < wanted[:, None]).sum(2)
    counts = inside[state, bins]
    reached = np.cumsum(counts, axis=2) + (until - coarse)[state, bins][..., None]
    at = (reached < wanted[:, None]).sum(2, keepdims=True)
    missing = np.take_along_axis(reached, at, 2)[..., 0] - wanted
    within = 1.0 - missing / np.take_along_axis(counts, at, 2)[..., 0]
    return 2.0 * (bins * inside.shape[2] + at[..., 0] + within) / FINE_BINS - 1.0


def _join_all(
    labels: list[list[np.ndarray]],
    cosines: Tensor,
    fine: np.ndarray,
    angles: tuple[float, ...],
    start: int,
) -> None:
    """Join the close pairs of a block; the counts tell which states have none at an angle."""
    lowest = _bin(max(angles))
    for state in np.flatnonzero(fine[:, lowest:].any(1)):
        highest = lowest + int(np.flatnonzero(fine[state, lowest:])[-1])
        for which, angle in enumerate(angles):
            if highest >= _bin(angle):
                close = (cosines[state] >= math.cos(angle)).cpu().numpy()
                labels[state][which] = join(labels[state][which], close, start)


def _bin(angle: float) -> int:
    """A fine bin at or below those of pairs closer than an angle, whatever the rounding."""
    return max(0, int((math.cos(angle) + 1.0) * (FINE_BINS // 2)) - 1)


def join(labels: np.ndarray, close: np.ndarray, start: int = 0) -> np.ndarray:
    """Component labels after the edges of a block: `close` (b, m), rows and columns from `start`.

    A label is the smallest index of its component. Every row and column still next to another
    component takes its first such neighbour, the larger label hooks below the smaller, paths are
    compressed (Boruvka; the engine's `component_labels`): O(b m) a round, O(log n) rounds. Edges are
    listed only where they are few: in a collapsed cloud they are n^2 many.
    """
    edges = np.count_nonzero(close)
    if edges == np.count_nonzero(close.diagonal()):
        return labels
    if edges * FEW_EDGES < close.size:
        row, column = np.divmod(np.flatnonzero(close), close.shape[1])
        return _join_edges(labels, start + row, start + column)
    while True:
        here = labels[start:]
        outside = close & (here[: len(close), None] != here[None, :])
        row, column = _first_neighbours(outside)
        if not len(row):
            return labels
        labels = _hook(labels, here[row], here[column])


def _join_edges(labels: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """The same from a list of edges, where they are few."""
    while True:
        one, other = labels[row], labels[column]
        apart = one != other
        if not apart.any():
            return labels
        labels = _hook(labels, one[apart], other[apart])


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
