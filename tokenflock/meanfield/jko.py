"""Minimising movements on the circle: the steps whose limit is the flow.

A step of Jordan, Kinderlehrer and Otto from mu, for the functional A that the flow increases (`ascent`):

    next = argmin over nu of W2(mu, nu)^2/(2 tau) - A[nu].

`jko_flow` takes it in quantiles, where W2^2 = (1/n) sum_m (phi_m - theta_m)^2 as long as handing every
quantile to its neighbour's place costs more, by Newton's method on the n angles. A root of the gradient need
not be a minimum: it is taken only if the objective is convex at the start, half-way and at the root, and
falls (see `_is_movement`); tau is otherwise refused as too large. `entropic_jko_step` takes it on a grid,
with Sinkhorn's divergence in the place of W2^2. Repeated steps agree with the flow to first order in tau.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float

from ..density import Density
from ..dynamics import Dynamics
from ..errors import InputError, SolveError, require, require_extra
from ..space import Sphere
from .checks import require_fixed_numbers
from .circle import Fourier
from .quantiles import Characteristics, Quantiles, gaps

# Newton's method ends at this change of the angles, in radians.
ANGLE_TOLERANCE = 1e-12
NEWTON_STEPS = 50
# By so much, relatively, rounding may seem to raise the objective of a step that goes nowhere.
ROUNDING = 1e-13
# Sinkhorn's marginal error, the error of the minimiser on a grid, and most iterations of each.
SINKHORN_THRESHOLD = 1e-10
GRID_TOLERANCE = 1e-9
SINKHORN_ITERATIONS = 20_000
GRID_STEPS = 400

# g(theta): what multiplies |phi - theta|^2 at the quantiles; 1 is Wasserstein's.
Metric = Callable[[Float[Array, " quantile"]], Float[Array, " quantile"]]


def jko_flow(model: Dynamics, mu: Density, tau: float, steps: int) -> Float[Array, "time quantile"]:
    """The quantiles of mu and of `steps` minimising movements, for a model that is a gradient flow."""
    check_gradient_flow(model)
    return movements(model, mu, tau, steps, jnp.ones_like)


def movements(
    model: Dynamics, mu: Density, tau: float, steps: int, metric: Metric
) -> Float[Array, "time quantile"]:
    """phi = argmin (1/n) sum_m g_m (phi_m - theta_m)^2/(2 tau) - A[phi], again and again."""
    if not isinstance(mu.on, Quantiles):
        raise InputError(
            f"minimising movements are taken in quantiles, got a density on {mu.on}; use "
            "Density.from_law(Quantiles(n), law)"
        )
    require(tau > 0, f"the step tau must be positive, got {tau}")
    require(isinstance(steps, int) and steps >= 1, f"steps must be at least 1, got {steps!r}")
    mu.on.check(model)
    path, kept = _movements(model, mu.on.scheme(), mu.state, jnp.asarray(tau), steps, metric)
    if not bool(jnp.all(kept)):
        raise SolveError(
            f"a minimising movement of tau={tau:g} was not found (step {int(jnp.argmin(kept)) + 1} of "
            f"{steps}): W2^2/(2 tau) - A is not convex on the way, or Newton's method did not converge; use "
            "a smaller tau"
        )
    return path


@eqx.filter_jit
def _movements(
    model: Dynamics,
    scheme: Characteristics,
    state: Float[Array, " quantile"],
    tau: Float[Array, ""],
    steps: int,
    metric: Metric,
) -> tuple[Float[Array, "time quantile"], Bool[Array, " steps"]]:
    def move(theta: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        inertia = metric(theta)

        def objective(phi: Array) -> Array:
            distance = jnp.mean(inertia * (phi - theta) ** 2)
            return distance / (2.0 * tau) - scheme.free_energy(model, 0.0, phi)

        def residual(phi: Array, args: None) -> Array:
            # n times the gradient, in angles: its root is the movement.
            return tau * theta.size * jax.grad(objective)(phi)

        found = optx.root_find(
            residual,
            optx.Newton(rtol=ANGLE_TOLERANCE, atol=ANGLE_TOLERANCE),
            theta,
            max_steps=NEWTON_STEPS,
            throw=False,
        )
        kept = _is_movement(objective, inertia, theta, found.value)
        return found.value, (found.value, kept & (found.result == optx.RESULTS.successful))

    _, (path, kept) = jax.lax.scan(move, state, None, length=steps)
    return jnp.concatenate([state[None], path]), kept


def _is_movement(
    objective: Callable[[Array], Array],
    inertia: Float[Array, " quantile"],
    theta: Float[Array, " quantile"],
    phi: Float[Array, " quantile"],
) -> Bool[Array, ""]:
    """Whether the critical point phi is the minimum that belongs to theta.

    In order; the objective no larger than at theta (up to rounding); its Hessian positive definite at
    both ends and half-way; and no cheaper way to the same measure. Of those ways, phi_m -> phi_{m+k}
    around the circle, k = 1 and -1 decide, the cost being convex in k (`transport`).
    """
    ordered = jnp.all(gaps(phi) > 0)
    before, after = objective(theta), objective(phi)
    falls = after <= before + ROUNDING * (1.0 + jnp.abs(before))
    on_the_way = jnp.stack([theta, (theta + phi) / 2.0, phi])
    lowest = jnp.linalg.eigvalsh(jax.vmap(jax.hessian(objective))(on_the_way))[:, 0]
    turn = 2 * jnp.pi
    ways = [phi, jnp.append(phi[1:], phi[0] + turn), jnp.append(phi[-1] - turn, phi[:-1])]
    here, on, back = (jnp.mean(inertia * (way - theta) ** 2) for way in ways)
    return ordered & falls & jnp.all(lowest > 0) & (here <= on) & (here <= back)


def check_gradient_flow(model: Dynamics) -> None:
    """Refuse models whose field is not the Wasserstein gradient of A."""
    require_fixed_numbers(model, "minimising movements")
    for part in model.parts():
        term = part.attention()
        if term is None:
            # The term must be the whole of its part in grad dA/dmu.
            require(
                part.rising(2) is part,
                f"{type(part).__name__} is not the gradient of a potential, so the model has no "
                "minimising movements",
            )
            continue
        require(
            not term.kind.averages,
            "SA is not a gradient flow in W2, but in a metric of its own; use metric.sa_flow",
        )
        tied = term.has_pairs and bool(jnp.all(term.weights.at(0.0).tied_ratios(2) != 0))
        require(tied, "minimising movements need attention with V = c B and B symmetric")


# --- On a grid, with entropic transport -----------------------------------------------------------


def entropic_jko_step(model: Dynamics, mu: Density, tau: float, epsilon: float) -> Density:
    """argmin over nu of S_eps(mu, nu)/(2 tau) - A[nu] on the nodes of Fourier(modes), by ott-jax.

    S_eps is Sinkhorn's divergence with cost dist^2 (Feydy et al. 2019); it tends to W2^2 as eps -> 0 and
    sees no scales below sqrt(eps), so sqrt(eps) must lie between the spacing of the nodes and the scales
    of the density. Minimised over the logarithms of the masses by BFGS.
    """
    if not isinstance(mu.on, Fourier):
        raise InputError(f"the entropic step lives on the nodes of Fourier(modes), got {mu.on}")
    check_gradient_flow(model)
    mu.on.check(model)
    spacing = 2 * jnp.pi / mu.on.scheme().basis.weights.size
    require(tau > 0, f"the step tau must be positive, got {tau}")
    require(
        epsilon >= float(spacing) ** 2,
        f"epsilon={epsilon:g} blurs less than the spacing {float(spacing):.3g} of the nodes: use at "
        f"least {float(spacing) ** 2:.2g}, or more modes",
    )
    state, done = _entropic(model, mu, jnp.asarray(tau), float(epsilon))
    if not bool(done):
        raise SolveError(
            f"the entropic step of tau={tau:g} did not converge; use a smaller tau or a larger epsilon"
        )
    return mu.at(state)


@eqx.filter_jit
def _entropic(
    model: Dynamics, mu: Density, tau: Float[Array, ""], epsilon: float
) -> tuple[Array, Array]:
    scheme = mu.on.scheme().prepared(model)
    nodes, basis = scheme.measure(mu.state).points, scheme.basis  # pyright: ignore[reportAttributeAccessIssue]
    cost = Sphere(2).distance(nodes[:, None], nodes[None]) ** 2
    start = jnp.maximum(scheme.values(mu.state), 1e-300) * basis.weights
    own = _transport_cost(cost, start, start, epsilon)

    def objective(logits: Array, args: None) -> Array:
        masses = jax.nn.softmax(logits)
        across = _transport_cost(cost, start, masses, epsilon)
        divergence = across - (own + _transport_cost(cost, masses, masses, epsilon)) / 2.0
        state = basis.analyse(masses / basis.weights)
        return divergence / (2.0 * tau) - scheme.free_energy(model, 0.0, state)

    found = optx.minimise(
        objective,
        optx.BFGS(rtol=GRID_TOLERANCE, atol=GRID_TOLERANCE),
        jnp.log(start),
        max_steps=GRID_STEPS,
        throw=False,
    )
    masses = jax.nn.softmax(found.value)
    return basis.analyse(masses / basis.weights), found.result == optx.RESULTS.successful


def _transport_cost(cost: Array, a: Array, b: Array, epsilon: float) -> Float[Array, ""]:
    """min <P, C> + eps KL(P | a b^T); its gradient in a and b are the potentials (envelope theorem)."""
    require_extra("an entropic JKO step", "ott", "transport")
    from ott.geometry import geometry
    from ott.solvers import linear

    found = linear.solve(
        geometry.Geometry(cost_matrix=cost, epsilon=epsilon),
        a=a,
        b=b,
        lse_mode=True,
        threshold=SINKHORN_THRESHOLD,
        max_iterations=SINKHORN_ITERATIONS,
    )
    return jnp.asarray(found.reg_ot_cost)
