"""Certify a critical point: how small its field is, and the signs of the second variation.

A critical point is SOPD (second-order positive, 2601.21366) if d^2 E/dt^2 >= 0 along every geodesic of
measures that starts there, strictly SOPD with constant kappa if it is >= kappa int |xi|^2 dmu. For k atoms
these are the eigenvalues of the k (d-1) x k (d-1) matrix of the second variation in the metric of the masses:
kappa is the smallest. A perceptron with a kinked activation has no second derivative on its hyperplanes:
there both sides count.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.linalg import null_space

from .finding import force_and_slope, padded
from .points import LARGEST_RESIDUAL, CriticalPoint
from .structure import Landscape, tangent_frames

Verdict = Literal["strict SOPD", "SOPD", "not SOPD", "stable", "unstable", "unclear"]
# Atoms this close to the hyperplane of a kinked neuron are certified from both sides.
KINK = 1e-3
# Beyond this many (atom, neuron) pairs at a kink, their sides are not enumerated.
MOST_KINKS = 6
# Eigenvalues below this part of the largest count as zero: rounding of sums of k terms, with room.
ZERO = 1e-10


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What is known of a critical point, and how.

    `eigenvalues` are those of the second variation in the masses' metric, ascending, in the model's units
    (SA with a perceptron has no energy: real parts of the eigenvalues of the field's derivative, and the
    verdict is "stable" or "unstable" for descent). `kappa` is the smallest, `transverse_kappa` the smallest
    across `rotations`, the zero modes that the symmetry of the model makes. `splitting` is the smallest
    curvature of dE/dmu at each atom: negative where descent would split the atom's mass, which no geodesic
    of 2601.21366 does. `kinks` are pairs (atom, neuron) closer than 1e-3 to the neuron's hyperplane.
    """

    verdict: Verdict
    reason: str
    residual: float
    kappa: float
    transverse_kappa: float
    eigenvalues: np.ndarray
    tolerance: float
    rotations: int
    splitting: np.ndarray
    kinks: tuple[tuple[int, int], ...]

    @property
    def negative(self) -> int:
        """Number of negative eigenvalues: the index of the critical point."""
        return int(np.sum(self.eigenvalues < -self.tolerance))

    @property
    def zeros(self) -> int:
        """Number of eigenvalues that are zero within the tolerance."""
        return int(np.sum(np.abs(self.eigenvalues) <= self.tolerance))

    def __str__(self) -> str:
        return f"{self.verdict} (kappa {self.kappa:.3g}): {self.reason}"


def certify(point: CriticalPoint) -> Certificate:
    """Residual, eigenvalues and verdict of a critical point."""
    landscape = point.landscape
    spectrum = Spectrum.of(landscape, point.points, point.masses)
    kinks = near_kinks(landscape, point.points)
    sides = (
        [spectrum] if len(kinks) > MOST_KINKS else _sides(landscape, point.points, spectrum, kinks)
    )
    lowest = min(sides, key=lambda side: side.transverse[0] if side.transverse.size else np.inf)
    # An error xi of the atoms moves the eigenvalues by at most their scale times (1 + beta) |xi|.
    error = (1.0 + float(landscape.beta)) * point.uncertainty
    tolerance = lowest.scale * (ZERO + error)
    verdict, reason = _verdict(point, sides, kinks, tolerance, landscape.has_energy)
    transverse = lowest.transverse
    return Certificate(
        verdict,
        reason,
        point.residual,
        float(lowest.values[0]),
        float(transverse[0]) if transverse.size else float("inf"),
        lowest.values,
        tolerance,
        lowest.rotations,
        spectrum.splitting,
        kinks,
    )


def _verdict(
    point: CriticalPoint,
    sides: list[Spectrum],
    kinks: tuple[tuple[int, int], ...],
    tolerance: float,
    has_energy: bool,
) -> tuple[Verdict, str]:
    if point.residual > LARGEST_RESIDUAL:
        return "unclear", f"the field is {point.residual:.1e}, not zero: this is no critical point"
    if point.rounding > LARGEST_RESIDUAL:
        return "unclear", (
            f"strong attention hides the external forces: its rounding is {point.rounding:.1e} of them"
        )
    if len(kinks) > MOST_KINKS:
        return "unclear", f"{len(kinks)} atoms or neurons meet at kinks, too many to try all sides"
    found = {_sign_of(side, tolerance, has_energy) for side in sides}
    if len(found) > 1:
        return "unclear", "an atom lies at a kink of the perceptron, whose two sides disagree"
    return found.pop()


def _sign_of(side: Spectrum, tolerance: float, has_energy: bool) -> tuple[Verdict, str]:
    good, bad = ("SOPD", "not SOPD") if has_energy else ("stable", "unstable")
    rotations = f"{side.rotations} zero modes are rotations of a symmetric model"
    if not side.transverse.size:
        return good, f"{rotations}, and there are no others"
    lowest = side.transverse[0]
    if lowest < -tolerance:
        return (
            bad,
            "a direction lowers the energy" if has_energy else "a direction grows in descent",
        )
    if lowest <= tolerance:
        zeros = int(np.sum(side.transverse <= tolerance))
        return "unclear", f"{zeros} eigenvalues are zero within {tolerance:.1e}, not as rotations"
    if side.rotations:
        return good, f"{rotations}; the others are positive"
    return ("strict SOPD" if has_energy else "stable"), "all eigenvalues are positive"


@dataclasses.dataclass(frozen=True)
class Spectrum:
    """The second variation at atoms: its matrix in the masses' metric, eigenvalues, and rotations."""

    matrix: np.ndarray
    values: np.ndarray
    transverse: np.ndarray
    rotations: int
    frames: np.ndarray
    splitting: np.ndarray
    symmetric: bool
    turning: np.ndarray
    energy: float = float("nan")

    @staticmethod
    def of(landscape: Landscape, points: np.ndarray, masses: np.ndarray) -> Spectrum:
        """Of any atoms; the matrix has a meaning where the field vanishes."""
        count, width = len(masses), points.shape[1] - 1
        found = _matrices(landscape, *padded(points, masses))
        frames, matrix, bends, energy = (np.asarray(value) for value in found)
        matrix = matrix[:count, :, :count].reshape(count * width, count * width)
        root = np.repeat(np.sqrt(masses), width)
        frames = frames[:count]
        turns = _rotation_modes(landscape, points, frames) * root
        left = 1 / root if landscape.has_energy else root
        matrix = left[:, None] * matrix / root
        spectrum = _spectrum(matrix, turns, frames, bends[:count], landscape.has_energy)
        return dataclasses.replace(
            spectrum, energy=float(energy) if landscape.has_energy else np.nan
        )

    @property
    def scale(self) -> float:
        """The largest eigenvalue in size."""
        return float(np.max(np.abs(self.values)))

    def switched(self, change: np.ndarray) -> Spectrum:
        """With another matrix: that of the other side of a kink."""
        return _spectrum(
            self.matrix + change, self.turning, self.frames, self.splitting, self.symmetric
        )


def _spectrum(
    matrix: np.ndarray,
    turning: np.ndarray,
    frames: np.ndarray,
    splitting: np.ndarray,
    symmetric: bool,
) -> Spectrum:
    values = _eigenvalues(matrix, symmetric)
    across = null_space(turning) if len(turning) else np.eye(len(matrix))
    transverse = _eigenvalues(across.T @ matrix @ across, symmetric)
    return Spectrum(matrix, values, transverse, len(turning), frames, splitting, symmetric, turning)


def _eigenvalues(matrix: np.ndarray, symmetric: bool) -> np.ndarray:
    if not matrix.size:
        return np.zeros(0)
    if symmetric:
        return np.linalg.eigvalsh((matrix + matrix.T) / 2)
    return np.sort(np.linalg.eigvals(matrix).real)


@eqx.filter_jit
def _matrices(landscape: Landscape, x: Array, masses: Array) -> tuple[Array, Array, Array, Array]:
    """Frames, second variation (or derivative of the field), smallest curvature of dE/dmu, energy."""
    frames = tangent_frames(x)
    if landscape.has_energy:
        matrix = landscape.second_variation(x, masses, frames)
    else:
        slope = force_and_slope(landscape, x, masses, frames)[1] * landscape.strength()
        matrix = slope.reshape(*frames.shape[::2], *frames.shape[::2])
    bends = jnp.linalg.eigvalsh(landscape.splitting_curvature(x, masses, frames))[:, 0]
    return frames, matrix, bends, landscape.energy(x, masses)


def rotation_generators(landscape: Landscape, d: int) -> np.ndarray:
    """Antisymmetric matrices (r, d, d) whose rotations leave the model as it is.

    They vanish on every neuron's a_j (a potential of any other kind is taken to have no symmetry) and
    commute with B.
    """
    pairs = list(itertools.combinations(range(d), 2))
    basis = np.zeros((len(pairs), d, d))
    for row, (i, j) in enumerate(pairs):
        basis[row, i, j], basis[row, j, i] = 1.0, -1.0
    conditions = [np.zeros((len(pairs), 1))]
    for term in landscape.external:
        asked = term.turn_conditions(basis, present=bool(landscape.scale))
        if asked is None:
            return basis[:0]
        conditions.append(asked)
    if landscape.B is not None:
        B = np.asarray(landscape.B)
        conditions.append((basis @ B - B @ basis).reshape(len(pairs), -1))
    allowed = null_space(np.concatenate(conditions, axis=1).T)
    return np.einsum("pr,pij->rij", allowed, basis)


def _rotation_modes(landscape: Landscape, points: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """The independent motions xi_i = A x_i of the atoms in tangent coordinates, (r, k (d-1))."""
    turns = turning_motions(landscape, points).reshape(-1, *points.shape)
    modes = np.einsum("rki,kit->rkt", turns, frames)
    return independent(modes.reshape(len(turns), frames.shape[0] * frames.shape[2]))


def turning_motions(landscape: Landscape, points: np.ndarray) -> np.ndarray:
    """The motions A x_i of the atoms by rotations that leave the model as it is, orthonormal, (r, k d)."""
    turns = np.einsum("rij,kj->rki", rotation_generators(landscape, points.shape[1]), points)
    return independent(turns.reshape(len(turns), points.size))


def independent(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the span of some rows, none where they vanish."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return basis[sizes > 1e-8]


def near_kinks(landscape: Landscape, points: np.ndarray) -> tuple[tuple[int, int], ...]:
    """(atom, neuron) closer than 1e-3 to a hyperplane on which the activation has a kink."""
    close = np.argwhere(np.asarray(landscape.kink_distances(jnp.asarray(points))) < KINK)
    return tuple((int(atom), int(neuron)) for atom, neuron in close)


def _sides(
    landscape: Landscape,
    points: np.ndarray,
    spectrum: Spectrum,
    kinks: tuple[tuple[int, int], ...],
) -> list[Spectrum]:
    """The spectra for every choice of a side at every kink: sigma' = 0 or 1 there."""
    neurons = [
        (float(landscape.scale) * omega, inner)
        for kinks in (term.kinks() for term in landscape.external)
        if kinks is not None
        for omega, inner in zip(np.asarray(kinks.omega), np.asarray(kinks.inner), strict=True)
    ]
    width = spectrum.frames.shape[-1]
    found = [spectrum]
    for atom, neuron in kinks:
        omega, inner = neurons[neuron]
        toward = spectrum.frames[atom].T @ inner
        other = -omega if points[atom] @ inner > 0 else omega
        change = np.zeros_like(spectrum.matrix)
        place = slice(atom * width, (atom + 1) * width)
        change[place, place] = other * np.outer(toward, toward)
        found += [side.switched(change) for side in found]
    return found
