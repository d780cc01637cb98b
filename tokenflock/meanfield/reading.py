"""What can be read off a density: its own functionals, and tokens' observables by quadrature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..density import Density, Scheme
from ..dynamics import Dynamics, first_beta
from ..observables.base import Observable, Snapshot
from ..observables.naming import is_ours
from ..observables.settle import settle, shape_of
from ..reduce import Dense


class DensitySnapshot(eqx.Module):
    """Everything an observable of a density may look at."""

    t: Array
    density: Density
    scheme: Scheme
    model: Dynamics

    def of_tokens(self) -> Snapshot:
        """The same moment as points and weights."""
        return Snapshot(self.t, self.scheme.measure(self.density.state), self.model, Dense())


def read(thing: Observable, snapshot: DensitySnapshot) -> Array:
    """The value of an observable at a density."""
    native = snapshot.scheme.functionals().get(thing.quantity)
    if native is not None and is_ours(thing):
        return native(snapshot.model, snapshot.t, snapshot.density.state, **dict(thing.parameters))
    return thing(snapshot.of_tokens())


def settle_on_density(
    things: Sequence[Observable], model: Dynamics, blank: Density
) -> tuple[Observable, ...]:
    """The observables of a run of a density, tried on shapes alone: nothing is computed."""
    one = first_beta(model)

    def look(thing: Observable) -> Any:
        return shape_of(
            thing, lambda: read_state(thing, jnp.zeros(()), blank, one), (thing, one, blank)
        )

    return settle(things, look, dict(zip(blank.on.axes, blank.on.shape, strict=True)))


def read_state(thing: Observable, t: Array, density: Density, model: Dynamics) -> Array:
    """The value of an observable at one stored state."""
    scheme = density.on.scheme().prepared(model)
    return jnp.asarray(read(thing, DensitySnapshot(t, density, scheme, model)))


def watched(snapshot: DensitySnapshot, work: Float[Array, ""]) -> dict[str, Array]:
    """What every run keeps for its health report."""
    scheme, state = snapshot.scheme, snapshot.density.state
    return {
        "mass": scheme.mass(state),
        "lowest": scheme.lowest(state),
        "tail": scheme.strain(snapshot.model, snapshot.t, state),
        "free_energy": scheme.free_energy(snapshot.model, snapshot.t, state),
        "work": jnp.asarray(work),
    }
