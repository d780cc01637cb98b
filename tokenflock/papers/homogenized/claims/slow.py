"""Zero temperature: directions under random matrices, the slow limit and its coefficient k."""

from __future__ import annotations

import numpy as np

from .... import theory
from ....ledger.claim import Case, Comparison, at_most, broken, equals, misprint
from ....random_depth import (
    HeadLaw,
    diffusive_time,
    gaps,
    measured_direction_overlap,
    measured_slow_coefficient,
    overlaps,
    random_chains,
    slow_paths,
)
from ....space import Sphere
from ....starts import equiangular
from .. import PAPER
from .shared import NUMBER, SMALL_STEP, layers_in, standard_error

SEEN = "The statement was seen in a transcription; the original PDF was not."
TWO_FACTORS = {"A = W W'^T": lambda c: c.factors == 2}


@PAPER.claim(
    "direction-lemma",
    where=f"lemma on the cosine of A x and A y ({NUMBER})",
    says="For A = W W'^T with Gaussian W and W', E cos(Ax, Ay) = R + (R^3 - R)/d + O(d^{-2}).",
    given={"d": 40, "overlap": 0.6, "draws": 40_000, "factors": 2, "loss": 1.0},
    at_paper_scale={"d": 160, "draws": 400_000},
    needs={**TWO_FACTORS, "the loss is (R - R^3)/d": lambda c: c.loss == 1},
    control=broken("one Gaussian matrix loses half as much", factors=1),
    errata=[
        misprint("transcribed with (R^3 - R)/(2d), which belongs to one Gaussian matrix", loss=0.5)
    ],
    note=f"{SEEN} The exact value by quadrature of Fisher's law is compared too.",
)
def direction_lemma(case: Case) -> list[Comparison]:
    """P3-7: d (E cos - R). Tolerance: 4 standard errors, and 1/d for what the lemma leaves out."""
    found = measured_direction_overlap(
        case.overlap, int(case.d), int(case.draws), case.seed, int(case.factors)
    )
    measured, error = case.d * (found.value - case.overlap), 4 * case.d * found.error
    exact = case.d * (theory.direction_overlap(case.overlap, case.d, 2) - case.overlap)
    lemma = case.loss * (case.overlap**3 - case.overlap)
    return [
        equals("d (E cos(Ax, Ay) - R)", measured, lemma, error + 1 / case.d),
        equals("the same against quadrature", measured, exact, error),
    ]


@PAPER.claim(
    "slow-coefficient",
    where=f"slow limit at low temperature ({NUMBER})",
    says="At zero temperature R(t d) tends to du = -k u(1-u^2)dt + sqrt2 (1-u^2)dB with k = 2 for "
    "A = W W'^T: the paper's own overlap drift leaves no other value.",
    given={"d": 40, "overlap": 0.5, "draws": 40_000, "factors": 2, "k": 2.0},
    at_paper_scale={"d": 160, "draws": 1_000_000},
    needs={**TWO_FACTORS, "k = 2": lambda c: c.k == 2},
    resolves={"d >= 4, where k_d lies within 4/d of its limit": lambda c: c.d >= 4},
    control=broken("one Gaussian matrix has k = 3/2", factors=1),
    errata=[misprint("transcribed with k = 1, for which no reading of the lemma was found", k=1.0)],
    note=f"{SEEN} k_d(R) = -d D/(R(1-R^2)) is measured at finite d and tends to k like 1/d; the exact k_d by "
    "quadrature is compared too.",
)
def slow_coefficient(case: Case) -> list[Comparison]:
    """P3.b 8: k_d(R) by Monte Carlo. Tolerance: 4 standard errors, and 4/d for the distance to d = infinity.

    That distance is 2.6/d at R = 1/2 and below 4/d at any R for d >= 4 (theory.slow_coefficient).
    """
    found = measured_slow_coefficient(
        int(case.d), case.overlap, int(case.draws), case.seed, int(case.factors)
    )
    exact = theory.slow_coefficient(case.overlap, case.d, 2)
    return [
        equals("k_d", found.value, case.k, 4 * found.error + 4 / case.d),
        equals("k_d against quadrature", found.value, exact, 4 * found.error),
    ]


@PAPER.claim(
    "zero-temperature-exponent",
    where=f"derived from the overlap drift ({NUMBER})",
    says="At zero temperature close tokens approach only at the rate (d-1)/(d(d-2)^2) in log(1 - R).",
    given={"d": 4, "eta": 0.15, "chains": 800, "tau": 8.0, "factors": 2},
    at_paper_scale={"eta": 0.05, "chains": 8000},
    needs={**TWO_FACTORS, "d >= 4": lambda c: c.d >= 4},
    resolves={
        **SMALL_STEP,
        "tau <= 10, while probes stay close": lambda c: c.tau <= 10,
    },
    control=broken("one Gaussian matrix contracts (d-2) times faster", factors=1),
)
def zero_temperature(case: Case) -> list[Comparison]:
    """Slope of log(1-R) of two probes; 4 standard errors (variance (4/d)(1+slope) per tau) and eta^2."""
    x0 = equiangular(Sphere(int(case.d)), 2, 1 - 1e-8)
    run = random_chains(
        HeadLaw.zero_temperature(int(case.d), int(case.factors)),
        x0,
        layers_in(case.tau, case.eta**2),
        case.eta,
        chains=int(case.chains),
        seed=case.seed,
        observe=[gaps],
    )
    logs = np.log(run.array("gaps")[:, :, 0])
    slope = (logs[:, -1] - logs[:, 0]) / float(diffusive_time(run)[-1])
    error = 4 * standard_error(slope) + case.eta**2
    expected = theory.zero_temperature_exponent(case.d, 2)
    return [equals("slope of log(1 - R)", slope.mean(), expected, float(error))]


@PAPER.claim(
    "low-temperature-rest",
    where=f"low temperature ({NUMBER})",
    says="At low temperature two tokens in a crowd keep their overlap for times of order one: "
    "E (R(tau) - R(0))^2 <= 2 tau/d to first order, so that motion takes tau ~ d.",
    given={"d": 64, "eta": 0.2, "chains": 200, "tau": 1.0, "attention": "zero temperature"},
    at_paper_scale={"d": 256, "eta": 0.1, "chains": 1000},
    options={"attention": ("zero temperature", "flat")},
    needs={"beta is infinite": lambda c: c.attention == "zero temperature"},
    resolves={**SMALL_STEP, "4 tau <= d, first order in tau/d": lambda c: 4 * c.tau <= c.d},
    control=broken("flat attention pulls the two together within tau = 1", attention="flat"),
)
def rest(case: Case) -> list[Comparison]:
    """Mean square of R from R(0) = 0; 4 standard errors, and the drift's own square, below (2 tau/d)^2."""
    d = int(case.d)
    cold = case.attention == "zero temperature"
    run = random_chains(
        HeadLaw.zero_temperature(d) if cold else HeadLaw.gaussian(d, 0.0),
        equiangular(Sphere(d), 2, 0.0),
        layers_in(case.tau, case.eta**2),
        case.eta,
        chains=int(case.chains),
        seed=case.seed,
        observe=[overlaps],
    )
    square = run.array("overlaps")[:, -1, 0] ** 2
    bound = 2 * float(diffusive_time(run)[-1]) / d
    error = 4 * standard_error(square) + bound**2
    return [at_most("E (R - R_0)^2", square.mean(), bound, float(error))]


PATHS = {"paths": 4000, "dt": 0.05}
ENOUGH = {
    "dt <= 0.1, a small step": lambda c: c.dt <= 0.1,
    "paths >= 100, for a share": lambda c: c.paths >= 100,
}


@PAPER.claim(
    "hitting-law",
    where=f"slow limit, k = 1 ({NUMBER})",
    says="The equation with k = 1 is absorbed, at 1 with probability 1/2 + arcsin(u_0)/pi.",
    given={**PATHS, "start": 0.5, "k": 1.0, "t": 12.0},
    at_paper_scale={"paths": 20_000, "dt": 0.02},
    needs={"k = 1": lambda c: c.k == 1},
    resolves={**ENOUGH, "t >= 12, when paths have ended": lambda c: c.t >= 12},
    control=broken("with k = 0 the start counts for more", k=0.0),
    note="About the printed equation; for A = W W'^T the coefficient is 2 (slow-coefficient), where nothing "
    "is absorbed.",
)
def hitting_law(case: Case) -> list[Comparison]:
    """P3-8: share of paths above 0 at the end. At t = 12 a path has turned back with probability < e^{-6}."""
    z = slow_paths([case.t], case.k, case.start, int(case.paths), case.dt, case.seed)
    expected = theory.slow_probability(case.start, 1.0)
    error = 4 * np.sqrt(expected * (1 - expected) / case.paths) + case.dt**2 + np.exp(-6)
    return [equals("P(u -> 1)", np.mean(z > 0), expected, float(error))]


@PAPER.claim(
    "critical-coefficient",
    where="slow limit, criticality (derived here)",
    says="k = 2 is critical: artanh u is then a Brownian motion, so u is drawn to +-1 only like "
    "P(|u| <= v) ~ t^{-1/2} and never absorbed.",
    given={**PATHS, "k": 2.0, "t": 10.0, "level": 0.99},
    at_paper_scale={"paths": 20_000, "t": 30.0},
    needs={"k = 2": lambda c: c.k == 2},
    resolves={**ENOUGH, "dt <= t": lambda c: c.dt <= c.t},
    control=broken("with k = 1 nearly all paths are beyond .99 by then", k=1.0),
)
def critical(case: Case) -> list[Comparison]:
    """P3-9: P(|u| > level) from u = 0 against 2(1 - Phi(artanh(level)/sqrt(2t))); 4 standard errors."""
    z = slow_paths([case.t], case.k, 0.0, int(case.paths), case.dt, case.seed)
    expected = theory.slow_share(case.level, case.t, 2)
    error = 4 * np.sqrt(expected * (1 - expected) / case.paths) + case.dt**2
    return [
        equals("P(|u| > level)", np.mean(np.abs(np.tanh(z)) > case.level), expected, float(error))
    ]
