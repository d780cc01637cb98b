"""What compiled code must know of a spectral sum: the basis, its degree, its range and its error."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from ...kinds import Kind
from ...masks import Mask
from ..base import Problem, machine_epsilon
from . import series
from .circle import Fourier
from .products import Products, monomials
from .sphere import SphericalHarmonics

Basis = Fourier | SphericalHarmonics | Products

# Tokens whose features are held at once. On a CPU they then stay in the caches (measured on two cores:
# 512 for the circle's 50 features, 256 for 150 to 400, 512 again for the 600 of S^2, where the product of
# matrices takes over, 100 to 200 for its 4000 at beta = 100); an accelerator wants long arrays.
BLOCK, SHORT_BLOCK, LONG_BLOCK = 512, 256, 8192
SHORT_FOR = range(129, 513)
HELD_AT_ONCE = 2**19
# Chunks inside which an ordered sum is dense (measured at n = 10^5: 64 is best on the circle and on S^2).
CHUNK, LONG_CHUNK = 64, 1024
# Rounding inside FINUFFT keeps it from more.
FINEST_TRANSFORM = 2e-14


@dataclasses.dataclass(frozen=True)
class SpectralPlan:
    """A zonal series cut at a degree, with the arguments it serves and the error it makes there."""

    basis: Basis
    # Dimension of the series: that of the sphere, or 2 (Chebyshev) for polynomials in <q, k>.
    d: int
    # First order of the downward recurrence, and the largest argument a beta |q| |k| it serves.
    top: int
    span: float
    # Queries are divided by this length where the basis needs |<q, k>| <= 1.
    radius: float
    tol: float
    # Bound of |error of Z| and |error of the numerator|/max|v|, over e^{x_i} sum_j w_j m_ij, for
    # exponential weights; and its part that is rounding, per unit of the sum of coefficients.
    error: float
    rounding: float
    block: int
    # False for a kind that is its own polynomial, whatever the length of the queries.
    bounded: bool
    # Precision of the non-uniform fast Fourier transforms that take the place of recurrences, if any.
    transform: float | None = None

    @property
    def polynomial(self) -> bool:
        """Whether the series is a polynomial in <q, k> itself, for queries of any length."""
        return isinstance(self.basis, Products)


def series_dimension(d: int) -> int:
    """The dimension whose coefficients are used: S^{d-1} for d = 2, 3, Chebyshev's above."""
    return d if d in (2, 3) else 2


def choose_basis(d: int, degree: int, kind: Kind, own: bool) -> Basis:
    """The features of degree up to `degree`.

    A computed series knows one length of queries; for others it is a polynomial in <q, k>.
    """
    if kind.polynomial_degree is not None:
        return Products(d, kind.polynomial_degree)
    if d == 2 and (own or kind.exponent is not None):
        return Fourier(degree)
    if d == 3 and (own or kind.exponent is not None):
        return SphericalHarmonics(degree)
    return Products(d, degree)


def make_plan(
    problem: Problem, tol: float, degree: int, span: float, reach: float, transform: bool = False
) -> SpectralPlan:
    """The plan of one problem from the choices of a settled `Spectral`."""
    basis = choose_basis(problem.keys.shape[1], degree, problem.kind, problem.own_keys)
    dimension = 2 if isinstance(basis, Products) else problem.keys.shape[1]
    n = problem.keys.shape[0]
    precision = None
    if transform and isinstance(basis, Fourier) and problem.mask.sees_all:
        precision = transform_precision(basis, span, tol)
    extra = 0.0 if precision is None else transform_error(basis, precision)
    return SpectralPlan(
        basis=basis,
        d=dimension,
        top=max(basis.degree, series.smallest_degree(span, dimension, series.NOTHING)) + 2,
        span=span,
        radius=1.0 if problem.own_keys else reach,
        tol=tol,
        error=error_bound(basis, span, n, problem.mask) + extra,
        rounding=rounding(basis, n, problem.mask) + extra,
        block=block_size(n, basis.size),
        bounded=problem.kind.polynomial_degree is None,
        transform=precision,
    )


def transform_precision(basis: Basis, span: float, tol: float) -> float | None:
    """What to ask of the transforms so that their errors take an eighth of tol; None beyond float64."""
    precision = tol * series.evenly_spread(span, 2) / 16.0 / transform_error(basis, 1.0)
    return precision if precision >= FINEST_TRANSFORM else None


def transform_error(basis: Basis, precision: float) -> float:
    """Error of a scaled sum made by two transforms, in units of its total mass.

    FINUFFT keeps the relative Euclidean error of a vector of 2K + 1 moments near the precision asked
    (Barnett, Magland and af Klinteberg, SIAM J. Sci. Comput. 41, 2019: measured, not proved).
    """
    return 2.0 * (2.0 * basis.degree + 1.0) ** 0.5 * precision


def block_size(n: int, features: int) -> int:
    """Tokens whose features are held at once: a divisor of n near the best size spares a padded copy."""
    best = SHORT_BLOCK if features in SHORT_FOR else min(BLOCK, max(64, HELD_AT_ONCE // features))
    best = min(best if jax.default_backend() == "cpu" else LONG_BLOCK, n)
    return next((size for size in range(best, best // 2, -1) if n % size == 0), best)


def chunk_size(n: int) -> int:
    """Tokens of a chunk of an ordered sum."""
    return min(CHUNK if jax.default_backend() == "cpu" else LONG_CHUNK, n)


def error_bound(basis: Basis, span: float, n: int, mask: Mask) -> float:
    """Bound of the error of a scaled sum of n exponential weights, in units of its total mass."""
    dimension = 3 if isinstance(basis, SphericalHarmonics) else 2
    truncation = series.tail(span, dimension, basis.degree)
    return truncation + rounding(basis, n, mask) * amplification(basis, span)


def rounding(basis: Basis, n: int, mask: Mask) -> float:
    """Bound of the rounding error of a scaled sum of n weights, per unit of its coefficients' sum.

    Sums of one block and of all features in any order (blocks are added with compensation), 8 roundings
    per degree in features and coefficients, and the decay of ALiBi, rounded once per chunk.
    """
    unit = machine_epsilon(wide_dtype()) / 2.0
    decays = 0.0 if mask.decay is None else n / chunk_size(n)
    return unit * (block_size(n, basis.size) + decays + basis.size + 8 * (basis.degree + 8))


def amplification(basis: Basis, span: float) -> float:
    """Sum of the coefficients, which is 1 but for powers of u: these are badly conditioned."""
    if not isinstance(basis, Products):
        return 1.0
    weights = series.reference_law(span, 2)[: basis.degree + 1]
    return float(np.sum(np.abs(weights @ monomials(basis.degree)[: len(weights)])))


def wide_dtype() -> str:
    """Sums run in float64 where JAX allows it, whatever the tokens are stored in."""
    return "float64" if jax.config.read("jax_enable_x64") else "float32"
