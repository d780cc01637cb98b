r"""Two tokens at beta = 0 under random value matrices, exactly: the chain and its diffusion (2604.01978).

Both tokens receive the same (eta/sqrt H) V m, m their mean, so R = <x_1, x_2> is a Markov chain on
[-1, 1]. Its one-layer expectation is an integral over three Gaussian quantities, and the limit in
tau = (eta^2/H) layer is the diffusion with drift (1-R^2)(d-2-R)/(2d) and variance (1-R^2)^2/d. Both act
on polynomials in R, so weak errors are computed without any sampling.
"""

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev
from numpy.polynomial.hermite_e import hermegauss
from scipy.linalg import expm
from scipy.special import roots_genlaguerre

from ._checks import Array

NODES = 32
HERMITE, LAGUERRE = 28, 14


def chain_expectation(
    phi: Callable[[Array], Array], layers: int, step: float, d: int, nodes: int = NODES
) -> chebyshev.Chebyshev:
    """R_0 -> E phi(R_L) of the chain with step = eta/sqrt H: L products with a quadrature matrix.

    d >= 3. Spectral in `nodes` (Chebyshev points); the quadrature is good to 1e-9 for step <= 0.4 and to
    1e-5 at 0.8, where a Gaussian of that size rarely brings a token to the origin.
    """
    points = chebyshev.chebpts1(nodes)
    to_values = np.linalg.inv(chebyshev.chebvander(points, nodes - 1))
    rows = []
    for point in points:
        reached, weight = _one_layer(point, step, d)
        rows.append(weight @ chebyshev.chebvander(reached, nodes - 1))
    transfer = np.stack(rows) @ to_values
    values = np.linalg.matrix_power(transfer, layers) @ phi(points)
    return chebyshev.Chebyshev(to_values @ values)


def _one_layer(R: float, step: float, d: int) -> tuple[Array, Array]:
    """R after one layer at the quadrature points, and their weights.

    With e+ along x_1 + x_2 and e- along x_1 - x_2, tokens are c e+ +- s e-, and the push is Gaussian of
    standard deviation step c/sqrt d in each coordinate; beyond e+ and e- only its square q counts.
    """
    line, on_line = hermegauss(HERMITE)
    square, on_square = roots_genlaguerre(LAGUERRE, (d - 2) / 2 - 1)
    a, b, q = (grid.ravel() for grid in np.meshgrid(line, line, 2 * square, indexing="ij"))
    weight = np.einsum("a,b,q->abq", on_line, on_line, on_square).ravel()
    c, s = np.sqrt((1 + R) / 2), np.sqrt((1 - R) / 2)
    size = step * c / np.sqrt(d)
    along, across, rest = c + size * a, size * b, size**2 * q
    inner = along**2 + across**2 - s**2 + rest
    lengths = [along**2 + (across + sign * s) ** 2 + rest for sign in (1, -1)]
    found = inner / np.sqrt(lengths[0] * lengths[1])
    return found, weight / weight.sum()


def diffusion_expectation(
    phi: Callable[[Array], Array], tau: float, d: int, nodes: int = NODES
) -> chebyshev.Chebyshev:
    """R_0 -> E phi(R(tau)) of the diffusion limit, by collocation of its generator: e^{tau L} phi."""
    points = chebyshev.chebpts1(nodes)
    to_coefficients = np.linalg.inv(chebyshev.chebvander(points, nodes - 1))
    first = np.stack(
        [chebyshev.chebval(points, chebyshev.chebder(c)) for c in to_coefficients.T], 1
    )
    drift = (1 - points**2) * (d - 2 - points) / (2 * d)
    variance = (1 - points**2) ** 2 / d
    generator = drift[:, None] * first + variance[:, None] / 2 * (first @ first)
    return chebyshev.Chebyshev(to_coefficients @ (expm(tau * generator) @ phi(points)))
