"""Runs shared by the figures: tokens of R^d without layer norm, in the frame z = e^{-tV} x."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....dynamics import Dynamics
from ....integrate import Save, solve
from ....measure import from_array
from ....models import RescaledSA
from ....observables import Observable
from ....space import Euclidean
from ....starts import box
from ....terms import Attention
from ....trajectory import Trajectory
from ....weights import Weights

# A follower is told from its leader by a relative gap e^{-lambda_1 t}, so the error must stay below it.
RTOL, ATOL = 1e-12, 1e-12


def rescaled_run(
    value: np.ndarray,
    n: int,
    seed: int,
    half_width: float,
    times: np.ndarray,
    scores: np.ndarray | None = None,
    observe: Sequence[Observable] = (),
) -> Trajectory:
    """z from U[-half_width, half_width]^d with V = value and Q^T K = scores (default the identity)."""
    return solve(
        RescaledSA(1.0, Weights(V=value, B=scores)),
        box(Euclidean(len(value)), n, seed, half_width),
        float(times[-1]),
        rtol=RTOL,
        atol=ATOL,
        save=Save(at=times, states=True, observe=observe),
    )


def eigen_run(
    values: np.ndarray,
    vectors: np.ndarray,
    n: int,
    seed: int,
    half_width: float,
    times: np.ndarray,
    observe: Sequence[Observable] = (),
) -> Trajectory:
    """x itself along the eigenvectors of a symmetric V, from the box of `rescaled_run`, Q^T K = I.

    For many dimensions: no matrix exponential per step, and each eigenvector keeps its own relative
    accuracy. A follower moves exactly as its leader does, so that their difference stays exact until
    lambda_1 t = 36, where it is lost to rounding.
    """
    d = len(values)
    start = box(Euclidean(d), n, seed, half_width).points @ vectors
    return solve(
        Dynamics(None, Attention(Weights(V=np.diag(values)), 1.0), label="attention on R^d"),
        from_array(Euclidean(d), start),
        float(times[-1]),
        rtol=1e-8,
        atol=1e-8,
        save=Save(at=times, states=True, observe=observe),
    )


def states_of(run: Trajectory) -> np.ndarray:
    """The saved tokens, with axes (time, token, coordinate)."""
    return np.asarray(run.states)


def leading_form(value: np.ndarray) -> np.ndarray:
    """phi_1^*: the unit left eigenvector of V for its eigenvalue of largest real part."""
    values, left = np.linalg.eig(value.T)
    form = np.real(left[:, np.argmax(np.real(values))])
    return form * np.sign(np.sum(form)) / np.linalg.norm(form)
