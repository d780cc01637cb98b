r"""Exact interpolation: N sequences of any lengths in R^d, d >= 2, carried to N given points.

A simple construction of this project for generic data, NOT that of 2502.02270 (which also takes sequences
that share tokens, and outputs of several tokens). 2N + 2 blocks of width one, whatever the lengths:

1. one Push moves all tokens to <k, x> > 0;
2. one Attend with scores <k, x_i> <k, x_j> collapses each sequence to its extreme token in direction k, and
   brings tokens to the size of the targets;
3. N Pushes along directions orthogonal to p, in increasing order of <p, x>: each brings one point to its
   target up to a multiple of p; it moves later points, which are mended later, and no earlier one;
4. N Pushes along p, in increasing order of <r, x>, r orthogonal to p: each ends at its target.

A Push divides by the gap between two neighbours in <p, x> or <r, x>. Small gaps make steep maps, and steep
maps cost digits, so k, p and r are the best of many random directions: conditioning, not theory.

Where the data lie is no matter of steepness. The first Push moves tokens to the origin, whatever their
mean; the first of each N takes all points along to the mean of the targets, with a slope of at most one.
What is left of a translation are the digits that coordinates so large do not have: see `rounding_error`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from ..dynamics import Dynamics, Particles
from ..errors import require
from ..measure import padded
from ..space import Euclidean
from ..terms.perceptron import Perceptron
from ..trajectory import Trajectory
from .blocks import STEP, Attend, Block, Push, forward, forward_all, network, one_neuron, run_blocks

# How many random directions compete.
DIRECTIONS = 200
# Closer than this part of the data's size, two points are one: a Push between them keeps no digit.
SAME_PLACE = 1e-10
ROUNDING_UNIT = float(np.finfo(float).eps)
# Targets that rounding would blur by more than this part of their spread are refused.
BLURRED = 1e-3


@dataclass(frozen=True)
class Conditioning:
    """What decides how many digits are left, and how cold a softmax must be.

    `attention_gap` is the smallest lead, in score, of an extreme token over the next one of its sequence;
    `point_gap` and `target_gap` the smallest distances between neighbours in <p, x> and <r, x>;
    `amplification` a Lipschitz constant of all Pushes together. `longest` is the length of the longest
    sequence, `diameter` a bound on their diameters in the size of the targets, and `largest` the largest
    coordinate of targets and collapsed points: how far away they lie.
    """

    attention_gap: float
    point_gap: float
    target_gap: float
    amplification: float
    longest: int
    diameter: float
    largest: float

    @property
    def smallest_gap(self) -> float:
        """The smaller of the two gaps that Pushes divide by."""
        return min(self.point_gap, self.target_gap)

    @property
    def rounding_error(self) -> float:
        """What rounding may leave: the rounding unit times the amplification times the largest coordinate.

        An estimate: roundings of many Pushes add up, or cancel.
        """
        return ROUNDING_UNIT * self.amplification * self.largest

    def softmax_error(self, temperature: float) -> float:
        """Bound on the error if softmax at a temperature takes the place of hardmax.

        A token other than the extreme one has weight at most e^{-gap/temperature} and lies within the
        diameter; the Pushes enlarge what comes of it by at most the amplification.
        """
        require(temperature > 0, f"a softmax needs a temperature > 0, got {temperature}")
        others = self.longest - 1
        off = others * np.exp(-self.attention_gap / temperature) * self.diameter if others else 0.0
        return float(self.amplification * off)


@dataclass(frozen=True)
class Interpolant:
    """A network that maps each given sequence to its target: `interpolant(tokens)` is the forward pass."""

    blocks: tuple[Block, ...]
    conditioning: Conditioning
    seed: int

    def __call__(self, tokens: ArrayLike) -> np.ndarray:
        return forward(self.blocks, np.asarray(tokens))

    def dynamics(self) -> Dynamics:
        """The network as a model of the engine: `Layers(1)` runs it, one block a layer."""
        return network(self.blocks)

    def run(self, tokens: ArrayLike) -> Trajectory:
        """One sequence of at least two tokens through the blocks, as a run with the states of every layer."""
        return run_blocks(self.blocks, np.asarray(tokens))

    def softened(self, temperature: float) -> Interpolant:
        """The same network with softmax attention at a temperature."""
        require(temperature > 0, f"a softmax needs a temperature > 0, got {temperature}")
        blocks = tuple(
            replace(block, temperature=temperature) if isinstance(block, Attend) else block
            for block in self.blocks
        )
        return replace(self, blocks=blocks)

    def error(self, sequences: Sequence[ArrayLike], targets: ArrayLike) -> float:
        """max |x - y_j| over all tokens x that come out of sequence j."""
        goals = np.asarray(targets, dtype=float)
        ends = forward_all(self.blocks, [np.asarray(tokens) for tokens in sequences])
        pairs = zip(ends, goals, strict=True)
        return max(float(np.max(np.abs(end - goal))) for end, goal in pairs)


def interpolate_sequences(
    sequences: Sequence[ArrayLike], targets: ArrayLike, seed: int = 0, directions: int = DIRECTIONS
) -> Interpolant:
    """Blocks that map every token of sequence j, an array (n_j, d), to the point targets[j].

    2N + 2 blocks (see the module's docstring): our simple version of exact interpolation, not the
    construction of 2502.02270. Needs d >= 2, targets that differ, and sequences whose extreme tokens differ
    in some of the random `directions`; otherwise it says which two stand in the way. Costs
    O((tokens + N log N) d directions). The error is rounding: see `Interpolant.conditioning`; where it would
    blur the targets, because they lie too far from the origin or too close together, that is refused.
    """
    tokens, goals = _checked(sequences, targets)
    require(directions >= 1, f"directions must be at least 1, got {directions}")
    rng = np.random.default_rng(seed)
    candidates = _unit(rng.normal(size=(directions, goals.shape[1])))
    centre = _centre(tokens)
    key = _best_key([sequence - centre for sequence in tokens], candidates)
    size = _size(np.concatenate(tokens))
    scale = _size(goals) / size
    start = collapse(tokens, key, size, scale)
    points = np.stack([end[0] for end in forward_all(start, tokens)])
    first, second = carry(points, goals, rng, directions)
    conditioning = Conditioning(
        attention_gap=_attention_gap(tokens, start),
        point_gap=_smallest_gap(points @ first[0].inner),
        target_gap=_smallest_gap(goals @ second[0].inner),
        amplification=_steepest(first) * _steepest(second),
        longest=max(len(sequence) for sequence in tokens),
        diameter=scale * _diameter(tokens),
        largest=float(max(np.max(np.abs(points)), np.max(np.abs(goals)))),
    )
    _require_digits(conditioning, goals)
    return Interpolant((*start, *first, *second), conditioning, seed)


def collapse(
    sequences: Sequence[np.ndarray], key: np.ndarray, margin: float = 1.0, scale: float = 1.0
) -> list[Block]:
    """Shift all tokens to <key, x> >= margin; then each goes to the largest <key, x> of its sequence.

    The shift also brings their mean to the line of the key: a neuron without an inner vector has room for
    any translation. `scale` multiplies what comes out.
    """
    centre = _centre(sequences)
    lowest = min(float(np.min((sequence - centre) @ key)) for sequence in sequences)
    shift = Push(np.zeros_like(key), (margin - lowest) * key - centre, -1.0)
    return [shift, Attend(key, key, scale)]


def carry(
    points: np.ndarray, targets: np.ndarray, rng: np.random.Generator, directions: int = DIRECTIONS
) -> tuple[list[Push], list[Push]]:
    """Steps 3 and 4: N Pushes across p and N along p that bring each of N points to its target."""
    p, r = _best_frame(points, targets, rng, directions)
    across = np.eye(p.size) - np.outer(p, p)
    first, moved = sorted_pushes(points, targets, p, across)
    second, _ = sorted_pushes(moved, targets, r, np.outer(p, p))
    return first, second


def sorted_pushes(
    points: np.ndarray, targets: np.ndarray, along: np.ndarray, part: np.ndarray
) -> tuple[list[Push], np.ndarray]:
    """One Push per point in increasing <along, x>: each mends `part` of one point and moves later ones.

    `part` projects on directions orthogonal to `along`, so that the order never changes. Returns the
    blocks and where they bring the points. A point on top of the previous one cannot be mended and is left.
    The first threshold lies as far below as its point has to go: a slope of at most one then takes all points
    along, wherever the targets are.
    """
    order = np.argsort(points @ along)
    heights = points[order] @ along
    way = float(np.linalg.norm(part @ (targets[order[0]] - points[order[0]])))
    thresholds = np.append(heights[0] - max(np.ptp(heights), way, 1.0), heights[:-1])
    outer, moved = map(np.asarray, _mend(points, targets, along, part, order, heights, thresholds))
    pushes = [
        Push(along, out, float(threshold)) for out, threshold in zip(outer, thresholds, strict=True)
    ]
    return pushes, moved


@jax.jit
def _mend(
    points: Float[Array, "n d"],
    targets: Float[Array, "n d"],
    along: Float[Array, " d"],
    part: Float[Array, "d d"],
    order: Int[Array, " n"],
    heights: Float[Array, " n"],
    thresholds: Float[Array, " n"],
) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
    """Outer weights of the Pushes one by one, each from where the layers before it left the points."""
    mu = padded(Euclidean(along.size), points, jnp.ones(points.shape[0], bool))

    def mend(state: Particles, which: tuple[Array, Array, Array]) -> tuple[Particles, Array]:
        index, height, threshold = which
        wanted = part @ (targets[index] - state.points[index])
        gap = height - threshold
        outer = jnp.where(gap > 0, wanted / jnp.where(gap > 0, gap, 1.0), 0.0)
        push = Dynamics(None, Perceptron(weights=one_neuron(along, outer, threshold)))
        return push.layer(0.0, state, mu, STEP), outer

    state, outer = jax.lax.scan(mend, Particles(points), (order, heights, thresholds))
    return outer, state.points


def _checked(
    sequences: Sequence[ArrayLike], targets: ArrayLike
) -> tuple[list[np.ndarray], np.ndarray]:
    """Sequences and targets as arrays, refused with a sentence where the construction cannot work."""
    tokens = [np.asarray(sequence, dtype=float) for sequence in sequences]
    goals = np.asarray(targets, dtype=float)
    require(len(tokens) > 0, "there is no sequence; give at least one array of tokens (n, d)")
    for number, sequence in enumerate(tokens):
        require(
            sequence.ndim == 2 and len(sequence) > 0,
            f"sequence {number} must be an array of tokens (n, d) with n >= 1, got shape {sequence.shape}",
        )
        require(
            bool(np.all(np.isfinite(sequence))),
            f"sequence {number} has entries that are not finite; remove NaN and infinity",
        )
    widths = {sequence.shape[1] for sequence in tokens}
    require(len(widths) == 1, f"all tokens need the same dimension, got d in {sorted(widths)}")
    d = widths.pop()
    require(
        d >= 2,
        f"exact interpolation needs d >= 2, got d={d}: points on a line cannot pass one another; append "
        "a zero coordinate to tokens and targets",
    )
    require(
        goals.shape == (len(tokens), d),
        f"targets must be one point per sequence, shape ({len(tokens)}, {d}), got {goals.shape}",
    )
    require(bool(np.all(np.isfinite(goals))), "targets must be finite; remove NaN and infinity")
    one, other, apart = _closest(goals)
    require(
        apart > SAME_PLACE * _size(goals),
        f"targets {one} and {other} are the same point (distance {apart:.2g}): this construction keeps "
        "points apart; move one of them a little, or merge the two sequences' labels afterwards",
    )
    return tokens, goals


def _require_digits(conditioning: Conditioning, goals: np.ndarray) -> None:
    """Refuse what rounding would blur, with the numbers that make it so."""
    blur, allowed = conditioning.rounding_error, BLURRED * _size(goals)
    require(
        blur <= allowed,
        f"rounding would leave errors of about {blur:.2g}, more than {allowed:.2g}, a thousandth of the "
        f"spread of the targets: coordinates go up to {conditioning.largest:.2g}, and the neurons amplify "
        f"their rounding {conditioning.amplification:.2g} times; bring the targets nearer to the origin, or "
        "move sequences and targets that nearly coincide apart",
    )


def _centre(sequences: Sequence[np.ndarray]) -> np.ndarray:
    """The mean of all tokens."""
    return np.concatenate(sequences).mean(axis=0)


def _best_key(sequences: list[np.ndarray], candidates: np.ndarray) -> np.ndarray:
    """The direction whose extreme tokens are farthest from one another and from the next of their own."""
    places = [np.unique(sequence, axis=0) for sequence in sequences]
    heights = [place @ candidates.T for place in places]
    extremes = np.stack(
        [place[np.argmax(h, axis=0)] for place, h in zip(places, heights, strict=True)]
    )
    leads = np.min([_lead(h) for h in heights], axis=0)
    closest = [_closest(extremes[:, index]) for index in range(len(candidates))]
    apart = np.array([distance for *_, distance in closest])
    best = int(np.argmax(np.minimum(apart, leads)))
    one, other, _ = closest[best]
    require(
        apart[best] > SAME_PLACE * _size(np.concatenate(sequences)),
        f"sequences {one} and {other} have the same extreme token in each of the {len(candidates)} "
        "directions tried (they share it, or one contains the other): hardmax cannot tell them apart; "
        "append a token that only one of them has, or append the position to the tokens",
    )
    return candidates[best]


def _lead(heights: np.ndarray) -> np.ndarray:
    """How far the first of different places (place, ...) is ahead of the second; infinite if alone."""
    if len(heights) == 1:
        return np.full(heights.shape[1:], np.inf)
    second, first = np.partition(heights, (-2, -1), axis=0)[-2:]
    return first - second


def _attention_gap(sequences: list[np.ndarray], start: list[Block]) -> float:
    """The smallest lead in score, over all rows of all sequences."""
    shift, attend = start
    assert isinstance(shift, Push)
    assert isinstance(attend, Attend)
    gaps = []
    for sequence in sequences:
        # Without an inner vector a Push is a translation.
        heights = (np.unique(sequence, axis=0) + shift.outer) @ attend.key
        gaps.append(float(np.min(heights) * _lead(heights)))
    return min(gaps)


def _best_frame(
    points: np.ndarray, targets: np.ndarray, rng: np.random.Generator, directions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal p, r, the best of many random pairs: those whose Pushes are least steep."""
    frames = np.linalg.qr(rng.normal(size=(directions, points.shape[1], 2)))[0]
    wanted = targets - points

    def amplification(frame: np.ndarray) -> float:
        p, r = frame.T
        along = wanted @ p
        first = _steepness(points @ p, wanted - np.outer(along, p))
        return first * _steepness(targets @ r, along[:, None])

    best = min(frames, key=amplification)
    return best[:, 0], best[:, 1]


def _steepness(heights: np.ndarray, wanted: np.ndarray) -> float:
    """1 + the largest slope of the piecewise linear function through (height, wanted)."""
    order = np.argsort(heights)
    steps = np.linalg.norm(np.diff(wanted[order], axis=0), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = steps / np.diff(heights[order])
    return float(1 + np.max(slopes, initial=0.0))


def _smallest_gap(values: np.ndarray) -> float:
    """The smallest distance between neighbours on a line; infinite for one point."""
    return float(np.min(np.diff(np.sort(values)), initial=np.inf))


def _closest(points: np.ndarray) -> tuple[int, int, float]:
    """The two closest points and their distance."""
    if len(points) == 1:
        return 0, 0, np.inf
    distances, neighbours = map(np.asarray, KDTree(points).query(points, k=2))
    one = int(np.argmin(distances[:, 1]))
    # Of coincident points either may come first.
    other = int(next(index for index in neighbours[one] if index != one))
    return min(one, other), max(one, other), float(distances[one, 1])


def _steepest(pushes: list[Push]) -> float:
    """A Lipschitz constant of Pushes that share their inner vector: their slopes add up along it."""
    slopes = np.cumsum([push.outer for push in pushes], axis=0)
    return float(1 + np.max(np.linalg.norm(slopes, axis=1)))


def _size(points: np.ndarray) -> float:
    """Root mean square distance from the mean; 1 for points that are all the same."""
    spread = float(np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1))))
    return spread or 1.0


def _diameter(sequences: list[np.ndarray]) -> float:
    """A bound on the distance of two tokens of one sequence: the diagonal of its box."""
    return max(float(np.linalg.norm(np.ptp(sequence, axis=0))) for sequence in sequences)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
