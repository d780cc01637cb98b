r"""How a late token remembers an early one, to leading order in 1/N, from any smooth start (2605.09213).

For independent tokens with laws f0(s, .), a function phi on the circle and positions s = j/N > s0 = l/N,

    Cov(e^{-in theta_j(t)}, phi(theta_j(0)))   -> A^(t, s, n),
    N Cov(e^{-in theta_j(t)}, phi(theta_l(0))) -> C^(t, s, n),

coefficients (1/2pi) int e^{-in theta} of functions that move with the density f = f(t, s, .):

    d_t A = -d_theta (A V[f]),                                        A(0) = f0 (phi - int phi f0),
    d_t C = -d_theta (C V[f]) - d_theta (f w' * M),                   C(0) = 0,
    M(t, s) = int_{s0}^s k(s, s') C(t, s') ds' + k(s, s0) A(t, s0),   V[f] = w' * int_0^s k(s, s') f(s') ds'.

A token's answer to a change of token l is direct (k A) or by way of the tokens in between (int k C).
For uniform tokens f = 1 and C^ = phi^(n) g_{a_n}: `theory.kinetic.mode_response`. f, A and C are one state of
`solve`: `correlations` starts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from ..density import Density, HeldDensity, Law
from ..dynamics import Dynamics
from ..errors import InputError, require
from ..integrate import Save, solve
from ..meanfield.circle import Fourier
from ..meanfield.galerkin import Basis
from ..observables.base import Observable, Snapshot
from ..observables.naming import check_names
from ..outcomes import OUTCOMES
from ..reduce import Dense
from ..runtime import ArrayLike, Scalar
from ..serialise import describe
from ..states.protocol import Judgement, State
from ..terms import Attention
from ..trajectory import Trajectory
from .layered_density import LayeredDensity, LayeredScheme, only_attention, velocity

# Of sums over the nodes of phi.
ROUNDING = 1e-13
WATCHED = {
    "mass": ("1", "Mass of the position that is farthest from 1"),
    "lowest": ("1", "Smallest density, relative to the uniform law"),
    "tail": ("1", "Largest tail: of f, and of A and C in units of their largest mode"),
}


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
) -> Trajectory:
    """f, A and C of the module's docstring at t = 0 and at `times`, for every position.

    `start` lives on LayeredDensity(positions, modes), `phi` gives real values at points of the circle, s0 is
    one of the positions i/positions, 0 < s0 < 1. The run has the rows `states` (f), `A` and `C` as Fourier
    modes, which `fourier_coefficients` makes complex. `C` is NaN before s0, and its limit from above at s0.

    SolveError where the highest modes of f, or those of A and C relative to their size, grow to the
    discretisation's `tail` before the last time: beyond it the modes no longer hold them.
    """
    marks = np.atleast_1d(np.asarray(times, dtype=float))
    require(
        marks.size > 0
        and bool(np.all(np.isfinite(marks) & (marks >= 0)))
        and bool(np.all(np.diff(marks) > 0) and marks[-1] > 0),
        f"times must be finite and increase from 0 on, got {marks.tolist()}; give at least one above 0",
    )
    state = Correlations.of(start, phi, s0)
    save = Save(at=marks, states=True)
    return solve(model, state, float(marks[-1]), rtol=rtol, atol=atol, save=save)


class Correlations(State):
    """A layered density with the functions A and C that move on it, as a state of `solve`."""

    density: Density
    own: Float[Array, "point mode"]  # A(0) = f0 (phi - int phi f0)
    first: int = eqx.field(static=True)
    equations: Equations | None = None

    @staticmethod
    def of(start: Density, phi: Law, s0: float) -> Correlations:
        """A change at the position s0 of the function phi of a token."""
        on = start.on
        if not isinstance(on, LayeredDensity):
            raise InputError(
                f"correlations need a density on LayeredDensity(positions, modes), got {type(on).__name__}"
            )
        first = round(s0 * on.positions) if np.isfinite(s0) else 0
        require(
            0 < first < on.positions and abs(first - s0 * on.positions) < 1e-9,
            f"s0 must be one of the inner positions i/{on.positions}, got {s0}; choose positions so that "
            "s0 * positions is whole",
        )
        A = _own(on.scheme().basis, start.state, phi)
        _check_held(on, start.state, phi, A)
        return Correlations(start, A, first)

    # --- before a run -----------------------------------------------------------------------------

    def check(self, model: Dynamics, t1: float) -> None:
        on = self.density.on
        on.check(model)
        kind = only_attention(model).kind
        require(
            not kind.averages and model.noise is None and model.now(0.0) is model,
            "the correlation equations are those of constant unnormalised attention without noise; use "
            "KineticFlow(beta, slope)",
        )
        strain = float(self.prepared(model).strain(self.begin(model)))
        require(
            strain <= on.largest_tail,
            f"the start, or phi, is finer than {on} holds: the tail is {strain:.2g}, the largest allowed is "
            f"{on.largest_tail:g}; use a larger discretisation, or a larger `tail` if you know why",
        )

    def check_names(self, observe: Sequence[Observable]) -> None:
        check_names(observe, taken=(*WATCHED, "A", "C", *self.density.on.axes))

    def holding(self, start: Density) -> Correlations:
        return Correlations(start, self.own, self.first)

    def blank(self) -> Correlations:
        empty = self.density.at(jnp.zeros_like(self.density.state))
        return Correlations(empty, jnp.zeros_like(self.own), self.first)

    def begin(self, model: Dynamics) -> Perturbed:
        return Perturbed(self.density.state, self.own, jnp.zeros_like(self.own[self.first :]))

    # --- the equation -----------------------------------------------------------------------------

    def prepared(self, model: Dynamics) -> Correlations:
        scheme = self.density.on.scheme().prepared(model)
        assert isinstance(scheme, LayeredScheme)
        equations = Equations.of(model, scheme, self.first)
        return Correlations(self.density, self.own, self.first, equations)

    @property
    def _known(self) -> Equations:
        assert self.equations is not None
        return self.equations

    def velocity(self, model: Dynamics, t: Scalar, y: Perturbed) -> Perturbed:
        return self._known.rates(t, y)

    def strain(self, y: Perturbed) -> Array:
        """The largest tail of the three functions."""
        return self._known.strain(y)

    @property
    def may_be_lost(self) -> bool:
        return True

    def lost(self, model: Dynamics, t: Scalar, y: Perturbed) -> Array:
        """A strain that is not finite ends the run too."""
        return ~(self.strain(y) <= self.density.on.largest_tail)

    def ended(self, code: Array, final: dict[str, Array]) -> Array:
        lost = ~(final["tail"] <= 0.999 * self.density.on.largest_tail)
        stopped = code == OUTCOMES.index("stopped")
        return jnp.where(stopped & lost, OUTCOMES.index("unresolved"), code)

    # --- looked at --------------------------------------------------------------------------------

    def snapshot(self, model: Dynamics, t: Array, y: Perturbed) -> Snapshot:
        """The density alone: A and C are rows of their own."""
        held = HeldDensity(self.density.at(y.f), self._known.scheme)
        return Snapshot(t, held, model, Dense())

    def rows(self, y: Perturbed, keep: bool) -> dict[str, Array]:
        return {"states": y.f, "A": y.A, "C": self._padded(y.C)} if keep else {}

    def _padded(self, late: Array) -> Array:
        """C at all positions, NaN before s0."""
        width = ((0, 0),) * (late.ndim - 2) + ((self.first, 0), (0, 0))
        return jnp.pad(late, width, constant_values=jnp.nan)

    def watched(self, model: Dynamics, t: Array, y: Perturbed) -> dict[str, Array]:
        scheme = self._known.scheme
        return {"mass": scheme.mass(y.f), "lowest": scheme.lowest(y.f), "tail": self.strain(y)}

    @property
    def details(self) -> dict[str, dict[str, Any]]:
        return {
            name: {"units": units, "long_name": says} for name, (units, says) in WATCHED.items()
        }

    # --- labelled ---------------------------------------------------------------------------------

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(("states", "state", "A", "C"), self.density.on.axes)

    @property
    def sizes(self) -> dict[str, int]:
        return self.density.on.sizes

    @property
    def labels(self) -> dict[str, np.ndarray]:
        return self.density.on.labels

    def ends(self, y: Perturbed) -> dict[str, Array]:
        return {"state": y.f, "A": y.A, "C": self._padded(y.C)}

    def continued(self, ends: dict[str, Array]) -> Perturbed:
        f, A, C = (jnp.asarray(ends[name]) for name in ("state", "A", "C"))
        return Perturbed(f, A, C[..., self.first :, :])

    def at_start(self) -> dict[str, Array]:
        return {"state": self.density.state, "A": self.own}

    def value(self, arrays: dict[str, Any]) -> Density:
        return self.density.at(jnp.asarray(arrays["state"]))

    def stored_snapshot(self, model: Dynamics, t: Array, row: Array) -> Snapshot:
        held = HeldDensity(self.density.at(row), self.density.on.scheme().prepared(model))
        return Snapshot(t, held, model, Dense())

    def described(self) -> dict[str, Any]:
        on = self.density.on
        assert isinstance(on, LayeredDensity)
        return {
            "density": describe(self.blank().density),
            "correlations": {"s0": self.first / on.positions},
        }

    # --- judged -----------------------------------------------------------------------------------

    def health(self, model: Dynamics, arrays: dict[str, Any], lead: int) -> dict[str, Any]:
        if "mass" not in arrays:
            return {}
        return {
            "mass_drift": float(np.nanmax(np.abs(np.asarray(arrays["mass"]) - 1.0))),
            "lowest_density": float(np.nanmin(np.asarray(arrays["lowest"]))),
            "largest_tail": float(np.nanmax(np.asarray(arrays["tail"]))),
        }

    def judged(
        self, model: Dynamics, names: np.ndarray, arrays: dict[str, Any], atol: float
    ) -> Judgement:
        return Judgement(names, {"unresolved": self.density.on.advice()})


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


def _check_held(on: LayeredDensity, state: Array, phi: Law, A: Array) -> None:
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
        assert scheme.coupling is not None
        averages, term = scheme.coupling.averages, only_attention(model)
        return Equations(term, scheme, averages.since(first), averages.at(first), first)

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


def fourier_coefficients(state: ArrayLike) -> Complex[np.ndarray, "*rows n"]:
    """(1/2pi) int e^{-in theta} of rows (c_0, a_1..a_M, b_1..b_M), n = 0..M."""
    rows = np.asarray(state)
    count = (rows.shape[-1] - 1) // 2
    high = (rows[..., 1 : count + 1] - 1j * rows[..., count + 1 :]) / np.sqrt(2.0)
    return np.concatenate([rows[..., :1].astype(complex), high], axis=-1)
