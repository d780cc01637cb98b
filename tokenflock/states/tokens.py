"""Tokens as a state: points on a space, with radii where the scheme moves them, and merged clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..dynamics import Clusters, Dynamics, Particles
from ..errors import InputError, require
from ..health import energy_direction, token_health, watched_energy
from ..measure import Measure
from ..memory import all_attentions, check_memory
from ..methods import Layers, Method, Stiff
from ..observables.base import Observable, Snapshot
from ..reduce import Dense, Reduction
from ..runtime import Scalar, is_traced
from ..serialise import describe
from .protocol import Brownian, State, Told
from .stepping import Merge, NoiseTerm, Retracted


class TokenState(State):
    """Tokens that flow, or layer after layer; with `merge` they become weighted clusters."""

    measure: Measure
    reduction: Reduction = Dense()
    merge: Merge | None = None
    main: ClassVar[str] = "points"
    whole: ClassVar[tuple[str, ...]] = ("owners",)

    # --- before a run -----------------------------------------------------------------------------

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return self.measure.batch_shape

    @property
    def spans_devices(self) -> bool:
        return self.reduction.spans_devices

    def with_options(self, merge: Merge | None, reduction: Reduction | None) -> TokenState:
        return TokenState(self.measure, reduction or self.reduction, merge or self.merge)

    def check(self, model: Dynamics, t1: float) -> None:
        model.check(self.measure, t1)
        if self.merge is not None:
            _check_merge(model)

    def check_method(self, model: Dynamics, method: Method) -> None:
        require(
            self.merge is None or not isinstance(method, Layers),
            "Layers(step) has a fixed step: leave out rtol, atol, dt and merge",
        )
        noise = model.noise
        if noise is None or isinstance(method, Layers):
            return
        require(
            not isinstance(method, Stiff), "stiff solvers do not handle noise; leave method out"
        )
        require(self.merge is None, "tokens with noise do not merge; leave out merge")
        if isinstance(method, diffrax.AbstractStratonovichSolver) and not noise.reading_free:
            raise InputError(
                f"{type(noise).__name__} is an Ito equation and {type(method).__name__} solves the "
                "Stratonovich one, which is another model; use diffrax.Euler() or leave method out"
            )

    def settled(self, model: Dynamics, method: Method, saves: int, keep: bool) -> TokenState:
        tasks = [part.task(self.measure) for part in all_attentions(model)]
        reduction = self.reduction.settle(tasks)
        check_memory(model, self.measure, reduction, saves, keep, isinstance(method, Stiff))
        return TokenState(self.measure, reduction, self.merge)

    def holding(self, start: Measure) -> TokenState:
        return TokenState(start, self.reduction, self.merge)

    def blank(self) -> TokenState:
        empty = jnp.zeros((self.measure.n, self.measure.d))
        return TokenState(self.measure.at(empty), self.reduction, self.merge)

    def begin(self, model: Dynamics) -> Particles:
        """The tokens at t = 0, each its own cluster if they are to merge."""
        y = model.particles(flatten_samples(self.measure))
        if self.merge is None:
            return y
        shape = y.points.shape[:-1]
        alone = Clusters(
            jnp.broadcast_to(self.measure.weights, shape),
            jnp.broadcast_to(jnp.arange(self.measure.n, dtype=float), shape),
        )
        return Particles(y.points, y.radii, alone)

    def row_numbers(self, observe: Sequence[Observable], keep: bool) -> float:
        """An observable has at most n entries along each axis."""
        n = self.measure.n
        return (n * self.measure.d if keep else 0) + sum(n ** len(thing.axes) for thing in observe)

    def watch(self, model: Dynamics, observe: tuple[Observable, ...]) -> tuple[Observable, ...]:
        """With the energy where theory makes it monotone."""
        if is_traced(model, self.measure) or not energy_direction(model, self.measure):
            return observe
        watched = watched_energy(model)
        asked = any(thing.name == watched.name for thing in observe)
        return observe if asked else (*observe, watched)

    # --- how it is stepped ------------------------------------------------------------------------

    def needs_fixed_steps(self, model: Dynamics) -> bool:
        return model.noise is not None

    def own_solver(self, model: Dynamics) -> diffrax.AbstractSolver:
        return diffrax.Dopri8() if model.noise is None else diffrax.Euler()

    def stepper(self, solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
        return Retracted(solver, self.merge)

    # --- the equation -----------------------------------------------------------------------------

    def velocity(self, model: Dynamics, t: Scalar, y: Particles) -> Particles:
        return model.velocity(t, y, self.measure, self.reduction)

    def extra_terms(
        self, model: Dynamics, brownian: Brownian
    ) -> tuple[diffrax.AbstractTerm[Any, Any], ...]:
        if model.noise is None:
            return ()
        shape = model.noise.brownian_shape(self.measure)
        return (NoiseTerm(brownian(jax.ShapeDtypeStruct(shape, self.measure.points.dtype))),)

    def displacement(self, model: Dynamics, t: Scalar, y: Particles, increment: Array) -> Particles:
        """The tangent step made by a Brownian increment."""
        return model.displacement(t, y, self.measure, increment, self.reduction)

    def layer(self, model: Dynamics, t: Scalar, y: Particles, step: Scalar) -> Particles:
        return model.layer(t, y, self.measure, step, self.reduction)

    def kicked(self, model: Dynamics, t: Scalar, y: Particles, increment: Array) -> Particles:
        kick = self.displacement(model, t, y, increment)
        return self.retracted(Particles(y.points + kick.points, y.radii, y.clusters))

    def retracted(self, y: Particles) -> Particles:
        return Particles(self.measure.space.retract(y.points), y.radii, y.clusters)

    # --- looked at --------------------------------------------------------------------------------

    def snapshot(self, model: Dynamics, t: Array, y: Particles) -> Snapshot:
        here = self.measure.at(self.measure.space.retract(y.points), y.radii)
        return Snapshot(t, here, model, self.reduction)

    def trial(self, model: Dynamics, more: int = 0) -> Snapshot:
        """Tokens of which only the number counts; a reduction may be made for one number of them."""
        mu, n = self.measure, self.measure.n + more
        here = mu.weighing(None).at(jnp.zeros((n, mu.d)), None if mu.radii is None else jnp.ones(n))
        return Snapshot(jnp.zeros(()), here, model, Dense() if more else self.reduction)

    def rows(self, y: Particles, keep: bool) -> dict[str, Array]:
        kept: dict[str, Array | None] = {}
        if y.clusters is not None:
            kept["owners"] = y.clusters.owners
        if keep:
            kept |= {"states": self.measure.space.retract(jnp.asarray(y.points)), "radii": y.radii}
        return {name: value for name, value in kept.items() if value is not None}

    # --- labelled ---------------------------------------------------------------------------------

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        points, each = ("token", "coordinate"), ("token",)
        return {"states": points, "points": points, "radii": each, "owners": each, "masses": each}

    @property
    def sizes(self) -> dict[str, int]:
        return {"token": self.measure.n, "coordinate": self.measure.d}

    def ends(self, y: Particles) -> dict[str, Array]:
        found: dict[str, Array | None] = {"points": y.points, "radii": y.radii}
        if y.clusters is not None:
            found |= {"masses": y.clusters.masses, "owners": y.clusters.owners}
        return {name: value for name, value in found.items() if value is not None}

    def continued(self, ends: dict[str, Array]) -> Particles:
        given = {name: jnp.asarray(value) for name, value in ends.items() if name in self.axes}
        merged = None
        if "masses" in given:
            merged = Clusters(given["masses"], given["owners"].astype(given["masses"].dtype))
        return Particles(given["points"], given.get("radii"), merged)

    def at_start(self) -> dict[str, Array]:
        found = {"points": self.measure.points, "radii": self.measure.radii}
        return {name: value for name, value in found.items() if value is not None}

    def value(self, arrays: dict[str, Any]) -> Measure:
        radii = arrays.get("radii")
        points = jnp.asarray(arrays["points"])
        return self.measure.at(points, None if radii is None else jnp.asarray(radii))

    def stored_snapshot(self, model: Dynamics, t: Array, row: Array) -> Snapshot:
        return Snapshot(t, self.measure.at(row), model, Dense())

    def described(self) -> dict[str, Any]:
        return {"measure": describe(self.blank().measure)}

    def described_numerics(self) -> dict[str, Any]:
        radius = None if self.merge is None else self.merge.radius
        return {"merge_radius": radius, "reduction": describe(self.reduction)}

    def notes(self, thing: Told) -> dict[str, Any]:
        return thing.attributes_on(self.measure)

    # --- judged -----------------------------------------------------------------------------------

    def health(self, model: Dynamics, arrays: dict[str, Any], lead: int) -> dict[str, Any]:
        return {
            "norm_drift": self.measure.space.worst_defect(arrays["final_points"]),
            "reduction_error_bound": self.reduction.error_bound(self.measure.n),
            **token_health(model, self.measure, arrays, lead),
        }


def flatten_samples(x0: Measure) -> Measure:
    """Several sample axes as one; results have them all again."""
    if len(x0.batch_shape) <= 1:
        return x0
    points = x0.points.reshape(-1, x0.n, x0.d)
    return x0.at(points, None if x0.radii is None else x0.radii.reshape(-1, x0.n))


def _check_merge(model: Dynamics) -> None:
    """Refuse models in which coincident tokens are not one token with their total mass."""
    require(
        not any(part.mask.needs_order for part in model.attentions()),
        "merge gives the mass of a cluster to its first token, which a causal or ALiBi mask would "
        "show to tokens that must not see it; leave out merge, or use method=Stiff()",
    )
    require(
        not model.scheme().moves_radii,
        f"merge does not know how radii combine under {type(model.scheme()).__name__}; leave it out",
    )
