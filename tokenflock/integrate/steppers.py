"""How a step is made: any diffrax solver followed by a retraction, or one layer of a discrete network.

Also the cluster-reduced step, which merges tokens that have come within a radius of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import Clusters, Dynamics, State
from ..errors import require
from ..graph import component_labels
from ..measure import Measure
from ..reduce import Reduction
from ..runtime import Scalar
from .clocks import Clock

Carry = Any


class Context(eqx.Module):
    """What the vector field needs besides the state; the `args` of diffrax."""

    model: Dynamics
    measure: Measure
    reduction: Reduction
    clock: Clock

    # When this solve ends, its step if that is fixed, and whether the weights switch on the way.
    end: Float[Array, ""]
    step: Float[Array, ""] | None = None
    switching: bool = eqx.field(static=True, default=False)

    def time(self, u: Scalar) -> Array:
        """t(u), kept on the right side of switches of the weights.

        A step that ends at the end must not see weights that start there. In a fixed-step run
        t = m * step exactly, not the rounded sum of m steps, which could lie before a switch.
        """
        t = self.clock.time(u)
        if self.step is None:
            return jnp.minimum(t, jnp.nextafter(self.end, -jnp.inf))
        whole = jnp.round(t / self.step)
        t = jnp.where(jnp.abs(t / self.step - whole) < 1e-6, whole * self.step, t)
        # m * step and k * period may differ by a rounding where both mean the same moment.
        return jnp.minimum(t, self.end * (1 - 4 * jnp.finfo(t.dtype).eps)) if self.switching else t

    def until(self, u: Scalar) -> Context:
        """For the stages of a fixed step that ends at u: the last of them must not see what starts there."""
        if self.step is None or not self.switching:
            return self
        end = jnp.round(self.clock.time(u) / self.step) * self.step
        return eqx.tree_at(lambda context: context.end, self, end)

    def velocity(self, u: Scalar, state: State) -> State:
        """dy/du = t'(u) v(t(u), y)."""
        speed = self.model.velocity(self.time(u), state, self.measure, self.reduction)
        return jax.tree.map(lambda leaf: self.clock.rate(u) * leaf, speed)


def drift(u: Scalar, state: State, context: Context) -> State:
    """The vector field in diffrax's form."""
    return context.velocity(u, state)


class NoiseTerm(diffrax.AbstractTerm):
    """P_x (amplitude dW): a diffusion on the space driven by a Brownian path."""

    path: diffrax.AbstractBrownianPath

    def vf(self, t: Array, y: State, args: Context) -> tuple[State, Context, Array]:
        return y, args, jnp.asarray(t)

    def contr(self, t0: Array, t1: Array, **kwargs: Any) -> Array:
        return self.path.evaluate(t0, t1)

    def prod(self, vf: tuple[State, Context, Array], control: Array) -> State:
        state, context, t = vf
        return context.model.displacement(t, state, context.measure, control, context.reduction)


class Merge(eqx.Module):
    """Cluster-reduced flow: tokens within `radius` become one token with their total mass.

    Exact for coincident tokens. A merged token keeps moving with its cluster, so observables see all
    n tokens; only the sums change. Removes the stiffness of tight clusters (rate 1 inside, e^{-c beta}
    between), so that plateaus of length e^{c beta} cost a few steps (2410.06833).
    """

    radius: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        require(self.radius > 0, f"the merge radius must be positive, got {self.radius}")

    def __call__(self, state: State, measure: Measure) -> tuple[State, Array]:
        """The merged state, and whether anything merged."""
        assert state.clusters is not None
        near = measure.space.distance(state.points[:, None], state.points[None]) <= self.radius
        # Merged tokens sit exactly on their owner, so they stay in its component.
        labels = component_labels(near)
        n = labels.size
        masses = jax.ops.segment_sum(state.clusters.masses, labels, n)
        moment = jax.ops.segment_sum(state.clusters.masses[:, None] * state.points, labels, n)
        centre = measure.space.retract(moment / jnp.where(masses > 0, masses, 1.0)[:, None])
        owners = labels.astype(state.points.dtype)
        merged = State(centre[labels], state.radii, Clusters(masses, owners))
        changed = jnp.any(owners != state.clusters.owners)
        return _choose(changed, merged, state), changed


def _choose(condition: Array, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


class Retracted(diffrax.AbstractWrappedSolver):
    """Any solver, then the nearest point of the space; then, if asked, a merge.

    The field is evaluated at retracted points, so f(y) = f(N(y)): first-same-as-last stages stay valid
    and the order of the solver is kept. After a merge the solver forgets its stored stage.
    """

    solver: diffrax.AbstractSolver
    merge: Merge | None = None

    @property
    def term_structure(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the wrapped solver's."""
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Callable[..., Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the wrapped solver's; saved values are retracted by the caller."""
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self) -> Any:
        """As the wrapped solver's."""
        return self.solver.term_compatible_contr_kwargs

    @property
    def root_finder(self) -> Any:
        """As the wrapped solver's, if it is implicit."""
        return self.solver.root_finder  # pyright: ignore[reportAttributeAccessIssue]

    def order(self, terms: Any) -> int | None:
        """As the wrapped solver's."""
        return self.solver.order(terms)

    def strong_order(self, terms: Any) -> Any:
        """As the wrapped solver's."""
        return self.solver.strong_order(terms)

    def error_order(self, terms: Any) -> Any:
        """As the wrapped solver's."""
        return self.solver.error_order(terms)

    def init(self, terms: Any, t0: Any, t1: Any, y0: State, args: Context) -> Carry:
        """As the wrapped solver's."""
        return self.solver.init(terms, t0, t1, y0, args)

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: State,
        args: Context,
        solver_state: Carry,
        made_jump: Any,
    ) -> tuple[State, Any, Any, Carry, Any]:
        """One step of the wrapped solver, retracted.

        A first-same-as-last stage of weights that may have switched since is evaluated anew.
        """
        y1, error, dense, carry, result = self.solver.step(
            terms, t0, t1, y0, args.until(t1), solver_state, made_jump | args.switching
        )
        y1 = eqx.tree_at(lambda y: y.points, y1, args.measure.space.retract(y1.points))
        if self.merge is not None:
            y1, changed = self.merge(y1, args.measure)
            fresh = self.solver.init(terms, t1, t1, y1, args)
            carry = _choose(changed, fresh, carry)
        return y1, error, dense, carry, result

    def func(self, terms: Any, t0: Any, y0: State, args: Context) -> Any:
        """As the wrapped solver's."""
        return self.solver.func(terms, t0, y0, args)


class LayerStepper(diffrax.AbstractItoSolver):
    """One layer of a discrete network per step: x <- N(x + step A(x)), or the scheme's own layer."""

    step_size: Float[Array, ""]
    term_structure: ClassVar[Any] = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Any] = diffrax.LocalLinearInterpolation

    def order(self, terms: Any) -> int:
        """Order 1 as an approximation of the flow, with another clock."""
        return 1

    def strong_order(self, terms: Any) -> float:
        """As Euler-Maruyama."""
        return 0.5

    def init(self, terms: Any, t0: Any, t1: Any, y0: State, args: Context) -> None:
        """No memory between layers."""
        return None

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: State,
        args: Context,
        solver_state: None,
        made_jump: Any,
    ) -> tuple[State, None, Any, None, Any]:
        """One layer, then the noise of its duration."""
        t = args.time(t0)
        y1 = args.model.layer(t, y0, args.measure, self.step_size, args.reduction)
        if isinstance(terms, diffrax.MultiTerm):
            increment = terms.terms[1].contr(t0, t1)
            kick = args.model.displacement(t0, y1, args.measure, increment, args.reduction)
            points = args.measure.space.retract(y1.points + kick.points)
            y1 = eqx.tree_at(lambda y: y.points, y1, points)
        return y1, None, {"y0": y0, "y1": y1}, None, diffrax.RESULTS.successful

    def func(self, terms: Any, t0: Any, y0: State, args: Context) -> State:
        """The velocity of the flow."""
        return args.velocity(t0, y0)
