"""What several claims share."""

from __future__ import annotations

import numpy as np

from ....errors import require
from ....ledger.claim import Case
from ....measure import Measure
from ....random_depth import HeadLaw
from ....random_depth.laws import AmongTokens, FixedScores, Normal, ProductScores, Values
from ....space import Sphere
from ....starts import equiangular

# The statements were read in a public transcription of the paper, which gives no numbers.
NUMBER = "as transcribed; the number was not seen"
COMMON = {"one V serves all tokens of a layer": lambda c: c.common == 1}
FLAT = {"beta = 0": lambda c: c.beta == 0}
# Tolerances allow for the step by its first term.
SMALL_STEP = {"eta <= 0.3, a small step": lambda c: c.eta <= 0.3}
MOST_LAYERS = 10**6
FEWEST = 30


def simplex_start(case: Case) -> Measure:
    """n tokens with all overlaps gamma."""
    return equiangular(Sphere(case.d), case.n, case.gamma)


def gaussian_heads(case: Case) -> HeadLaw:
    """Assumption (G) with sigma_V^2 = sigma_A^2 = 1/d, V common to all tokens or not; no A at beta = 0."""
    values = Values(case.d**-0.5, entries=Normal(), common=bool(case.common))
    scores = ProductScores(case.d**-0.5) if case.beta else FixedScores()
    return HeadLaw(values, scores, AmongTokens(case.beta))


def layers_in(time: float, unit: float) -> int:
    """Layers of length `unit` (eta, or eta^2 on the diffusive clock) next to a time."""
    require(unit > 0 and time > 0, f"time and step must be positive, got {time:g} and {unit:g}")
    layers = round(time / unit)
    require(
        1 <= layers <= MOST_LAYERS,
        f"a time of {time:g} is {layers} layers of {unit:g}; it needs 1 to {MOST_LAYERS}: change the step",
    )
    return layers


def standard_error(values: np.ndarray) -> np.ndarray:
    """Of the mean over the first axis."""
    count = values.shape[0]
    require(
        count >= FEWEST, f"a standard error needs at least {FEWEST} draws or chains, got {count}"
    )
    return values.std(axis=0, ddof=1) / np.sqrt(count)
