"""Its six schemes, and the clock each of them runs on close to the cluster."""

from __future__ import annotations

import numpy as np

from ....dynamics import Dynamics
from ....integrate import Save, solve
from ....ledger.claim import Case
from ....measure import Measure
from ....models import SA
from ....normalisation import NGPT, SCHEMES, MixLN, Normalisation
from ....schedule import Schedule

NAMES = tuple(SCHEMES)
GROWING = ("pre", "mix", "peri")
LABELS = {
    "post": "Post-LN",
    "pre": "Pre-LN",
    "mix": "Mix-LN",
    "peri": "Peri-LN",
    "ngpt": "nGPT",
    "sqrt": "sqrt-scaling",
}


def scheme(name: str, alpha: float = 1.0, tau: float = 1.0) -> Normalisation:
    """A scheme by its name; alpha is the step of nGPT, tau the switching time of Mix-LN."""
    if name == "ngpt":
        return NGPT(alpha)
    return MixLN(tau) if name == "mix" else SCHEMES[name]()


def attention(case: Case, name: str, weights: Schedule | None = None) -> Dynamics:
    """Self-attention at the inverse temperature of the case under a scheme."""
    alpha, tau = (float(case.values.get(parameter, 1.0)) for parameter in ("alpha", "tau"))
    chosen = scheme(name, alpha, tau)
    return SA(case.beta, weights=weights, normalisation=chosen)


def clock(name: str, t: np.ndarray, alpha: float) -> np.ndarray:
    """int dt/s near one cluster, where |A| = 1 and a growing radius is t: 1 - rho ~ e^{-2 clock}."""
    if name in GROWING:
        return np.log(t)
    if name == "sqrt":
        return 2 * np.sqrt(t + 1)
    return alpha * t if name == "ngpt" else t


def path(
    case: Case, model: Dynamics, x0: Measure, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Directions (*sample, time, n, d) and radii (*sample, time, n) at 0 and the given times."""
    save = Save(at=times, states=True)
    run = solve(model, x0, float(times[-1]), rtol=case.rtol, atol=case.atol, save=save)
    states = np.asarray(run.array("states"))
    return states, np.asarray(run.array("radii")) if "radii" in run else np.ones(states.shape[:-1])
