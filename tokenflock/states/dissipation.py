"""The dissipation identity: the free energy must change by the work that its dissipation has done."""

from __future__ import annotations

from typing import Any

import numpy as np

# Beyond this the identity is broken: a first-order method with large steps stays below it.
LARGEST_DEFECT = 0.05
# Changes of the free energy below this many tolerances are not compared.
SILENCE = 1e3


def to_the_end(arrays: dict[str, Any], name: str, time_axis: int) -> np.ndarray:
    """What was saved, (batch, time), closed by what each member ended with."""
    rows = np.moveaxis(np.asarray(arrays[name], dtype=float), time_axis, -1)
    last = np.asarray(arrays[f"final_{name}"], dtype=float)
    return np.concatenate([rows, last[..., None]], axis=-1)


def identity_of(arrays: dict[str, Any], time_axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The free energy and the work, (batch, time)."""
    return (
        to_the_end(arrays, "free_energy", time_axis),
        to_the_end(arrays, "work", time_axis),
    )


def _is_known(energy: np.ndarray) -> bool:
    """Whether there is something to compare: some term has an energy, within the range of doubles."""
    rows = np.isfinite(energy)
    return bool(np.any(energy[rows])) and not np.any(np.isinf(energy))


def identity_defect(energy: np.ndarray, work: np.ndarray) -> float | None:
    """Largest difference between the change of the free energy and the work, over that change.

    Each beta by itself. None where there is nothing to compare.
    """
    if not _is_known(energy):
        return None
    change = energy - energy[..., :1]
    rounding = np.finfo(float).eps * np.nanmax(np.abs(energy), axis=-1)
    span = np.nanmax(np.abs(change), axis=-1) + rounding
    return float(np.nanmax(np.nanmax(np.abs(change - work), axis=-1) / span))


def identity_is_broken(energy: np.ndarray, work: np.ndarray, atol: float) -> np.ndarray:
    """Whether the free energy moved otherwise than its dissipation says, by more than steps explain.

    Of each member of a batch. A change below the solver's atol, or near the rounding of the energy
    itself, says nothing.
    """
    if not _is_known(energy):
        return np.zeros(energy.shape[:-1], dtype=bool)
    change = energy - energy[..., :1]
    quiet = SILENCE * (atol + np.finfo(float).eps * np.nanmax(np.abs(energy), axis=-1))
    allowed = LARGEST_DEFECT * np.nanmax(np.abs(change), axis=-1) + quiet
    return np.nanmax(np.abs(change - work), axis=-1) > allowed
