"""What tokens do beside flowing: they are retracted after every step, merge, and are kicked by noise."""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..connected_components import component_labels
from ..dynamics import Clusters, Particles
from ..errors import require
from ..measure import Measure
from .protocol import Carried
from .wrapping import Wrapping

Carry = Any


class NoiseTerm(diffrax.AbstractTerm):
    """P_x (amplitude dW): a diffusion on the space driven by a Brownian path."""

    path: diffrax.AbstractPath

    def vf(self, t: Array, y: Carried, args: Any) -> tuple[Carried, Any, Array]:
        return y, args, jnp.asarray(t)

    def contr(self, t0: Array, t1: Array, **kwargs: Any) -> Array:
        return self.path.evaluate(t0, t1)

    def prod(self, vf: tuple[Carried, Any, Array], control: Array) -> Carried:
        y, context, t = vf
        kick = context.state.displacement(context.model, context.time(t), y.moving, control)
        return Carried(kick, y.at_rest())


class Merge(eqx.Module):
    """Cluster-reduced flow: tokens within `radius` become one token with their total mass.

    Exact for coincident tokens. A merged token keeps moving with its cluster, so observables see all
    n tokens; only the sums change. Removes the stiffness of tight clusters (rate 1 inside, e^{-c beta}
    between), so that plateaus of length e^{c beta} cost a few steps (2410.06833).
    """

    radius: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        require(self.radius > 0, f"the merge radius must be positive, got {self.radius}")

    def __call__(self, y: Particles, measure: Measure) -> tuple[Particles, Array]:
        """The merged tokens, and whether anything merged."""
        assert y.clusters is not None
        near = measure.space.distance(y.points[:, None], y.points[None]) <= self.radius
        # Merged tokens sit exactly on their owner, so they stay in its component.
        labels = component_labels(near)
        n = labels.size
        masses = jax.ops.segment_sum(y.clusters.masses, labels, n)
        moment = jax.ops.segment_sum(y.clusters.masses[:, None] * y.points, labels, n)
        centre = measure.space.retract(moment / jnp.where(masses > 0, masses, 1.0)[:, None])
        owners = labels.astype(y.points.dtype)
        merged = Particles(centre[labels], y.radii, Clusters(masses, owners))
        changed = jnp.any(owners != y.clusters.owners)
        return _choose(changed, merged, y), changed


def _choose(condition: Array, yes: Any, no: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


class Retracted(Wrapping):
    """Any solver, then the nearest point of the space; then, if asked, a merge.

    The field is evaluated at retracted points, so f(y) = f(N(y)): first-same-as-last stages stay valid
    and the order of the solver is kept. After a merge the solver forgets its stored stage.
    """

    merge: Merge | None = None

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Carried,
        args: Any,
        solver_state: Carry,
        made_jump: Any,
    ) -> tuple[Carried, Any, Any, Carry, Any]:
        """One step of the wrapped solver, retracted."""
        y1, error, dense, carry, result = self.solver.step(
            terms, t0, t1, y0, args, solver_state, made_jump
        )
        moving = args.state.retracted(y1.moving)
        if self.merge is None:
            return Carried(moving, y1.integrals), error, dense, carry, result
        moving, changed = self.merge(moving, args.state.measure)
        y1 = Carried(moving, y1.integrals)
        fresh = self.solver.init(terms, t1, t1, y1, args)
        return y1, error, dense, _choose(changed, fresh, carry), result
