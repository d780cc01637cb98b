"""Limits of random layers as models for `flock.solve` (2604.01978): ballistic, modified, diffusive.

With F_i = E B_theta(x_i), xi = B_theta - F and time t = eta layer the three are

    ballistic   x_i' = P F_i
    modified    x_i' = P F_i - (eta/2) grad_F F_i
    diffusive   dx_i = P F_i dt + sqrt(eta/H) P int xi_i(theta) W(dtheta, dt)   (Ito on the sphere)

The white noise W is common to all tokens. It needs the covariance of xi at the n tokens only: sigma_V^2
s_ij I_d from the values, s_ij = E_A <m_i, m_j>, and EV Cov_A(m_i, m_j) EV^T where V has a mean. Both, and
F, are averages over a fixed panel of draws of A: relative error about panel^{-1/2}, none for a fixed A.
The Ito correction -(eta/2H) x_i E|P xi_i|^2 is the retraction's, so it is not added by hand.
"""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..errors import require
from ..measure import Measure
from ..noise import Noise
from ..reduce import Reduction
from ..runtime import Scalar
from ..space import Sphere
from ..terms import Term
from .laws import FixedScores, HeadLaw, matrix_of


class Panel(eqx.Module):
    """A head law with a fixed panel of its matrices A, over which expectations are taken."""

    law: HeadLaw
    A: Float[Array, "panel d d"]

    def barycentres(self, x: Float[Array, "m d"], mu: Measure) -> Float[Array, "panel m d"]:
        """m_A[mu](x) for every A of the panel. O(panel (m d^2 + m n d))."""
        log_weights = jnp.log(mu.weights)
        return jax.vmap(lambda A: self.law.attending.given(A, x, mu.points, log_weights))(self.A)

    def attended(self, x: Float[Array, "m d"], mu: Measure) -> Float[Array, "m m"]:
        """s_ij = E_A <m_A(x_i), m_A(x_j)>."""
        m = self.barycentres(x, mu)
        return jnp.einsum("pid,pjd->ij", m, m) / self.A.shape[0]

    def mean_field(self, x: Float[Array, "m d"], mu: Measure) -> Float[Array, "m d"]:
        """F(x) = EV E_A m_A(x)."""
        return self.law.values.mean_image(jnp.mean(self.barycentres(x, mu), axis=0))

    def spread(self, x: Float[Array, "m d"], mu: Measure) -> Float[Array, "panel m d"]:
        """EV (m_A - E_A m_A)(x): the part of xi that the scores are responsible for."""
        m = self.barycentres(x, mu)
        return (m - jnp.mean(m, axis=0)) @ matrix_of(self.law.values.mean, x.shape[-1]).T

    @property
    def spreads(self) -> bool:
        """Whether that part exists: V has a mean and A is random."""
        return self.law.values.mean is not None and not isinstance(self.law.scores, FixedScores)


def panel_of(law: HeadLaw, d: int, draws: int = 256, seed: int = 0) -> Panel:
    """A panel of `draws` matrices A in R^d (one, where A is fixed)."""
    law.check(d)
    law.check_common("the limits")
    require(draws >= 2, f"a panel needs at least 2 draws of A, got {draws}")
    count = 1 if isinstance(law.scores, FixedScores) else draws
    keys = jr.split(jr.key(seed), count)
    return Panel(law, jax.vmap(lambda key: law.scores.sample(key, d))(keys))


class MeanHeads(Term):
    """F, plus what a finite step eta adds to it.

    `modified` adds -(eta/2) grad_F F. `unprojected`, for layers that do not project B on the tangent
    space, adds -eta <x, F> P F and, with noise of strength eta/H from the scores,
    -(eta/H) E <x, xi> P xi; both vanish under Gaussian heads.
    """

    panel: Panel
    step: Float[Array, ""]
    share: Float[Array, ""]  # eta/H where the noise acts, else 0
    modified: bool = eqx.field(static=True)
    unprojected: bool = eqx.field(static=True)

    def field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        full = self.panel.mean_field(x, mu)
        total = mu.space.project(x, full)
        push = total
        if self.modified:
            total = total - self.step / 2 * self._transported(x, mu)
        if self.unprojected:
            total = total - self.step * jnp.sum(x * full, axis=-1, keepdims=True) * push
        if self.unprojected and self.panel.spreads:
            total = total - self.share * self._radial(x, mu)
        return total

    def _tangent(self, x: Array, mu: Measure) -> Array:
        return mu.space.project(x, self.panel.mean_field(x, mu))

    def _transported(self, x: Array, mu: Measure) -> Array:
        """P d/ds F[mu_s](x_s) along F: the point and all tokens move."""

        def field(x: Array, points: Array) -> Array:
            return self._tangent(x, mu.at(points))

        along = (self._tangent(x, mu), self._tangent(mu.points, mu))
        change = jax.jvp(field, (x, mu.points), along)[1]
        return mu.space.project(x, change)

    def _radial(self, x: Array, mu: Measure) -> Array:
        xi = self.panel.spread(x, mu)
        radial = jnp.sum(xi * x, axis=-1, keepdims=True)
        return mu.space.project(x, jnp.mean(radial * xi, axis=0))

    def check(self, mu: Measure) -> None:
        _check_panel(self.panel, mu)


class HeadNoise(Noise):
    """sqrt(eta/H) int xi(theta) W(dtheta, dt) at the tokens: one white noise for all of them.

    sigma_V root(s) dB with dB n x d, root(s) the symmetric root of s_ij by its eigenvectors, clipped
    at zero (s is singular at beta = 0 and for n > d); beside it one Brownian motion per matrix of the panel
    where V has a mean. The root resolves differences of tokens down to about 1e-8.
    """

    panel: Panel
    scale: Float[Array, ""]  # sqrt(eta/H)
    reading_free: ClassVar[bool] = False

    def brownian_shape(self, mu: Measure) -> tuple[int, ...]:
        return (mu.n * mu.d + (self.panel.A.shape[0] if self.panel.spreads else 0),)

    def amplitude(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        values = self.panel.law.values
        level, vectors = jnp.linalg.eigh(self.panel.attended(x, mu))
        root = (vectors * jnp.sqrt(jnp.clip(level, 0.0))) @ vectors.T
        deviation = 0.0 if values.entries is None else values.scale
        from_values = self.scale * deviation * root
        if not self.panel.spreads:
            return from_values
        count = self.panel.A.shape[0]
        from_scores = self.scale * self.panel.spread(x, mu).swapaxes(0, 1) / jnp.sqrt(count)
        return jnp.concatenate([from_values, from_scores.reshape(mu.n, -1)], axis=1)

    def apply(self, amplitude: Array, increment: Array) -> Array:
        n = amplitude.shape[0]
        count = self.panel.A.shape[0] if self.panel.spreads else 0
        own, common = jnp.split(increment, [increment.shape[0] - count])
        moved = amplitude[:, :n] @ own.reshape(n, -1)
        if not count:
            return moved
        return moved + jnp.einsum("npd,p->nd", amplitude[:, n:].reshape(n, count, -1), common)

    def check(self, mu: Measure) -> None:
        _check_panel(self.panel, mu)


def _check_panel(panel: Panel, mu: Measure) -> None:
    d = panel.A.shape[-1]
    require(isinstance(mu.space, Sphere), f"random heads need tokens on a sphere, got {mu.space}")
    require(mu.d == d, f"the head law was drawn in d={d}, the tokens have d={mu.d}; draw it again")


def ballistic(law: HeadLaw, d: int, panel: int = 256, seed: int = 0) -> Dynamics:
    """X' = F(X): the limit while alpha eta L and eta^2 L are small (2604.01978)."""
    drift = _drift(panel_of(law, d, panel, seed), 0.0, 1, False, True, False)
    return Dynamics(None, drift, label="ballistic random heads")


def modified(
    law: HeadLaw, d: int, step: float, projected: bool = False, panel: int = 256, seed: int = 0
) -> Dynamics:
    """X' = F - (eta/2) grad_F F, second order in eta at the times of layers (2604.01978).

    For layers that move by the whole B, not by P B (`projected=False`), -eta <x, F> F is added.
    """
    drift = _drift(panel_of(law, d, panel, seed), step, 1, True, projected, False)
    return Dynamics(None, drift, label="modified random heads")


def diffusive(
    law: HeadLaw,
    d: int,
    step: float = 1.0,
    heads: int = 1,
    projected: bool = False,
    panel: int = 256,
    seed: int = 0,
) -> Dynamics:
    """The SDE of alpha eta L = O(1), with the modified drift, in the paper's time t = eta layer.

    Under Gaussian heads there is no drift and only eta/H matters: with step = heads = 1 the time is
    tau = (eta^2/H) layer. Solve it with a fixed dt; layer by layer it is dt = eta.
    """
    drawn = panel_of(law, d, panel, seed)
    noise = HeadNoise(drawn, jnp.sqrt(step / heads))
    drift = _drift(drawn, step, heads, law.values.mean is not None, projected, True)
    return Dynamics(None, drift, noise=noise, label="homogenized random heads")


def _drift(
    panel: Panel, step: float, heads: int, modified: bool, projected: bool, noisy: bool
) -> MeanHeads:
    require(step >= 0, f"the step eta must not be negative, got {step}")
    require(heads >= 1, f"heads must be at least 1, got {heads}")
    eta = jnp.asarray(step, dtype=float)
    unprojected = not projected and panel.law.values.mean is not None
    return MeanHeads(panel, eta, eta / heads if noisy else jnp.zeros(()), modified, unprojected)
