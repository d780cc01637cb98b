r"""Sinkformers (2110.11773): normalising rows and columns, the energy that falls, the heat equation.

Scores s(x, y) = x^T B y. K^0 = e^s, K^1 = softmax (rows sum to one), K^inf = e^{s - phi(x) - psi(y)} with
rows and columns that do, reached by normalising them in turn. For symmetric B (then phi = psi) and W_V = -B

    F_0 = (1/2) iint K^0 dmu dmu                             falls along the flow of K^0,
    F_inf = -(1/2) iint K^inf log(K^inf/K^0) = int phi dmu   falls along the flow of K^inf:

dF_0/dmu = int K^0(., y) dmu(y) and dF_inf/dmu = phi up to a constant, both with the gradient B int K y dmu;
of phi because phi(x) = log int e^{s - psi} dmu. The K^1 field -B int K^1 y dmu is minus the gradient of
log int K^0(., y) dmu(y), whose derivative in mu, K^1(x, y), is not symmetric in x and y: it has no energy.

For B = I/eps, K^inf = a(x) N_eps(x - y) a(y) with a(x) (N_eps * (a rho))(x) = 1, hence a ~ rho^{-1/2}, and
E[y|x] - x = eps grad log(N_eps * (a rho)) = (eps/2) grad log rho + O(eps^2); a Gaussian kernel with rows that
sum to one has eps grad log(N_eps * rho). The flows

    x' = -(2/eps) (E_inf[y|x] - x),    x' = -(1/eps) (E_gauss[y|x] - x)

tend to d_t rho = Delta rho. On Gaussians every eigenvalue S of the covariance moves alone, as solved below.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from ...theory._checks import Array, bounded, real, whole

SOLVED = 1e-9


def alternating(scores: ArrayLike, steps: int) -> Array:
    """K after `steps` normalisations of e^scores, rows first: 0 none, 1 softmax, 5 in the authors' models.

    In the log domain; an odd number ends with rows that sum to one. scores (..., n, n).
    """
    logs = _scores(scores)
    for step in range(int(whole("steps", steps, 0))):
        logs = logs - _log_sum(logs, axis=-1 - step % 2, keepdims=True)
    return np.exp(logs)


def alternation_rate(doubly_stochastic: ArrayLike) -> float:
    """Factor by which a row and a column normalisation together shrink the error, in the end.

    Potentials near the limit K obey f <- -K g, g <- -K^T f: the square of K's second singular value
    (Knight 2008).
    """
    return float(np.linalg.svd(_scores(doubly_stochastic), compute_uv=False)[1] ** 2)


def coupling_potential(scores: ArrayLike, masses: ArrayLike) -> Array:
    """phi_i = log sum_j w_j e^{s_ij - phi_j}: the potential of K^inf for symmetric scores.

    By Newton's method (scipy), whose Jacobian is I + K: no alternation of normalisations.
    """
    s, w = _scores(scores), real("masses", masses)
    if not np.allclose(s, s.T, rtol=0, atol=1e-12 * max(1.0, float(np.abs(s).max()))):
        raise ValueError(
            "one potential needs symmetric scores; symmetrise them, or use alternating"
        )

    def residual(phi: Array) -> tuple[Array, Array]:
        exponent = s - phi + np.log(w)
        return phi - _log_sum(exponent, axis=1), np.eye(len(w)) + special.softmax(exponent, axis=1)

    start = _log_sum(s + np.log(w), axis=1) / 2
    found = np.asarray(optimize.root(residual, start, jac=True, tol=1e-14).x)
    # scipy may call 1e-15 no success where 1e-14 was asked for: the equation itself decides.
    error = float(np.max(np.abs(residual(found)[0])))
    if not error < SOLVED:
        raise ValueError(f"Newton's method left an error of {error:.2g}; use smaller scores")
    return found


def coupling_energy(scores: ArrayLike, masses: ArrayLike) -> float:
    """F_inf = int phi dmu for symmetric scores (2110.11773)."""
    return float(real("masses", masses) @ coupling_potential(scores, masses))


def kernel_energy(scores: ArrayLike, masses: ArrayLike) -> float:
    """F_0 = (1/2) sum_ij w_i w_j e^{s_ij} (2110.11773)."""
    w = real("masses", masses)
    return float(w @ np.exp(_scores(scores)) @ w) / 2


def softmax_curl(x: ArrayLike, y: ArrayLike, b: float = 1.0) -> Array:
    """d v_y/dx - d v_x/dy of two equal tokens on a line under softmax attention with W_V = -B = -b.

    v_x = -b (x + q (y - x)), q = 1/(1 + e^{-b x (y - x)}) the weight of the other token. A Wasserstein
    gradient flow of two equal masses is a gradient in the plane (x, y), whose curl is 0.
    """
    x, y = real("x", x), real("y", y)

    def pull(here: Array, other: Array) -> Array:
        """-d v_here/d other."""
        gap = other - here
        weight = special.expit(b * here * gap)
        return b * (weight + gap * weight * (1 - weight) * b * here)

    return pull(x, y) - pull(y, x)


# --- small bandwidths: Gaussians ---


def sinkhorn_shift(variance: ArrayLike, bandwidth: ArrayLike) -> Array:
    """Slope of E[y|x] - x under K^inf with scores x y/eps: sqrt(1 + u^2) - u - 1, u = eps/(2 S).

    = -eps/(2 S) + eps^2/(8 S^2) - ... for N(0, S); the case D = S/eps of `sinkhorn_correlation`.
    """
    u = _positive("bandwidth", bandwidth) / (2 * _positive("variance", variance))
    return -u + u**2 / (1 + np.hypot(1.0, u))


def softmax_shift(variance: ArrayLike, bandwidth: ArrayLike) -> Array:
    """Slope of E[y|x] - x under a row-normalised Gaussian kernel of variance eps: -eps/(S + eps)."""
    eps, S = _positive("bandwidth", bandwidth), _positive("variance", variance)
    return -eps / (S + eps)


def sinkhorn_heat_variance(t: ArrayLike, variance: ArrayLike, bandwidth: ArrayLike) -> Array:
    """S(t) of x' = -(2/eps)(E_inf[y|x] - x): S' = 2 - eps/(S + sqrt(S^2 + eps^2/4)), below S_0 + 2t.

    With z = (2S + sqrt(4 S^2 + eps^2))/eps the time is (eps/8)(z - log z + 2 log(z - 1)) plus a constant;
    solved for log(z - 1), so that S keeps its digits at every size: S = eps q(2 + q)/(4(1 + q)), q = z - 1.
    """

    def log_excess(S: float, eps: float) -> float:
        r = 2 * S / eps
        return float(np.log(r + r * (r / (1 + np.hypot(r, 1.0)))))

    def clock(log_q: float) -> float:
        q = np.exp(log_q)
        return q - np.log1p(q) + 2 * log_q

    def one(t: float, S: float, eps: float) -> float:
        if t == 0 or not np.isfinite(8 * (S + 2 * t) / eps):
            # So small a bandwidth is the heat equation itself, to rounding.
            return S + 2 * t
        low = log_excess(S, eps)
        late = clock(low) + 8 * t / eps
        # Rounding may leave the clock of S + 2t a little early.
        bracket = (low, log_excess(S + 2 * t, eps) + 1e-9)
        found = optimize.root_scalar(lambda x: clock(x) - late, bracket=bracket, xtol=1e-15)
        q = np.exp(found.root)
        return min(eps * (q / (1 + q) * (2 + q)) / 4, S + 2 * t)

    return np.vectorize(one, otypes=[float])(*_heat_arguments(t, variance, bandwidth))


def softmax_heat_variance(t: ArrayLike, variance: ArrayLike, bandwidth: ArrayLike) -> Array:
    """S(t) of x' = -(1/eps)(E_gauss[y|x] - x): S' = 2S/(S + eps), so S + eps log S grows by 2t.

    = eps omega((S_0 + 2t)/eps + log(S_0/eps)) with Wright's omega.
    """
    times, S, eps = _heat_arguments(t, variance, bandwidth)
    return eps * special.wrightomega((S + 2 * times) / eps + np.log(S / eps))


def heat_deficit_bound(t: ArrayLike, variance: ArrayLike, bandwidth: ArrayLike) -> Array:
    """S_0 + 2t - S(t) <= (eps/(2c)) log(1 + c t/S_0), c = 2 - eps/(2 S_0), for `sinkhorn_heat_variance`.

    From S' >= 2 - eps/(2S) and S >= S_0 + c t; needs eps < 4 S_0.
    """
    times, S, eps = _heat_arguments(t, variance, bandwidth)
    c = bounded(
        "2 - eps/(2 S)", 2 - eps / (2 * S), 0, closed="neither", advice="use a smaller bandwidth"
    )
    return eps / (2 * c) * np.log1p(c * times / S)


def _heat_arguments(
    t: ArrayLike, variance: ArrayLike, bandwidth: ArrayLike
) -> tuple[Array, Array, Array]:
    times = bounded("t", t, 0.0, np.inf, closed="low")
    return times, _positive("variance", variance), _positive("bandwidth", bandwidth)


def _positive(name: str, value: ArrayLike) -> Array:
    return bounded(name, value, 0.0, np.inf, closed="neither", advice="it must be positive")


def _log_sum(logs: Array, axis: int, keepdims: bool = False) -> Array:
    return np.asarray(special.logsumexp(logs, axis=axis, keepdims=keepdims))


def _scores(scores: ArrayLike) -> Array:
    array = real("scores", scores)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"scores must be (..., n, n), got shape {array.shape}; give one per pair")
    return array
