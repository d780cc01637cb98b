"""How crowded the atoms of a state are, beside the bounds of 2601.21366 for SOPD states on the circle."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...errors import require
from ...theory.perceptron import OUTER_BOUND_BETA, atom_count_bound, mass_bound
from .points import CriticalPoint, linked
from .structure import Landscape

# The paper's code links tokens closer than min(0.5/sqrt(beta), pi/(2 d)).
CLUSTER_SCALE = 0.5


@dataclasses.dataclass(frozen=True)
class Crowding:
    """Counts and masses of one state.

    `clusters` and `heaviest` are the number and largest mass of groups linked below min(1/(2 sqrt beta),
    pi/(2 d)), as the authors' code counts them. `crowded` is the largest mass of two or more atoms in an
    arc of length 1/(2 sqrt beta), 0 where no two are that close, and `mass_bound` its bound for SOPD states
    of USA (NaN where there is none: other models, d > 2, beta < 0.423). `count_bound` bounds `atoms`.
    """

    atoms: int
    lightest: float
    clusters: int
    heaviest: float
    crowded: float
    mass_bound: float
    count_bound: float


def crowding(point: CriticalPoint) -> Crowding:
    """Count the atoms of a critical point and compare with the bounds, where there are any."""
    landscape = point.landscape
    beta = float(landscape.beta)
    labels = linked(point.points, min(CLUSTER_SCALE / np.sqrt(beta), np.pi / (2 * point.d)))
    masses = np.bincount(labels, point.masses)
    bounds = _bounds(point, landscape)
    return Crowding(
        point.count,
        float(point.masses.min()),
        len(masses),
        float(masses.max()),
        crowded_mass(point) if point.d == 2 else float("nan"),
        *bounds,
    )


def crowded_mass(point: CriticalPoint) -> float:
    """Largest mass of two or more atoms in an arc of length 1/(2 sqrt beta); 0 where there are no two."""
    require(point.d == 2, f"arcs belong to the circle, these atoms have d={point.d}")
    order = np.argsort(point.angles)
    angles, masses = point.angles[order], point.masses[order]
    ahead = np.mod(angles[None] - angles[:, None], 2 * np.pi)
    inside = ahead <= 1 / (2 * np.sqrt(float(point.landscape.beta)))
    crowds = inside.sum(axis=1) >= 2
    return float(np.max(np.where(crowds, inside @ masses, 0.0)))


def perceptron_strength(landscape: Landscape) -> float:
    """L W of the bounds: sum_j |omega_j| |a_j|^2 times the Lipschitz constant of sigma.

    NaN with an external term for which no bound is known: other activations, potentials.
    """
    return float(landscape.scale) * sum(term.curvature_bound() for term in landscape.external)


def _bounds(point: CriticalPoint, landscape: Landscape) -> tuple[float, float]:
    beta = float(landscape.beta)
    if landscape.normalised or point.d != 2 or landscape.B is not None or beta < OUTER_BOUND_BETA:
        return float("nan"), float("nan")
    # In the clock of the bounds, the perspective's.
    strength = perceptron_strength(landscape) / float(landscape.kind.clock(landscape.beta))
    if np.isnan(strength):
        return float("nan"), float("nan")
    mass = float(mass_bound(beta, strength))
    count = atom_count_bound(beta, point.masses.min(), strength)
    return mass, float(count)
