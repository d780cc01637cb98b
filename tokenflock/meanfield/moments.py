"""Gaussian measures on R^d by mean and covariance: two ordinary differential equations, no error in space.

Attention of the kinds in `affine` moves a Gaussian by an affine field v(x) = b + G x, so that

    alpha' = b + G alpha,    Sigma' = G Sigma + Sigma G^T + 2 T I    (2501.18322; noise sqrt(2T) dB)

is the continuity equation itself. Sigma is integrated as it stands: the right-hand side is symmetric to
the last bit, so Sigma stays symmetric, and eigenvalues may fall below zero by no more than atol, which
`health["lowest_density"]` shows. Integrating a factor, F' = G F with Sigma = F F^T, was measured to err as
much down to atol and to keep digits below it, but noise then needs F^{-T}, which is no more where rank is
lost; give a smaller atol instead.

Softmax attention with a positive direction blows up in finite time. Near it the second moment grows at
the rate r = p/(t* - t), so a run ends with the outcome "blow-up" where r t reaches `Moments.horizon`:
what is left is then about 1/horizon of the time gone. Growth at a constant rate is no blow-up: numbers leave
the range of doubles before r t reaches `BOUNDED`. There, at `LARGEST_NUMBER`, a run ends as "non-finite".
A fixed step that jumps over the pole is refused and halved (`step_control`): runs with dt end there, too.
"""

from __future__ import annotations

from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..density import Density, Discretisation, Functional, Law, Scheme
from ..dynamics import Dynamics
from ..errors import InputError, require
from ..kinds.gaussian import Gaussian, Head
from ..kinds.gaussian_coupling import coupling_energy, coupling_power
from ..measure import Measure
from ..observables.geometry import spectrum_rank
from ..runtime import ArrayLike, Scalar
from ..space import Euclidean, Space
from . import gaussian_statistics
from .affine import check_affine, field, virial
from .checks import check_model
from .sampling import LARGEST_UNDERSHOOT
from .step_control import Halving

# How far rounding may take a covariance from symmetric and semidefinite, relative to its size.
ROUNDING = 1e-12
# Where a run ends as "non-finite": doubles end at 1.8e308, and what is left is for the sums of one step.
LARGEST_NUMBER = 1e300
# Growth at a constant rate r takes second moments from 1e-600 to 1e600 at most: r t < 1200 log 10.
BOUNDED = 3000.0
# A fixed step is refused if an eigenvalue of the covariance falls below -UNSOUND of the largest number,
UNSOUND = 1e-3
# or if it passes the horizon while the strain rises more than so many times.
STEEPEST = 100.0


class Moments(Discretisation):
    """Gaussian measures on R^d; the state (d + 1, d) is the mean above the covariance.

    A run ends as a blow-up where the time left is about 1/`horizon` of the time gone.
    """

    d: int = eqx.field(static=True)
    horizon: float = eqx.field(static=True, default=1e8)
    axes: ClassVar[tuple[str, ...]] = ("moment", "coordinate")
    lost_outcome: ClassVar[str] = "blow-up"

    def __check_init__(self) -> None:
        Euclidean(self.d)
        require(
            1 < self.horizon <= 1e12,
            f"the horizon must lie between 1 and 1e12 (rounding of times), got {self.horizon}",
        )

    @property
    def space(self) -> Space:
        return Euclidean(self.d)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.d + 1, self.d)

    @property
    def largest_tail(self) -> float:
        return self.horizon

    def scheme(self) -> MomentScheme:
        return MomentScheme()

    def project(self, law: Law) -> Array:
        raise InputError(
            "a Gaussian is given by its moments, not by a law; use gaussian_density(mean, covariance)"
        )

    def check(self, model: Dynamics) -> None:
        check_model(model, self)
        require(
            model.normalisation is None,
            "layer norm puts tokens on a sphere, where no measure is Gaussian; leave out normalisation",
        )
        check_affine(model, self.d)

    def draw(self, state: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
        """mean + L z with L L^T = covariance, z standard normal."""
        values, vectors = np.linalg.eigh(state[1:])
        size = max(float(np.max(np.abs(values))), 1e-300)
        require(
            float(values[0]) >= -LARGEST_UNDERSHOOT * size,
            f"the covariance has the eigenvalue {values[0]:.3g}, so it is that of no law; lower atol",
        )
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        return state[0] + random.normal(size=(n, self.d)) @ factor.T

    def controller(
        self, given: diffrax.AbstractStepSizeController
    ) -> diffrax.AbstractStepSizeController:
        """Fixed steps over a pole are halved; adaptive steps do not jump over it."""
        if not isinstance(given, diffrax.ConstantStepSize):
            return given
        return Halving(is_no_step, self.horizon, given)

    def advice(self) -> str:
        return (
            "the second moment grows without bound before t1, which is the model's own behaviour: stop "
            'before run.health["blow_up_time"], or use attention of bounded slope (Sinkhorn, L2 with '
            "injective K)"
        )

    def last_words(self, final_time: Array, final_tail: Array) -> dict[str, Any]:
        """The time of blow-up, t (1 + 1/(r t)): exact where the second moment goes like 1/(t* - t).

        With fixed steps it is off by less than one of them, the one within which the pole lies.
        """
        times, tails = np.asarray(final_time, float), np.asarray(final_tail, float)
        ended = tails > 0.999 * self.horizon
        found = np.where(ended, times * (1.0 + 1.0 / np.where(ended, tails, 1.0)), np.inf)
        return {"blow_up_time": found.tolist() if found.ndim else float(found)}


class MomentScheme(Scheme):
    """The equations of mean and covariance."""

    def prepared(self, model: Dynamics) -> MomentScheme:
        return self

    def transport(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """(alpha', Sigma'), noise included: its 2 T I is no decay of the state."""
        mu = as_gaussian(state)
        rate = field(model, t, mu).push(mu)
        spread = 2.0 * temperature(model) * jnp.eye(mu.mean.size)
        return as_state(Gaussian(rate.mean, rate.covariance + spread))

    def damping(self, model: Dynamics) -> Array | None:
        return None

    # --- the dissipation identity -----------------------------------------------------------------

    def free_energy(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """sum of c F over heads of Sinkhorn attention, of int <x, M x>/2 dmu over drifts, and a size.

        F = `coupling_energy`. With V = c A and A symmetric the field is c grad(dF/dmu), so that a model
        of these alone is a gradient flow and increases this (2110.11773; there V = -A and F falls).
        A model with softmax, l2 or linear attention adds the size L = log(1 + int |x|^2 dmu)/2. It is no
        energy, and need not rise: of softmax, iint e^{y^T A x} dmu dmu/2 is infinite unless all
        eigenvalues of A Sigma lie in (-1, 1), and other weights have none. It is finite for every
        Gaussian, with a rate of its own in `power`, so that the identity checks the run all the same.
        The noise's T h(mu) is left out, being -infinity where rank is lost; `power` has the noise's part
        of the rest.
        """
        mu = as_gaussian(state)
        total = jnp.zeros(())
        for head, weight in self._coupled(model, t, mu):
            total += weight * coupling_energy(mu.mean, mu.covariance, head.score)
        for matrix in self._drifts(model, t, mu):
            total += jnp.sum(matrix * mu.second_moment) / 2.0
        return total + _log_size(mu) if _has_size(model) else total

    def power(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """int grad(dF/dmu) . v dmu + T int Laplacian(dF/dmu) dmu, from the field alone.

        dL/dt is (int <x, v> dmu + T d)/(1 + int |x|^2 dmu), from the laws by which attention draws y at
        x and not from the slopes of `field`: a wrong slope breaks the identity.
        """
        mu, T = as_gaussian(state), temperature(model)
        velocity = field(model, t, mu)
        mean_velocity = velocity.offset + velocity.slope @ mu.mean
        total = jnp.zeros(())
        for head, weight in self._coupled(model, t, mu):
            total += weight * coupling_power(
                mu.mean, mu.covariance, head.score, mean_velocity, velocity.slope, T
            )
        for matrix in self._drifts(model, t, mu):
            half = (matrix + matrix.T) / 2.0
            total += mean_velocity @ half @ mu.mean + T * jnp.trace(half)
            total += jnp.trace(half @ velocity.slope @ mu.covariance)
        return total + _log_size_rate(model, t, mu) if _has_size(model) else total

    def _coupled(self, model: Dynamics, t: Scalar, mu: Gaussian) -> list[tuple[Head, Array]]:
        """Heads of Sinkhorn attention with constant weights, each with c = <V, A>/<A, A>."""
        found = []
        for term in model.attentions():
            if term.kind.couples and term.weights.is_fixed:
                heads = term.gaussian_heads(t, mu.mean.size)
                found += [(head, _share(head)) for head in heads]
        return found

    def _drifts(self, model: Dynamics, t: Scalar, mu: Gaussian) -> list[Array]:
        outside = [term for term in model.parts() if not term.interacts]
        return [term.gaussian_field(t, mu).slope for term in outside]

    # --- what the state holds ---------------------------------------------------------------------

    def mass(self, state: Array) -> Array:
        return jnp.ones(())

    def lowest(self, state: Array) -> Array:
        """The smallest eigenvalue of the covariance: negative by rounding and atol alone."""
        return jnp.linalg.eigvalsh(as_gaussian(state).covariance)[0]

    def tail(self, state: Array) -> Array:
        """The second moment int |x|^2 dmu; what ends a run is `strain`."""
        return jnp.trace(as_gaussian(state).second_moment)

    def strain(self, model: Dynamics, t: Scalar, state: Array) -> Array:
        """t r with r = 2 int <x, v> dmu / int |x|^2 dmu, the field's own growth rate (0 if it shrinks).

        NaN where moments or the power, which is integrated beside them, leave the range of doubles by
        growth at a bounded rate.
        """
        mu = as_gaussian(state)
        velocity = field(model, t, mu)
        unit, scaled = _in_units(mu, 0.0)
        rate = velocity.offset / unit + velocity.slope @ scaled.mean
        growth = 2.0 * (jnp.trace(velocity.slope @ scaled.covariance) + scaled.mean @ rate)
        total = jnp.trace(scaled.second_moment)
        relative = growth / jnp.where(total > 0, total, 1.0)
        # Not a maximum: a rate that is not a number must not look like rest.
        strain = jnp.where(relative <= 0, 0.0, jnp.asarray(t) * relative)
        largest = jnp.maximum(jnp.max(jnp.abs(state)), jnp.abs(self.power(model, t, state)))
        return jnp.where((largest <= LARGEST_NUMBER) | (strain > BOUNDED), strain, jnp.nan)

    def functionals(self) -> dict[str, Functional]:
        return {
            **gaussian_statistics.functionals(as_gaussian),
            "free_energy": self.free_energy,
            "free_energy_rate": self.power,
            "order_parameter": lambda model, t, state: _length(as_gaussian(state).mean),
            "effective_rank": lambda model, t, state: spectrum_rank(
                jnp.linalg.eigvalsh(as_gaussian(state).second_moment)
            ),
        }

    def measure(self, state: Array) -> Measure:
        raise InputError(
            "a Gaussian density has no points with the same integrals: of observables it has "
            f"{', '.join(sorted(self.functionals()))}; for others draw tokens: density.sample(n, seed)"
        )

    def values(self, state: Array) -> Array:
        raise InputError(
            "a Gaussian density has no nodes and R^d no uniform law; read mean and covariance off its state"
        )


def is_no_step(horizon: float, t0: Scalar, t1: Scalar, y0: Any, y1: Any, args: Any) -> Array:
    """Whether a step ends at no Gaussian, or past the horizon from far before it."""
    strain, end = args.state.scheme.strain, y1.moving
    covariance, finite = as_gaussian(end).covariance, jnp.all(jnp.isfinite(end))
    # Eigenvalues are looked at only where all is finite.
    safe = jnp.where(finite, covariance, jnp.eye(covariance.shape[0]))
    sound = jnp.linalg.eigvalsh(safe)[0] >= -UNSOUND * jnp.max(jnp.abs(safe))
    before = strain(args.model, args.times.clock.time(t0), y0.moving)
    after = strain(args.model, args.times.clock.time(t1), end)
    jumped = (after > horizon) & (after > STEEPEST * before)
    return ~finite | ~sound | jumped


def _has_size(model: Dynamics) -> bool:
    """Whether there is attention without an energy of its own."""
    return any(not term.kind.couples for term in model.attentions())


def _log_size(mu: Gaussian) -> Float[Array, ""]:
    """log(1 + int |x|^2 dmu)/2, in units of the size: the square of a mean of 1e200 is not a number."""
    unit, scaled = _in_units(mu, 1.0)
    return jnp.log(unit) + jnp.log(1.0 / unit / unit + jnp.trace(scaled.second_moment)) / 2.0


def _log_size_rate(model: Dynamics, t: Scalar, mu: Gaussian) -> Float[Array, ""]:
    unit, scaled = _in_units(mu, 1.0)
    rest = 1.0 / unit / unit
    gain = virial(model, t, mu, scaled) + temperature(model) * mu.mean.size * rest
    return gain / (rest + jnp.trace(scaled.second_moment))


def _in_units(mu: Gaussian, least: float) -> tuple[Float[Array, ""], Gaussian]:
    """A unit of the order of x, and at least `least`, with mu in it; 1 for a point mass at 0."""
    size = jnp.maximum(jnp.max(jnp.abs(mu.mean)), jnp.sqrt(jnp.max(jnp.abs(mu.covariance))))
    # Nothing depends on the unit, so its derivative, which squares it, is left out.
    unit = jax.lax.stop_gradient(jnp.maximum(jnp.where(size > 0, size, 1.0), least))
    return unit, Gaussian(mu.mean / unit, mu.covariance / unit / unit)


def _share(head: Head) -> Float[Array, ""]:
    """c with V = c A, by least squares; 0 for A = 0."""
    size = jnp.sum(head.score**2)
    return jnp.sum(head.V * head.score) / jnp.where(size > 0, size, 1.0)


def _length(x: Float[Array, " d"]) -> Float[Array, ""]:
    """|x|, also where |x|^2 is beyond the range of doubles."""
    size = jnp.max(jnp.abs(x))
    unit = jnp.where(size > 0, size, 1.0)
    return size * jnp.linalg.norm(x / unit)


def temperature(model: Dynamics) -> Array:
    """T of Brownian noise, 0 without."""
    T = model.temperature()
    return jnp.zeros(()) if T is None else T


def as_gaussian(state: Float[Array, "rows d"]) -> Gaussian:
    """The measure of a state."""
    return Gaussian(state[0], state[1:])


def as_state(mu: Gaussian) -> Float[Array, "rows d"]:
    """The mean above the covariance."""
    return jnp.concatenate([mu.mean[None], mu.covariance])


def gaussian_density(mean: ArrayLike, covariance: ArrayLike, horizon: float = 1e8) -> Density:
    """The Gaussian density N(mean, covariance) on R^d; a covariance may lack rank."""
    centre, spread = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    require(centre.ndim == 1, f"the mean must be one vector, got shape {centre.shape}")
    d = centre.size
    require(spread.shape == (d, d), f"the covariance must be ({d}, {d}), got {spread.shape}")
    finite = bool(np.all(np.isfinite(centre)) and np.all(np.isfinite(spread)))
    require(finite, "mean and covariance must be finite, got NaN or infinity")
    size = float(np.max(np.abs(spread)))
    asymmetry = float(np.max(np.abs(spread - spread.T)))
    require(
        asymmetry <= ROUNDING * size,
        f"the covariance must be symmetric, got entries that differ by {asymmetry:.3g}",
    )
    symmetric = (spread + spread.T) / 2.0
    smallest = float(np.linalg.eigvalsh(symmetric)[0])
    require(
        smallest >= -ROUNDING * size,
        f"the covariance must be positive semidefinite, got the eigenvalue {smallest:.3g}",
    )
    return Density(Moments(d, horizon), np.concatenate([centre[None], symmetric]))
