"""Depth to collapse, and what it is measured in."""

from __future__ import annotations

import functools

import numpy as np

from .... import theory
from ....errors import require
from ....ledger.claim import Case, Comparison, broken, equals
from ....random_depth import random_chains
from ....random_depth.laws import AmongTokens, FixedScores, HeadLaw, Normal, Values
from ....space import Sphere
from ....starts import equiangular
from .. import PAPER
from .shared import COMMON, SMALL_STEP, layers_in, standard_error


@PAPER.claim(
    "depth-scale",
    where="trade-off of depth (derived here)",
    says="From orthogonal tokens at beta = 0 the mean overlap passes 0.9 after (H/eta^2) log(9(n-1)) layers: "
    "more heads or a smaller step only stretch depth.",
    given={"n": 8, "d": 64, "eta": 0.25, "heads": 2, "chains": 80, "common": 1},
    at_paper_scale={"d": 256, "eta": 0.1, "heads": 4, "chains": 400},
    needs=COMMON,
    resolves={
        **SMALL_STEP,
        "d >= 64, since the depth is that of infinite d": lambda c: c.d >= 64,
        "heads >= 2, to compare with one": lambda c: c.heads >= 2,
    },
    control=broken("another V for every token leaves no force: 0.9 is not reached", common=0),
    note="Steps eta and eta/2 with one head, and eta with all heads; the ratios are counts of layers.",
)
def depth_scale(case: Case) -> list[Comparison]:
    """Medians over chains.

    Tolerance: 1.25 x 4 standard errors (a median's); for tau O(1/d) of a drift u(1-u) >= 0.09, for ratios the
    step, a part eta^2/2 of the depth.
    """
    one, finer, wider = (
        _depths(case.n, case.d, bool(case.common), eta, heads, case.chains, case.seed)
        for eta, heads in ((case.eta, 1), (case.eta / 2, 1), (case.eta, case.heads))
    )
    clocks = np.array([1.0, 4.0, case.heads])
    layers = np.array([np.median(part) for part in (one, finer, wider)])
    error = np.array([5 * standard_error(part) for part in (one, finer, wider)])
    tau, own = case.eta**2 * layers / clocks, case.eta**2 * error / clocks
    expected = float(theory.logistic_depth(0.9, 1 / case.n))
    shares = np.hypot(error[1:] / layers[1:], error[0] / layers[0])
    return [
        equals("tau at m = 0.9", tau, expected, float(own.max() + 2 / case.d / 0.09)),
        *(
            equals(
                f"layers {what}, over those with one head and eta",
                ratio,
                clock,
                clock * (share + case.eta**2 / 2),
            )
            for what, ratio, clock, share in zip(
                ("with steps eta/2", "with all heads"),
                layers[1:] / layers[0],
                clocks[1:],
                shares,
                strict=True,
            )
        ),
    ]


@functools.cache
def _depths(
    n: int, d: int, common: bool, eta: float, heads: int, chains: int, seed: int
) -> np.ndarray:
    """Layers of every chain at beta = 0 until m = 0.9, interpolated between looks; computed once.

    A chain that has not arrived by tau = 8 counts with that depth.
    """
    require(n >= 2, f"tokens with an overlap to gain are two at least, got n={n}")
    every = layers_in(8.0 / 40, eta**2 / heads)
    law = HeadLaw(Values(d**-0.5, entries=Normal(), common=common), FixedScores(), AmongTokens(0.0))
    run = random_chains(
        law,
        equiangular(Sphere(d), n, 0.0),
        40 * every,
        eta,
        heads=heads,
        chains=chains,
        seed=seed + 7 * heads,
        every=every,
    )
    m = run.array("mean_overlap")
    after = np.where((m >= 0.9).any(axis=1), (m >= 0.9).argmax(axis=1), m.shape[1] - 1)
    high, low = (m[np.arange(chains), index] for index in (after, after - 1))
    back = np.where(high >= 0.9, (high - 0.9) / np.maximum(high - low, 1e-12), 0.0)
    return every * (after - back)
