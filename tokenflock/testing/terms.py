"""Conformance of a term of the velocity field."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..measure import Measure
from ..reduce import Dense
from ..space import Space, Sphere
from ..terms import Term
from .samples import as_tokens, points_of, tilted_gaussian, tokens
from .suite import Findings, Suite, close

ROUNDING = 1e-12


def check_term(term: Term, space: Space | None = None) -> Findings:
    """What a term says of itself: its field, its potential, its opposite, its place among Gaussians."""
    mu = tokens(Sphere(3) if space is None else space)
    suite = Suite(term)
    suite.run("it takes these tokens", lambda: term.check(mu))
    suite.run("the field is compiled and mapped alike", lambda: _compiled(term, mu))
    suite.run("interacts", lambda: _interacts(term, mu))
    suite.run("the tangent field differs along tokens alone", lambda: _tangent(term, mu))
    suite.run("sums add fields", lambda: _added(term, mu))
    suite.run("jumps lie inside the run", lambda: _jumps(term))
    suite.run("the potential has the field as gradient", lambda: _potential(term, mu))
    suite.run("rising is the gradient of free_potential", lambda: _rising(term, mu))
    suite.run("the opposite has the opposite field", lambda: _opposite(term, mu))
    suite.run("scaled terms have scaled fields", lambda: _scaled(term, mu))
    suite.run("Gaussians", lambda: _gaussian(term))
    return suite.findings


def _field(term: Term, mu: Measure, x: Array | None = None) -> Array:
    return term.field(0.0, mu.points if x is None else x, mu, Dense())


def _compiled(term: Term, mu: Measure) -> None:
    plain = _field(term, mu)
    assert plain.shape == mu.points.shape, f"a field of shape {plain.shape}"
    close(jax.jit(lambda x: _field(term, mu.at(x)))(mu.points), plain, ROUNDING, "jit")
    both = jnp.stack([mu.points, mu.points[::-1]])
    mapped = jax.vmap(lambda x: _field(term, mu.at(x)))(both)
    single = jnp.stack([_field(term, mu.at(x)) for x in both])
    close(mapped, single, ROUNDING, "vmap")


def _interacts(term: Term, mu: Measure) -> None:
    """A term that does not interact is the same in any measure."""
    if term.interacts:
        return
    other = tokens(mu.space, seed=8)
    close(_field(term, other, mu.points), _field(term, mu), ROUNDING, "another measure")


def _tangent(term: Term, mu: Measure) -> None:
    less = term.tangent_field(0.0, mu.points, mu, Dense())
    project = mu.space.project if isinstance(mu.space, Sphere) else lambda x, v: v
    close(project(mu.points, less), project(mu.points, _field(term, mu)), 1e-10, "projected")


def _added(term: Term, mu: Measure) -> None:
    close(_field(term + term, mu), 2 * _field(term, mu), ROUNDING, "a term added to itself")
    assert (term + term).parts() == (*term.parts(), *term.parts()), "the parts of a sum"


def _jumps(term: Term) -> None:
    times = [float(time) for time in term.jumps(2.0)]
    assert all(0 < time < 2.0 for time in times), f"jumps at {times} of a run until 2"


def _potential(term: Term, mu: Measure) -> None:
    if term.potential(0.0, mu.points) is None:
        assert not term.is_gradient, "a gradient at all times says no potential"
        return

    def value(x: Array) -> Array:
        found = term.potential(0.0, x[None])
        assert found is not None
        return found[0]

    close(jax.vmap(jax.grad(value))(mu.points), _field(term, mu), 1e-10, "grad f")


def _rising(term: Term, mu: Measure) -> None:
    rise = term.rising(mu.d)
    if term.is_gradient:
        assert rise is term, "a gradient is the whole of its part in the energy"
    if rise is None or term.interacts or term.free_potential(mu.points) is None:
        return

    def value(x: Array) -> Array:
        found = term.free_potential(x[None])
        assert found is not None
        return found[0]

    slope = jax.vmap(jax.grad(value))(mu.points)
    close(slope, _field(rise, mu), 1e-10, "grad of free_potential")


def _opposite(term: Term, mu: Measure) -> None:
    close(_field(term.opposite(), mu), -_field(term, mu), ROUNDING, "the opposite")


def _scaled(term: Term, mu: Measure) -> None:
    if not term.interacts and term.is_gradient:
        close(_field(term.scaled(2.5), mu), 2.5 * _field(term, mu), ROUNDING, "2.5 times the term")


def _gaussian(term: Term) -> None:
    """The affine field at a Gaussian on R^2 is the field at its quadrature."""
    mu = tilted_gaussian()
    term.check_gaussian(2)
    grid, x = as_tokens(mu), points_of(mu)
    affine = term.gaussian_field(0.0, mu)
    close(affine.offset + x @ affine.slope.T, _field(term, grid, x), 1e-8, "at a Gaussian")
    virial = grid.weights @ jnp.sum(grid.points * _field(term, grid), axis=-1)
    close(np.asarray(term.gaussian_virial(0.0, mu, mu)), virial, 1e-8, "int <x, v> dmu")
