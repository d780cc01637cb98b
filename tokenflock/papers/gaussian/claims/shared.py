"""Its models, random Gaussians, and runs of their mean and covariance."""

from __future__ import annotations

import numpy as np

from ....dynamics import Dynamics
from ....integrate import Save, solve
from ....kinds import Kind, Sinkhorn, Softmax, Unnormalised
from ....ledger.claim import Case
from ....meanfield.moments import gaussian_density
from ....measure import Measure
from ....space import Euclidean
from ....terms import Attention
from ....trajectory import Trajectory
from ....weights import Weights

NUMBER = "the statement's number was not seen"
KINDS: dict[str, Kind] = {
    "softmax": Softmax(),
    "sinkhorn": Sinkhorn(),
    "unnormalised": Unnormalised(),
}
# Runs of one structure share a program: always as many times.
SAVES = 9


def attention(kind: str, A: np.ndarray, V: np.ndarray) -> Dynamics:
    """Attention with scores y^T A x, so that the engine's B is A^T; heads are a leading axis."""
    weights = Weights(B=np.swapaxes(A, -1, -2), V=V)
    return Dynamics(None, Attention(weights, 1.0, KINDS[kind]), label=kind)


def random_covariance(rng: np.random.Generator, d: int) -> np.ndarray:
    """A covariance with eigenvalues from 0.4 to 1.2 in a random frame."""
    return _turned(rng, np.linspace(0.4, 1.2, d))


def random_score(rng: np.random.Generator, eigenvalues: np.ndarray) -> np.ndarray:
    """A symmetric A with these eigenvalues in a random frame."""
    return _turned(rng, np.asarray(eigenvalues))


def _turned(rng: np.random.Generator, eigenvalues: np.ndarray) -> np.ndarray:
    frame = np.linalg.qr(rng.normal(size=(eigenvalues.size, eigenvalues.size)))[0]
    matrix = (frame * eigenvalues) @ frame.T
    return (matrix + matrix.T) / 2


def skew(d: int) -> np.ndarray:
    """An antisymmetric matrix without zeros beside its diagonal."""
    upper = np.triu(np.ones((d, d)), 1)
    return upper - upper.T


def cubature(law: str, nodes: int, mean: np.ndarray, covariance: np.ndarray) -> Measure:
    """A measure of the plane with this mean and covariance, as tokens at products of Gauss nodes.

    `gaussian`, or `uniform`: the image of a square. Integrals of entire functions are exact to rounding.
    """
    if law == "gaussian":
        z, w = np.polynomial.hermite_e.hermegauss(nodes)
    else:
        z, w = np.polynomial.legendre.leggauss(nodes)
        z = z * np.sqrt(3.0)
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), -1).reshape(-1, 2)
    points = mean + grid @ np.linalg.cholesky(covariance).T
    return Measure(Euclidean(2), points, np.outer(w, w).ravel())


def moments(points: np.ndarray, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of tokens."""
    mean = masses @ points
    return mean, (masses[:, None] * (points - mean)).T @ (points - mean)


def flow(
    case: Case, model: Dynamics, mean: np.ndarray, covariance: np.ndarray, t1: float
) -> Trajectory:
    """Mean and covariance at nine times up to t1, or up to the blow-up if there is one."""
    save = Save(at=np.linspace(0.0, t1, SAVES), states=True)
    start = gaussian_density(mean, covariance)
    return solve(model, start, t1, rtol=case.rtol, atol=case.atol, save=save, throw=False)
