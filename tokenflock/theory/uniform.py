r"""Around the uniform measure sigma_d on S^{d-1}: energies, hemispheres, linear growth rates.

Funk-Hecke: the kernel e^{beta<x,y>}/beta acts on spherical harmonics of degree k as the number

    c_k = Gamma(d/2) (2/beta)^{d/2-1} I_{k+d/2-1}(beta)/beta      (against sigma_d),

and Z0 = beta c_0 = int e^{beta<x,y>} d sigma_d(y). Degree-k perturbations of sigma_d grow at
k(k+d-2) c_k (USA) or k(k+d-2) c_k/Z0 (SA). Bessel functions are exponentially scaled throughout.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ._checks import Array, Convention, chosen, inverse_temperature, sphere_dimension, whole
from ._kinds import SA, USA, Kind, averages, log_speed
from ._special import find_root, log_ive


def log_partition(d: ArrayLike, beta: ArrayLike) -> Array:
    """log Z0, Z0 = int e^{beta<x,y>} d sigma_d(y) = Gamma(d/2)(2/beta)^{d/2-1} I_{d/2-1}(beta).

    d=2: log I_0(beta); d=3: log(sinh(beta)/beta). Finite for all beta > 0 (2312.10794, Prop. 3.4).
    """
    d, beta = sphere_dimension(d), inverse_temperature(beta, positive=True)
    return _log_scaled_eigenvalue(0, d, beta) + np.log(beta) + beta


def energy_uniform(d: ArrayLike, beta: ArrayLike, convention: Convention = "perspective") -> Array:
    """Energy of sigma_d, the minimum over probability measures (2312.10794, Prop. 3.4).

    "perspective": Z0/(2beta), for E = (1/2beta) iint e^{beta<x,y>} (overflows past beta ~ 709);
    "metastability": Z0 e^{-beta}, for iint e^{beta(<x,y>-1)}, whose maximum is 1 (2410.06833
    prints a further 1/(2beta), which its staircase statement cannot have).
    """
    d, beta = sphere_dimension(d), inverse_temperature(beta, positive=True)
    log_hat = _log_scaled_eigenvalue(0, d, beta) + np.log(beta)
    return np.exp(log_hat + _log_energy_scale(beta, convention))


def energy_dirac(beta: ArrayLike, convention: Convention = "perspective") -> Array:
    """Energy of a point mass, the maximum: e^beta/(2beta), or 1 in "metastability" (Prop. 3.4)."""
    return np.exp(_log_energy_scale(inverse_temperature(beta, positive=True), convention))


def energy_iid(
    n: ArrayLike, d: ArrayLike, beta: ArrayLike, convention: Convention = "perspective"
) -> Array:
    """Expected energy of n independent uniform tokens: E[Dirac]/n + (1-1/n) E[sigma_d].

    The diagonal of the double sum in 2312.10794, eq. (3.5), contributes the first term.
    """
    n = whole("n", n, 1, advice="count the tokens")
    spread = energy_uniform(d, beta, convention)
    return energy_dirac(beta, convention) / n + (1 - 1 / n) * spread


def wendel_probability(n: ArrayLike, d: ArrayLike) -> Array:
    """Probability that n uniform points of S^{d-1} share an open hemisphere (Wendel 1962).

    2^{-(n-1)} sum_{k<d} C(n-1,k) (2312.10794, Thm 6.7), here as the regularised incomplete beta
    function I_{1/2}(n-d, d): no large binomials. 1 for n <= d; underflows for n > 1000 and small
    d: use `log_wendel_probability`.
    """
    n, d = whole("n", n, 1, advice="count the points"), whole("d", d, 1, advice="d >= 1")
    return np.where(n <= d, 1.0, special.betainc(np.maximum(n - d, 1), d, 0.5))[()]


def log_wendel_probability(n: ArrayLike, d: ArrayLike) -> Array:
    """log of `wendel_probability`, finite for thousands of points in low dimension."""
    n, d = whole("n", n, 1, advice="count the points"), whole("d", d, 1, advice="d >= 1")

    def one(points: float, dimension: float) -> float:
        if points <= dimension:
            return 0.0
        k = np.arange(min(dimension, points))
        log_binomial = -np.log(points) - special.betaln(points - k, k + 1)
        return float(special.logsumexp(log_binomial) - (points - 1) * np.log(2))

    return np.vectorize(one, otypes=[float])(n, d)[()]


def kernel_eigenvalue(k: ArrayLike, d: ArrayLike, beta: ArrayLike, kind: Kind = USA) -> Array:
    """Funk-Hecke eigenvalue c_k of the interaction potential on degree-k harmonics.

    USA: c_k of e^{beta<x,y>}/beta ("metastability": times e^{-beta}); SA: c_k/Z0 =
    I_{k+d/2-1}(beta)/(beta I_{d/2-1}(beta)), the linearised potential log(int e^{beta<x,y>})/beta.
    Classical (Funk-Hecke; Bessel form as in 2410.23228 for d=2). beta > 0; k = 0 is allowed.
    Perspective USA overflows to inf past beta ~ 709.
    """
    k = whole("k", k, 0, advice="the degree of a harmonic is 0, 1, 2, ...")
    d, beta = sphere_dimension(d), inverse_temperature(beta, positive=True)
    with np.errstate(over="ignore"):
        return np.exp(_log_eigenvalue(k, d, beta, kind))


def growth_rate(k: ArrayLike, d: ArrayLike, beta: ArrayLike, kind: Kind = USA) -> Array:
    """Exponential growth rate k(k+d-2) c_k of degree-k perturbations of the uniform measure.

    USA: k(k+d-2) Gamma(d/2)(2/beta)^{d/2-1} I_{k+d/2-1}(beta)/beta, in d=2: k^2 I_k(beta)/beta;
    SA: k(k+d-2) I_{k+d/2-1}(beta)/(beta I_{d/2-1}(beta)). 2410.23228 (d=2); the authors' notebook
    plots it divided by pi. At beta = 0 only k = 1 grows, at (d-1)/d. Positive for every k: uniform
    is unstable. Perspective USA overflows past beta ~ 709: take `log_growth_rate`.
    """
    with np.errstate(over="ignore"):
        return np.exp(log_growth_rate(k, d, beta, kind))


def log_growth_rate(k: ArrayLike, d: ArrayLike, beta: ArrayLike, kind: Kind = USA) -> Array:
    """log of `growth_rate`, for any beta >= 0 and degree k >= 1 (-inf at beta = 0, k > 1)."""
    k = whole("k", k, 1, advice="degree 0 is the conserved mass")
    d, beta = sphere_dimension(d), inverse_temperature(beta)
    positive = np.where(beta > 0, beta, 1.0)
    rate = np.log(k * (k + d - 2)) + _log_eigenvalue(k, d, positive, kind)
    flat = np.where(k == 1, np.log((d - 1) / d), -np.inf)
    return np.where(beta > 0, rate, flat)[()]


def dominant_mode(d: ArrayLike, beta: ArrayLike) -> np.ndarray:
    """Degree k* >= 1 of the fastest growing mode, the same for SA and USA.

    Argmax of `growth_rate` (2410.23228 for d=2: the number of metastable clusters);
    k* + d/2 - 1 ~ sqrt(2 beta + (d/2-1)^2) for large beta. Returns integers.
    """
    d, beta = sphere_dimension(d), inverse_temperature(beta)

    def one(dimension: float, temperature: float) -> int:
        shift = dimension / 2 - 1
        most = int(2 * np.sqrt(2 * temperature + shift**2) - 2 * shift) + 8
        rates = log_growth_rate(np.arange(1, most + 1), dimension, temperature, SA)
        return int(np.argmax(rates)) + 1

    return np.vectorize(one, otypes=[int])(d, beta)[()]


def transition_beta(k: ArrayLike, d: ArrayLike = 2) -> Array:
    """beta at which the dominant mode passes from k to k+1: growth_rate(k) = growth_rate(k+1).

    Root of (k+1)(k+d-1) I_{k+d/2}(beta) = k(k+d-2) I_{k+d/2-1}(beta); d=2: about k(k+1)/2
    (2410.23228). Relative error 1e-12.
    """
    k, d = whole("k", k, 1, advice="modes are numbered from 1"), sphere_dimension(d)

    def one(degree: float, dimension: float) -> float:
        def advantage(log_beta: float) -> float:
            both = np.array([degree + 1, degree])
            rates = log_growth_rate(both, dimension, np.exp(log_beta), SA)
            return float(rates[0] - rates[1])

        top = float(np.log(4 * (degree + dimension) ** 2))
        return float(np.exp(find_root(advantage, float(np.log(1e-3)), top)))

    return np.vectorize(one, otypes=[float])(k, d)[()]


def ngon_hessian_eigenvalues(
    n: int, beta: ArrayLike, convention: Convention = "perspective"
) -> Array:
    """Eigenvalues m = 0..n-1 (last axis) of the Hessian of the energy at the regular n-gon, d=2.

    lambda_m = n^{-2} sum_{j=1}^{n-1} g(2 pi j/n)(cos(2 pi j m/n) - 1),
    g(x) = (cos x - beta sin^2 x) e^{beta cos x} (2312.10794, section 7), for the energy
    (1/(2 beta n^2)) sum e^{beta cos}; "metastability" multiplies by 2 beta e^{-beta}, the factor
    to n^{-2} sum e^{beta(cos-1)}. A positive one shows that the stationary n-gon is a saddle.
    """
    n = int(whole("n", n, 2, advice="a polygon needs two vertices"))
    beta = inverse_temperature(beta, positive=True)[..., None]
    angle = 2 * np.pi * np.arange(1, n) / n
    scale = np.log(2 * beta) + _log_energy_scale(beta, convention)
    weight = np.exp(beta * (np.cos(angle) - 1) + scale)
    kernel = (np.cos(angle) - beta * np.sin(angle) ** 2) * weight
    return kernel @ (np.cos(np.outer(angle, np.arange(n))) - 1) / n**2


def _log_energy_scale(beta: Array, convention: Convention) -> Array:
    """log of the energy of a point mass."""
    chosen("convention", convention, Convention)
    return beta - np.log(2 * beta) if convention == "perspective" else np.zeros_like(beta)


def _log_scaled_eigenvalue(k: ArrayLike, d: Array, beta: Array) -> Array:
    """log(c_k e^{-beta})."""
    shift = d / 2 - 1
    outer = special.gammaln(d / 2) + shift * np.log(2 / beta) - np.log(beta)
    return outer + log_ive(np.asarray(k) + shift, beta)


def _log_eigenvalue(k: Array, d: Array, beta: Array, kind: Kind) -> Array:
    if averages(kind):
        shift = d / 2 - 1
        return log_ive(k + shift, beta) - log_ive(shift, beta) - np.log(beta)
    return _log_scaled_eigenvalue(k, d, beta) + log_speed(kind, beta)
