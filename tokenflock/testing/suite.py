"""A suite of checks: each one holds, is refused with a sentence, or fails with its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax.typing import ArrayLike

from ..errors import InputError

HOLDS = "holds"
Findings = dict[str, str]


class Suite:
    """Runs checks of one thing and collects what they found."""

    def __init__(self, of: Any):
        self.of = type(of).__name__
        self.findings: Findings = {}

    def run(self, name: str, check: Callable[[], None]) -> None:
        """One check: an InputError is a refusal, anything else that is raised is a failure."""
        try:
            check()
        except InputError as refusal:
            self.findings[name] = f"refused: {refusal}"
        except Exception as error:
            raise AssertionError(
                f"{self.of} fails the check '{name}': {type(error).__name__}: {error}"
            ) from error
        else:
            self.findings[name] = HOLDS


def close(
    found: ArrayLike, wanted: ArrayLike, tolerance: float, what: str, size: float | None = None
) -> None:
    """Fail where two arrays differ by more than `tolerance` of the largest entry, or of `size`."""
    ours, theirs = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    if ours.shape != theirs.shape:
        raise AssertionError(f"{what}: shape {ours.shape}, not {theirs.shape}")
    if size is None:
        size = max(float(np.max(np.abs(theirs), initial=0.0)), 1e-300)
    error = float(np.max(np.abs(ours - theirs), initial=0.0)) / size
    # Not `error > tolerance`: NaN must fail.
    if not error <= tolerance:
        raise AssertionError(
            f"{what}: off by {error:.2g} of the largest entry, more than {tolerance:g}"
        )
