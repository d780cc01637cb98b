r"""The layer of 2601.21942 for many independent runs: x_i <- N(x_i + eta V_l sum_j A_ij x_j).

eta = L^{-1/2}; V_l has independent centred entries of variance 1/d, drawn anew for every layer and common
to all tokens; A is softmax attention with Q^T K = I. A layer lasts eta^2 on the clock of the limit.

Tokens are (n, d, runs): numpy works on long last axes, compiles nothing, and is several times faster on two
tokens than `random_depth.random_chains` with fixed scores, which is the same network and checks this one.
A layer approximates nothing: eta belongs to the model, so a chain has no numerical error beside rounding.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator

import numpy as np

from ....memory import require_bytes
from .. import closed_forms

ENTRIES = ("signs", "gaussian")
# The step of the reading note's simulations.
ETA = 0.15
# Gap at which growth is read: its square is far below eta^2, and rounding far below it.
SMALL_GAP = 1e-5


def random_values(
    rng: np.random.Generator, d: int, runs: int, entries: str = "signs", tokens: int = 1
) -> np.ndarray:
    """V of one layer for every run, (tokens, d, d, runs); tokens = 1 means one V for all of them.

    `signs` are bounded, as the paper asks: +-d^{-1/2}, made from random bits.
    """
    shape = (tokens, d, d, runs)
    size = 24.0 * tokens * d * d * runs
    require_bytes(size, f"value matrices of d={d} for {runs} runs", "use fewer runs or a smaller d")
    if entries == "gaussian":
        return rng.normal(size=shape) / np.sqrt(d)
    count = tokens * d * d
    words = rng.integers(0, 256, size=(-(-count // 8), runs), dtype=np.uint8)
    bits = np.unpackbits(words, axis=0)[:count].reshape(shape)
    return (2.0 * bits - 1.0) / np.sqrt(d)


def attended(x: np.ndarray, beta: float) -> np.ndarray:
    """m_i = sum_j A_ij x_j."""
    weights = np.exp(beta * (overlaps(x) - 1.0))
    weights /= np.sum(weights, axis=1, keepdims=True)
    return np.sum(weights[:, :, None] * x, axis=1)


def overlaps(x: np.ndarray) -> np.ndarray:
    """R_ij = <x_i, x_j>, (n, n, runs)."""
    return np.sum(x[:, None] * x, axis=2)


def layer(x: np.ndarray, beta: float, step: np.ndarray) -> np.ndarray:
    """N(x_i + step m_i), step = eta V."""
    return normalised(x + np.sum(step * attended(x, beta)[:, None], axis=2))


def normalised(x: np.ndarray) -> np.ndarray:
    """Tokens divided by their norms."""
    return x / np.sqrt(np.sum(x * x, axis=-2, keepdims=True))


def pairs(overlap: np.ndarray, d: int) -> np.ndarray:
    """Two tokens with R = overlap, one pair per entry."""
    x = np.zeros((2, d, np.size(overlap)))
    x[0, 0] = 1.0
    x[1, 0], x[1, 1] = overlap, np.sqrt(1.0 - np.square(overlap))
    return x


def uniform(rng: np.random.Generator, n: int, d: int, runs: int) -> np.ndarray:
    """Tokens uniform on the sphere."""
    return normalised(rng.normal(size=(n, d, runs)))


def walk(
    x: np.ndarray,
    beta: float,
    layers: int,
    rng: np.random.Generator,
    entries: str = "signs",
    shared: bool = True,
    eta: float = ETA,
) -> Iterator[np.ndarray]:
    """The tokens after every layer; `shared=False` gives every token a value matrix of its own."""
    n, d, runs = x.shape
    for _ in range(layers):
        values = random_values(rng, d, runs, entries, 1 if shared else n)
        x = layer(x, beta, eta * values)
        yield x


def last(states: Iterator[np.ndarray]) -> np.ndarray:
    """The last of the states, holding one at a time."""
    return deque(states, maxlen=1)[0]


@functools.cache
def final_overlaps(
    overlap: float,
    d: int,
    beta: float,
    runs: int,
    layers: int,
    seed: int,
    entries: str = "signs",
    shared: bool = True,
    eta: float = ETA,
) -> np.ndarray:
    """R of two tokens after the layers, in every run; asked twice, it is computed once."""
    start = pairs(np.full(runs, overlap), d)
    rng = np.random.default_rng(seed)
    x = last(walk(start, beta, layers, rng, entries, shared, eta))
    return np.sum(x[0] * x[1], axis=0)


def limit_overlaps(
    overlap: np.ndarray, d: int, beta: float, t: float, dt: float, seed: int
) -> np.ndarray:
    """R at time t of the limit diffusion, one run per start, by Euler-Maruyama in z = artanh R.

    dz = [drift/(1-R^2) + R variance/(1-R^2)^2] dt + variance^{1/2}/(1-R^2) dB: bounded coefficients, and
    no end points to step over.
    """
    rng = np.random.default_rng(seed)
    z = np.arctanh(overlap)
    for _ in range(round(t / dt)):
        # Beyond |z| = 15 the coefficients are those of the end points to the last digit.
        r = np.tanh(np.clip(z, -15.0, 15.0))
        shrink = (1 - r) * (1 + r)
        spread = closed_forms.overlap_variance(r, d, beta) / shrink**2
        push = closed_forms.overlap_drift(r, d, beta) / shrink + r * spread
        z = z + push * dt + np.sqrt(spread * dt) * rng.normal(size=z.shape)
    return np.tanh(z)


def measured_exponent(
    d: int,
    beta: float,
    end: int,
    runs: int,
    seed: int,
    entries: str = "signs",
    shared: bool = True,
    eta: float = 0.05,
) -> tuple[float, float]:
    """Lyapunov exponent of 1 - end R at R = end, from one layer at a small gap, with its standard error.

    The mean of log((1 - end R')/(1 - end R))/eta^2 over random pairs. Each V is used with both signs: the
    term of order eta, which has mean zero, then cancels, and the error no longer grows with 1/eta. The bias
    is of order eta^2.
    """
    rng = np.random.default_rng(seed)
    first = uniform(rng, 1, d, runs)[0]
    second = normalised(first + SMALL_GAP * rng.normal(size=first.shape))
    x = np.stack([first, end * second])
    values = random_values(rng, d, runs, entries, 1 if shared else 2)
    before = _gap(x, end)
    growth = [np.log(_gap(layer(x, beta, s * eta * values), end) / before) for s in (1.0, -1.0)]
    rates = 2 * np.mean(growth, axis=0) / eta**2
    return float(np.mean(rates)), float(np.std(rates) / np.sqrt(runs))


def _gap(x: np.ndarray, end: int) -> np.ndarray:
    """|x_1 - end x_2|, whose square is 2 (1 - end R)."""
    return np.sqrt(np.sum((x[0] - end * x[1]) ** 2, axis=0))
