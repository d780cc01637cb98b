"""Stationary states with a perceptron are finitely many atoms."""

from __future__ import annotations

import numpy as np

from ...meanfield.landscape import find_critical
from ...measure import Measure, from_angles
from ...models import USA
from ...terms import ACTIVATIONS, Perceptron
from ..core import Case, Comparison, at_most, broken
from .paper import PAPER


@PAPER.claim(
    "finitely-many-atoms",
    where="theorems on the circle (ReLU: stationary states; GELU: strict SOPD states)",
    says="On the circle, with a ReLU perceptron whose potential is not analytic, stationary states are "
    "finitely many atoms.",
    given={"n": 32, "beta": 4.0, "strength": 1.0, "sigma": "relu"},
    at_paper_scale={"n": 128},
    options={"sigma": ("relu", "gelu")},
    resolves={
        "there are more tokens than arcs of length 1/(2 sqrt beta) (n > 4 pi sqrt beta)": (
            lambda c: c.n > 4 * np.pi * np.sqrt(c.beta)
        )
    },
    needs={"there is a perceptron": lambda c: c.strength > 0},
    control=broken("without a perceptron descent spreads out: n atoms of n tokens", strength=0.0),
    note="The theorem gives no number, and n tokens are never more than n atoms: this is finite evidence. "
    "Twice as many tokens of a density would end in twice as many places, as in the control; of finitely "
    "many atoms they do not, once there are more tokens than attention keeps apart.",
)
def finitely_many_atoms(case: Case) -> list[Comparison]:
    """Atoms of the descent limits of grids of n and 2 n tokens, and the field there after Newton."""
    term = Perceptron.random(
        2, 2, case.seed, case.strength, gradient=True, activation=ACTIVATIONS[case.sigma]
    )
    model = USA(case.beta, "metastability", plus=term)
    coarse, fine = (find_critical(model, _grid(count)) for count in (case.n, 2 * case.n))
    return [
        at_most("atoms of 2 n tokens", fine.count, 2 * coarse.count - 1),
        at_most("largest field", max(coarse.residual, fine.residual), 1e-12),
    ]


def _grid(count: int) -> Measure:
    return from_angles(2 * np.pi * (np.arange(count) + 0.5) / count)
