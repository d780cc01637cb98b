"""Scaled special functions and log-space quadrature that scipy does not offer in this form."""

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike
from scipy import optimize, special

from ._checks import Array


def scaled_ei(log_x: Array) -> Array:
    """e^{-x} Ei(x) for x = e^{log_x} > 0, from log x so that x may underflow.

    x > 50: asymptotic series sum_k k!/x^{k+1} (DLMF 6.12.2), error below e^{-50}.
    """
    x = np.exp(log_x)
    middle = np.clip(x, 1e-17, 50.0)
    tiny = np.euler_gamma + log_x
    value = np.where(x < 1e-17, tiny, np.exp(-middle) * special.expi(middle))
    return np.where(x > 50.0, _factorial_series(x, +1.0), value)


def scaled_e1(x: Array) -> Array:
    """e^{x} E_1(x) for x > 0; x > 50 by the alternating series of DLMF 6.12.1."""
    middle = np.clip(x, None, 50.0)
    value = np.exp(middle) * special.exp1(middle)
    return np.where(x > 50.0, _factorial_series(x, -1.0), value)


def _factorial_series(x: Array, sign: float) -> Array:
    """sum_{k<45} sign^k k!/x^{k+1}, meant for x > 50 (smallest term near k = x)."""
    safe = np.maximum(x, 50.0)
    term = 1.0 / safe
    total = term.copy() if isinstance(term, np.ndarray) else term
    for k in range(1, 45):
        term = term * sign * k / safe
        total = total + term
    return total


def log_ive(order: ArrayLike, x: ArrayLike) -> Array:
    """log(e^{-x} I_order(x)) for order >= 0, x > 0, also where I itself underflows.

    scipy's ive where it is a normal number; below that the power series (order < 60, so x is
    tiny) or the Debye expansion for large order (DLMF 10.41.3), relative error about 1e-13.
    """
    nu, x = np.broadcast_arrays(np.asarray(order, float), np.asarray(x, float))
    scaled = special.ive(nu, x)
    normal = scaled > 1e-290
    value = np.log(np.where(normal, scaled, 1.0))
    if normal.all():
        return value
    small = ~normal & (nu < 60)
    large = ~normal & (nu >= 60)
    value = np.where(small, _log_ive_series(np.where(small, nu, 1), np.where(small, x, 1)), value)
    return np.where(large, _log_ive_debye(np.where(large, nu, 60), np.where(large, x, 60)), value)


def _log_ive_series(nu: Array, x: Array) -> Array:
    term, total = np.ones_like(x), np.ones_like(x)
    for k in range(1, 30):
        term = term * (x * x / 4) / (k * (nu + k))
        total = total + term
    return nu * np.log(x / 2) - special.gammaln(nu + 1) + np.log(total) - x


def _debye_polynomials(count: int) -> list[Polynomial]:
    """U_0..U_{count-1} of DLMF 10.41.9."""
    polynomials = [Polynomial([1.0])]
    for _ in range(count - 1):
        last = polynomials[-1]
        derived = Polynomial([0, 0, 0.5, 0, -0.5]) * last.deriv()
        polynomials.append(derived + (Polynomial([0.125, 0, -0.625]) * last).integ())
    return polynomials


_DEBYE = _debye_polynomials(8)


def _log_ive_debye(nu: Array, x: Array) -> Array:
    z = x / nu
    root = np.hypot(1.0, z)
    exponent = nu * (1.0 / (root + z) + np.log(z) - np.log1p(root))  # root - z without loss
    series = sum(polynomial(1.0 / root) / nu**k for k, polynomial in enumerate(_DEBYE))
    return exponent - 0.5 * np.log(2 * np.pi * nu * root) + np.log(series)


def find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Brent's root of `function` in [low, high], to the last digits."""
    return cast(float, optimize.brentq(function, low, high, xtol=1e-15))


def log_integral(
    log_integrand: Callable[[Array], Array], lower: Array, upper: Array, panels: int
) -> Array:
    """log of int_lower^upper e^{log_integrand(u)} du by composite 20-point Gauss-Legendre.

    The integrand receives points with one extra trailing axis; upper == lower gives -inf.
    """
    nodes, weights = np.polynomial.legendre.leggauss(20)
    unit = ((np.arange(panels)[:, None] + (nodes + 1) / 2) / panels).ravel()
    log_weights = np.tile(np.log(weights / (2 * panels)), panels)
    span = np.asarray(upper - lower)
    points = np.asarray(lower)[..., None] + span[..., None] * unit
    with np.errstate(divide="ignore"):
        log_span = np.log(span)
    return special.logsumexp(log_integrand(points) + log_weights, axis=-1) + log_span
