r"""Noise thresholds of USA and SA on the sphere.

dX_i = (attention field) dt + sqrt(2/kappa) dW_i with spherical Brownian motion (2512.01868);
temperature = 1/kappa is the factor of the Laplacian (2606.05140 writes 1/(2K) for it). Around the
uniform measure, degree-k harmonics grow at k(k+d-2)(c_k - temperature), c_k = `kernel_eigenvalue`.
"""

import numpy as np
from numpy.typing import ArrayLike

from ._checks import Array, bounded, inverse_temperature, sphere_dimension, whole
from ._kinds import USA, Kind, averages
from ._special import find_root, log_ive
from .uniform import growth_rate


def critical_temperature(k: ArrayLike, d: ArrayLike, beta: ArrayLike, kind: Kind = USA) -> Array:
    """Temperature c_k below which degree-k modes grow around the uniform measure.

    USA: Gamma(d/2)(2/beta)^{d/2-1} I_{k+d/2-1}(beta)/beta; SA: I_{k+d/2-1}/(beta I_{d/2-1}).
    k = 1 is the first to lose stability when cooling. At beta = 0: 1/d for k = 1, else 0.
    2412.14813 and 2606.05140 (USA); SA by the same linearisation. Perspective USA is about e^beta and, past
    beta ~ 709, inf: above every temperature of a float (kappa 0); "metastability" divides by e^beta.
    """
    k, d = np.asarray(k, float), np.asarray(d, float)
    return growth_rate(k, d, beta, kind) / (k * (k + d - 2))


def critical_kappa(k: ArrayLike, d: ArrayLike, beta: ArrayLike, kind: Kind = USA) -> Array:
    """Inverse temperature kappa_k = 1/c_k above which degree-k modes grow (2512.01868).

    beta -> 0, k = 1: kappa = d (d = 2: the Kuramoto threshold 2). inf where c_k = 0.
    """
    with np.errstate(divide="ignore"):
        return 1 / critical_temperature(k, d, beta, kind)


def critical_coupling(d: ArrayLike, beta: ArrayLike) -> Array:
    """K_# = beta^{d/2}/(2^{d/2} Gamma(d/2) I_{d/2}(beta)) = kappa_1/2 of USA (2606.05140).

    Convention of that paper: free energy int q log q - K iint (e^{beta<x,y>}-1)/beta, K = kappa/2.
    """
    return critical_kappa(1, d, beta) / 2


def noisy_growth_rate(
    k: ArrayLike, d: ArrayLike, beta: ArrayLike, temperature: ArrayLike, kind: Kind = USA
) -> Array:
    """Growth rate k(k+d-2)(c_k - temperature) of degree-k modes with noise (2606.05140)."""
    temperature = _temperature(temperature)
    k, d = np.asarray(k, float), np.asarray(d, float)
    return growth_rate(k, d, beta, kind) - k * (k + d - 2) * temperature


def order_parameter(kappa: ArrayLike, d: ArrayLike = 2) -> Array:
    """Stationary |mean| of the noisy flow at beta = 0: largest root of r = A_d(kappa r).

    A_d(x) = I_{d/2}(x)/I_{d/2-1}(x); d = 2: r = I_1(kappa r)/I_0(kappa r), the noisy Kuramoto
    model (2512.01868). 0 for kappa <= d; behaves like sqrt((d+2)(kappa-d))/d just above.
    """
    kappa = bounded("kappa", kappa, 0, np.inf, closed="neither", advice="kappa = 1/temperature")
    d = sphere_dimension(d)

    def one(inverse: float, dimension: float) -> float:
        if inverse <= dimension:
            return 0.0

        def excess(x: float) -> float:
            return _log_bessel_ratio(dimension / 2, x) - np.log(x / inverse)

        return find_root(excess, 1e-9, inverse) / inverse

    return np.vectorize(one, otypes=[float])(kappa, d)[()]


def continuity_beta(d: ArrayLike) -> Array:
    """beta_*: the noise transition of USA is continuous iff beta <= beta_* (2606.05140).

    Root of I_{d/2+1}(beta)/I_{d/2}(beta) = 1/d, i.e. c_2/c_1 = 1/d. Above it the clustered state
    takes over before the uniform one loses linear stability.
    """
    d = sphere_dimension(d)

    def one(dimension: float) -> float:
        def excess(beta: float) -> float:
            return _log_bessel_ratio(dimension / 2 + 1, beta) + np.log(dimension)

        return find_root(excess, 1e-3, 10.0)

    return np.vectorize(one, otypes=[float])(d)[()]


def pitchfork_curvature(d: ArrayLike, beta: ArrayLike, kind: Kind = USA) -> Array:
    r"""g in T(r) = c_1 (1 + g r^2 + O(r^4)), the ordered branch of order r = |mean| near its threshold.

    g < 0: the branch leaves towards lower temperature, stable, and the transition is continuous; g > 0: it
    leaves towards higher temperature and is unstable. With rho_k = I_{k+d/2-1}/I_{d/2-1} of beta,

        USA  g = -(d/(d+2)) (rho_1 - d rho_2)/(rho_1 - rho_2)
        SA   g =  (d/(d+2)) ( (d-1) (rho_2 - rho_1^2 - rho_1 rho_2 (1 - rho_1))/(rho_1 - rho_2)
                              + d rho_1^2 - 1 )

    Derived here: q = e^{h p_1 + w p_2 + ...}/Z in orthonormal zonal harmonics has <p_1> = h + t h w +
    k h^3/6 and <p_2> = w + t h^2/2 to third order, t^2 = 2(d-1)/(d+2), k = -6/(d+2), with h, w from the
    potential; r = h/sqrt(d). USA's sign changes at `continuity_beta`, as in 2606.05140; at beta = 0,
    g = -d/(d+2) for both. Independent of the convention. beta >= 0.
    """
    d, beta = np.broadcast_arrays(sphere_dimension(d), inverse_temperature(beta))
    positive = np.where(beta > 0, beta, 1.0)
    floor = log_ive(d / 2 - 1, positive)
    first = np.exp(log_ive(d / 2, positive) - floor)
    second = np.exp(log_ive(d / 2 + 1, positive) - floor)
    if not averages(kind):
        shape = -(first - d * second) / (first - second)
    else:
        pulled = second - first**2 - first * second * (1 - first)
        shape = (d - 1) * pulled / (first - second) + d * first**2 - 1
    return (np.where(beta > 0, shape, -1.0) * d / (d + 2))[()]


def brownian_correlation(
    t: ArrayLike, d: ArrayLike, temperature: ArrayLike, k: ArrayLike = 1
) -> Array:
    """E[Y(X_t)] / Y(X_0) = e^{-k(k+d-2) t temperature} for a harmonic Y of degree k, no drift.

    k = 1: E<X_t, X_0> = e^{-(d-1) t temperature} for dX = sqrt(2 temperature) dW on S^{d-1}
    (classical: eigenvalues of the Laplace-Beltrami operator).
    """
    t = bounded("t", t, 0, np.inf, advice="time runs forward")
    d = sphere_dimension(d)
    k = whole("k", k, 0, advice="the degree of a harmonic is 0, 1, 2, ...")
    return np.exp(-k * (k + d - 2) * t * _temperature(temperature))


def hybrid_threshold(beta: ArrayLike) -> Array:
    """eps^2 = 2 e^{-beta}: noise that turns collapse into antipodality (2601.21942).

    Two tokens, USA, a noise common to both: x <- N(x + (dt + eps dB)(e^beta x + e^{beta R} y)/2).
    Zero of both exponents of `hybrid_exponents`. An Ito statement: a Stratonovich discretisation
    shows no transition.
    """
    return 2 * np.exp(-inverse_temperature(beta))


def hybrid_exponents(noise_squared: ArrayLike, beta: ArrayLike) -> tuple[Array, Array]:
    """Lyapunov exponents of the angle near 0 and of pi minus the angle near pi (2601.21942).

    (-e^beta h, e^{-beta} h), h = 1 - eps^2 e^beta/2, for the model of `hybrid_threshold`.
    """
    beta = inverse_temperature(beta)
    noise = bounded("noise_squared", noise_squared, 0, np.inf, advice="pass eps**2")
    balance = 1 - noise * np.exp(beta) / 2
    return -np.exp(beta) * balance, np.exp(-beta) * balance


def _temperature(value: ArrayLike) -> Array:
    return bounded("temperature", value, 0, np.inf, closed="low", advice="temperature = 1/kappa")


def _log_bessel_ratio(order: float, x: float) -> float:
    """log(I_order(x)/I_{order-1}(x))."""
    return float(log_ive(order, x) - log_ive(order - 1, x))
