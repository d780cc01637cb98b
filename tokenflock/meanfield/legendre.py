"""Orthonormal polynomials of spheres and their Gauss nodes, as tables of numbers.

u = <x, e_1> of a uniform point x of S^{d-1} has the density (1-u^2)^{(d-3)/2}/B(1/2, (d-1)/2). Its
orthonormal polynomials p_l (Gegenbauer; Legendre for d = 3, Chebyshev for d = 2) obey

    u p_l = b_{l+1} p_{l+1} + b_l p_{l-1},   b_l^2 = l(l+d-3)/((2l+d-2)(2l+d-4)),   b_1^2 = 1/d,

(Szego, Orthogonal Polynomials, 4.5), run upwards: it is stable on [-1, 1] and nothing overflows, since
|p_l| <= p_l(1) = sqrt(number of harmonics of degree l).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh_tridiagonal


def recurrence(d: int, count: int) -> np.ndarray:
    """b_1, ..., b_count."""
    degree = np.arange(1.0, count + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = degree * (degree + d - 3) / ((2 * degree + d - 2) * (2 * degree + d - 4))
    squares[:1] = 1.0 / d
    return np.sqrt(squares)


def gegenbauer(d: int, degree: int, u: np.ndarray) -> np.ndarray:
    """p_l(u) for l = 0..degree, as (degree + 1, len(u))."""
    b = recurrence(d, degree + 1)
    table = np.zeros((degree + 1, len(u)))
    table[0] = 1.0
    before = np.zeros_like(u)
    for k in range(degree):
        table[k + 1] = (u * table[k] - (b[k - 1] * before if k else 0.0)) / b[k]
        before = table[k]
    return table


def gegenbauer_slopes(d: int, degree: int, u: np.ndarray) -> np.ndarray:
    """p_l'(u) = sqrt(l(l+d-2) d/(d-1)) q_{l-1}(u), q the polynomials of dimension d + 2."""
    slopes = np.zeros((degree + 1, len(u)))
    k = np.arange(1.0, degree + 1)[:, None]
    if degree:
        raised = gegenbauer(d + 2, degree - 1, u)
        slopes[1:] = np.sqrt(k * (k + d - 2) * d / (d - 1)) * raised
    return slopes


def gauss(d: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (summing to one) that integrate degree 2 count - 1 exactly.

    Nodes are the eigenvalues of the Jacobi matrix (Golub and Welsch 1969). The weights are Christoffel's
    1/sum_l p_l^2: those near the poles are tiny for large d (10^-100 and less), and the squares of
    eigenvectors would have no digit of them right.
    """
    if d == 1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    nodes = np.asarray(
        eigh_tridiagonal(np.zeros(count), recurrence(d, count - 1), eigvals_only=True)
    )
    nodes = (nodes - nodes[::-1]) / 2
    weights = 1.0 / np.sum(gegenbauer(d, count - 1, nodes) ** 2, axis=0)
    return nodes, weights / np.sum(weights)


def associated_legendre(degree: int, u: np.ndarray) -> np.ndarray:
    """P_lm(u) as (m, l, len(u)), zero for l < m, with int P_lm^2 du/2 = 1 for every l >= m >= 0.

    P_mm = sqrt((2m+1)/(2m)) sin(theta) P_{m-1,m-1}, and from there up in the degree,
    P_lm = e_l (u P_{l-1,m} - P_{l-2,m}/e_{l-1}) with e_l = sqrt((4l^2-1)/(l^2-m^2)).
    """
    size = degree + 1
    table = np.zeros((size, size, len(u)))
    sine = np.sqrt((1 - u) * (1 + u))
    table[0, 0] = 1.0
    for m in range(1, size):
        table[m, m] = np.sqrt((2 * m + 1) / (2 * m)) * sine * table[m - 1, m - 1]
    for k in range(1, size):
        m = np.arange(k)[:, None]
        here = np.sqrt((4.0 * k**2 - 1) / (k**2 - m**2))
        table[:k, k] = here * u * table[:k, k - 1]
        if k > 1:
            before = np.sqrt((4.0 * (k - 1) ** 2 - 1) / ((k - 1) ** 2 - m[:-1] ** 2))
            table[: k - 1, k] -= here[:-1] / before * table[: k - 1, k - 2]
    return table


def associated_slopes(table: np.ndarray, u: np.ndarray) -> np.ndarray:
    """dP_lm/dtheta at u = cos theta: (l u P_lm - sqrt((2l+1)(l^2-m^2)/(2l-1)) P_{l-1,m})/sin theta."""
    size = table.shape[0]
    k, m = np.arange(size)[None, :, None], np.arange(size)[:, None, None]
    below = np.concatenate([np.zeros_like(table[:, :1]), table[:, :-1]], axis=1)
    factor = np.sqrt(np.maximum((2 * k + 1) * (k**2 - m**2) / np.maximum(2 * k - 1, 1), 0.0))
    return (k * u * table - factor * below) / np.sqrt((1 - u) * (1 + u))
