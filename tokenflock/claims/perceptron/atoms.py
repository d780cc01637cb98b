"""Stationary states with a perceptron are finitely many atoms."""

from __future__ import annotations

import numpy as np

from ...meanfield.landscape import find_critical
from ...measure import from_angles
from ...models import USA
from ...terms import ACTIVATIONS, Perceptron
from ..core import Case, Comparison, at_most, broken
from .paper import PAPER


@PAPER.claim(
    "finitely-many-atoms",
    where="theorems on the circle (ReLU: stationary states; GELU: strict SOPD states)",
    says="On the circle, with a ReLU perceptron whose potential is not analytic, stationary states are "
    "finitely many atoms.",
    given={"n": 32, "beta": 4.0, "scale": 1.0, "sigma": "relu"},
    at_paper_scale={"n": 128},
    options={"sigma": ("relu", "gelu")},
    needs={"there is a perceptron": lambda c: c.scale > 0},
    control=broken("without a perceptron descent spreads out: n atoms of n tokens", scale=0.0),
    note="n tokens are never more than n atoms: what is measured is that a regular grid of them descends to "
    "at most half as many places, where the field is zero to rounding.",
)
def finitely_many_atoms(case: Case) -> list[Comparison]:
    """Atoms of the descent limit of n tokens, and the field there after Newton."""
    term = Perceptron.random(
        2, 2, case.seed, case.scale, gradient=True, activation=ACTIVATIONS[case.sigma]
    )
    grid = from_angles(2 * np.pi * (np.arange(case.n) + 0.5) / case.n)
    point = find_critical(USA(case.beta, "metastability", plus=term), grid)
    return [
        at_most("atoms", point.count, case.n / 2),
        at_most("largest field", point.residual, 1e-12),
    ]
