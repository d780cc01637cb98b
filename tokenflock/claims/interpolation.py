"""2502.02270v3: hardmax attention and perceptrons that map given sequences to given points, exactly.

A block is one layer x <- x + field(x) of the engine: attention with weight rho = 0 on the old token is
`Attention + Drift(-1)`, a perceptron with weight eta = 1 is `Perceptron` alone.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import minimize

from ..dynamics import Dynamics, State
from ..kinds import Hardmax
from ..measure import from_array
from ..reduce import Dense
from ..space import Euclidean
from ..terms import Attention, Drift, Perceptron
from ..weights import Weights
from .core import Case, Comparison, Paper, at_most, broken, equals
from .measure import field, unit

PAPER = Paper(
    "2502.02270v3",
    "Exact Sequence Interpolation with Transformers",
    "Alcalde, Fantuzzi, Zuazua",
)
NUMBER = "the statement's number was not seen"
DIRECTIONS = 200
# Gaps below this are rounding: the two points are one.
SAME_PLACE = 1e-9


def _sequences(case: Case) -> list[np.ndarray]:
    """Gaussian sequences of different lengths 2, ..., length; `shared` gives two the same last token."""
    rng = np.random.default_rng(case.seed)
    lengths = np.linspace(2, case.length, case.sequences).astype(int)
    drawn = [rng.normal(size=(count, case.d)) for count in lengths]
    if case.shared:
        drawn[:2] = [np.concatenate([tokens, 9.0 * _keys(case)[None]]) for tokens in drawn[:2]]
    return drawn


def _keys(case: Case) -> np.ndarray:
    """The unit direction k in which the extreme token of a sequence lies farthest."""
    return unit(np.random.default_rng([case.seed, 1]).normal(size=case.d))


def _queries(case: Case) -> np.ndarray:
    """The unit direction q in which all tokens are made positive."""
    return unit(np.random.default_rng([case.seed, 2]).normal(size=case.d))


def _push(outer: np.ndarray, inner: np.ndarray, threshold: float) -> Dynamics:
    """x + outer relu(<inner, x> - threshold), a block of width one."""
    return Dynamics(None, Perceptron(inner[None], outer[:, None], [-threshold]))


def _collapse(case: Case, sequences: list[np.ndarray], margin: float) -> list[Dynamics]:
    """Shift all tokens to <q, x> >= margin, then let each sequence follow its largest <k, x>."""
    queries = _queries(case)
    lowest = min(float(np.min(tokens @ queries)) for tokens in sequences)
    shift = _push((margin - lowest) * queries, 0.0 * queries, -1.0)
    weights = Weights(B=np.outer(queries, _keys(case)))
    return [shift, Dynamics(None, Attention(weights, 1.0, Hardmax()) + Drift(-1.0))]


def _forward(blocks: list[Dynamics], tokens: np.ndarray) -> np.ndarray:
    """The tokens of one sequence after all blocks."""
    space = Euclidean(tokens.shape[1])
    for block in blocks:
        tokens = tokens + field(block, from_array(space, tokens))
    return tokens


@PAPER.claim(
    "extreme-token",
    where=f"the first step of the construction ({NUMBER})",
    says="One hardmax layer with a score of rank one moves all tokens of a sequence, however long, "
    "to its extreme token, provided that all queries have one sign.",
    given={"sequences": 5, "length": 9, "d": 2, "shared": 0, "margin": 1.0},
    at_paper_scale={"sequences": 20, "length": 60, "d": 8},
    needs={"all tokens have <q, x> > 0": lambda c: c.margin > 0},
    control=broken("a token with <q, x> < 0 goes to the opposite extreme", margin=-1.0),
)
def extreme_token(case: Case) -> list[Comparison]:
    """max |x_i - argmax_j <k, x_j>| after the layer, relative to the shifted tokens themselves."""
    sequences = _sequences(case)
    blocks = _collapse(case, sequences, case.margin)
    off = []
    for tokens in sequences:
        shifted = _forward(blocks[:1], tokens)
        extreme = shifted[np.argmax(shifted @ _keys(case))]
        off.append(np.max(np.abs(_forward(blocks, tokens) - extreme)))
    return [equals("tokens against the extreme token", off, 0.0, 1e-12)]


def _directions(
    points: np.ndarray, targets: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal p, r: the best of 200 pairs by the smallest gap of <p, points> and <r, targets>.

    Small gaps cost digits, since a block divides by them.
    """
    d = points.shape[1]
    draws = np.random.default_rng([seed, 3]).normal(size=(DIRECTIONS, d, 2))
    frames = np.linalg.qr(draws)[0]

    def gap(frame: np.ndarray) -> float:
        values = np.sort(np.stack([points @ frame[:, 0], targets @ frame[:, 1]]), axis=1)
        return float(np.min(np.diff(values, axis=1)))

    best = max(frames, key=gap)
    return best[:, 0], best[:, 1]


def _sorted_pushes(
    points: np.ndarray, targets: np.ndarray, along: np.ndarray, part: np.ndarray
) -> tuple[list[Dynamics], np.ndarray]:
    """One block per point in increasing <along, x>: each mends `part` of one point and moves later ones.

    `part` projects on directions orthogonal to `along`, so that the order never changes. Returns the
    blocks and where they bring the points. A point on top of the previous one cannot be mended.
    """
    points, blocks = points.copy(), []
    order = np.argsort(points @ along)
    threshold = float(points[order[0]] @ along) - 1.0
    for index in order:
        height = float(points[index] @ along)
        wanted = part @ (targets[index] - points[index])
        gap = height - threshold
        outer = wanted / gap if gap > SAME_PLACE else 0.0 * wanted
        blocks.append(_push(outer, along, threshold))
        points += np.maximum(points @ along - threshold, 0.0)[:, None] * outer
        threshold = height
    return blocks, points


@PAPER.claim(
    "interpolation",
    where=f"the interpolation theorem, one output point per sequence ({NUMBER})",
    says="N sequences of any lengths are mapped exactly to N given points by 2N + 2 blocks of width "
    "one, whose number does not depend on the lengths.",
    given={"sequences": 5, "length": 9, "d": 2, "shared": 0},
    at_paper_scale={"sequences": 20, "length": 60, "d": 8},
    needs={
        "d >= 2": lambda c: c.d >= 2,
        "the sequences have different extreme tokens": lambda c: c.shared == 0,
    },
    control=broken("two sequences with the same extreme token cannot be told apart", shared=1),
    note="A simpler construction than the paper's, for generic data: it needs different extreme "
    "tokens and gives one output point per sequence, where the paper allows shared tokens and "
    "outputs of several tokens. The error is rounding, enlarged by dividing by small gaps.",
)
def interpolation(case: Case) -> list[Comparison]:
    """max |x - y_j| over all tokens of all sequences after the blocks, in a forward pass of its own."""
    sequences = _sequences(case)
    targets = np.random.default_rng([case.seed, 4]).normal(size=(case.sequences, case.d))
    blocks = _collapse(case, sequences, 1.0)
    points = np.stack([_forward(blocks, tokens)[0] for tokens in sequences])
    p, r = _directions(points, targets, case.seed)
    across = np.eye(case.d) - np.outer(p, p)
    first, points = _sorted_pushes(points, targets, p, across)
    second, _ = _sorted_pushes(points, targets, r, np.outer(p, p))
    blocks = [*blocks, *first, *second]
    pairs = zip(sequences, targets, strict=True)
    off = [np.max(np.abs(_forward(blocks, tokens) - target)) for tokens, target in pairs]
    return [
        equals("tokens against their target", off, 0.0, 1e-8),
        equals("number of blocks", len(blocks), 2 * case.sequences + 2, 0.0),
    ]


WIDTH = 4


def _student(parameters: Array, tokens: Array) -> Array:
    """Softmax attention (rho = 0), then a perceptron of width 4 (eta = 0), as two layers of the engine."""
    d = tokens.shape[1]
    sizes = [d * d, d * d, WIDTH * d, d * WIDTH]
    scores, values, inner, outer, bias = jnp.split(parameters, np.cumsum(sizes))
    attention = Attention(Weights(B=scores.reshape(d, d), V=values.reshape(d, d)))
    perceptron = Perceptron(inner.reshape(WIDTH, d), outer.reshape(d, WIDTH), bias)
    mu = from_array(Euclidean(d), tokens)
    state = State(tokens)
    for term in (attention, perceptron):
        state = Dynamics(None, term + Drift(-1.0)).layer(0.0, state, mu, 1.0, Dense())
    return state.points


def _teacher(case: Case) -> np.ndarray:
    """Parameters of uniform attention (scores 0) and a generic perceptron whose neurons are alive."""
    rng = np.random.default_rng([case.seed, 5])
    d = case.d
    weights = 0.7 * rng.normal(size=d * d + 2 * d * WIDTH)
    return np.concatenate([np.zeros(d * d), weights, rng.uniform(0.5, 1.0, size=WIDTH)])


_students = jax.jit(jax.vmap(_student, in_axes=(None, 0)))


def _penalised(parameters: Array, penalty: float, inputs: Array, targets: Array) -> Array:
    """Mean over sequences and tokens of |x - y|^2, plus penalty |parameters|^2."""
    error = jnp.mean(jnp.sum((_students(parameters, inputs) - targets) ** 2, axis=-1))
    return error + penalty * jnp.sum(parameters**2)


_descent = jax.jit(jax.value_and_grad(_penalised))


@PAPER.claim(
    "tikhonov",
    where=f"Tikhonov regularisation ({NUMBER})",
    says="If some parameters interpolate the data, then a minimiser of the loss plus epsilon times "
    "their squared norm has a loss of at most epsilon times that norm, and is no larger itself.",
    given={"sequences": 4, "length": 6, "d": 2, "noise": 0.0},
    at_paper_scale={"sequences": 10, "length": 100, "d": 16},
    needs={"some parameters interpolate the data": lambda c: c.noise == 0.0},
    control=broken("targets with noise are not interpolated by anything", noise=1.0),
    note="Checked as the inequality it is, for the best of several descents, with the mean over "
    "tokens as loss (the paper's pictures use the largest token); the loss may be far smaller.",
)
def tikhonov(case: Case) -> list[Comparison]:
    """Loss over eps |theta*|^2, and |theta|^2 over |theta*|^2, for eps = 1e-1, 1e-2, 1e-3."""
    rng = np.random.default_rng([case.seed, 6])
    inputs = jnp.asarray(rng.uniform(size=(case.sequences, case.length, case.d)))
    teacher = _teacher(case)
    targets = _students(teacher, inputs) + case.noise * rng.normal(size=inputs.shape)
    size = float(teacher @ teacher)
    starts = [teacher, 0.5 * rng.normal(size=teacher.size)]
    losses, sizes = [], []
    for penalty in (0.1, 0.01, 0.001):
        data = (penalty, inputs, targets)
        runs = [_minimum(start, data, case.rtol) for start in starts]
        best = min(runs, key=lambda parameters: float(_descent(parameters, *data)[0]))
        losses.append(float(_descent(best, 0.0, inputs, targets)[0]) / (penalty * size))
        sizes.append(float(best @ best) / size)
    return [
        at_most("loss over its bound", losses, 1.0),
        at_most("squared norm over that of the interpolating parameters", sizes, 1.0),
    ]


def _minimum(start: np.ndarray, data: tuple[float, Array, Array], rtol: float) -> np.ndarray:
    """Where descent from a start ends: at a gradient of 1e-6, or after 200 steps."""
    options = {"gtol": 100 * rtol, "maxiter": 200}
    return minimize(_descent, start, args=data, jac=True, method="CG", options=options).x
