"""Conformance of a kind of attention."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..dynamics import Dynamics
from ..health import energy_direction
from ..kinds import Kind
from ..masks import Causal, Full, Mask
from ..measure import Measure
from ..observables.base import Observable, Snapshot
from ..observables.energies import energy, energy_rate
from ..observables.identities import dissipation
from ..reduce import Dense, GpuKernel, Reduction, Spectral, Tiled
from ..space import Sphere
from ..terms import Attention
from ..weights import Weights
from .samples import BETA, as_tokens, field_at_tokens, points_of, tilted_gaussian, tokens
from .suite import Findings, Suite, close

ROUNDING = 1e-12
# Ways to sum, each with the part of the largest entry by which it may be off.
REDUCTIONS = ((Tiled(3), ROUNDING), (Spectral(1e-8), 1e-8), (GpuKernel(interpret=True), 1e-4))


def check_kind(kind: Kind) -> Findings:
    """Everything the library asks of a kind: sums, masks, derivatives, energies, densities, Gaussians."""
    suite, mu = Suite(kind), tokens(Sphere(3))
    suite.run("permuted tokens permute the output", lambda: _permuted(kind, mu))
    suite.run("a split token changes nothing", lambda: _split(kind, mu))
    suite.run("averages of ones are one", lambda: _averages(kind, mu))
    suite.run("the own value is dropped only along the token", lambda: _tangent(kind, mu))
    suite.run("causal masks hide later tokens", lambda: _causal(kind, mu))
    suite.run("derivatives are those of differences", lambda: _derivative(kind, mu))
    suite.run("a vector of betas is single betas", lambda: _batch(kind, mu))
    for mask in (Full(), Causal()):
        behind = "" if mask.sees_all else ", causal"
        for reduction, tolerance in REDUCTIONS:
            name = f"{type(reduction).__name__}{behind}"
            suite.run(name, functools.partial(_reduced, kind, mask, reduction, tolerance))
    suite.run("the primitive has the weight as derivative", lambda: _primitive(kind))
    suite.run("energy", lambda: _energy(kind, mu))
    suite.run("dissipation", lambda: _dissipation(kind, mu))
    suite.run("health", lambda: _health(kind, mu))
    suite.run("densities", lambda: _density(kind))
    suite.run("Gaussians", lambda: _gaussian(kind))
    return suite.findings


def _attention(kind: Kind, mask: Mask | None = None, matrices: bool = True) -> Attention:
    """Attention with asymmetric matrices, or plain."""
    random = np.random.default_rng(5)
    Q, K, V = (np.eye(3) + 0.3 * random.normal(size=(3, 3)) for _ in range(3))
    weights = Weights(Q=Q, K=K, V=V) if matrices else None
    return Attention(weights, BETA, kind, Full() if mask is None else mask)


def _permuted(kind: Kind, mu: Measure) -> None:
    order = np.random.default_rng(1).permutation(mu.n)
    term = _attention(kind)
    moved = Measure(mu.space, mu.points[order], mu.weights[order])
    close(
        field_at_tokens(term, moved), field_at_tokens(term, mu)[order], ROUNDING, "permuted tokens"
    )


def _split(kind: Kind, mu: Measure) -> None:
    """A token of mass w is two of mass w/2 at the same place."""
    points = jnp.concatenate([mu.points, mu.points[:1]])
    weights = jnp.concatenate([mu.weights[:1] / 2, mu.weights[1:], mu.weights[:1] / 2])
    term, halved = _attention(kind), Measure(mu.space, points, weights)
    close(field_at_tokens(term, halved)[: mu.n], field_at_tokens(term, mu), 1e-9, "a split token")


def _averages(kind: Kind, mu: Measure) -> None:
    if not kind.averages:
        return
    total = jnp.sum(_attention(kind).matrix(0.0, mu), axis=-1)
    close(total, jnp.ones_like(total), 1e-8, "weights of a row")


def _tangent(kind: Kind, mu: Measure) -> None:
    term = _attention(kind, matrices=False)
    whole = mu.space.project(mu.points, field_at_tokens(term, mu))
    less = mu.space.project(mu.points, term.tangent_field(0.0, mu.points, mu, Dense()))
    close(
        less, whole, 1e-10, "the tangent field", float(jnp.max(jnp.abs(field_at_tokens(term, mu))))
    )


def _causal(kind: Kind, mu: Measure) -> None:
    """What a token feels does not change when later ones move."""
    mask = Causal()
    kind.check_mask(mask)
    term, half = _attention(kind, mask), mu.n // 2
    later = mu.at(mu.points.at[half:].set(-mu.points[half:]))
    close(
        field_at_tokens(term, later)[:half],
        field_at_tokens(term, mu)[:half],
        ROUNDING,
        "the first tokens",
    )


def _derivative(kind: Kind, mu: Measure) -> None:
    term = _attention(kind)
    turn = mu.space.project(
        mu.points, jnp.cos(jnp.arange(mu.points.size * 1.0)).reshape(mu.points.shape)
    )

    def along(step: Array) -> Array:
        moved = mu.at(mu.points + step * turn)
        return field_at_tokens(term, moved)

    slope = jax.jit(lambda: jax.jvp(along, (jnp.zeros(()),), (jnp.ones(()),))[1])()
    step = 1e-5
    differences = (along(jnp.asarray(step)) - along(jnp.asarray(-step))) / (2 * step)
    close(slope, differences, 1e-5, "the derivative of the field")


def _batch(kind: Kind, mu: Measure) -> None:
    term = _attention(kind)
    betas = jnp.asarray([0.4, BETA])

    def at(beta: Array) -> Array:
        return field_at_tokens(dataclasses.replace(term, beta=beta), mu)

    close(jax.vmap(at)(betas), jnp.stack([at(beta) for beta in betas]), 1e-10, "betas")


def _reduced(kind: Kind, mask: Mask, reduction: Reduction, tolerance: float) -> None:
    """A reduction settles first, and may refuse there."""
    mu = tokens(Sphere(3), n=12)
    kind.check_mask(mask)
    term = _attention(kind, mask, matrices=False)
    settled = reduction.settle([term.task(mu)])
    close(field_at_tokens(term, mu, settled), field_at_tokens(term, mu), tolerance, "the sums")


def _primitive(kind: Kind) -> None:
    """phi' = f, where both are said; the sums may hold f lowered by `shift`."""
    beta = jnp.asarray(BETA)
    scores = jnp.linspace(-1.2, 1.1, 7)
    slope = jax.vmap(jax.grad(lambda s: kind.primitive(s[None, None])[0, 0]))(scores)
    weight = kind.weight(scores[None], beta)[0] * jnp.exp(kind.shift(beta))
    close(slope, weight, ROUNDING, "the derivative of the primitive")


def _plain(kind: Kind) -> Dynamics:
    return Dynamics(None, _attention(kind, matrices=False))


def _read(thing: Observable, model: Dynamics, mu: Measure) -> Array:
    return thing(Snapshot(jnp.zeros(()), mu, model, Dense()))


def _energy(kind: Kind, mu: Measure) -> None:
    """The field is the gradient of the energy, in the kind's clock and, of averages, its metric."""
    model = _plain(kind)
    slope = jax.grad(lambda x: _read(energy, model, mu.at(x)))(mu.points) / mu.weights[:, None]
    slope = mu.space.project(mu.points, slope)
    field = mu.space.project(mu.points, field_at_tokens(_attention(kind, matrices=False), mu))
    if kind.averages:
        lengths = jnp.linalg.norm(slope, axis=-1, keepdims=True)
        slope = slope * jnp.linalg.norm(field, axis=-1, keepdims=True) / lengths
    else:
        slope = slope * kind.clock(jnp.asarray(BETA))
    close(field, slope, 1e-10, "the gradient of the energy")


def _dissipation(kind: Kind, mu: Measure) -> None:
    model = _plain(kind)
    rate, identity = _read(energy_rate, model, mu), _read(dissipation, model, mu)
    close(identity, rate, 1e-10, "the dissipation identity")


def _health(kind: Kind, mu: Measure) -> None:
    """A kind with an energy is watched: it may only rise where V = 1."""
    watched = energy_direction(_plain(kind), mu)
    assert watched == (1 if kind.has_energy else 0), f"the energy is watched in direction {watched}"


def _density(kind: Kind) -> None:
    """The field of a density at the nodes of its grid is that of tokens there."""
    from ..density import Density
    from ..meanfield.circle import Fourier

    def law(x: Array) -> Array:
        return 1.0 + 0.4 * x[:, 0] + 0.2 * x[:, 1] + 0.6 * x[:, 0] * x[:, 1]

    model = _plain(kind)
    density = Density.from_law(Fourier(24), law)
    density.on.check(model)
    scheme = density.on.scheme().prepared(model)
    here = scheme.measure(density.state)
    moved = scheme.transport(model, 0.0, density.state)
    # d/dt int f dmu = int grad f . v dmu for f = x_1 x_2^2; no symmetry of the law makes it vanish.
    velocity = here.space.project(
        here.points, field_at_tokens(_attention(kind, matrices=False), here)
    )
    slope = jax.vmap(jax.grad(lambda x: x[0] * x[1] ** 2))(here.points)
    wanted = here.weights @ jnp.sum(slope * velocity, axis=-1)
    values = here.points[:, 0] * here.points[:, 1] ** 2
    found = jnp.mean(values * scheme.values(moved))  # pyright: ignore[reportAttributeAccessIssue]
    size = float(jnp.max(jnp.abs(field_at_tokens(_attention(kind, matrices=False), here))))
    close(found, wanted, 1e-8, "the transport of a density", size)


def _gaussian(kind: Kind) -> None:
    """The affine field at a Gaussian is that of tokens on a fine quadrature grid."""
    mu, d = tilted_gaussian(), 2
    weights = Weights(
        Q=[[1.0, 0.2], [-0.1, 0.8]], K=[[0.9, 0.0], [0.3, 1.1]], V=[[0.5, -0.4], [0.2, 1.0]]
    )
    term = Attention(weights, BETA, kind)
    term.check_gaussian(d)
    affine, grid, x = term.gaussian_field(0.0, mu), as_tokens(mu), points_of(mu)
    if kind.couples:
        # A coupling of the grid with itself has no value between its tokens.
        wanted, x = term.field(0.0, grid.points, grid, Dense()), grid.points
        heavy = np.asarray(grid.weights) > 1e-6
        found = affine.offset + x @ affine.slope.T
        close(found[heavy], wanted[heavy], 1e-5, "the field at a Gaussian")
        return
    wanted = term.field(0.0, x, grid, Dense())
    close(affine.offset + x @ affine.slope.T, wanted, 1e-8, "the field at a Gaussian")
