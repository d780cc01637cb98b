"""Observables that only a density has: tokens have no entropy. Their values come from its scheme."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array

from ..errors import InputError, require
from .base import Observable, Snapshot
from .registry import register


def of_density(
    name: str,
    says: str,
    units: str = "1",
    axes: tuple[str, ...] = (),
    parameters: tuple[tuple[str, Any], ...] = (),
    labels: tuple[tuple[str, tuple[float, ...]], ...] = (),
) -> Observable:
    """An observable that a scheme computes by its name; refused for tokens and for other schemes."""

    def refuse(snapshot: Snapshot, **parameters: Any) -> Array:
        raise InputError(
            f"{name} is not known here: tokens have none, and not every density has one; use a Density "
            "such as Density.from_law(Fourier(256), law)"
        )

    return Observable(name, units, refuse, axes, parameters, labels, says=says)


entropy = register(
    of_density("entropy", "int rho log rho against the uniform law, 0 for the uniform measure")
)
free_energy = register(
    of_density("free_energy", "Energy minus temperature times entropy, which the flow increases")
)
free_energy_rate = register(
    of_density(
        "free_energy_rate",
        "Rate of change of the free energy by the dissipation identity",
        "1/time",
    )
)
largest_density = register(
    of_density("largest_density", "Largest density, 1 for the uniform measure")
)


@register
def peaks(above: float = 1.0) -> Observable:
    """Local maxima of a density on the circle, or of a zonal one along its meridian, that exceed `above`.

    A density of 1 is the uniform measure: each peak above it is a cluster in the making.
    """
    require(above >= 0, f"above must be >= 0, got {above}")
    return of_density(
        "peaks",
        "Local maxima of the density above the threshold",
        parameters=(("above", float(above)),),
    )


# What `make` builds for densities alone.
OF_DENSITIES = ("entropy", "free_energy", "free_energy_rate", "largest_density", "peaks")
