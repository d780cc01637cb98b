r"""How a late token remembers an early one, to leading order in 1/N, from any smooth start (2605.09213).

For independent tokens with laws f0(s, .), a function phi on the circle and positions s = j/N > s0 = l/N,

    Cov(e^{-in theta_j(t)}, phi(theta_j(0)))   -> A^(t, s, n),
    N Cov(e^{-in theta_j(t)}, phi(theta_l(0))) -> C^(t, s, n),

coefficients (1/2pi) int e^{-in theta} of functions that move with the density f = f(t, s, .):

    d_t A = -d_theta (A V[f]),                                        A(0) = f0 (phi - int phi f0),
    d_t C = -d_theta (C V[f]) - d_theta (f w' * M),                   C(0) = 0,
    M(t, s) = int_{s0}^s k(s, s') C(t, s') ds' + k(s, s0) A(t, s0),   V[f] = w' * int_0^s k(s, s') f(s') ds'.

A token's answer to a change of token l is direct (k A) or by way of the tokens in between (int k C).
For uniform tokens f = 1 and C^ = phi^(n) g_{a_n}: `theory.kinetic.mode_response`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from ..density import Density, Law
from ..dynamics import Dynamics
from ..errors import InputError, SolveError, require
from ..integrate.outcome import ADVICE
from ..integrate.unchecked import unchecked
from ..kinds import Unnormalised
from ..meanfield.circle import Fourier
from ..meanfield.galerkin import Basis
from ..runtime import ArrayLike
from ..terms import Attention
from .layered import Layered, LayeredScheme, velocity

if TYPE_CHECKING:
    import xarray as xr

MAX_STEPS = 100_000
# Of sums over the nodes of phi.
ROUNDING = 1e-13


class Perturbed(eqx.Module):
    """What moves together: the density, A at every position, C at the positions from s0 on."""

    f: Float[Array, "*time point mode"]
    A: Float[Array, "*time point mode"]
    C: Float[Array, "*time late mode"]


def correlations(
    model: Dynamics,
    start: Density,
    phi: Law,
    s0: float,
    times: ArrayLike,
    *,
    rtol: float,
    atol: float,
) -> xr.Dataset:
    """f, A and C of the module's docstring at `times`, as coefficients n = 0..modes of every position.

    `start` lives on Layered(positions, modes), `phi` gives real values at points of the circle, s0 is
    one of the positions i/positions, 0 < s0 < 1. `C` is NaN before s0, and its limit from above at s0.
    The attributes tell the largest change of mass, the lowest density and the tail that were met.

    SolveError where the highest modes of f, or those of A and C relative to their size, grow to the
    discretisation's `tail` before the last time: beyond it the modes no longer hold them.
    """
    on, first, marks = _checked(model, start, s0, times)
    _check_tolerances(rtol, atol)
    begun = _begin(on, start.state, phi, first)
    scheme = on.scheme().prepared(model)
    equations = Equations.of(model, scheme, first)
    strain = float(equations.strain(begun))
    require(
        strain <= on.tail,
        f"the start, or phi, is finer than {on} holds: the tail is {strain:.2g}, the largest allowed is "
        f"{on.tail:g}; use a larger discretisation, or a larger `tail` if you know why",
    )
    found = _integrate(equations, begun, marks, jnp.asarray([rtol, atol]), jnp.asarray(on.tail))
    _check_finished(on, found, float(marks[-1]))
    assert found.ys is not None
    return _dataset(on, scheme, first, np.asarray(marks), found.ys[0])


def _checked(
    model: Dynamics, start: Density, s0: float, times: ArrayLike
) -> tuple[Layered, int, Array]:
    """The discretisation, the row of s0 and the times, or a sentence about what is wrong."""
    on = start.on
    if not isinstance(on, Layered):
        raise InputError(
            f"correlations need a density on Layered(positions, modes), got {type(on).__name__}"
        )
    on.check(model)
    term = model.terms
    assert isinstance(term, Attention)
    require(
        isinstance(term.kind, Unnormalised) and model.noise is None,
        "the correlation equations are those of unnormalised attention without noise; use "
        "Kinetic(beta, slope)",
    )
    first = round(s0 * on.positions) if np.isfinite(s0) else 0
    require(
        0 < first < on.positions and abs(first - s0 * on.positions) < 1e-9,
        f"s0 must be one of the inner positions i/{on.positions}, got {s0}; choose positions so that "
        "s0 * positions is whole",
    )
    marks = jnp.atleast_1d(jnp.asarray(times, dtype=float))
    require(
        marks.size > 0
        and bool(jnp.all(jnp.isfinite(marks) & (marks >= 0)))
        and bool(jnp.all(jnp.diff(marks) > 0) and marks[-1] > 0),
        f"times must be finite and increase from 0 on, got {np.asarray(marks).tolist()}; give at least one "
        "above 0",
    )
    return on, first, marks


def _check_tolerances(rtol: float, atol: float) -> None:
    require(
        0 < rtol < np.inf and 0 < atol < np.inf,
        f"rtol and atol must be positive and finite, got {rtol} and {atol}; try rtol=1e-8, atol=1e-10",
    )


def _begin(on: Layered, state: Array, phi: Law, first: int) -> Perturbed:
    """f0, A(0) = f0 (phi - int phi f0) and C(0) = 0."""
    A = _own(on.scheme().basis, state, phi)
    _check_held(on, state, phi, A)
    return Perturbed(state, A, jnp.zeros_like(state[first:]))


def _own(basis: Basis, state: Array, phi: Law) -> Float[Array, "point mode"]:
    """f (phi - int phi f) of every position, in the modes of the basis."""
    f, values = jax.vmap(basis.synthesise)(state), jnp.asarray(phi(basis.nodes), dtype=float)
    require(
        values.shape == basis.weights.shape and bool(jnp.all(jnp.isfinite(values))),
        f"phi must give one finite number per point, {basis.weights.size} here; got an array of shape "
        f"{values.shape} with {int(jnp.sum(jnp.isfinite(values)))} finite numbers",
    )
    centred = values - (f * basis.weights) @ values[:, None]
    # A constant phi leaves rounding, which has no scale of its own to be held to.
    some = jnp.max(jnp.abs(centred)) > ROUNDING * jnp.max(jnp.abs(values))
    return jnp.where(some, jax.vmap(basis.analyse)(f * centred), 0.0).at[:, 0].set(0.0)


def _check_held(on: Layered, state: Array, phi: Law, A: Array) -> None:
    """Refuse phi with scales beyond the modes: what twice as many find there, or find differently."""
    finer, modes = Fourier(2 * on.modes + 7).scheme().basis, on.modes
    more = finer.degree - modes
    waves = jnp.split(state[:, 1:], 2, axis=1)
    fine = _own(
        finer, jnp.hstack([state[:, :1], *(jnp.pad(w, ((0, 0), (0, more))) for w in waves)]), phi
    )
    found, held = (np.abs(fourier_coefficients(rows)[:, 1:]) for rows in (fine, A))
    off = np.max(np.abs(found - np.pad(held, ((0, 0), (0, more)))), axis=0)
    rounding = ROUNDING * float(jnp.max(jnp.abs(phi(finer.nodes))))
    require(
        float(off.max()) <= on.tail * float(found.max()) + rounding,
        f"f0 (phi - int phi f0) has scales that modes={modes} cannot hold: its mode {np.argmax(off) + 1} is "
        f"off by {off.max():.2g} and its largest is {found.max():.2g}; use more modes, or a smoother phi",
    )


class Equations(eqx.Module):
    """The right-hand sides, with the averages over the positions between s0 and s, and k(s, s0)."""

    term: Attention
    scheme: LayeredScheme
    between: Float[Array, "late late"]
    onto: Float[Array, " late"]
    first: int = eqx.field(static=True)

    @staticmethod
    def of(model: Dynamics, scheme: LayeredScheme, first: int) -> Equations:
        """The equations of a model, for a change at the position `first`."""
        assert isinstance(model.terms, Attention)
        assert scheme.coupling is not None
        averages = scheme.coupling.averages
        return Equations(model.terms, scheme, averages.since(first), averages.at(first), first)

    def rates(self, t: Any, y: Perturbed) -> Perturbed:
        """d/dt of f, A and C."""
        basis, coupling, first = self.scheme.basis, self.scheme.coupling, self.first
        assert coupling is not None
        V = velocity(self.term, basis, coupling.kernel, t, coupling.matrix @ y.f)
        answer = self.between @ y.C + self.onto[:, None] * y.A[first]
        pull = velocity(self.term, basis, coupling.kernel, t, answer)
        f, A, C = (jax.vmap(basis.synthesise)(rows) for rows in (y.f, y.A, y.C))

        def carried(flux: Array) -> Array:
            return jax.vmap(basis.against_gradients)(flux[..., None])

        return Perturbed(carried(f * V), carried(A * V), carried(C * V[first:] + f[first:] * pull))

    def strain(self, y: Perturbed) -> Float[Array, ""]:
        """The largest tail: of f, and of A and C in units of their largest mode."""
        sizes = jnp.maximum(jnp.max(jnp.abs(y.A)), jnp.asarray([0.0, jnp.max(jnp.abs(y.C))]))
        # A constant phi has A = C = 0.
        sizes = jnp.where(sizes > 0, sizes, 1.0)
        rows = (y.f, y.A / sizes[0], y.C / sizes[1])
        return jnp.max(jnp.stack([self.scheme.tail(each) for each in rows]))


@eqx.filter_jit
def _integrate(
    equations: Equations, begun: Perturbed, times: Array, accuracy: Array, tail: Array
) -> diffrax.Solution:
    """The three functions at the saved times, by diffrax; `accuracy` is (rtol, atol)."""

    def lost(t: Any, y: Perturbed, equations: Equations, **kwargs: Any) -> Array:
        return ~(equations.strain(y) <= tail)  # a strain that is not finite ends the run too

    with unchecked():
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, equations: equations.rates(t, y)),
            diffrax.Dopri8(),
            0.0,
            times[-1],
            None,
            begun,
            equations,
            saveat=diffrax.SaveAt(subs=[diffrax.SubSaveAt(ts=times), diffrax.SubSaveAt(t1=True)]),
            stepsize_controller=diffrax.PIDController(rtol=accuracy[0], atol=accuracy[1]),
            max_steps=MAX_STEPS,
            event=diffrax.Event(lost),
            throw=False,
        )


def _check_finished(on: Layered, found: diffrax.Solution, t1: float) -> None:
    """Whether the last time was reached with all functions resolved; SolveError in the words of `solve`."""
    if found.result == diffrax.RESULTS.successful:
        return
    assert found.ts is not None
    reached = f"the correlations end at t={float(found.ts[1][0]):.3g} of {t1:g}: "
    if found.result == diffrax.RESULTS.event_occurred:
        raise SolveError(reached + on.advice())
    limit = found.result == diffrax.RESULTS.max_steps_reached
    raise SolveError(reached + ADVICE["step-limit" if limit else "step-too-small"])


def fourier_coefficients(state: ArrayLike) -> Complex[np.ndarray, "*rows n"]:
    """(1/2pi) int e^{-in theta} of rows (c_0, a_1..a_M, b_1..b_M), n = 0..M."""
    rows = np.asarray(state)
    count = (rows.shape[-1] - 1) // 2
    high = (rows[..., 1 : count + 1] - 1j * rows[..., count + 1 :]) / np.sqrt(2.0)
    return np.concatenate([rows[..., :1].astype(complex), high], axis=-1)


def _dataset(
    on: Layered, scheme: LayeredScheme, first: int, times: np.ndarray, found: Perturbed
) -> xr.Dataset:
    import xarray as xr

    early = np.full((len(times), first, on.modes + 1), np.nan + 0j)
    late = fourier_coefficients(found.C)
    axes = ("time", "position", "n")
    return xr.Dataset(
        {
            "f": (axes, fourier_coefficients(found.f)),
            "A": (axes, fourier_coefficients(found.A)),
            "C": (axes, np.concatenate([early, late], axis=1)),
        },
        coords={"time": times, "position": on.places, "n": np.arange(on.modes + 1)},
        attrs={
            "s0": first / on.positions,
            "mass_drift": float(np.max(np.abs(np.asarray(found.f)[..., 0] - 1.0))),
            "lowest_density": float(jnp.min(jax.vmap(scheme.lowest)(found.f))),
            "largest_tail": float(jnp.max(jax.vmap(scheme.tail)(found.f))),
        },
    )
