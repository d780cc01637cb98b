"""2510.20094: stationary states on the circle, mode by mode."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy import special

from ... import theory
from ...density import Density
from ...ledger.branches import curvature
from ...ledger.claim import Case, Comparison, at_least, at_most, broken, equals
from ...ledger.measure import KINDS, MODELS
from ...meanfield.circle import Fourier
from ...meanfield.stationary import branch, stability, stationary_state
from ...meanfield.stationary.equation import at_temperature
from ...models import USA
from ...noise import Brownian
from . import PAPER

EITHER = {"model": ("SA", "USA")}
USA_ONLY = {"the model is USA": lambda c: c.model == "USA"}


@PAPER.claim(
    "quadratic-system",
    where="abstract",
    says="The Fourier coefficients of a stationary state solve quadratic equations: T k p_k = "
    "sum_j j W_j p_j p_(k-j), W_j those of the kernel.",
    given={"beta": 2.0, "cold": 0.85, "size": 32, "model": "USA"},
    at_paper_scale={"beta": 4.0, "size": 64},
    options=EITHER,
    needs={**USA_ONLY, "an ordered state exists (T < T_1)": lambda c: c.cold < 1},
    control=broken("SA's potential is a logarithm, and no quadratic equation holds", model="SA"),
    note="The form is derived here: T rho' = rho (W * rho)'; W_j = I_j(beta)/beta.",
)
def quadratic_system(case: Case) -> list[Comparison]:
    """Largest defect of the equations for k up to half of the modes, where no sum is cut.

    Cut are products with modes beyond `size`, at most the tail 1e-6 of the state squared.
    """
    warmth = case.cold * float(theory.critical_temperature(1, 2, case.beta, KINDS[case.model]))
    start = Density.from_law(
        Fourier(case.size), lambda x: jnp.exp(3 * (0.9 * x[:, 0] + 0.4 * x[:, 1]))
    )
    state = stationary_state(MODELS[case.model](case.beta, noise=Brownian(warmth)), start).state
    half, size = np.asarray(state), case.size
    positive = (half[1 : size + 1] - 1j * half[size + 1 :]) / np.sqrt(2)
    p = np.concatenate([positive[::-1].conj(), [1.0], positive])
    j = np.arange(-size, size + 1)
    # SA's potential has the same linear part over I_0, so that only its logarithm is left to tell them apart.
    mean = special.iv(0, case.beta) if case.model == "SA" else 1.0
    pull = j * special.iv(np.abs(j), case.beta) / (case.beta * mean) * p
    right = np.convolve(pull, p)[size : 3 * size + 1]
    low = np.abs(j) <= size // 2
    defect = np.abs(warmth * j * p - right)[low].max() / np.abs(warmth * j * p).max()
    return [
        equals("relative defect of the quadratic equations", defect, 0.0, 1e-8),
        at_least("order parameter", np.abs(positive[0]), 0.3),
    ]


@PAPER.claim(
    "every-mode",
    where="shape of bifurcations (abstract)",
    says="The branch with l-fold symmetry is supercritical exactly when I_2l(beta)/I_l(beta) < 1/2.",
    given={"beta": 3.0, "degree": 2, "size": 24, "model": "USA"},
    at_paper_scale={"beta": 9.0, "degree": 3, "size": 48},
    options=EITHER,
    needs=USA_ONLY,
    control=broken("SA's branches bend by another formula", model="SA"),
    note="The formula is that of l = 1 with I_l, I_2l for I_1, I_2, since an l-fold state is a function of "
    "l theta: T = T_l (1 - m^2 (I_l - 2 I_2l)/(2 (I_l - I_2l))), m = |p_l|.",
)
def every_mode(case: Case) -> list[Comparison]:
    """Curvature of the branch of a degree against the formula; what is left is of order m^4."""
    low, high = special.ive(np.array([case.degree, 2 * case.degree]), case.beta)
    formula = -(low - 2 * high) / (2 * (low - high))
    return [equals("curvature", curvature(case, 2, case.beta, case.degree), formula, 1e-4)]


@PAPER.claim(
    "metastable",
    where="multi-mode states as metastable states (abstract)",
    says="For large beta states with several clusters are almost stable: what destroys them grows far "
    "more slowly than what made them.",
    given={"beta": 9.0, "degree": 2, "cold": 0.65, "size": 64},
    at_paper_scale={"size": 96},
    needs={"beta is large (here at least 9)": lambda c: c.beta >= 9},
    control=broken("at beta = 1 they fall apart faster than they form", beta=1.0),
    note="The abstract has no rate; what made them is the growth of the degree around the uniform state at "
    "the same temperature, cold T_l, and ten times slower is our reading.",
)
def metastable(case: Case) -> list[Comparison]:
    """Largest growth rate at the state of l clusters, over that of degree l at the uniform state."""
    start = float(theory.critical_temperature(case.degree, 2, case.beta))
    temperature = case.cold * start
    found = branch(
        USA(case.beta), Fourier(case.size), (temperature * 0.999, 2 * start), case.degree
    )
    state = found.at(temperature)[-1]
    model = at_temperature(USA(case.beta), temperature)
    made = float(theory.noisy_growth_rate(case.degree, 2, case.beta, temperature))
    return [
        at_most(
            "rate of falling apart over rate of forming", stability(model, state).growth / made, 0.1
        )
    ]
