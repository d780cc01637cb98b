"""Growth of small perturbations of the uniform measure, measured from the equation itself.

Around the uniform density 1 the equation is linear, and by symmetry every harmonic of degree k grows at
one rate: k(k+d-2) times (c_k - T), c_k the kernel's number and T the temperature (`theory.growth_rate`,
`theory.noisy_growth_rate`; 2410.23228, 2606.05140). Here rates are the derivative of the discretised
equation (`growth_rates`), or the growth seen in runs of `solve` (`growth_rates_of_runs`).

How much of that formula the discretisation knows depends on the weights. Plain attention multiplies
degrees by c_k itself (`Galerkin`), so that its rates confirm the weak form, not c_k. With the same
attention written as weights B = I, V = I the field is summed over nodes from e^{beta<x,y>} and harmonics
are not known to be its eigenfunctions; these rates confirm c_k too, to rounding of the fastest rate.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..density import Density, Discretisation
from ..dynamics import Dynamics
from ..errors import require
from ..integrate import Save, solve
from .galerkin import Galerkin

# The uniform measure counts as an equilibrium when it moves slower than this times the fastest rate.
AT_REST = 1e-10
# Size of a perturbation that is run: what it does to itself at second order is taken out by a run
# with the opposite sign, which leaves 1e-12; rounding leaves 1e-16/1e-6.
SIZE = 1e-6
# No run lasts longer than this many e-folds of the fastest mode, which rounding has stirred up.
MOST_FOLDS = 5.0


def growth_rates(
    model: Dynamics, on: Discretisation, degrees: Sequence[int] | np.ndarray, seed: int = 0
) -> np.ndarray:
    """Rate of every degree, from the derivative of the discretised equation at the uniform density.

    A random direction among the harmonics of the degree is differentiated; one that is not multiplied by
    a number (the model prefers a direction) is refused. Exact up to rounding: of the rate itself for plain
    attention, also where it is near 0, and of the fastest rate where the field is summed over nodes.
    """
    scheme = _galerkin(on)
    on.check(model)
    wanted = _checked_degrees(scheme, degrees)
    directions = jnp.asarray(np.stack([_direction(scheme, k, seed) for k in wanted]))
    rest, images = _linearised(model, scheme, _uniform(on), directions)
    rates = np.sum(np.asarray(images * directions), axis=-1)
    largest = max(float(np.max(np.abs(rates))), float(np.finfo(float).tiny))
    off = np.max(np.abs(np.asarray(images) - rates[:, None] * np.asarray(directions)))
    require(
        float(jnp.max(jnp.abs(rest))) <= AT_REST * largest and off <= AT_REST * largest,
        f"growth rates by degree need a model without a preferred direction, which {model.label} is not on "
        f"{on}: the uniform measure moves, or harmonics of one degree grow differently; where the field is "
        "summed over nodes a large beta needs a larger degree",
    )
    return rates


def fastest_degree(model: Dynamics, on: Discretisation) -> int:
    """The degree that grows fastest, of all the discretisation has: see `theory.dominant_mode`."""
    degrees = np.arange(1, _galerkin(on).basis.degree + 1)
    return int(degrees[np.argmax(growth_rates(model, on, degrees))])


def growth_rates_of_runs(
    model: Dynamics, on: Discretisation, degrees: Sequence[int] | np.ndarray, seed: int = 0
) -> np.ndarray:
    """Rate of every degree, from the logarithm of its growth along two runs of `solve`.

    They start from 1 + e phi and 1 - e phi, e = 1e-6 and phi a random harmonic of the degree, and last one
    e-fold of it, or five of the fastest degree where that is sooner. The relative error is some 1e-10
    over the number of e-folds seen. Degrees in the last quarter would end the run as unresolved.
    """
    scheme = _galerkin(on)
    wanted = _checked_degrees(scheme, degrees)
    require(
        bool(np.all(4 * wanted <= 3 * scheme.basis.degree)),
        f"runs measure degrees up to three quarters of the discretisation's {scheme.basis.degree}, got "
        f"{int(np.max(wanted))}; use a larger one",
    )
    expected = growth_rates(model, on, wanted, seed)
    every = growth_rates(model, on, np.arange(1, scheme.basis.degree + 1), seed)
    longest = MOST_FOLDS / max(float(np.max(every)), float(np.finfo(float).tiny))
    found = []
    for degree, rate in zip(wanted, expected, strict=True):
        t1 = min(longest, 1.0 / max(abs(float(rate)), float(np.finfo(float).tiny)))
        direction = _direction(scheme, int(degree), seed)
        ends = [_end(model, on, sign * SIZE * direction, t1) for sign in (1.0, -1.0)]
        found.append(np.log(direction @ (ends[0] - ends[1]) / (2 * SIZE)) / t1)
    return np.array(found)


def _end(model: Dynamics, on: Discretisation, bump: np.ndarray, t1: float) -> np.ndarray:
    start = Density(on, np.asarray(_uniform(on)) + bump)
    run = solve(model, start, t1, rtol=1e-10, atol=1e-10 * SIZE, save=Save(at=[t1], states=True))
    return np.asarray(run.states)[-1]


@eqx.filter_jit
def _linearised(
    model: Dynamics, scheme: Galerkin, state: Array, directions: Float[Array, "k mode"]
) -> tuple[Array, Float[Array, "k mode"]]:
    """The derivative of the state, and its own derivative in every direction."""
    ready = scheme.prepared(model)
    damping = ready.damping(model)

    def flow(at: Array) -> Array:
        noise = 0.0 if damping is None else damping * at
        return ready.transport(model, 0.0, at) - noise

    rest, push = jax.linearize(flow, state)
    return rest, jax.vmap(push)(directions)


def _galerkin(on: Discretisation) -> Galerkin:
    scheme = on.scheme()
    require(
        isinstance(scheme, Galerkin),
        f"growth rates by degree need Fourier, Zonal or Harmonics, got {on}",
    )
    assert isinstance(scheme, Galerkin)
    return scheme


def _uniform(on: Discretisation) -> Array:
    return jnp.zeros(on.shape).at[0].set(1.0)


def _direction(scheme: Galerkin, degree: int, seed: int) -> np.ndarray:
    """A random unit vector among the coefficients of one degree."""
    inside = np.asarray(scheme.basis.degrees) == degree
    vector = np.where(inside, np.random.default_rng(seed).normal(size=inside.size), 0.0)
    return vector / np.linalg.norm(vector)


def _checked_degrees(scheme: Galerkin, degrees: Sequence[int] | np.ndarray) -> np.ndarray:
    wanted = np.atleast_1d(np.asarray(degrees))
    top = scheme.basis.degree
    require(
        wanted.size > 0 and bool(np.all((wanted >= 1) & (wanted <= top) & (wanted % 1 == 0))),
        f"degrees must be whole numbers from 1 to {top}, got {degrees}; degree 0 is the mass",
    )
    return wanted.astype(int)
