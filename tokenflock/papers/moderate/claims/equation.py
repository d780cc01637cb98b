"""The mean-field equation before clusters: backward heat at large beta, and how long the start is flat."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import PchipInterpolator

from .... import theory
from ....density import Density
from ....integrate import Save, solve
from ....ledger.claim import Case, Comparison, at_most, broken, equals
from ....ledger.measure import KINDS, MODELS
from ....meanfield.circle import Fourier
from ....meanfield.laws import cosine
from ....meanfield.linear import growth_rates
from ....meanfield.zonal import Zonal
from ....models import SA
from ....observables import fourier_moments
from .. import PAPER

LIMIT = "limit of large beta, as quoted in 2512.01868"
# A wave has saturated when |muhat_k| has this size: 1 is k atoms, and the linear law ends before.
SATURATED = 0.3
# Waves that are watched: the dominant one for beta up to 30.
MOST_WAVES = 8


def _heat_errors(case: Case, d: int, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """1 - beta lambda_k/(k(k+d-2)) of the discretised equation, and k(k+d-2), for k = 1, .., modes."""
    # Ten widths of the kernel: what is above them has numbers below rounding.
    degree = int(10 * case.beta**0.5) + 2 * case.modes
    on = Fourier(degree) if d == 2 else Zonal(d, degree)
    k = np.arange(1, case.modes + 1)
    laplacian = k * (k + d - 2)
    rates = growth_rates(MODELS[case.model](beta), on, k, case.seed)
    return 1 - beta * rates / laplacian, laplacian


@PAPER.claim(
    "backward-heat-rates",
    where=LIMIT,
    says="As beta grows, the mean-field equation of SA on S^{d-1} becomes the heat equation run backwards in "
    "the time t/beta: every fixed mode grows at the rate k(k+d-2)/beta, with an error of the order 1/beta.",
    given={"d": 8, "beta": 200.0, "modes": 3, "model": "SA"},
    at_paper_scale={"d": 16, "beta": 300.0, "modes": 4},
    options={"model": ("SA", "USA")},
    needs={
        "the model is SA": lambda c: c.model == "SA",
        "the modes are fixed and beta is large: beta >= 4 k(k+d-2)": lambda c: (
            c.beta >= 4 * c.modes * (c.modes + c.d - 2)
        ),
    },
    control=broken(
        "USA becomes a backward porous medium: rates grow by the partition function", model="USA"
    ),
    note="Rates are the derivative of the discretised equation in d = 2, 3 and the d given.",
)
def backward_heat_rates(case: Case) -> list[Comparison]:
    """1 - beta lambda_k/L with L = k(k+d-2), at beta and 2 beta, in three dimensions.

    It is 1 - I_{k+a}/I_a with a = d/2-1, and for large arguments
    log(I_{k+a}/I_a) = -L/(2 beta) - L/(4 beta^2) + O(L^2/beta^3). So it is at most L/(2 beta) (1 + 1/beta),
    and its quotient at 2 beta and beta is 1/2 + (L - 2)/(16 beta) + ..: the tolerance is twice that.
    """
    comparisons = []
    for d in sorted({2, 3, case.d}):
        (error, laplacian), (later, _) = (_heat_errors(case, d, b * case.beta) for b in (1, 2))
        expected = laplacian / (2 * case.beta)
        widest = float(np.max(laplacian)) / (8 * case.beta)
        comparisons += [
            at_most(
                f"|1 - beta lambda_k/(k(k+d-2))|, d = {d}",
                np.abs(error),
                expected * (1 + 1 / case.beta),
            ),
            equals(f"its quotient at 2 beta and beta, d = {d}", later / error, 0.5, widest),
        ]
    return comparisons


def _saturation_time(case: Case, size: float, wave: int) -> float:
    """When |muhat_k| reaches SATURATED from the density 1 + size cos(k(theta - 0.4)), k = wave."""
    rate = float(theory.growth_rate(wave, 2, case.beta, KINDS["SA"]))
    # The wave falls behind its linear law by less than a tenth of an e-fold until then.
    times = (np.log(SATURATED / (size / 2)) + np.linspace(-1.0, 0.2, 61)) / rate
    start = Density.from_law(Fourier(case.modes), cosine(size, wave, 0.4))
    save = Save(at=times, observe=[fourier_moments(MOST_WAVES)])
    run = solve(SA(case.beta), start, times[-1], rtol=case.rtol, atol=case.atol, save=save)
    log_size = np.log(np.asarray(run.array("fourier_moments"))[-len(times) :, wave - 1])
    return float(PchipInterpolator(log_size, times, extrapolate=False)(np.log(SATURATED)))


@PAPER.claim(
    "flat-until-saturation",
    where="intermediate phase (not numbered here)",
    says="From a density that is uniform up to waves of size e the mean-field equation of SA reaches its "
    "clusters after the time log(1/e)/lambda_{k*} and a constant: the size of the noise decides the delay.",
    given={"beta": 9.0, "modes": 64, "size": 1e-3, "beside": 0},
    at_paper_scale={"beta": 25.0, "modes": 192},
    needs={
        "the wave of the start is the dominant one": lambda c: c.beside == 0,
        "the start is close to uniform": lambda c: 0 < c.size <= 1e-2,
    },
    resolves={
        "beta lies between 3.2 and 30, so that a lesser wave exists and waves up to 8 suffice": lambda c: (
            3.2 <= c.beta <= 30
        ),
    },
    control=broken("a wave that is not the dominant one takes longer", beside=-1),
    note="Saturated means |muhat_k| = 0.3. For n independent tokens e is of the order n^{-1/2}, which makes "
    "the time log(n)/(2 lambda_{k*}).",
    rtol=1e-9,
    atol=1e-13,
)
def flat_until_saturation(case: Case) -> list[Comparison]:
    """lambda_{k*} (T(e/1000) - T(e))/log(1000) against 1.

    The wave a obeys a' = lambda a (1 + c a^2 + ..), so lambda T = log(1/e) + C + c e^2/2: with c of the order
    of quotients of rates (10) what is left is 1e-6 of log(1000). Interpolation between saves leaves less
    than 1e-5 of an e-fold (1/50 between saves, cubes of which enter).
    """
    best = int(theory.dominant_mode(2, case.beta))
    rate = float(theory.growth_rate(best, 2, case.beta, KINDS["SA"]))
    wave = best + case.beside
    first, second = (_saturation_time(case, case.size * part, wave) for part in (1.0, 1e-3))
    slope = rate * (second - first) / np.log(1e3)
    return [equals("slope of lambda T in log(1/size)", slope, 1.0, 1e-4)]
