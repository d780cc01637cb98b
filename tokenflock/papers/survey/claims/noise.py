"""Section 7: USA with independent spherical Brownian motion sqrt(2/kappa) dW.

Steps divide t by a power of two, so that a run with half the step sees the same Brownian path.
"""

from __future__ import annotations

import numpy as np

from .... import theory
from ....dynamics import Dynamics
from ....integrate import Save, solve
from ....ledger.claim import Case, Comparison, at_most, broken, equals, misprint
from ....ledger.measure import flow
from ....measure import Measure, from_angles
from ....models import USA
from ....noise import Brownian
from ....observables import order_parameter
from ....space import Sphere
from ....starts import cap, uniform
from ....terms import Drift
from ....weights import Weights
from .. import PAPER


@PAPER.claim(
    "brownian-motion",
    where="Section 7, the stochastic equation",
    says="Without interaction the noise is spherical Brownian motion: E<X_t, X_0> decays like "
    "e^(-(d-1)t/kappa), and harmonics of degree two like e^(-2dt/kappa).",
    given={"n": 500, "d": 3, "kappa": 3.0, "t": 0.5, "dt": 1 / 256, "factor": 2.0},
    at_paper_scale={"n": 5000, "d": 8, "dt": 1 / 1024},
    needs={"the noise is sqrt(2/kappa) dW": lambda c: c.factor == 2},
    control=broken("sqrt(1/kappa) dW is slower by a factor two", factor=1.0),
)
def decay_of_harmonics(case: Case) -> list[Comparison]:
    """Means over n independent tokens of u and (d u^2 - 1)/(d - 1), u = <X_t, X_0>.

    Tolerance: three standard errors, and the weak error of the step, of relative order dt (d/kappa).
    """
    x0 = uniform(Sphere(case.d), case.n, case.seed)
    model = Dynamics(None, Drift(0.0), Brownian(case.factor / 2 / case.kappa))
    end = _walk(case, model, x0, [case.t])[0]
    first = np.sum(end * np.asarray(x0.points), axis=-1)
    second = (case.d * first**2 - 1) / (case.d - 1)
    found = []
    for degree, values in ((1, first), (2, second)):
        expected = theory.brownian_correlation(case.t, case.d, 1 / case.kappa, degree)
        error = 3 * np.std(values) / np.sqrt(case.n) + case.dt * case.d / case.kappa
        found.append(equals(f"mean harmonic of degree {degree}", values.mean(), expected, error))
    return found


def _walk(case: Case, model: Dynamics, x0: Measure, times: list[float]) -> np.ndarray:
    """Tokens at the times, with the fixed step that noise needs."""
    unset = {"rtol": None, "atol": None}
    return flow(case, model, x0, times, dt=case.dt / case.refine, seed=case.seed, **unset)


@PAPER.claim(
    "pitchfork-below",
    where="Section 7, noisy Kuramoto model",
    says="At beta = 0 on the circle noise destroys all order as long as kappa <= 2.",
    given={"n": 96, "beta": 0.0, "kappa": 1.0, "samples": 16, "t": 8.0, "dt": 1 / 16},
    at_paper_scale={"n": 1000, "samples": 2, "t": 16.0, "dt": 1 / 32},
    needs={"beta = 0": lambda c: c.beta == 0, "kappa < 2": lambda c: c.kappa < 2},
    resolves={
        "3 (n (1 - kappa/2))^{-1/2} < 1/2, so that noise and order differ": lambda c: (
            c.n * (1 - c.kappa / 2) / 4 > 9
        )
    },
    control=broken("at beta = 3 order survives at kappa = 1", beta=3.0),
    note="At kappa = 1, away from the slow relaxation near 2 (rate 1/2 - 1/kappa).",
)
def disorder(case: Case) -> list[Comparison]:
    """Mean order parameter against three times its finite-size value sqrt(1/(n (1 - kappa/2)))."""
    finite_size = np.sqrt(1 / (case.n * max(1 - case.kappa / 2, 1 / case.n)))
    return [at_most("order parameter", _order(case), 3 * finite_size)]


@PAPER.claim(
    "pitchfork-above",
    where="Section 7, noisy Kuramoto model",
    says="At beta = 0 on the circle and kappa > 2 the tokens keep the order parameter that solves "
    "r = I_1(kappa r)/I_0(kappa r).",
    given={"n": 96, "beta": 0.0, "kappa": 3.5, "samples": 16, "t": 4.0, "dt": 1 / 16},
    at_paper_scale={"n": 1000, "samples": 2, "t": 16.0, "dt": 1 / 32},
    needs={"beta = 0": lambda c: c.beta == 0, "kappa > 2": lambda c: c.kappa > 2},
    resolves={
        "t (1/2 - 1/kappa) >= 0.8: near 2 the order relaxes slowly": lambda c: (
            c.t * (1 / 2 - 1 / c.kappa) >= 0.8
        )
    },
    control=broken("at beta = 3 the same noise leaves more order", beta=3.0),
    note="At kappa = 3.5, away from the slow relaxation near 2 (rate 1/2 - 1/kappa).",
)
def order(case: Case) -> list[Comparison]:
    """Mean order parameter against theory.

    Tolerance: three standard errors of a mean of n samples unit vectors, the weak error of the
    step (order dt) and the finite-size bias (order 1/n).
    """
    error = 3 / np.sqrt(case.n * case.samples) + case.dt / 2 + 1 / case.n
    return [equals("order parameter", _order(case), theory.order_parameter(case.kappa), error)]


def _order(case: Case) -> float:
    """|(1/n) sum x_i|, mean over the samples and the last half of a run from an ordered start."""
    x0 = cap(Sphere(2), case.n, case.seed, 1.5, samples=case.samples)
    run = solve(
        USA(case.beta, noise=Brownian(1 / case.kappa)),
        x0,
        case.t,
        dt=case.dt / case.refine,
        seed=case.seed,
        save=Save(at=np.linspace(case.t / 2, case.t, 32), observe=[order_parameter]),
    )
    return float(np.mean(run.array("order_parameter")[..., 1:]))


@PAPER.claim(
    "fokker-planck",
    where="Section 7, Fokker-Planck equation (number not seen)",
    says="The law of the noisy tokens obeys d_t mu = Lap mu/kappa - div(mu v), so a small first "
    "harmonic grows at rate I_1(beta)/beta - 1/kappa on the circle.",
    given={
        "n": 128,
        "beta": 1.0,
        "kappa": 4.0,
        "samples": 16,
        "t": 1.0,
        "dt": 1 / 64,
        "amplitude": 0.2,
        "sign": 1.0,
        "form": "corrected",
    },
    at_paper_scale={"n": 1000},
    options={"form": ("corrected", "printed")},
    needs={
        "tokens attract (V = I)": lambda c: c.sign > 0,
        "the first harmonic is small": lambda c: c.amplitude <= 0.25,
        "the corrected form is used": lambda c: c.form == "corrected",
    },
    control=broken("with V = -I the drift spreads the tokens as the noise does", sign=-1.0),
    errata=[
        misprint(
            "printed is d_t mu + Lap mu/kappa = div(mu v): time runs backwards in both terms",
            form="printed",
        )
    ],
)
def first_harmonic(case: Case) -> list[Comparison]:
    """<cos theta>(t) / <cos theta>(0) = e^{rate t} from the density 1 + 2 amplitude cos theta.

    Tolerance: three standard errors of a mean of n samples cosines, and the quadratic terms.
    """
    start = np.broadcast_to(_quantiles(case), (case.samples, case.n))
    weights = Weights(V=case.sign)
    model = USA(case.beta, weights=weights, noise=Brownian(1 / case.kappa))
    end = _walk(case, model, from_angles(start), [case.t])
    measured = end[..., 0].mean() / np.cos(start).mean()
    rate = float(theory.noisy_growth_rate(1, 2, case.beta, 1 / case.kappa))
    expected = np.exp(rate * case.t * (1 if case.form == "corrected" else -1))
    noise = 3 / (case.amplitude * np.sqrt(2 * case.n * case.samples))
    return [equals("growth of <cos theta>", measured, expected, noise + case.amplitude**2)]


def _quantiles(case: Case) -> np.ndarray:
    """n angles that cut the density (1 + 2 amplitude cos theta)/(2 pi) into equal masses."""
    fine = np.linspace(-np.pi, np.pi, 20001)
    mass = (fine + np.pi + 2 * case.amplitude * np.sin(fine)) / (2 * np.pi)
    return np.interp((np.arange(case.n) + 0.5) / case.n, mass, fine)
