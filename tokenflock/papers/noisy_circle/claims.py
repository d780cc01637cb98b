"""2604.16288: the transition on the circle, seen in time from two starts."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ... import theory
from ...density import Density
from ...integrate import Save, solve
from ...ledger.claim import Case, Comparison, at_least, at_most, broken, equals
from ...ledger.measure import KINDS, MODELS
from ...meanfield.zonal import Zonal
from ...noise import Brownian
from ...observables import order_parameter
from . import PAPER

NOTE = (
    "Known as the case d = 2 of 2606.05140, which cites it (the title here is ours). Densities that are "
    "even in theta, by the equation itself."
)
GIVEN = {"warmth": 1.02, "t": 100.0, "size": 32, "model": "USA"}


def _orders(case: Case) -> np.ndarray:
    """|mean| after t/T_1 from a nearly uniform and from an ordered start, at warmth T_1."""
    start = float(theory.critical_temperature(1, 2, case.beta, KINDS[case.model]))
    model = MODELS[case.model](case.beta, noise=Brownian(case.warmth * start))
    found = []
    for width in (0.02, 2.5):
        law = Density.from_law(Zonal(2, case.size), lambda x, w=width: jnp.exp(w * x[:, 0]))
        end = case.t / start
        run = solve(
            model,
            law,
            end,
            rtol=case.rtol,
            atol=case.atol,
            save=Save(at=[0.0, end], observe=[order_parameter]),
        )
        found.append(float(run.array("order_parameter")[-1]))
    return np.array(found)


@PAPER.claim(
    "coexistence",
    where="abstract of 2606.05140 with d = 2",
    says="For beta > beta_* = 2.4469 an ordered and the uniform state are both stable at temperatures "
    "just above the linear threshold.",
    given={**GIVEN, "beta": 4.0},
    at_paper_scale={"t": 1000.0, "size": 48},
    options={"model": ("SA", "USA")},
    needs={
        "the model is USA": lambda c: c.model == "USA",
        "beta > beta_*": lambda c: c.beta > theory.continuity_beta(2),
        "above the threshold": lambda c: c.warmth > 1,
    },
    control=broken("at beta = 2 both starts end in the uniform state", beta=2.0),
    note=NOTE,
    rtol=1e-5,
    atol=1e-8,
)
def coexistence(case: Case) -> list[Comparison]:
    """Order after t/T_1 from both starts. The weak one has lost e^{-t (warmth - 1)} of its order."""
    disorder, order = _orders(case)
    return [
        at_most("order from a nearly uniform start", disorder, 0.01),
        at_least("order from an ordered start", order, 0.5),
    ]


@PAPER.claim(
    "one-state",
    where="abstract of 2606.05140 with d = 2",
    says="For beta <= beta_* = 2.4469 every start forgets its order above the linear threshold: the uniform "
    "state is the only one.",
    given={**GIVEN, "beta": 1.5, "warmth": 1.1},
    at_paper_scale={"t": 400.0, "size": 48},
    options={"model": ("SA", "USA")},
    needs={
        "the model is USA": lambda c: c.model == "USA",
        "beta <= beta_*": lambda c: c.beta <= theory.continuity_beta(2),
        "above the threshold": lambda c: c.warmth > 1,
    },
    resolves={"t (warmth - 1) >= 8, for order to decay": lambda c: c.t * (c.warmth - 1) >= 8},
    control=broken("below the threshold order stays", warmth=0.9),
    note=NOTE,
    rtol=1e-5,
    atol=1e-8,
)
def one_state(case: Case) -> list[Comparison]:
    """Order after t/T_1: at most e^{-t (warmth - 1)}, up to the time spent far from uniform."""
    return [equals("order from both starts", _orders(case), 0.0, 0.01)]
