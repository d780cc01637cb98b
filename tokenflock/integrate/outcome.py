"""How a solve ended, in words that say what to do."""

from __future__ import annotations

import numpy as np

OUTCOMES = (
    "finished",
    "stopped",
    "step-limit",
    "step-too-small",
    "solver-failed",
    "non-finite",
    "unresolved",
    "blow-up",
)

ADVICE = {
    "finished": "reached t1",
    "stopped": "a stop condition was met",
    "step-limit": (
        "the step limit was reached before t1: raise max_steps, loosen rtol and atol, merge clusters "
        "(merge=Merge(radius)) or use method=Stiff() if tight clusters make the problem stiff"
    ),
    "step-too-small": (
        "the step size fell below 1e-30: the field is not finite or changes too fast; lower beta, use "
        "USA with convention='metastability' (the factor e^beta overflows above beta=700), or check "
        "the weights"
    ),
    "solver-failed": (
        "the implicit solver did not converge: tighten rtol and atol, or use the default method"
    ),
    "non-finite": (
        "the tokens became NaN or infinite: lower the step or the noise, and check the weights; on "
        "R^d use the rescaled frame (RescaledSA), since tokens grow like e^(lambda t); a Gaussian density "
        "ends where its moments reach 1e300, near the range of doubles: stop it earlier"
    ),
    "unresolved": (
        "the density has grown scales finer than its discretisation holds: attention sharpens "
        "densities without end, so use more modes or quantiles, or stop earlier"
    ),
    "blow-up": (
        "the covariance grows without bound before t1: this is the model's own behaviour, stop earlier"
    ),
}


def name_outcome(code: int, finite: bool) -> str:
    """The outcome of one sample."""
    name = OUTCOMES[int(code)]
    return name if finite else ("non-finite" if name in ("finished", "stopped") else name)


def worst_outcome(codes: np.ndarray, finite: np.ndarray) -> str:
    """The worst outcome of a batch, in the order of OUTCOMES."""
    names = [name_outcome(c, f) for c, f in zip(codes.ravel(), finite.ravel(), strict=True)]
    return max(names, key=OUTCOMES.index)


def succeeded(outcome: str) -> bool:
    """Whether the numbers can be trusted to the end."""
    return outcome in ("finished", "stopped")
