"""A density as a state: explicit transport, implicit diffusion, and the work done on the way.

The work done by the flow is integrated beside the state, so that every run can compare the change of
its free energy with the dissipation identity. A run stops where the finest scales of the discretisation
have grown: attention is an anti-diffusion, and beyond that point the numbers would look fine and be
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import diffrax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..density import Density, HeldDensity, Scheme
from ..dynamics import Dynamics
from ..errors import InputError, require
from ..methods import Layers, Method, Stiff
from ..observables import free_energy
from ..observables.base import Observable, Snapshot
from ..observables.naming import check_names
from ..outcomes import GOOD, OUTCOMES
from ..reduce import Dense
from ..runtime import Scalar, is_traced
from ..serialise import describe
from .diagonal import DiagonalSolve
from .dissipation import identity_defect, identity_is_broken, identity_of, to_the_end
from .protocol import Brownian, Carried, Integrand, Judgement, State, Told

# Kept at every save for the health of a run.
WATCHED = {
    "mass": ("1", "Total mass"),
    "lowest": ("1", "Smallest density, relative to the uniform law"),
    "tail": ("1", "Size of the finest scales of the discretisation"),
    "free_energy": ("1", "Energy minus temperature times int rho log rho"),
    "work": ("1", "Integral of the dissipation so far"),
}


class Diffusion(diffrax.ODETerm):
    """The noise of a density: every number decays at its own rate, implicitly."""

    def __init__(self) -> None:
        super().__init__(_diffuse)


def _diffuse(u: Scalar, y: Carried, args: Any) -> Carried:
    damping = args.state.damping(args.model, args.time(u))
    return Carried(-args.times.rate(u) * damping * y.moving, y.at_rest())


class DensityState(State):
    """A density on a discretisation; `scheme` has its tables."""

    density: Density
    scheme: Scheme | None = None

    @property
    def _tables(self) -> Scheme:
        return self.density.on.scheme() if self.scheme is None else self.scheme

    def _now(self, model: Dynamics, t: Scalar) -> tuple[Dynamics, Scheme]:
        """The model with the numbers in force at time t, and tables made for them."""
        now = model.now(t)
        return (model, self._tables) if now is model else (now, self._tables.prepared(now))

    def damping(self, model: Dynamics, t: Scalar) -> Array | None:
        """The rates of the noise at time t, which is treated implicitly."""
        now, scheme = self._now(model, t)
        return scheme.damping(now)

    # --- before a run -----------------------------------------------------------------------------

    def check(self, model: Dynamics, t1: float) -> None:
        for time in [0.0, *(jump for jump in model.jumps(t1) if not is_traced(jump))]:
            self._check_at(model.now(time))

    def _check_at(self, model: Dynamics) -> None:
        on, state = self.density.on, self.density.state
        on.check(model)
        if is_traced(model, state):
            return
        tail = float(self._tables.tail(state))
        require(
            tail <= on.largest_tail,
            f"the start is finer than {on} holds: its tail is {tail:.2g}, the largest allowed is "
            f"{on.largest_tail:g}; use a larger discretisation, or a larger `tail` if you know why",
        )
        on.check_forces(model, state)

    def check_names(self, observe: Sequence[Observable]) -> None:
        """What is kept for the health of a density, and its axes, have names of their own."""
        on = self.density.on
        # The free energy is kept in any case, and may be asked for.
        others = [thing for thing in observe if thing.name != free_energy.name]
        check_names(others, taken=(*WATCHED, *on.axes))
        for thing in others:
            shared = [axis for axis in thing.coords if axis in on.axes]
            require(
                not shared,
                f"{thing.name} has the axis {', '.join(shared)}, and so have the states of {on}, with other "
                "values; read it off the states, or observe tokens drawn from the density",
            )

    def check_method(self, model: Dynamics, method: Method) -> None:
        if isinstance(method, Layers):
            raise InputError(
                "a density has no layers; leave out method, and give rtol and atol, or dt"
            )
        require(
            not isinstance(method, Stiff) or self.damping(model, 0.0) is None,
            "noise is implicit already; leave out method=Stiff()",
        )

    def settled(self, model: Dynamics, method: Method, saves: int, keep: bool) -> DensityState:
        now, state = model.now(0.0), self.density.state
        scheme = self._tables.settled(now, state, isinstance(method, Stiff))
        return DensityState(self.density, scheme)

    def holding(self, start: Density) -> DensityState:
        return DensityState(start, self.scheme)

    def blank(self) -> DensityState:
        return DensityState(self.density.at(jnp.zeros_like(self.density.state)), self.scheme)

    def begin(self, model: Dynamics) -> Array:
        return self.density.state

    # --- how it is stepped ------------------------------------------------------------------------

    def own_solver(self, model: Dynamics) -> diffrax.AbstractSolver:
        """Dopri8 without noise; with it KenCarp4, whose implicit stages are the diffusion's."""
        if self.damping(model, 0.0) is None:
            return diffrax.Dopri8()
        return diffrax.KenCarp4(root_finder=DiagonalSolve())

    def controller(
        self, given: diffrax.AbstractStepSizeController
    ) -> diffrax.AbstractStepSizeController:
        return self.density.on.controller(given)

    # --- the equation -----------------------------------------------------------------------------

    def prepared(self, model: Dynamics) -> DensityState:
        return DensityState(self.density, self._tables.prepared(model.now(0.0)))

    def velocity(self, model: Dynamics, t: Scalar, y: Array) -> Array:
        now, scheme = self._now(model, t)
        return scheme.transport(now, t, y)

    def extra_terms(
        self, model: Dynamics, brownian: Brownian
    ) -> tuple[diffrax.AbstractTerm[Any, Any], ...]:
        return () if self.damping(model, 0.0) is None else (Diffusion(),)

    def integrands(self, model: Dynamics) -> dict[str, Integrand]:
        return {"work": self._power}

    def _power(self, model: Dynamics, t: Scalar, y: Array) -> Array:
        """An energy beyond the range of doubles is no reason to stop: the health report says so."""
        now, scheme = self._now(model, t)
        power = scheme.power(now, t, y)
        return jnp.where(jnp.isfinite(power), power, 0.0)

    @property
    def may_be_lost(self) -> bool:
        return True

    def lost(self, model: Dynamics, t: Scalar, y: Array) -> Array:
        """A tail that is not finite must stop the run too."""
        now, scheme = self._now(model, t)
        return ~(scheme.strain(now, t, y) <= self.density.on.largest_tail)

    def ended(self, code: Array, final: dict[str, Array]) -> Array:
        """A stop by the finest scales has names of its own."""
        on, tail = self.density.on, final["tail"]
        stopped = code == OUTCOMES.index("stopped")
        lost = ~(tail <= 0.999 * on.largest_tail)
        known = OUTCOMES.index(on.lost_outcome)
        end = jnp.where(jnp.isnan(tail), OUTCOMES.index("non-finite"), known)
        return jnp.where(stopped & lost, end, code)

    # --- looked at --------------------------------------------------------------------------------

    def snapshot(self, model: Dynamics, t: Array, y: Array) -> Snapshot:
        now, scheme = self._now(model, t)
        return Snapshot(t, HeldDensity(self.density.at(y), scheme), now, Dense())

    def watched(self, model: Dynamics, t: Array, y: Array) -> dict[str, Array]:
        now, scheme = self._now(model, t)
        return {
            "mass": scheme.mass(y),
            "lowest": scheme.lowest(y),
            "tail": scheme.strain(now, t, y),
            "free_energy": scheme.free_energy(now, t, y),
        }

    @property
    def details(self) -> dict[str, dict[str, Any]]:
        return {
            name: {"units": units, "long_name": says} for name, (units, says) in WATCHED.items()
        }

    # --- labelled ---------------------------------------------------------------------------------

    @property
    def sizes(self) -> dict[str, int]:
        return self.density.on.sizes

    @property
    def labels(self) -> dict[str, np.ndarray]:
        return self.density.on.labels

    def at_start(self) -> dict[str, Array]:
        return {"state": self.density.state}

    def value(self, arrays: dict[str, Any]) -> Density:
        return self.density.at(jnp.asarray(arrays["state"]))

    def described(self) -> dict[str, Any]:
        return {"density": describe(self.blank().density)}

    def notes(self, thing: Told) -> dict[str, Any]:
        """What has notes on tokens reads a density as those."""
        if thing.notes is None:
            return thing.attributes
        return thing.attributes_on(self.density.as_measure())

    # --- judged -----------------------------------------------------------------------------------

    def health(self, model: Dynamics, arrays: dict[str, Any], lead: int) -> dict[str, Any]:
        """Mass, positivity, resolution, and how well the dissipation identity was kept.

        At every save and at the end; of a batch of models each has its own. A run that is killed before
        its first part is done has none of it.
        """
        if "mass" not in arrays:
            return {}
        return {
            "mass_drift": float(np.nanmax(np.abs(to_the_end(arrays, "mass", lead) - 1.0))),
            "lowest_density": float(np.nanmin(to_the_end(arrays, "lowest", lead))),
            "largest_tail": float(np.nanmax(to_the_end(arrays, "tail", lead))),
            "dissipation_defect": None
            if _changes(model)
            else identity_defect(*identity_of(arrays, lead)),
            **self.density.on.last_words(arrays["final_time"], arrays["final_tail"]),
        }

    def judged(
        self, model: Dynamics, names: np.ndarray, arrays: dict[str, Any], atol: float
    ) -> Judgement:
        """A run whose free energy differs from its dissipation is not resolved, however it ended."""
        on = self.density.on
        advice = {on.lost_outcome: on.advice()}
        if "mass" not in arrays or _changes(model):
            return Judgement(names, advice)
        energy, work = identity_of(arrays, names.ndim)
        broken = identity_is_broken(energy, work, atol) & np.isin(names, GOOD)
        if not np.any(broken):
            return Judgement(names, advice)
        advice["unresolved"] = (
            "the free energy changed otherwise than its dissipation says, by "
            f"{identity_defect(energy, work):.0%} of the change: space or time is too coarse; use a larger "
            "discretisation, lower rtol and atol (or dt)"
        )
        return Judgement(
            np.where(broken, "unresolved", names), advice, {"identity_broken": broken.tolist()}
        )


def _changes(model: Dynamics) -> bool:
    """Whether numbers of the model, and so its free energy, change with time: no identity holds then."""
    return model.now(0.0) is not model
