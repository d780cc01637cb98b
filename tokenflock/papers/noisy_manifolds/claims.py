"""2412.14813: stationary states on spheres, and how they leave the uniform one."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ... import theory
from ...density import Density
from ...ledger.branches import near_threshold, order
from ...ledger.claim import Case, Comparison, at_least, broken, equals
from ...ledger.measure import KINDS, MODELS
from ...meanfield.continuation import follow
from ...meanfield.stationary import stationary_state
from ...meanfield.stationary.branches import axial_residual
from ...meanfield.stationary.equation import stationary_equation
from ...meanfield.zonal import Zonal
from ...noise import Brownian
from . import PAPER

EITHER = {"model": ("SA", "USA")}
USA_ONLY = {"the model is USA": lambda c: c.model == "USA"}


@PAPER.claim(
    "bifurcations",
    where="bifurcation branches around the uniform state (abstract)",
    says="Branches leave the uniform state of noisy USA at the Funk-Hecke numbers of the kernel: "
    "T_l = Gamma(d/2)(2/beta)^(d/2-1) I_(l+d/2-1)(beta)/beta.",
    given={"d": 4, "beta": 3.0, "size": 12, "model": "USA"},
    at_paper_scale={"d": 6, "beta": 6.0, "size": 16},
    options=EITHER,
    needs=USA_ONLY,
    control=broken("SA divides the attraction by Z", model="SA"),
    note="Found by continuation of the uniform state, where the determinant of the equation changes sign.",
)
def bifurcations(case: Case) -> list[Comparison]:
    """Branch points along the uniform state for degrees 1, 2, 3, over the formula.

    Rounding e of the equation moves a crossing of branches by sqrt(e). A residual is a sum of some twenty
    terms of size 1: e is several 1e-15 (more in larger dimensions, by polynomials near the poles).
    """
    degrees = np.arange(1, 5)
    exact = theory.critical_temperature(degrees[:3], case.d, case.beta)
    # Looked for where the model has them, so that SA's are found and compared.
    own = theory.critical_temperature(degrees, case.d, case.beta, KINDS[case.model])
    gap = np.sqrt(own[2] * own[3])
    equation = stationary_equation(MODELS[case.model](case.beta), Zonal(case.d, case.size))
    curve = follow(
        axial_residual,
        np.zeros(case.size),
        float(np.log(1.5 * own[0])),
        args=equation,
        direction=-1,
        within=(float(np.log(gap)), float(np.log(2 * own[0]))),
        step=0.05,
        largest=0.1,
    )
    found = np.exp([point.parameter for point in curve.branch_points()])
    found = np.append(found, np.full(3, np.nan))[:3]
    return [equals("T_l over its formula", found / exact, 1.0, 1e-7)]


@PAPER.claim(
    "transcritical",
    where="bifurcation branches on spheres (abstract); the slope is derived here",
    says="On S^{d-1}, d > 2, branches of degree two cross the uniform state: one side starts at warmer, "
    "the other at colder temperatures.",
    given={"d": 4, "beta": 1.0, "size": 16, "model": "USA"},
    at_paper_scale={"d": 10},
    options=EITHER,
    needs={**USA_ONLY, "d > 2": lambda c: c.d > 2},
    control=broken("on the circle plus and minus are the same branch, turned", d=2),
    note="T/T_2 = 1 + t c/2 + O(c^2) with the coefficient c of the normalised harmonic p_2 and t = int p_2^3 "
    "= 8(d-1)(d-2)/((d+2)(d+4)) ((d+2)/(2(d-1)))^{3/2}.",
)
def transcritical(case: Case) -> list[Comparison]:
    """(T(c) - T(-c))/(2 c T_2), c about 0.02: odd terms are left, of relative order c^2."""
    sides = [near_threshold(case, case.d, case.beta, 2, sign) for sign in (1, -1)]
    slopes = [excess[0] / found.curve.states[0, 1] for found, excess in sides]
    d = case.d
    cube = 8 * (d - 1) * (d - 2) / ((d + 2) * (d + 4)) * ((d + 2) / (2 * (d - 1))) ** 1.5
    return [
        equals("slope of T/T_2", np.mean(slopes), cube / 2, 1e-3),
        at_least("slope of T/T_2", np.mean(slopes), 0.05),
    ]


@PAPER.claim(
    "gibbs",
    where="equivalence of formulations (abstract)",
    says="Stationary states are the fixed points of the Gibbs map rho -> e^{(W rho)/T}/Z: in them "
    "nothing moves.",
    given={"d": 3, "beta": 2.0, "cold": 0.8, "factor": 1.0, "size": 32, "model": "USA"},
    at_paper_scale={"d": 8, "size": 64},
    options=EITHER,
    needs={
        "an ordered state exists (T < T_1)": lambda c: c.cold < 1,
        "the temperature of the map is that of the noise": lambda c: c.factor == 1,
    },
    control=broken("the map of another temperature has other fixed points", factor=1.1),
    note="For SA too, although it has no free energy: its field is a gradient for every frozen measure.",
)
def gibbs(case: Case) -> list[Comparison]:
    """|d_t rho| of the weak form at the fixed point, relative to the transport alone.

    The weak form is truncated at the same degree: what is left is the tail of the state, below 1e-6.
    """
    warmth = case.cold * float(theory.critical_temperature(1, case.d, case.beta, KINDS[case.model]))
    make = MODELS[case.model]
    start = Density.from_law(Zonal(case.d, case.size), lambda x: jnp.exp(3 * x[:, 0]))
    found = stationary_state(make(case.beta, noise=Brownian(warmth * case.factor)), start)
    model = make(case.beta, noise=Brownian(warmth))
    scheme = start.on.scheme().prepared(model)
    moved = np.asarray(scheme.transport(model, 0.0, found.state))
    spread = np.asarray(scheme.damping(model)) * np.asarray(found.state)
    return [
        equals(
            "|d_t rho| over |div(rho v)|",
            np.abs(moved - spread).max() / np.abs(moved).max(),
            0.0,
            1e-5,
        ),
        at_least("order parameter", order(found), 0.3),
    ]
