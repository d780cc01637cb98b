r"""Causal attention with ALiBi on the circle: what the last token remembers of an early one (2605.09213).

Tokens theta_1..theta_N, position s = j/N, kernel w = e^{beta cos}, bias `slope` (lambda):

    theta_j' = Z_j^{-1} sum_{k<j} e^{-lambda (j-k)/N} w'(theta_j - theta_k),   Z_j the sum of the weights.

Uniform independent tokens stay uniform to leading order; token s then depends on token s0 < s through
N E e^{in(theta_s(t) - theta_s0(0))} -> g_a(t, s; s0), a = a_n = n^2 I_n(beta), which solves

    d_t g = a ( k(s, s0) + int_{s0}^s k(s, s') g(t, s') ds' ),   g(0) = 0,

with the graphon k. In the variable Y = int k(s', s') ds' from s0 to s it is a Bessel function. All
Fourier coefficients here are normalised, (1/2pi) int; the paper prints the integral without 1/2pi but
computes with it (otherwise every a_n would be 2 pi times larger).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from ._checks import Array, bounded, inverse_temperature, real, whole
from ._special import log_ive


class Head(NamedTuple):
    """One attention head of a signed combination of profiles: its weight, beta and slope."""

    weight: float
    beta: float
    slope: float


DOUBLE_WELL = (
    Head(1.0, 0.2, 3.0),
    Head(-27.519314453632965, 0.2, 0.25),
    Head(-1.5515192155322617, 0.5, 0.25),
    Head(3.9262326774050965e-06, 3.0, 2.0),
)
"""Heads whose signed profile at t = 1.5, words = 8 has two wells of equal depth (authors' script)."""
DOUBLE_WELL_TIME = 1.5

# Below this argument I_1(z)/(z/2) is its series to rounding (the next term is z^6/9216).
SERIES_BELOW = 1e-3
# log s0 at which profiles are scanned for their minima, finely where all but tiny times have theirs.
FINE_SCAN = float(np.log(1e-12))
FINE = np.linspace(FINE_SCAN, 0.0, 4001)


def graphon(s: ArrayLike, earlier: ArrayLike, slope: ArrayLike) -> Array:
    """k(s, s') = lambda e^{-lambda(s-s')}/(1 - e^{-lambda s}) for s' < s, else 0 (2605.09213).

    The weight of position s' in the force on s: int_0^s k(s, s') ds' = 1. 1/s for lambda = 0; any sign
    of lambda. 0 < s <= 1, 0 <= s' <= 1.
    """
    s, earlier, slope = _position("s", s), _earlier(earlier), _slope(slope)
    return np.where(earlier < s, _weight(s, np.minimum(earlier, s), slope), 0.0)[()]


def _weight(s: Array, earlier: Array, slope: Array) -> Array:
    """The formula of `graphon` for s' <= s."""
    return np.exp(_log_weight(s, earlier, slope))


def _log_weight(s: Array, earlier: Array, slope: Array) -> Array:
    """log k(s, s') for s' <= s, with exponents at most 0 for either sign of lambda."""
    size = np.abs(slope)
    distance = np.where(slope >= 0, s - earlier, earlier)
    return -size * distance - np.log(s * special.exprel(-size * s))


def graphon_time(s: ArrayLike, s0: ArrayLike, slope: ArrayLike) -> Array:
    """Y(s; s0) = log((e^{lambda s}-1)/(e^{lambda s0}-1)), log(s/s0) for lambda = 0 (2605.09213).

    dY/ds = k(s, s-): the graphon integrated along its diagonal. 0 < s0 <= s <= 1.
    """
    s, slope = _position("s", s), _slope(slope)
    s0 = bounded("s0", s0, 0, s, closed="high", advice="the early token stands before the late one")
    size = np.abs(slope)
    log_ratio = np.log(s * special.exprel(-size * s)) - np.log(s0 * special.exprel(-size * s0))
    return np.maximum(np.maximum(slope, 0) * (s - s0) + log_ratio, 0.0)


def log_mode_rates(modes: int, beta: ArrayLike) -> Array:
    """log a_n for n = 1..modes on a new last axis, a_n = n^2 I_n(beta); beta > 0 (2605.09213)."""
    n = np.arange(1, int(whole("modes", modes, 1)) + 1)
    beta = inverse_temperature(beta, positive=True)[..., None]
    return 2 * np.log(n) + log_ive(n, beta) + beta


def mode_rates(modes: int, beta: ArrayLike) -> Array:
    """a_n = n^2 I_n(beta), n = 1..modes: growth rates of the correlation's modes (2605.09213).

    On a new last axis; beta = 0 gives 0. Infinite beyond beta = 700 or so: use `log_mode_rates` there.
    """
    beta = inverse_temperature(beta)
    if (beta > 0).all():
        return np.exp(log_mode_rates(modes, beta))
    n = np.arange(1, int(whole("modes", modes, 1)) + 1)
    return n**2 * special.iv(n, beta[..., None])


def modes_needed(beta: ArrayLike) -> int:
    """How many modes carry every sum over n here: a_n/a_max < 1e-20 beyond (largest beta given).

    I_n(beta) falls like e^{-n^2/2beta} up to n = beta and like (e beta/2n)^n after it, hence the
    smaller of 4 beta and 12 sqrt(beta), and 20 more.
    """
    largest = float(np.max(inverse_temperature(beta)))
    return int(np.ceil(20 + min(4 * largest, 12 * np.sqrt(largest))))


def largest_rate(beta: ArrayLike) -> Array:
    """sup_n a_n: the rate of the fastest mode (2605.09213)."""
    return mode_rates(modes_needed(beta), beta).max(axis=-1)


def mode_response(
    rate: ArrayLike, t: ArrayLike, s: ArrayLike, s0: ArrayLike, slope: ArrayLike
) -> Array:
    """g_a(t, s; s0) = k(s, s0) sqrt(at/Y) I_1(2 sqrt(at Y)): N times a correlation (2605.09213).

    The mode of rate a = `rate` of token s at time t against token s0 at time 0, for independent
    uniform tokens; k(s, s0) a t as Y -> 0. rate, t >= 0, 0 < s0 <= s <= 1 (the limit s0 -> s- at
    s0 = s). Infinite only where it leaves the range of doubles.
    """
    rate = bounded("rate", rate, 0, np.inf, closed="low", advice="see `mode_rates`")
    t = _time(t)
    delay = graphon_time(s, s0, slope)
    weight = _weight(real("s", s), real("s0", s0), _slope(slope))
    with np.errstate(divide="ignore", over="ignore"):
        return weight * np.exp(_log_bessel_factor(np.log(rate * t), delay))


def _log_bessel_factor(log_c: Array, delay: Array) -> Array:
    """log psi_c(Y), psi_c(y) = sum_k c^{k+1} y^k/(k!(k+1)!) = c I_1(z)/(z/2), z = 2 sqrt(c y)."""
    log_c, delay = np.broadcast_arrays(log_c, delay)
    with np.errstate(divide="ignore"):
        z = 2 * np.exp((log_c + np.log(delay)) / 2)
    small = z < SERIES_BELOW
    safe = np.where(small, 1.0, z)
    series = np.log1p(z**2 / 8 + z**4 / 192)
    return log_c + np.where(small, series, np.log(special.i1e(safe)) + z - np.log(safe / 2))


def _log_bessel_growth(log_c: Array, delay: Array) -> Array:
    """log psi_c'(Y), psi_c'(y) = sum_k c^{k+2} y^k/(k!(k+2)!) = c^2 I_2(z)/(z/2)^2, z = 2 sqrt(c y)."""
    log_c, delay = np.broadcast_arrays(log_c, delay)
    with np.errstate(divide="ignore"):
        z = 2 * np.exp((log_c + np.log(delay)) / 2)
    small, large = z < SERIES_BELOW, z > 10.0
    safe = np.where(small, 1.0, z)
    # I_2 = I_0 - 2 I_1/z holds for every z, and loses no digits where I_2 is near I_0.
    far = special.i0e(safe) - 2 * special.i1e(safe) / safe
    near = special.ive(2, np.where(large, 1.0, safe))
    exact = np.log(np.where(large, far, near)) + z - 2 * np.log(safe / 2)
    return 2 * log_c + np.where(small, np.log1p(z**2 / 12 + z**4 / 384) - np.log(2.0), exact)


def _log_damping(modes: int, words: ArrayLike) -> Array:
    """log omega_n = -pi^2 n^2/(2 M^2): what the decoder of M words keeps of mode n."""
    words = whole("words", words, 1, advice="count the codewords on the circle")
    return -((np.pi * np.arange(1, modes + 1) / words[..., None]) ** 2) / 2


def log_retrieval_profile(
    s0: ArrayLike,
    beta: ArrayLike,
    t: ArrayLike,
    slope: ArrayLike,
    words: ArrayLike = 8,
    modes: int | None = None,
) -> Array:
    """log S_t(s0), also where S_t leaves the range of doubles; beta, t > 0. See the next one."""
    s0 = _position("s0", s0)
    beta = inverse_temperature(beta, positive=True)
    t = _later(t)
    modes = modes_needed(beta) if modes is None else modes
    log_c = log_mode_rates(modes, beta) + np.log(t)[..., None]
    delay = graphon_time(1.0, s0, slope)[..., None]
    each = _log_bessel_factor(log_c, delay) + _log_damping(modes, words)
    total = np.asarray(special.logsumexp(each, axis=-1))
    return (_log_weight(np.asarray(1.0), s0, _slope(slope)) + total)[()]


def retrieval_profile(
    s0: ArrayLike,
    beta: ArrayLike,
    t: ArrayLike,
    slope: ArrayLike,
    words: ArrayLike = 8,
    modes: int | None = None,
) -> Array:
    """S_t(s0) = sum_{n>=1} e^{-pi^2 n^2/(2 M^2)} g_{a_n}(t, 1; s0): retrieval by position (2605.09213).

    How much better than chance the last token of a long prompt recalls the token at s0: see
    `expected_accuracy`. M = `words` codewords; lambda = `slope` of any sign; 0 < s0 <= 1 (the limit
    s0 -> 1-); `modes` terms of the sum, `modes_needed(beta)` when omitted.
    """
    beta, t = inverse_temperature(beta), _time(t)
    # Without attention or at the start nothing is remembered; ones stand in where logs have no value.
    some = (beta > 0) & (t > 0)
    beta, t = np.where(beta > 0, beta, 1.0), np.where(t > 0, t, 1.0)
    logs = log_retrieval_profile(s0, beta, t, slope, words, modes)
    return np.where(some, np.exp(logs), 0.0)[()]


def profile_minimum(
    beta: float, t: float, slope: float, words: int = 8, modes: int | None = None
) -> float:
    """The position s0 where S_t is least; 1.0 where S_t decreases to the end (no recency).

    S_t falls from infinity at 0. For lambda > 0 and t below `smallness_time` it has one minimum, inside
    (0, 1) (2605.09213). Where S_t turns from falling to rising is a root of its derivative, found between
    neighbours of a scan of [1e-300, 1] and accurate to rounding; at the end t < `recency_threshold` decides.
    """
    log_retrieval_profile(1.0, beta, t, slope, words, modes)  # refuses what has no profile
    if slope <= 0:
        return 1.0

    def falling(log_s0: ArrayLike) -> Array:
        return _log_steepness(np.exp(log_s0), beta, t, slope, words, modes)

    scan = np.concatenate([np.linspace(np.log(1e-300), FINE_SCAN, 2000)[:-1], FINE])
    signs = np.sign(falling(scan))
    # The same sign exactly: t = t_crit is the border between a minimum inside and one at the end.
    signs[-1] = 1.0 if t >= recency_threshold(beta, slope, words, modes) else -1.0
    if signs[0] < 0:
        raise ValueError(
            f"S_t is least at a position below 1e-300 for t={t:g}, slope={slope:g}; use a larger t"
        )
    turns = np.flatnonzero((signs[:-1] > 0) & (signs[1:] <= 0))
    found = [float(np.exp(_root(falling, scan[i], scan[i + 1]))) for i in turns]
    found += [1.0] if signs[-1] > 0 else []
    return found[int(np.argmin(log_retrieval_profile(found, beta, t, slope, words, modes)))]


def _root(falling: Callable[[float], Array], low: float, high: float) -> float:
    """Where a function changes sign between two points; the upper one where rounding hides the change."""
    if falling(high) > 0:
        return high
    found = optimize.root_scalar(lambda x: float(falling(x)), bracket=(low, high), xtol=1e-15)
    return float(found.root)


def _log_steepness(
    s0: ArrayLike, beta: float, t: float, slope: float, words: int, modes: int | None
) -> Array:
    """log of (Psi'/Psi)(Y)/(1 - e^{-lambda s0}), Psi = sum_n omega_n psi_{c_n}: above 0 where S_t falls.

    S_t = k(1, s0) Psi(Y), d log k/ds0 = lambda and dY/ds0 = -lambda/(1 - e^{-lambda s0}); lambda > 0.
    """
    modes = modes_needed(beta) if modes is None else modes
    log_c = log_mode_rates(modes, beta) + np.log(t)
    delay, damping = graphon_time(1.0, s0, slope)[..., None], _log_damping(modes, words)
    growth = special.logsumexp(_log_bessel_growth(log_c, delay) + damping, axis=-1)
    size = special.logsumexp(_log_bessel_factor(log_c, delay) + damping, axis=-1)
    return np.asarray(growth) - np.asarray(size) - np.log(-np.expm1(-slope * np.asarray(s0)))


def smallness_time(beta: ArrayLike, slope: ArrayLike) -> Array:
    """min{3 - sqrt 3, 2(1 - e^{-lambda})}/sup_n a_n: up to it S_t is proved to be U-shaped (2605.09213).

    beta > 0; 0 for lambda <= 0, where the theorem says nothing.
    """
    beta = inverse_temperature(beta, positive=True)
    room = np.minimum(3 - np.sqrt(3), -2 * np.expm1(-_slope(slope)))
    return np.maximum(room, 0.0) / largest_rate(beta)


def recency_threshold(
    beta: ArrayLike, slope: ArrayLike, words: ArrayLike = 8, modes: int | None = None
) -> Array:
    """t_crit = 2(1 - e^{-lambda}) sum_n omega_n a_n / sum_n omega_n a_n^2: S_t'(1-) > 0 iff t < t_crit.

    omega_n = e^{-pi^2 n^2/(2 M^2)}. From S_t'(1-) of `recency_slope`; beta > 0, and 0 for lambda <= 0:
    without a bias towards the near the last positions are never preferred.
    """
    beta = inverse_temperature(beta, positive=True)
    modes = modes_needed(beta) if modes is None else modes
    log_a, log_w = log_mode_rates(modes, beta), _log_damping(modes, words)
    first = np.asarray(special.logsumexp(log_w + log_a, axis=-1))
    second = np.asarray(special.logsumexp(log_w + 2 * log_a, axis=-1))
    return np.maximum(-2 * np.expm1(-_slope(slope)), 0.0) * np.exp(first - second)


def recency_slope(
    beta: ArrayLike, t: ArrayLike, slope: ArrayLike, words: ArrayLike = 8, modes: int | None = None
) -> Array:
    """S_t'(1-) = K sum_n omega_n c_n (lambda - K c_n/2), c_n = a_n t, K = lambda/(1 - e^{-lambda}).

    From g = k(1, s0) psi_c(Y): k(1, 1-) = K, its derivative is lambda K, Y'(1-) = -K, psi_c(0) = c,
    psi_c'(0) = c^2/2. K = 1 for lambda = 0.
    """
    beta, slope = inverse_temperature(beta), _slope(slope)
    modes = modes_needed(beta) if modes is None else modes
    c = mode_rates(modes, beta) * _time(t)[..., None]
    last = _weight(np.asarray(1.0), np.asarray(1.0), slope)[..., None]
    terms = np.exp(_log_damping(modes, words)) * last * c * (slope[..., None] - last * c / 2)
    return terms.sum(axis=-1)


def primacy_exponent(s0: ArrayLike, beta: ArrayLike, t: ArrayLike) -> Array:
    """2 sqrt(a_max t log(1/s0)): log S_t(s0) divided by it tends to 1 as s0 -> 0 (2605.09213).

    Primacy is slower than any power of 1/s0. 0 < s0 <= 1.
    """
    return 2 * np.sqrt(largest_rate(beta) * _time(t) * -np.log(_position("s0", s0)))


def signed_profile(
    s0: ArrayLike, t: ArrayLike, heads: Sequence[Head], words: ArrayLike = 8
) -> Array:
    """sum_h weight_h S_t(s0; beta_h, lambda_h): heads of both signs can lose two places (2605.09213).

    `DOUBLE_WELL` holds the authors' four heads.
    """
    each = [head.weight * retrieval_profile(s0, head.beta, t, head.slope, words) for head in heads]
    return np.sum(np.broadcast_arrays(*each), axis=0)


def soft_accuracy(angle: ArrayLike, words: ArrayLike = 8) -> Array:
    """sum_{k in Z} e^{-M^2 (angle - 2 pi k)^2/(2 pi^2)}: how well an angle decodes to 0 (2605.09213).

    A Gaussian of width pi/M around the codeword, wrapped on the circle. Any angle; terms below e^{-45}
    are left out.
    """
    words = whole("words", words, 1, advice="count the codewords on the circle")
    angle = np.remainder(real("angle", angle) + np.pi, 2 * np.pi) - np.pi
    turns = 2 * np.pi * np.arange(-4, 5)
    return np.exp(-((words[..., None] * (angle[..., None] - turns) / np.pi) ** 2) / 2).sum(axis=-1)


def soft_accuracy_by_modes(angle: ArrayLike, words: ArrayLike = 8) -> Array:
    """(sqrt(pi/2)/M) sum_{n in Z} e^{-pi^2 n^2/(2 M^2)} cos(n angle): the same by Poisson's sum."""
    words = whole("words", words, 1, advice="count the codewords on the circle")
    count = int(np.ceil(3.2 * words.max())) + 1  # omega_n < e^{-50} beyond
    waves = np.cos(np.arange(1, count + 1) * real("angle", angle)[..., None])
    return chance_accuracy(words) * (
        1 + 2 * (np.exp(_log_damping(count, words)) * waves).sum(axis=-1)
    )


def chance_accuracy(words: ArrayLike = 8) -> Array:
    """sqrt(pi/2)/M: the soft accuracy of an angle that knows nothing (uniform)."""
    return np.sqrt(np.pi / 2) / whole("words", words, 1)


def expected_accuracy(
    s0: ArrayLike,
    beta: ArrayLike,
    t: ArrayLike,
    slope: ArrayLike,
    n: ArrayLike,
    words: ArrayLike = 8,
) -> Array:
    """sqrt(pi/2)/M + (sqrt(2 pi)/(M n)) S_t(s0): mean soft accuracy of n uniform tokens (2605.09213).

    The error is of order n^{-2} up to logarithms, times s0^{-2}.
    """
    n = whole("n", n, 2, advice="a prompt needs a token to recall and one that recalls it")
    signal = retrieval_profile(s0, beta, t, slope, words)
    return chance_accuracy(words) * (1 + 2 * signal / n)


def _position(name: str, value: ArrayLike) -> Array:
    return bounded(name, value, 0, 1, closed="high", advice="a position is j/N of token j of N")


def _earlier(value: ArrayLike) -> Array:
    return bounded("earlier", value, 0, 1, advice="a position is j/N of token j of N")


def _slope(slope: ArrayLike) -> Array:
    return bounded("slope", slope, -np.inf, np.inf, closed="neither", advice="a finite ALiBi slope")


def _time(t: ArrayLike) -> Array:
    return bounded("t", t, 0, np.inf, closed="low", advice="the flow runs forwards from t=0")


def _later(t: ArrayLike) -> Array:
    return bounded("t", t, 0, np.inf, closed="neither", advice="at t=0 nothing is remembered")
