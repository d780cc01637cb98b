"""Whether the nodes of a basis resolve a model's forces, asked before a run starts.

Plain attention acts on every degree by an exact number. All other forces are formed at the nodes: attention
with matrices, whose kernel has the width (beta |B|)^{-1/2}, perceptrons and potentials with scales of their
own. What falls between the nodes is lost or appears where it is not, and the tail of the density, which a run
watches, knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..batches import batch_axis, batch_in_axes, members
from ..dynamics import Dynamics
from ..errors import require
from ..measure import Measure
from ..reduce import Dense
from ..runtime import is_traced
from ..space import Space
from ..starts import uniform
from ..terms import Term
from .galerkin import Basis, Galerkin
from .kernel import plain_attention

# A force may differ by this part of its size from that on a finer basis ...
LARGEST_FIELD_ERROR = 1e-2
# ... and an external one have this share of its square beyond the degree of the basis.
LARGEST_UNSEEN = 0.1
# Points, uniform on the sphere, at which an external force is measured: 2 % of its square.
SAMPLED = 4096


def check_forces(
    model: Dynamics, state: Float[Array, " mode"], basis: Basis, finer: Basis, wanted: str
) -> None:
    """Refuse a model with forces finer than the nodes; `wanted` says what to enlarge."""
    terms = [term for term in model.parts() if plain_attention(term) is None]
    if not terms or is_traced(model, state):
        return
    for term in terms:
        if not term.interacts:
            unseen = max(unseen_share(one, basis, finer) for one in members(term))
            require(
                unseen <= LARGEST_UNSEEN,
                f"{unseen:.0%} of this {type(term).__name__}'s force has scales beyond degree "
                f"{basis.degree}, which a density of that degree does not feel; {wanted}",
            )
    error = field_error(model, state, basis, finer)
    require(
        error <= LARGEST_FIELD_ERROR,
        f"the forces fall between the nodes: on a finer grid they differ by {error:.1%} (allowed: "
        f"{LARGEST_FIELD_ERROR:.0%}). The kernel of attention with matrices is as narrow as "
        f"(beta |B|)^(-1/2); {wanted}",
    )


def unseen_share(term: Term, basis: Basis, finer: Basis) -> float:
    """The share of int |u|^2 of an external force u beyond the degree of the basis."""
    scattered = uniform(basis.space, SAMPLED, seed=0).points
    whole = _components(term, scattered, finer.space)[:, finer.scalars]
    total = float(jnp.mean(jnp.sum(whole**2, axis=-1)))
    if total == 0.0:
        return 0.0
    held = finer.degrees <= basis.degree
    values = _components(term, finer.nodes, finer.space)[:, finer.scalars]
    seen = [jnp.sum(jnp.where(held, finer.analyse(column), 0.0) ** 2) for column in values.T]
    return max(0.0, 1.0 - float(sum(seen, jnp.zeros(()))) / total)


def _components(term: Term, points: Array, space: Space) -> Float[Array, "point d"]:
    force = term.field(0.0, points, Measure(space, points, ordered=False), Dense())
    return space.project(points, force)


def field_error(model: Dynamics, state: Float[Array, " mode"], basis: Basis, finer: Basis) -> float:
    """|div(rho v) - that on the finer basis| in H^{-1}, over |rho v|, in the modes both have.

    Of several betas the largest.
    """
    places = jnp.asarray(_places(basis, finer))
    return largest_over_betas(lambda one: _field_error(one, state, basis, finer, places), model)


@eqx.filter_jit
def _field_error(
    model: Dynamics, state: Array, basis: Basis, finer: Basis, places: Array
) -> Float[Array, ""]:
    moved, _ = _transport(model, basis, state)
    fine_state = jnp.zeros(finer.degrees.size).at[places].set(state)
    better, flux = _transport(model, finer, fine_state)
    weight = jnp.sqrt(jnp.maximum(basis.eigenvalues, 1.0))
    off = jnp.linalg.norm((moved - better[places]) / weight)
    return off / jnp.maximum(flux, 1e-300)


def largest_over_betas(measure: Callable[[Dynamics], Array], model: Dynamics) -> float:
    """The number that a model measures, or the largest of a batch of betas."""
    if batch_axis(model) is None:
        return float(measure(model))
    return float(jnp.max(eqx.filter_vmap(measure, in_axes=(batch_in_axes(model),))(model)))


def _transport(model: Dynamics, basis: Basis, state: Array) -> tuple[Array, Array]:
    """-div(rho v) and |rho v|, v of all terms."""
    scheme = Galerkin(basis).prepared(model)
    density = basis.synthesise(state)
    flux = density[:, None] * scheme.field(model, 0.0, state, density)
    size = jnp.sqrt(jnp.sum(basis.weights[:, None] * flux**2))
    return basis.against_gradients(flux), size


def _places(basis: Basis, finer: Basis) -> np.ndarray:
    """Where each coefficient stands in the finer basis: degrees come in the same order within both."""
    few, many = (np.argsort(np.asarray(one.degrees), kind="stable") for one in (basis, finer))
    places = np.empty(few.size, int)
    places[few] = many[: few.size]
    return places
