"""Sections 4.1 and 4.2: how fast directions start to move, from orthonormal and random tokens."""

from __future__ import annotations

import numpy as np

from .... import theory
from ....ledger.claim import Case, Comparison, at_most, broken, equals
from ....ledger.measure import field, off_diagonal, unit
from ....measure import from_array
from ....models import SA
from ....space import Euclidean, Sphere
from ....starts import uniform
from ....weights import Weights
from .. import PAPER
from .shared import LABELS, NAMES, attention


def _initial_slopes(case: Case) -> list[Comparison]:
    """d<theta_j, theta_k>/dt at t = 0 for all pairs, against (1/s_j + 1/s_k)/(e^beta + n - 1).

    Tokens have different radii, so that a pair follows the mean of the slopes of its two radii.
    """
    random = np.random.default_rng(case.seed)
    radii = random.uniform(1.5, 2.5, case.n)
    tokens = np.linalg.qr(random.normal(size=(case.d, case.n)))[0].T
    x0 = from_array(Sphere(case.d), tokens, radii=radii)
    velocity = field(attention(case, case.scheme), x0)
    overlaps = velocity @ tokens.T
    slopes = theory.initial_slope(
        case.predicted, case.n, case.beta, radius0=radii, alpha=case.alpha
    )
    pairs = (slopes[:, None] + slopes[None, :]) / 2 if np.ndim(slopes) else slopes
    measured = off_diagonal(overlaps + overlaps.T)
    expected = off_diagonal(np.broadcast_to(pairs, overlaps.shape))
    return [equals("d<theta_j, theta_k>/dt(0)", measured, expected, 1e-12)]


SLOPES = {
    "post": ("2/(e^beta + n - 1)", "ngpt", ""),
    "pre": ("(1/r_j + 1/r_k)/(e^beta + n - 1)", "post", ""),
    "mix": (
        "2/(e^beta + n - 1), as under Post-LN",
        "pre",
        "Before its switching time Mix-LN is Post-LN; the paper prints no row of its own.",
    ),
    "peri": (
        "(1/r_j + 1/r_k)/sqrt(e^(2 beta) + n - 1)",
        "pre",
        "Derived from the general law with s = r |A|; not printed.",
    ),
    "ngpt": (
        "2 alpha/sqrt(e^(2 beta) + n - 1)",
        "post",
        "Derived from the general law with s = |A|/alpha; not printed.",
    ),
    "sqrt": ("2/(e^beta + n - 1), as under Post-LN", "peri", ""),
}

for _name, (_law, _other, _note) in SLOPES.items():
    PAPER.claim(
        f"initial-slope-{_name}",
        where="Section 4.1, theorem on the symmetric start (number not seen)",
        says=f"From orthonormal directions every inner product starts to grow under "
        f"{LABELS[_name]} at rate {_law}.",
        given={
            "n": 8,
            "d": 16,
            "beta": 2.0,
            "alpha": 0.7,
            "tau": 1.0,
            "scheme": _name,
            "predicted": _name,
        },
        at_paper_scale={"n": 128, "d": 512},
        options={"scheme": NAMES, "predicted": NAMES},
        needs={
            "d >= n, so that n orthonormal directions exist": lambda c: c.d >= c.n,
            "the slope is that of the scheme": lambda c: c.scheme == c.predicted,
        },
        control=broken(f"{LABELS[_other]} starts at another speed", scheme=_other),
        note=_note,
    )(_initial_slopes)


@PAPER.claim(
    "initial-velocity-random",
    where="Theorem 4.2",
    says="For random tokens every attention vector is at most a constant times "
    "sqrt(log n/n) + log n/d, so Peri-LN and nGPT, which divide by it, start much faster.",
    given={"n": 1024, "d": 128, "beta": 1.0, "samples": 2, "start": "uniform"},
    at_paper_scale={"n": 4096, "d": 128, "samples": 4},
    options={"start": ("uniform", "cap")},
    needs={
        "tokens are independent and uniform": lambda c: c.start == "uniform",
        "beta |Q^T K| <= 1 (here |Q| = |K| = |V| = 1)": lambda c: c.beta <= 1,
        "d <= n log n <= e^sqrt(d)": lambda c: (
            c.d <= c.n * np.log(c.n) and np.log(c.n * np.log(c.n)) <= np.sqrt(c.d)
        ),
    },
    resolves={"a bound below 0.9, since |A| <= 1 always": lambda c: _attention_bound(c) < 0.9},
    control=broken("tokens in a small cap have |A| near 1 at every n", start="cap"),
    note="The paper's constant is not given. The bound is derived here, of the same order: the mean of "
    "n independent vectors of length at most e^beta is within m e^beta of its expectation for all "
    "tokens with probability 1 - 1/n (bounded differences), m = (1 + 2 sqrt(log n))/sqrt(n).",
)
def attention_of_random_tokens(case: Case) -> list[Comparison]:
    """max_j |A_j| against e^{beta (1 + m)} (m + beta e^{beta^2/(2d)}/d).

    The expectation of e^{beta <q, x>} x has length at most beta e^{beta^2/(2d)}/d, and by Jensen the
    partition function is at least e^{-beta m}.
    """
    random = np.random.default_rng(case.seed)
    matrices = {name: _signed_permutation(case.d, random) for name in ("Q", "K", "V")}
    start = np.asarray(uniform(Sphere(case.d), case.n, case.seed, samples=case.samples).points)
    if case.start == "cap":
        start = 0.1 * start + np.eye(case.d)[0]
        start = unit(start)
    # In R^d nothing is projected: the velocity of SA is the attention vector itself.
    model = SA(case.beta, weights=Weights(**matrices))
    lengths = [
        np.linalg.norm(field(model, from_array(Euclidean(case.d), tokens)), axis=-1)
        for tokens in start
    ]
    return [at_most("largest |A_j|", np.array(lengths), _attention_bound(case))]


def _attention_bound(case: Case) -> float:
    spread = (1 + 2 * np.sqrt(np.log(case.n))) / np.sqrt(case.n)
    mean = case.beta * np.exp(case.beta**2 / (2 * case.d)) / case.d
    return float(np.exp(case.beta * (1 + spread)) * (spread + mean))


def _signed_permutation(d: int, random: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix that costs nothing to draw."""
    return np.eye(d)[random.permutation(d)] * random.choice([-1.0, 1.0], d)
