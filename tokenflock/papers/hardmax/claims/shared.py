"""Its layer, and what several claims read off a run of layers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....dynamics import Dynamics
from ....integrate import Layers, Save, solve
from ....ledger.claim import Case
from ....measure import Measure
from ....models import HardmaxFlow
from ....observables import leader_mask, leaders
from ....space import Euclidean
from ....starts import gaussian
from ....weights import Weights

NUMBER = "the statement's number was not seen"
GIVEN = {"n": 8, "d": 2, "samples": 4, "alpha": 0.5, "layers": 32}
PAPER_SCALE = {"n": 128, "samples": 8}
POSITIVE_ALPHA = {"alpha > 0": lambda c: c.alpha > 0}
SYMMETRIC = {"A is symmetric": lambda c: c.skew == 0.0}
DEFINITE = {"A is positive definite": lambda c: c.sign > 0}
# Updates are averages of O(1) numbers: what 32 of them leave is rounding.
ROUNDING = 1e-12


class Run(NamedTuple):
    """Tokens (sample, layer, n, d), whether they lead (sample, layer, n), and leader locations."""

    states: np.ndarray
    leads: np.ndarray
    locations: np.ndarray


def metric(case: Case, skew: float = 0.0) -> np.ndarray:
    """A generic positive definite A with eigenvalues 1/2 to 3/2, and a skew part if asked."""
    rng = np.random.default_rng(case.seed)
    rotation = np.linalg.qr(rng.normal(size=(case.d, case.d)))[0]
    turn = np.triu(np.ones((case.d, case.d)), 1)
    return rotation @ np.diag(np.linspace(0.5, 1.5, case.d)) @ rotation.T + skew * (turn - turn.T)


def squared_norms(tokens: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """|z_i|_A^2 = <A z_i, z_i>."""
    return np.einsum("...d,de,...e->...", tokens, matrix, tokens)


def scores(tokens: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """<A z_i, z_j> as (..., i, j)."""
    return np.einsum("...id,ed,...je->...ij", tokens, matrix, tokens)


def hardmax(matrix: np.ndarray) -> Dynamics:
    """The model of the paper with scores <A z_i, z_j>; the engine's B is A^T."""
    return HardmaxFlow(Weights(B=matrix.T))


def cloud(case: Case) -> Measure:
    """Gaussian tokens: nonzero, distinct and without ties."""
    return gaussian(Euclidean(case.d), case.n, case.seed, samples=case.samples)


def run_layers(case: Case, model: Dynamics, x0: Measure) -> Run:
    """All layers z <- (z + alpha mean)/(1 + alpha) of a run, a step of alpha/(1 + alpha) each."""
    step = case.alpha / (1.0 + case.alpha)
    times = step * np.arange(case.layers + 1)
    run = solve(
        model,
        x0,
        float(times[-1]),
        method=Layers(step),
        save=Save(at=times, observe=[leader_mask, leaders], states=True),
    )
    return Run(
        np.asarray(run.array("states")),
        run.array("leader_mask") > 0.5,
        np.asarray(run.array("leaders")),
    )
