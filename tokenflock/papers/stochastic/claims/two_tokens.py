"""Two tokens: what the layer does to R = <x_1, x_2>, and where it ends."""

from __future__ import annotations

import numpy as np

from ....errors import require
from ....ledger.claim import Case, Comparison, at_most, broken, equals
from .. import PAPER, closed_forms
from .chain import (
    ENTRIES,
    ETA,
    final_overlaps,
    layer,
    measured_exponent,
    pairs,
    random_values,
)
from .shared import NUMBER, SEEN, check_runs

GIVEN = {"d": 8, "entries": "signs", "shared": 1}
OPTIONS = {"entries": ENTRIES}
ONE_MATRIX = {"all tokens of a layer share one value matrix": lambda c: c.shared == 1}
OWN_MATRICES = broken("a value matrix for every token drives the two apart", shared=0)
# Bias of an exponent read off one layer, in units of eta^2: its next term, of the order of the exponents.
BIAS = 1.0
# Bias of the absorption probability in units of eta^2: -.013 at eta = .6 (d = 3, beta = 1; 4e4 runs).
ABSORPTION_BIAS = 0.1
SMALL_STEP = 0.02
# Share of runs still under way that leaves an answer.
DOUBT = 0.05


def _exponents(case: Case, betas: np.ndarray, end: int) -> tuple[np.ndarray, float]:
    """Measured exponents at R = end, and how far they may be off: four standard errors and the bias."""
    check_runs(case)
    shared, eta = case.shared == 1, SMALL_STEP / case.refine
    found = [
        measured_exponent(case.d, beta, end, case.runs, case.seed, case.entries, shared, eta)
        for beta in betas
    ]
    values, errors = np.transpose(found)
    return values, 4 * float(np.max(errors)) + BIAS * SMALL_STEP**2


@PAPER.claim(
    "phase-transition",
    where=f"the two-token transition ({NUMBER})",
    says="For two tokens and Q^T K = I, antipodal tokens attract one another if cosh(2 beta) > d - 2 and "
    "are left if cosh(2 beta) < d - 2.",
    given={**GIVEN, "runs": 4000, "offset": 0.4},
    at_paper_scale={"d": 16, "runs": 100_000},
    options=OPTIONS,
    needs={**ONE_MATRIX, "d > 3, so that there is a threshold": lambda c: c.d > 3},
    resolves={
        "a threshold farther than the offset from 0": lambda c: _threshold(c) > c.offset,
        "offset >= 0.1, so that the sign is seen to change": lambda c: c.offset >= 0.1,
    },
    control=OWN_MATRICES,
    note=SEEN
    + " Lyapunov exponent of 1 + R at R = -1 against ((d-1)/cosh^2(beta) - 2)/d; its zero "
    "is found by interpolation between nine values of beta with the same matrices.",
)
def phase_transition(case: Case) -> list[Comparison]:
    """The exponent at nine beta around the threshold: its values, and where it vanishes."""
    require(case.offset > 0, f"the offset around the threshold must be > 0, got {case.offset:g}")
    threshold = _threshold(case)
    betas = threshold + np.linspace(-case.offset, case.offset, 9)
    exponents, allowed = _exponents(case, betas, -1)
    predicted = closed_forms.antipodal_exponent(case.d, betas)
    zero = (
        np.interp(0.0, exponents[::-1], betas[::-1]) if exponents[0] > 0 > exponents[-1] else np.nan
    )
    slope = (predicted[0] - predicted[-1]) / (betas[-1] - betas[0])
    # The exponent is convex in beta: between two of nine beta the chord is off by less than this.
    chord = float(np.max(np.abs(np.diff(predicted, 2)))) / 8
    return [
        equals("antipodal exponent", exponents, predicted, allowed),
        equals("beta where it vanishes", zero, threshold, (allowed + chord) / slope),
    ]


def _threshold(case: Case) -> float:
    return float(closed_forms.antipodal_threshold(case.d))


@PAPER.claim(
    "equal-tokens-attract",
    where=f"the two-token transition ({NUMBER})",
    says="Two nearly equal tokens approach one another at every beta: 1 - R decays at the rate (d-1)/d.",
    given={**GIVEN, "runs": 4000},
    at_paper_scale={"d": 16, "runs": 100_000},
    options=OPTIONS,
    needs=ONE_MATRIX,
    control=OWN_MATRICES,
    note=SEEN,
)
def equal_tokens_attract(case: Case) -> list[Comparison]:
    """Lyapunov exponent of 1 - R at R = 1 for beta = 0, 1, 4: always -(d-1)/d."""
    exponents, allowed = _exponents(case, np.array([0.0, 1.0, 4.0]), 1)
    return [equals("collapse exponent", exponents, closed_forms.collapse_exponent(case.d), allowed)]


@PAPER.claim(
    "overlap-diffusion",
    where=f"the limit of many layers ({NUMBER})",
    says="As the layers become many, R is a diffusion with an explicit drift and variance, whatever the "
    "law of the centred entries of V.",
    given={**GIVEN, "d": 5, "beta": 1.2, "runs": 20_000},
    at_paper_scale={"runs": 1_000_000},
    options=OPTIONS,
    needs=ONE_MATRIX,
    control=broken("own matrices lack the noise that both share", shared=0),
    note=SEEN,
)
def overlap_diffusion(case: Case) -> list[Comparison]:
    """Mean and variance of the change of R over one layer, in units of eta^2, at four values of R.

    Each V is used with both signs, so that the mean has an error of order one over sqrt(runs).
    """
    check_runs(case)
    drifts, variances, allowed, eta = [], [], [], SMALL_STEP / case.refine
    for overlap in (-0.8, -0.2, 0.3, 0.8):
        rng = np.random.default_rng(case.seed)
        x = pairs(np.full(case.runs, overlap), case.d)
        values = random_values(rng, case.d, case.runs, case.entries, 1 if case.shared else 2)
        steps = [layer(x, case.beta, sign * eta * values) for sign in (1.0, -1.0)]
        changes = np.stack([np.sum(y[0] * y[1], axis=0) - overlap for y in steps]) / eta
        means, squares = np.mean(changes, axis=0) / eta, np.mean(changes**2, axis=0)
        here = (overlap, case.d, case.beta)
        drifts.append(np.mean(means) - closed_forms.overlap_drift(*here))
        variances.append(np.mean(squares) - closed_forms.overlap_variance(*here))
        allowed.append([np.std(means), np.std(squares)])
    mean_error, square_error = np.max(allowed, axis=0) * 4 / np.sqrt(case.runs)
    bias = BIAS * SMALL_STEP**2
    return [
        equals("drift of R minus its formula", drifts, 0.0, mean_error + bias),
        equals("variance rate of R minus its formula", variances, 0.0, square_error + bias),
    ]


@PAPER.claim(
    "absorption",
    where=f"the two-token transition ({NUMBER})",
    says="Above the transition two tokens end antipodal with a probability strictly between 0 and 1, given "
    "by the scale function of R.",
    given={
        **GIVEN,
        "d": 3,
        "beta": 1.0,
        "overlap": 0.0,
        "runs": 4000,
        "layers": 2000,
    },
    at_paper_scale={"runs": 20_000, "layers": 6000},
    options=OPTIONS,
    needs={
        **ONE_MATRIX,
        "cosh(2 beta) > d - 2": lambda c: np.cosh(2 * c.beta) > c.d - 2,
    },
    control=OWN_MATRICES,
    note=SEEN + " The scale function is evaluated by quadrature; the layer has eta = 0.15.",
)
def absorption(case: Case) -> list[Comparison]:
    """The share of runs with R < 0 after the layers.

    Allowed: four standard errors, a bias of 0.1 eta^2, and the doubt about runs still under way.
    """
    check_runs(case)
    require(abs(case.overlap) < 1, f"the overlap must lie in (-1, 1), got {case.overlap:g}")
    overlaps = final_overlaps(
        case.overlap,
        case.d,
        case.beta,
        case.runs,
        case.layers,
        case.seed,
        case.entries,
        case.shared == 1,
    )
    expected = float(closed_forms.antipodal_probability(case.overlap, case.d, case.beta))
    doubt = undecided(overlaps, case.d, case.beta)
    require(
        doubt <= DOUBT or case.shared != 1,
        f"after {case.layers} layers a share of {doubt:.2g} of the runs is undecided; take more layers",
    )
    allowed = doubt + absorption_error(expected, case.runs)
    return [
        equals("share of runs at antipodes", np.mean(overlaps < 0), expected, allowed),
        at_most("doubt about where runs will end", doubt, DOUBT),
    ]


def undecided(overlaps: np.ndarray, d: int, beta: float) -> float:
    """Mean of |1{R<0} - P(R)|, P(R) the probability of ending at -1 from R: 0 once all have ended."""
    inside = np.clip(overlaps, -1 + 1e-15, 1 - 1e-15)
    later = closed_forms.antipodal_probability(inside, d, beta)
    return float(np.mean(np.abs((overlaps < 0) - later)))


def absorption_error(expected: float, runs: int, eta: float = ETA) -> float:
    """Four standard errors of a share, and the bias of the layer's step."""
    return float(4 * np.sqrt(expected * (1 - expected) / runs) + ABSORPTION_BIAS * eta**2)


@PAPER.claim(
    "collapse-below",
    where=f"the two-token transition ({NUMBER})",
    says="Below the transition, cosh(2 beta) < d - 2, two tokens always become one.",
    given={**GIVEN, "beta": 0.5, "runs": 500, "layers": 1500},
    at_paper_scale={"runs": 10_000, "layers": 3000},
    options=OPTIONS,
    needs={**ONE_MATRIX, "cosh(2 beta) < d - 2": lambda c: np.cosh(2 * c.beta) < c.d - 2},
    control=broken("at beta = 2 one run in eleven ends at antipodes", beta=2.0),
    note=SEEN,
)
def collapse_below(case: Case) -> list[Comparison]:
    """The share of runs with R < 0 after t = layers eta^2, from R = 0.

    Next to -1, log(1 + R) is a Brownian motion of drift L > 0 and variance S: it stays there for t with
    probability at most e^{-L^2 t/(2 S)} (Chernoff). Four standard errors are added.
    """
    check_runs(case)
    overlaps = final_overlaps(
        0.0, case.d, case.beta, case.runs, case.layers, case.seed, case.entries, case.shared == 1
    )
    rate = max(float(closed_forms.antipodal_exponent(case.d, case.beta)), 0.0)
    spread = 4 * (1 + np.tanh(case.beta) ** 2) / case.d
    late = np.exp(-(rate**2) * case.layers * ETA**2 / (2 * spread)) if rate else 0.0
    allowed = 4 * np.sqrt(max(late, 1 / case.runs) / case.runs)
    return [at_most("share of runs at antipodes", np.mean(overlaps < 0), late, allowed)]
