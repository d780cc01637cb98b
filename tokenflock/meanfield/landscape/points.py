"""A critical point: finitely many atoms with masses on which the field of a model vanishes."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from ...dynamics import Dynamics
from ...errors import require
from ...measure import Measure
from ...space import Sphere
from .structure import Landscape

Direction = Literal["descent", "ascent"]
DIRECTIONS = ("descent", "ascent")
# Of the forces that hold an atom: what is worse is no critical point that anybody could judge.
LARGEST_RESIDUAL = 1e-9


@dataclasses.dataclass(frozen=True)
class CriticalPoint:
    """Atoms (k, d) with masses (k,), and how exactly the field vanishes there.

    `residual` is max |F_i| over the atoms, each in units of the forces that hold it there
    (`Landscape.force_scales`); `uncertainty` the length of the last Newton step, an estimate of the distance
    to the exact critical point; `energy` E in the model's own units (NaN where there is none). `reached` is
    the time at which the flow was left for Newton's method, 0 without a flow. `rounding` bounds what the
    rounding of strong pulls may hide of the residual.
    """

    model: Dynamics
    points: np.ndarray
    masses: np.ndarray
    residual: float
    uncertainty: float
    energy: float
    direction: Direction = "descent"
    reached: float = 0.0
    rounding: float = 0.0

    @property
    def landscape(self) -> Landscape:
        """The energy and field of the model."""
        return Landscape.of(self.model)

    @property
    def count(self) -> int:
        """Number of atoms."""
        return len(self.masses)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self.points.shape[-1]

    @property
    def converged(self) -> bool:
        """Whether the field vanishes to 1e-12 of the forces that hold the atoms.

        Where strong attention is balanced beside weak external forces, its rounding may not allow that:
        `certify` then judges by 1e-9, and calls what is worse unclear.
        """
        return self.residual <= 1e-12 and self.rounding <= LARGEST_RESIDUAL

    @property
    def angles(self) -> np.ndarray:
        """The atoms on the circle as angles in (-pi, pi]."""
        require(self.d == 2, f"angles belong to the circle, these atoms have d={self.d}")
        return np.arctan2(self.points[:, 1], self.points[:, 0])

    def as_measure(self) -> Measure:
        """The atoms as tokens (two or more), for the engine and its observables."""
        require(self.count >= 2, "a single atom is no system of tokens: a measure needs two")
        return Measure(Sphere(self.d), self.points, self.masses)

    def __str__(self) -> str:
        heavy = ", ".join(f"{mass:.4g}" for mass in np.sort(self.masses)[::-1][:6])
        more = ", ..." if self.count > 6 else ""
        return (
            f"{self.direction} of {self.model.label} on S^{self.d - 1}: {self.count} atoms of masses "
            f"{heavy}{more}, residual {self.residual:.1e}"
        )


def separations(points: np.ndarray) -> np.ndarray:
    """Angles between all pairs of unit vectors (k, k), accurate at 0 and at pi."""
    difference = np.linalg.norm(points[:, None] - points, axis=-1)
    total = np.linalg.norm(points[:, None] + points, axis=-1)
    return 2 * np.arctan2(difference, total)


def merged(points: np.ndarray, masses: np.ndarray, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Atoms linked by less than `angle` become one at their mean direction, with their total mass."""
    labels = linked(points, angle)
    count = labels.max() + 1
    total = np.bincount(labels, masses, count)
    sums = np.stack([np.bincount(labels, masses * column, count) for column in points.T], axis=-1)
    return sums / np.linalg.norm(sums, axis=-1, keepdims=True), total


def linked(points: np.ndarray, angle: float) -> np.ndarray:
    """Number of the connected component of every atom, linked below `angle`."""
    from scipy.sparse.csgraph import connected_components

    return connected_components(separations(points) <= angle, directed=False)[1]
