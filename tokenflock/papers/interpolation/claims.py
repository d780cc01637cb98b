"""2502.02270v3: hardmax attention and perceptrons that map given sequences to given points, exactly.

The blocks come from `tokenflock.construct`, this project's simple version of the paper's theorem; each is
one layer of the engine.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import minimize

from ...construct import forward, interpolate_sequences
from ...construct.sequences import carry, collapse
from ...dynamics import Dynamics, Particles
from ...ledger.claim import Case, Comparison, at_most, broken, equals
from ...ledger.measure import unit
from ...measure import from_array
from ...reduce import Dense
from ...space import Euclidean
from ...terms import Attention, Drift
from ...terms.perceptron import Perceptron
from ...weights import Weights
from . import PAPER

NUMBER = "the statement's number was not seen"


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
    blocks = collapse(sequences, _keys(case), case.margin)
    off = []
    for tokens in sequences:
        shifted = forward(blocks[:1], tokens)
        extreme = shifted[np.argmax(shifted @ _keys(case))]
        off.append(np.max(np.abs(forward(blocks, tokens) - extreme)))
    return [equals("tokens against the extreme token", off, 0.0, 1e-12)]


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
    """max |x - y_j| over all tokens of all sequences after the blocks."""
    sequences = _sequences(case)
    targets = np.random.default_rng([case.seed, 4]).normal(size=(case.sequences, case.d))
    start = collapse(sequences, _keys(case))
    points = np.stack([forward(start, tokens)[0] for tokens in sequences])
    first, second = carry(points, targets, np.random.default_rng([case.seed, 3]))
    blocks = [*start, *first, *second]
    pairs = zip(sequences, targets, strict=True)
    off = [np.max(np.abs(forward(blocks, tokens) - target)) for tokens, target in pairs]
    return [
        equals("tokens against their target", off, 0.0, 1e-8),
        equals("number of blocks", len(blocks), 2 * case.sequences + 2, 0.0),
    ]


@PAPER.claim(
    "cold-softmax",
    where="derived here; the paper has a softmax version of its own construction",
    says="Softmax attention in the place of hardmax changes the outputs by at most (n - 1) "
    "e^{-gap/temperature} times the diameter of a sequence and the steepness of the perceptrons.",
    given={"sequences": 5, "length": 9, "d": 2, "shared": 0, "coldness": 30.0},
    at_paper_scale={"sequences": 20, "length": 60, "d": 8, "coldness": 40.0},
    needs={"the temperature is far below the gap (20 times)": lambda c: c.coldness >= 20},
    control=broken("at the temperature of the gap the outputs are off", coldness=1.0),
    note="For this project's simple construction. The bound is the second comparison; the first says that "
    "cold softmax interpolates, up to 1e-6.",
)
def cold_softmax(case: Case) -> list[Comparison]:
    """max |x - y_j| at temperature gap/coldness, and its bound; rounding is allowed 1e-9."""
    sequences = _sequences(case)
    targets = np.random.default_rng([case.seed, 4]).normal(size=(case.sequences, case.d))
    network = interpolate_sequences(sequences, targets, case.seed)
    temperature = network.conditioning.attention_gap / case.coldness
    error = network.softened(temperature).error(sequences, targets)
    return [
        equals("tokens against their target", error, 0.0, 1e-6),
        at_most(
            "the same, against its bound",
            error,
            network.conditioning.softmax_error(temperature),
            1e-9,
        ),
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
    state = Particles(tokens)
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
