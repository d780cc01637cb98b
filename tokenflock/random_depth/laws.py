"""Laws of a random head theta = (V, A), and exact draws of what a layer needs from it (2604.01978).

A head moves a token z by B_theta[mu](z) = V m_A[mu](z), m the softmax barycentre with scores
beta <A z, y>. A layer needs V m_A at its own n tokens only, and given the tokens these are Gaussian
where V and the factors of A are: `gaussian_image` draws them from n x n numbers instead of d x d,
in the same law. One V and one A serve all tokens of a layer: their noise is common.
"""

from __future__ import annotations

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from ..errors import require
from ..runtime import ArrayLike, is_traced
from ..space import normalise


def gaussian_image(key: Array, x: Float[Array, "n p"], columns: int) -> Float[Array, "n columns"]:
    """x G with G a p x columns matrix of independent N(0, 1): exact in law, all rows from one G.

    The rows are jointly Gaussian with covariance x x^T = R^T R, R of the QR factorisation of x^T; so
    for n < p it draws R^T Z with Z only n x columns. Unlike a Cholesky factor, R exists when tokens
    coincide (beta = 0), and unlike the root of x x^T by its eigenvectors it keeps differences of rows
    to rounding, not to its square root, so that a collapsing pair is followed down to 1e-16.
    """
    n, p = x.shape
    if n >= p:
        return x @ jr.normal(key, (p, columns), dtype=jnp.float64)
    root = jnp.linalg.qr(x.T, mode="r").T
    return root @ jr.normal(key, (n, columns), dtype=jnp.float64)


class Entries(eqx.Module):
    """Law of one matrix entry: centred, variance one, sub-Gaussian."""

    @abc.abstractmethod
    def sample(self, key: Array, shape: tuple[int, ...]) -> Array:
        """Independent draws."""

    def image(self, key: Array, x: Float[Array, "n p"], columns: int) -> Array:
        """x G with G of such entries."""
        return x @ self.sample(key, (x.shape[1], columns))


class Normal(Entries):
    """N(0, 1): assumption (G) of 2604.01978."""

    def sample(self, key: Array, shape: tuple[int, ...]) -> Array:
        return jr.normal(key, shape, dtype=jnp.float64)

    def image(self, key: Array, x: Float[Array, "n p"], columns: int) -> Array:
        return gaussian_image(key, x, columns)


class Signs(Entries):
    """+1 or -1 with probability 1/2 each."""

    def sample(self, key: Array, shape: tuple[int, ...]) -> Array:
        return jr.rademacher(key, shape, dtype=jnp.float64)


class Flat(Entries):
    """Uniform on [-sqrt 3, sqrt 3]."""

    def sample(self, key: Array, shape: tuple[int, ...]) -> Array:
        return jr.uniform(key, shape, dtype=jnp.float64, minval=-(3**0.5), maxval=3**0.5)


def _check_mean(name: str, mean: Array | None, d: int) -> None:
    """A mean that is a matrix must be one of R^d."""
    fits = mean is None or mean.ndim == 0 or mean.shape == (d, d)
    shape = None if mean is None else mean.shape
    require(fits, f"the mean of {name} is a matrix of shape {shape}, the tokens have d={d}")


def matrix_of(mean: Array | None, d: int) -> Float[Array, "d d"]:
    """A given mean as a matrix: None is zero, a number that multiple of the identity."""
    if mean is None:
        return jnp.zeros((d, d))
    return mean * jnp.eye(d) if mean.ndim == 0 else mean


def _mean(name: str, value: ArrayLike | None) -> Array | None:
    if value is None:
        return None
    array = jnp.asarray(value, dtype=float)
    square = array.ndim == 0 or (array.ndim == 2 and array.shape[0] == array.shape[1])
    require(square, f"the mean of {name} must be a number or a d x d matrix, got {array.shape}")
    return array


def _scale(name: str, value: ArrayLike) -> Array:
    array = jnp.asarray(value, dtype=float)
    require(array.ndim == 0, f"{name} must be one number, got shape {array.shape}")
    if not is_traced(array):
        require(bool(jnp.isfinite(array) & (array >= 0)), f"{name} must be >= 0, got {value}")
    return array


class Values(eqx.Module):
    """V = EV + scale Z with independent entries; `entries=None` is the deterministic V = EV.

    `common=False` draws another V for every token. No Transformer does: it is the control that shows
    what sharing the weights is responsible for.
    """

    scale: Float[Array, ""]
    mean: Float[Array, "d d"] | Float[Array, ""] | None
    entries: Entries | None
    common: bool = eqx.field(static=True)

    def __init__(
        self,
        scale: ArrayLike,
        mean: ArrayLike | None = None,
        entries: Entries | None = None,
        common: bool = True,
    ):
        self.scale = _scale("the scale of V", scale)
        self.mean, self.entries, self.common = _mean("V", mean), entries, common

    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        """One matrix."""
        mean = matrix_of(self.mean, d)
        return (
            mean if self.entries is None else mean + self.scale * self.entries.sample(key, (d, d))
        )

    def total(self, key: Array, m: Float[Array, "heads n d"]) -> Float[Array, "n d"]:
        """sum_h V_h m_h of all tokens, from independent V_h."""
        heads, n, d = m.shape
        drift = self.mean_image(jnp.sum(m, axis=0))
        if self.entries is None:
            return drift
        if not self.common:
            lengths = jnp.sqrt(jnp.sum(m**2, axis=(0, 2)))[:, None]
            return drift + self.scale * lengths * self.entries.sample(key, (n, d))
        side_by_side = m.swapaxes(0, 1).reshape(n, heads * d)
        return drift + self.scale * self.entries.image(key, side_by_side, d)

    def mean_image(self, m: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """EV m_i."""
        return (
            m @ matrix_of(self.mean, m.shape[-1]).T if self.mean is not None else jnp.zeros_like(m)
        )


class Scores(eqx.Module):
    """Law of A, through which token i scores token k: <A x_i, x_k>."""

    @abc.abstractmethod
    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        """One matrix."""

    @abc.abstractmethod
    def logits(self, key: Array, x: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """<A x_i, x_k> of all pairs, with one A."""

    @abc.abstractmethod
    def images(self, key: Array, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """A x_i of all tokens, with one A."""


class ProductScores(Scores):
    """A = EA + W W'^T with independent entries of standard deviation `scale` (2604.01978, (G)).

    beta acts through beta_eff = beta d scale^2; scale^2 = 1/d makes it beta.
    """

    scale: Float[Array, ""]
    mean: Float[Array, "d d"] | Float[Array, ""] | None
    entries: Entries

    def __init__(
        self, scale: ArrayLike, mean: ArrayLike | None = None, entries: Entries | None = None
    ):
        self.scale, self.mean = _scale("the scale of W and W'", scale), _mean("A", mean)
        self.entries = Normal() if entries is None else entries

    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        left, right = self.entries.sample(key, (2, d, d))
        return matrix_of(self.mean, d) + self.scale**2 * left @ right.T

    def logits(self, key: Array, x: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """(X W')(X W)^T: O(n d^2) at most, A is never formed."""
        # X [W W'] is one image: random bits are most of the cost of a layer, and of compiling it.
        one, other = jnp.split(self.entries.image(key, x, 2 * x.shape[1]), 2, axis=1)
        return self.scale**2 * other @ one.T + _mean_logits(self.mean, x)

    def images(self, key: Array, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        first, second = jr.split(key)
        inner = self.entries.image(first, x, x.shape[1])
        random = self.scale**2 * self.entries.image(second, inner, x.shape[1])
        return random + x @ matrix_of(self.mean, x.shape[1]).T


class MatrixScores(Scores):
    """A = EA + G with one matrix G of independent entries of standard deviation `scale`."""

    scale: Float[Array, ""]
    mean: Float[Array, "d d"] | Float[Array, ""] | None
    entries: Entries

    def __init__(
        self, scale: ArrayLike, mean: ArrayLike | None = None, entries: Entries | None = None
    ):
        self.scale, self.mean = _scale("the scale of A", scale), _mean("A", mean)
        self.entries = Normal() if entries is None else entries

    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        return matrix_of(self.mean, d) + self.scale * self.entries.sample(key, (d, d))

    def logits(self, key: Array, x: Float[Array, "n d"]) -> Float[Array, "n n"]:
        return self.images(key, x) @ x.T

    def images(self, key: Array, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        random = self.scale * self.entries.image(key, x, x.shape[1])
        return random + x @ matrix_of(self.mean, x.shape[1]).T


class FixedScores(Scores):
    """The same A in every layer; a number is that multiple of the identity."""

    mean: Float[Array, "d d"] | Float[Array, ""] | None

    def __init__(self, mean: ArrayLike = 1.0):
        self.mean = _mean("A", mean)

    def sample(self, key: Array, d: int) -> Float[Array, "d d"]:
        return matrix_of(self.mean, d)

    def logits(self, key: Array, x: Float[Array, "n d"]) -> Float[Array, "n n"]:
        return _mean_logits(self.mean, x)

    def images(self, key: Array, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return x @ matrix_of(self.mean, x.shape[1]).T


def _mean_logits(mean: Array | None, x: Float[Array, "n d"]) -> Array:
    return jnp.zeros(()) if mean is None else x @ matrix_of(mean, x.shape[1]).T @ x.T


class Attending(eqx.Module):
    """What a token's scores average: m_A[mu](z)."""

    @abc.abstractmethod
    def sampled(self, scores: Scores, key: Array, x: Array, log_weights: Array) -> Array:
        """m_A(x_i) of all tokens x (n, d), A drawn by `scores`."""

    @abc.abstractmethod
    def given(self, A: Array, z: Array, x: Array, log_weights: Array) -> Array:
        """m_A(z) at any points z (m, d), with the matrix A and the tokens x."""


class AmongTokens(Attending):
    """The softmax barycentre sum_k softmax_k(beta <A z, x_k>) x_k of the tokens themselves."""

    beta: Float[Array, ""]

    def __init__(self, beta: ArrayLike):
        self.beta = _scale("beta", beta)

    def sampled(self, scores: Scores, key: Array, x: Array, log_weights: Array) -> Array:
        logits = jnp.broadcast_to(scores.logits(key, x), (x.shape[0], x.shape[0]))
        return self._average(logits, x, log_weights)

    def given(self, A: Array, z: Array, x: Array, log_weights: Array) -> Array:
        return self._average(z @ A.T @ x.T, x, log_weights)

    def _average(self, logits: Array, x: Array, log_weights: Array) -> Array:
        return jax.nn.softmax(self.beta * logits + log_weights, axis=-1) @ x


class FullSupport(Attending):
    """beta = infinity among a measure that charges every open set of the sphere: m = A z/|A z|.

    The low-temperature limit of 2604.01978: the tokens followed are probes in a crowd of all others.
    """

    def sampled(self, scores: Scores, key: Array, x: Array, log_weights: Array) -> Array:
        return normalise(scores.images(key, x))

    def given(self, A: Array, z: Array, x: Array, log_weights: Array) -> Array:
        return normalise(z @ A.T)


class DrawnHeads(NamedTuple):
    """The matrices of one layer, for tokens that must all meet the same ones."""

    V: Float[Array, "heads d d"]
    A: Float[Array, "heads d d"]


class HeadLaw(eqx.Module):
    """rho*: the law of theta = (V, A), with what its scores average."""

    values: Values
    scores: Scores
    attending: Attending

    # The dimension that the scales were chosen for, where they were.
    d: int | None = eqx.field(static=True, default=None)

    def check(self, d: int) -> None:
        """Whether the law is one of heads in R^d."""
        require(
            self.d in (None, d),
            f"the law has the scales of d={self.d}, the tokens have d={d}; make it for d={d}",
        )
        _check_mean("V", self.values.mean, d)
        _check_mean("A", getattr(self.scores, "mean", None), d)

    @staticmethod
    def gaussian(
        d: int, beta: ArrayLike, sigma_V: float | None = None, sigma_A: float | None = None
    ) -> HeadLaw:
        """Assumption (G): V_ij ~ N(0, sigma_V^2), A = W W'^T; both scales d^{-1/2} unless given.

        At beta = 0 (a number) no score is drawn at all.
        """
        _check_dimension(d)
        flat = not is_traced(beta) and bool(jnp.all(jnp.asarray(beta) == 0))
        return HeadLaw(
            Values(d**-0.5 if sigma_V is None else sigma_V, entries=Normal()),
            FixedScores() if flat else ProductScores(d**-0.5 if sigma_A is None else sigma_A),
            AmongTokens(beta),
            d,
        )

    @staticmethod
    def deterministic(beta: ArrayLike, V: ArrayLike = 1.0, A: ArrayLike = 1.0) -> HeadLaw:
        """The same V and A in every layer: the usual SA for V = A = I."""
        return HeadLaw(Values(0.0, mean=V), FixedScores(A), AmongTokens(beta))

    @staticmethod
    def zero_temperature(d: int, factors: int = 2) -> HeadLaw:
        """beta = infinity in a crowd, A = W W'^T (two factors) or one Gaussian matrix."""
        require(factors in (1, 2), f"A has one or two Gaussian factors, got factors={factors}")
        _check_dimension(d)
        scores = ProductScores(1.0) if factors == 2 else MatrixScores(1.0)
        return HeadLaw(Values(d**-0.5, entries=Normal()), scores, FullSupport(), d)

    def displacement(
        self, key: Array, x: Float[Array, "n d"], log_weights: Float[Array, " n"], heads: int
    ) -> Float[Array, "n d"]:
        """(1/H) sum_h B_{theta_h}[mu](x_i) of all tokens, fresh heads, exact in law."""
        scoring, valuing = jr.split(key)
        draw = jax.vmap(lambda k: self.attending.sampled(self.scores, k, x, log_weights))
        return self.values.total(valuing, draw(jr.split(scoring, heads))) / heads

    def draw(self, key: Array, d: int, heads: int) -> DrawnHeads:
        """The matrices of one layer."""
        self.check_common("matrices for all tokens of a layer")
        scoring, valuing = (jr.split(part, heads) for part in jr.split(key))
        A = jax.vmap(lambda k: self.scores.sample(k, d))(scoring)
        return DrawnHeads(jax.vmap(lambda k: self.values.sample(k, d))(valuing), A)

    def check_common(self, what: str) -> None:
        """V must be one for all tokens."""
        require(
            self.values.common,
            f"{what} need one V for all tokens, and Values(common=False) draws one for each; run "
            "random_chains without quenched, or leave out common=False",
        )

    def moved_by(
        self, drawn: DrawnHeads, x: Float[Array, "n d"], log_weights: Float[Array, " n"]
    ) -> Float[Array, "n d"]:
        """(1/H) sum_h V_h m_{A_h}(x_i) with given matrices."""
        m = jax.vmap(lambda A: self.attending.given(A, x, x, log_weights))(drawn.A)
        return jnp.einsum("hnd,hed->ne", m, drawn.V) / drawn.V.shape[0]


def _check_dimension(d: int) -> None:
    require(d >= 2, f"the sphere S^(d-1) needs d >= 2, got d={d}")
