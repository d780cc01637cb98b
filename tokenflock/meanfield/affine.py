"""The field of a model at a Gaussian measure: an affine map, so that Gaussians stay Gaussian.

For mu = N(alpha, Sigma) and A = beta K^T Q = beta B^T (scores y^T A x), one head of each kind has

| kind | field at x | source |
|---|---|---|
| softmax | V (alpha + Sigma A x) | 2501.18322 |
| l2, e^{-beta abs(Qx-Ky)^2} | V (alpha + L (Q x - K alpha)) | 2501.18322 |
| Sinkhorn | V (alpha + M (x - alpha)), M = (Sigma - M Sigma M^T) A | 2501.18322, 2110.11773 |
| linear | V (Sigma + alpha alpha^T) A x | second moments |

Softmax tilts the Gaussian by e^{<Ax, y>}, which moves its mean by Sigma A x; l2 conditions it on a noisy
sight Ky of Qx, whence the Kalman gain L = 2 beta Sigma K^T (I + 2 beta K Sigma K^T)^{-1} (no inverse of
Sigma: it may have lost rank, and so may K); Sinkhorn couples it with itself. Kinds and terms say these
fields themselves; others make another field, and the measure is no longer Gaussian.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..kinds.gaussian import Affine, Gaussian
from ..runtime import Scalar


def field(model: Dynamics, t: Scalar, mu: Gaussian) -> Affine:
    """The field of the whole model: heads and terms are added."""
    d = mu.mean.size
    fields = (term.gaussian_field(t, mu) for term in model.parts())
    return sum(fields, Affine(jnp.zeros(d), jnp.zeros((d, d))))


def virial(model: Dynamics, t: Scalar, mu: Gaussian, scaled: Gaussian) -> Float[Array, ""]:
    """int <x, v> dmu over unit^2, for mu and the same measure `scaled` to a unit."""
    return sum((term.gaussian_virial(t, mu, scaled) for term in model.parts()), jnp.zeros(()))


def check_affine(model: Dynamics, d: int) -> None:
    """Refuse terms whose field at a Gaussian is not affine, or that do not fit R^d."""
    for term in model.parts():
        term.check_gaussian(d)
