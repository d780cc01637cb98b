"""The paper itself, and what several claims share."""

from __future__ import annotations

import numpy as np

from ...measure import Measure, equiangular
from ...random_depth import HeadLaw
from ...random_depth.laws import AmongTokens, FixedScores, Normal, ProductScores, Values
from ...space import Sphere
from ..core import Case, Paper

PAPER = Paper("2604.01978v1", "Homogenized Transformers", "Koubbi, Geshkovski, Rigollet")
# The statements were read in a public transcription of the paper, which gives no numbers.
NUMBER = "as transcribed; the number was not seen"
COMMON = {"one V serves all tokens of a layer": lambda c: c.common == 1}
FLAT = {"beta = 0": lambda c: c.beta == 0}


def simplex_start(case: Case) -> Measure:
    """n tokens with all overlaps gamma."""
    return equiangular(Sphere(case.d), case.n, case.gamma)


def gaussian_heads(case: Case) -> HeadLaw:
    """Assumption (G) with sigma_V^2 = sigma_A^2 = 1/d, V common to all tokens or not; no A at beta = 0."""
    values = Values(case.d**-0.5, entries=Normal(), common=bool(case.common))
    scores = ProductScores(case.d**-0.5) if case.beta else FixedScores()
    return HeadLaw(values, scores, AmongTokens(case.beta))


def standard_error(values: np.ndarray) -> np.ndarray:
    """Of the mean over the first axis."""
    return values.std(axis=0, ddof=1) / np.sqrt(values.shape[0])
