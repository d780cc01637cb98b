"""The Fourier sums of the circle by non-uniform fast Fourier transforms (FINUFFT, through jax-finufft).

Cost O(n log(1/tol)) whatever the degree, on a CPU. Real channels travel in pairs, one as the real and
one as the imaginary part. Samples of a batch run one after another (jax-finufft 1.3 cannot be batched
under jax 0.10), and derivatives go through the recurrences (`fallback`).
"""

from __future__ import annotations

import importlib.util

import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jaxtyping import Array, Complex, Float

from .blocks import Tokens
from .plan import SpectralPlan


def available() -> bool:
    """Whether jax-finufft is installed."""
    return importlib.util.find_spec("jax_finufft") is not None


def transformed_moments(tokens: Tokens, plan: SpectralPlan) -> Float[Array, "f m"]:
    """sum_j w_j cos(k phi_j) [v_j, 1] and the same with sines: what `moments` gives."""
    degree, masses = plan.basis.degree, tokens.masses.reshape(-1)
    values = jnp.swapaxes(tokens.values, 0, 1).reshape(-1, masses.size)
    channels = jnp.concatenate([masses * values, masses[None]])

    @sequential_vmap
    def transform(source: Array, angles: Array) -> Array:
        from jax_finufft import nufft1

        return nufft1(2 * degree + 1, source, angles, iflag=1, eps=plan.transform)

    found = transform(_paired(channels), _angles(tokens.keys))
    positive, negative = found[:, degree:], jnp.conj(found[:, degree::-1])
    first, second = (positive + negative) / 2.0, (positive - negative) / 2.0j
    every = jnp.stack([first, second], axis=1).reshape(-1, degree + 1)[: len(channels)]
    return jnp.stack([every.real, every.imag], axis=-1).reshape(len(channels), -1).T


def transformed_sums(
    held: Float[Array, "f m"], queries: Float[Array, "blocks 2 c"], plan: SpectralPlan
) -> Float[Array, "blocks m c"]:
    """The trigonometric polynomials with the weighted moments as coefficients, at every row."""
    degree, channels = plan.basis.degree, held.shape[1]
    cosines, sines = held.T[:, ::2], held.T[:, 1::2]
    # cos k t and sin k t in e^{ikt} and e^{-ikt}; the constant has one term only.
    half = (cosines - 1j * sines) * jnp.where(jnp.arange(degree + 1) == 0, 1.0, 0.5)
    modes = jnp.concatenate([jnp.conj(half[:, :0:-1]), half], axis=1)

    @sequential_vmap
    def transform(source: Array, angles: Array) -> Array:
        from jax_finufft import nufft2

        return nufft2(source, angles, iflag=1, eps=plan.transform)

    sums = transform(_paired(modes), _angles(queries))
    every = jnp.stack([sums.real, sums.imag], axis=1).reshape(-1, sums.shape[-1])[:channels]
    return jnp.swapaxes(every.reshape(channels, queries.shape[0], -1), 0, 1)


def _paired(channels: Array) -> Complex[Array, "pairs k"]:
    """Two channels as one complex one."""
    even = jnp.pad(channels, ((0, len(channels) % 2), (0, 0)))
    return even[::2] + 1j * even[1::2]


def _angles(vectors: Float[Array, "blocks 2 c"]) -> Float[Array, " n"]:
    return jnp.arctan2(vectors[:, 1], vectors[:, 0]).reshape(-1)
