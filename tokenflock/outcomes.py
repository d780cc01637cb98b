"""How a solve ended, in words that say what to do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .trajectory import Trajectory

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
CENSORED = (
    "those that finished met no stop until t1, so their stop times are censored: "
    "run.stop_summary() counts them and gives quantiles that allow for them"
)


GOOD = ("finished", "stopped")


def name_outcomes(codes: Any, finite: Any) -> np.ndarray:
    """The outcomes of all members of a batch, in its shape; GOOD are only those that are finite."""
    numbers = np.asarray(codes, dtype=int)
    good = np.isin(OUTCOMES, GOOD)[numbers]
    names = np.array(OUTCOMES, dtype=object)[numbers]
    return np.where(good & ~np.asarray(finite, dtype=bool), "non-finite", names)


def count_outcomes(names: Any) -> str:
    """One word where all members agree, else how many ended how: `324 stopped, 124 finished`.

    The worst come first. `words_of` takes it apart again.
    """
    every = np.ravel(np.asarray(names, dtype=object))
    if every.size and bool(np.all(every == every[0])):
        return str(every[0])
    counts = Counter(every.tolist())
    order = sorted(counts, key=_rank, reverse=True)
    return ", ".join(f"{counts[name]} {name}" for name in order)


def _rank(name: str) -> int:
    """How bad an outcome is; to have met the stop comes before t1 among those that went well."""
    return OUTCOMES.index(name) if name in OUTCOMES else len(OUTCOMES)


def words_of(outcome: str) -> list[str]:
    """The outcomes that a count names, the worst first."""
    return [part.split()[-1] for part in outcome.split(", ")]


def advise(outcome: str, own: dict[str, str] | None = None) -> str:
    """What an outcome, or a count of several, means and what to do; `own` words come first."""
    known = {**ADVICE, **(own or {})}
    words = words_of(outcome)
    if len(words) == 1:
        return known[words[0]]
    told = [f"{word}: {known[word]}" for word in words]
    if {"stopped", "finished"} <= set(words):
        told.append(CENSORED)
    return "; ".join(told)


def succeeded(outcome: str) -> bool:
    """Whether the numbers can be trusted to the end, of every member of a batch."""
    return all(word in GOOD for word in words_of(outcome))


def failure(run: Trajectory, t1: float) -> str:
    """Why a run did not come to its end, for a SolveError."""
    if not run.batch_axes:
        return f"the run stopped at t={run.reached:g} of {t1:g}: {run.advice}"
    names = np.asarray(run.outcomes.values).astype(str)
    failed = ~np.isin(names, GOOD)
    first = float(np.min(np.asarray(run.reached)[failed]))
    return (
        f"{int(failed.sum())} of the {names.size} runs of this batch broke off, the first at "
        f"t={first:g} of {t1:g} (run.outcomes tells which, with throw=False): {run.advice}"
    )
