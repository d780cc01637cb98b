"""Closed forms of the kinetic theory of causal attention, against other ways to compute them."""

import numpy as np
import pytest
from scipy import integrate, special

from tokenflock.theory import kinetic

FIVE = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
BETAS = np.array([0.5, 1.0, 2.0, 3.0])


def picard(rate, t, slope, s0, cells, terms=40):
    """g_a(t, 1; s0) from d_t g = a(k(s, s0) + int k g) alone: a power series in t by the trapezoid rule."""
    s = np.linspace(s0, 1.0, cells + 1)
    front = np.exp(-slope * s) * (slope / -np.expm1(-slope * s) if slope else 1 / s)
    term = rate * t * front * np.exp(slope * s0)
    total = term.copy()
    for order in range(2, terms):
        inner = integrate.cumulative_trapezoid(np.exp(slope * s) * term, s, initial=0.0)
        term = rate * t / order * front * inner
        total += term
    return total[-1]


@pytest.mark.parametrize("slope", [-2.0, 0.0, 1.0, 5.0])
@pytest.mark.parametrize("s", [0.03, 0.4, 1.0])
def test_p2_11_the_graphon_is_a_probability(slope, s):
    """P2-11: int_0^s k(s, s') ds' = 1 for every sign of the slope."""
    mass = integrate.quad(lambda x: kinetic.graphon(s, x, slope), 0, s, epsabs=1e-12)[0]
    assert mass == pytest.approx(1.0, abs=1e-10)
    assert kinetic.graphon(s, min(1.0, s + 0.1), slope) == 0.0


def test_the_graphon_is_continuous_in_the_slope_and_never_overflows():
    near = kinetic.graphon(0.7, 0.2, [-1e-9, 0.0, 1e-9])
    assert near == pytest.approx(1 / 0.7, rel=2e-9)
    assert kinetic.graphon(1.0, [0.0, 1.0 - 1e-4], 1e4) == pytest.approx([0, 1e4 / np.e], rel=1e-9)
    assert kinetic.graphon(1.0, [1e-4, 0.9], -1e4) == pytest.approx([1e4 / np.e, 0], rel=1e-9)


@pytest.mark.parametrize("slope", [-2.0, 0.0, 1.0, 5.0])
def test_graphon_time_integrates_the_diagonal(slope):
    """Y(s; s0) = int_{s0}^s k(r, r-) dr."""
    diagonal = integrate.quad(lambda r: kinetic.graphon(r, r - 1e-13, slope), 0.1, 0.8)[0]
    assert kinetic.graphon_time(0.8, 0.1, slope) == pytest.approx(diagonal, rel=1e-9)


def test_p2_3_the_closed_form_solves_the_volterra_equation():
    """P2-3: Picard's series on 2000 cells, with the trapezoid rule's order 2."""
    exact = kinetic.mode_response(0.9, 1.7, 1.0, 0.2, 1.0)
    assert exact == pytest.approx(3.956523577, abs=1e-9)
    errors = [abs(picard(0.9, 1.7, 1.0, 0.2, cells) - exact) for cells in (500, 2000)]
    assert errors[1] < 1e-6
    assert np.log(errors[0] / errors[1]) / np.log(4) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("slope", [0.0, -1.5, 3.0])
def test_the_closed_form_for_every_sign_of_the_slope(slope):
    exact = kinetic.mode_response(1.3, 0.8, 1.0, 0.3, slope)
    assert picard(1.3, 0.8, slope, 0.3, 4000) == pytest.approx(float(exact), rel=1e-6)


def test_the_response_is_its_hypergeometric_series_at_small_and_large_arguments():
    """k c 0F1(; 2; c Y), with Y from 1e-12 to 7: both branches and the seam between them."""
    s0 = 1 - np.array([1e-12, 1e-9, 2e-7, 3e-7, 1e-4, 0.3, 0.999])
    delay = kinetic.graphon_time(1.0, s0, 1.0)
    series = kinetic.graphon(1.0, s0, 1.0) * 0.9 * special.hyp0f1(2.0, 0.9 * delay)
    assert kinetic.mode_response(0.9, 1.0, 1.0, s0, 1.0) == pytest.approx(series, rel=1e-13)


def test_logs_go_on_where_numbers_end():
    """At beta = 900 the rates are e^900, and log S is still log I_1's leading order."""
    log_profile = kinetic.log_retrieval_profile(0.1, 900.0, 1e-300, 1.0)
    log_c = kinetic.log_mode_rates(80, 900.0) + np.log(1e-300)
    z = 2 * np.exp(log_c.max() / 2) * np.sqrt(kinetic.graphon_time(1.0, 0.1, 1.0))
    assert np.isfinite(log_profile)
    assert log_profile == pytest.approx(z, rel=1e-12)


def test_p2_4_rates():
    """P2-4: a_n = n^2 I_n(beta)."""
    first = kinetic.mode_rates(4, 1.0)
    assert first == pytest.approx([0.565159, 0.542991, 0.199516, 0.043794], abs=1e-6)
    assert kinetic.largest_rate(BETAS[1:]) == pytest.approx([0.565159, 2.755794, 8.98085], abs=1e-6)
    assert np.argmax(kinetic.mode_rates(20, 2.0)) == 1
    assert not kinetic.mode_rates(3, 0.0).any()


def test_rates_are_the_normalised_fourier_coefficients_of_the_kernel():
    """n^2 (1/2pi) int e^{beta cos} cos(n theta): the convention of the paper's results."""
    theta = 2 * np.pi * np.arange(64) / 64
    by_mean = [n**2 * np.mean(np.exp(2 * np.cos(theta)) * np.cos(n * theta)) for n in (1, 2, 3)]
    assert kinetic.mode_rates(3, 2.0) == pytest.approx(by_mean, rel=1e-12)


@pytest.mark.parametrize("beta", [0.3, 1.0, 10.0, 300.0])
def test_enough_modes(beta):
    count = kinetic.modes_needed(beta)
    more = kinetic.log_mode_rates(2 * count, beta)
    assert (more[count:] - more.max()).max() < np.log(1e-20)


def test_p2_5_smallness_time_lies_below_the_recency_threshold():
    """P2-5."""
    small, critical = kinetic.smallness_time(BETAS, 1.0), kinetic.recency_threshold(BETAS, 1.0)
    assert small == pytest.approx([4.902168, 2.236965, 0.458758, 0.140771], abs=1e-6)
    assert critical == pytest.approx([5.911579, 2.457489, 0.600716, 0.174018], abs=1e-6)
    # sum om a^2 <= a_max sum om a, so the order holds for every beta, slope and number of words.
    grid = np.meshgrid(np.geomspace(0.05, 60, 12), np.geomspace(0.01, 30, 9), [1, 2, 8, 50])
    assert np.all(kinetic.smallness_time(*grid[:2]) <= kinetic.recency_threshold(*grid))


def test_recency_threshold_is_where_the_slope_at_the_end_changes_sign():
    critical = kinetic.recency_threshold(2.0, 1.5, 5)
    assert kinetic.recency_slope(2.0, 0.999 * critical, 1.5, 5) > 0
    assert kinetic.recency_slope(2.0, 1.001 * critical, 1.5, 5) < 0
    assert kinetic.recency_threshold(2.0, [0.0, -1.0]) == pytest.approx(0.0, abs=0)
    assert kinetic.recency_slope(2.0, 0.01, 0.0) < 0


@pytest.mark.parametrize("slope", [-1.0, 0.0, 2.0])
def test_recency_slope_is_the_derivative_of_the_profile(slope):
    """Richardson's one-sided difference: error O(h^2), rounding eps/h."""
    h = 1e-5
    s = 1.0 - h * np.arange(3)
    last = kinetic.retrieval_profile(s, 1.5, 0.4, slope, 6)
    slope_at_end = (3 * last[0] - 4 * last[1] + last[2]) / (2 * h)
    assert kinetic.recency_slope(1.5, 0.4, slope, 6) == pytest.approx(slope_at_end, abs=1e-7)


def test_p2_6_profile_at_time_one():
    """P2-6."""
    golden = [1.419804484, 1.195470498, 1.265523693, 1.422820574, 1.590771759]
    assert kinetic.retrieval_profile(FIVE, 1.0, 1.0, 1.0, modes=20) == pytest.approx(
        golden, abs=1e-8
    )
    assert kinetic.retrieval_profile(FIVE, 1.0, 1.0, 1.0) == pytest.approx(golden, abs=1e-8)


def test_p2_7_profile_at_time_one_half():
    """P2-7."""
    golden = [0.484492153, 0.484092328, 0.561865647, 0.673965004, 0.787251772]
    assert kinetic.retrieval_profile(FIVE, 1.0, 0.5, 1.0) == pytest.approx(golden, abs=1e-8)


def test_p2_8_the_minimum_moves_to_the_end_and_stays_there():
    """P2-8: lost in the middle, until recency is lost beyond t_crit."""
    found = [kinetic.profile_minimum(1.0, t, 1.0) for t in (0.25, 0.5, 1.0, 5.0)]
    assert found == pytest.approx([0.0625, 0.1252, 0.2593, 1.0], abs=1e-3)
    late = kinetic.retrieval_profile(np.linspace(0.01, 1, 200), 1.0, 5.0, 1.0)
    assert np.all(np.diff(late) < 0)


@pytest.mark.parametrize(("t", "slope"), [(1.0, 1.0), (2.45, 1.0), (1.0, 800.0)])
def test_the_minimum_is_where_the_profile_turns(t, slope):
    place = kinetic.profile_minimum(1.0, t, slope)
    around = np.minimum(place * np.exp(1e-4 * np.array([-2.0, -1.0, 1.0, 2.0])), 1.0)
    heights = kinetic.log_retrieval_profile(around, 1.0, t, slope)
    assert heights[0] > heights[1]
    assert heights[3] > heights[2]


@pytest.mark.parametrize(("t", "slope"), [(1e-13, 1.0), (1e-250, 3.0)])
def test_the_minimum_at_tiny_times(t, slope):
    """slope s0 = (t/2) sum om a^2/sum om a: the first orders of 1 - e^{-slope s0} = Psi'/Psi."""
    rates, kept = kinetic.mode_rates(24, 1.0), np.exp(-((np.pi * np.arange(1, 25) / 8) ** 2) / 2)
    early = t * (kept @ rates**2) / (kept @ rates) / (2 * slope)
    assert kinetic.profile_minimum(1.0, t, slope) == pytest.approx(early, rel=1e-9, abs=0.0)


def test_the_minimum_reaches_the_end_at_the_threshold():
    """Near t_crit it lies a distance of order t_crit - t before the end; beyond, at the end."""
    critical = float(kinetic.recency_threshold(1.0, 1.0))
    before = [
        1 - kinetic.profile_minimum(1.0, (1 - share) * critical, 1.0) for share in (1e-4, 1e-6)
    ]
    assert before[0] == pytest.approx(3.515e-4, rel=1e-3)
    assert before[0] / before[1] == pytest.approx(100.0, rel=1e-2)
    assert kinetic.profile_minimum(1.0, critical, 1.0) == 1.0
    with pytest.raises(ValueError, match="use a larger t"):
        kinetic.profile_minimum(1.0, 1e-305, 1.0)


def test_logs_of_profiles_at_steep_slopes():
    """k(1, s0) = e^{-900} 1000 underflows; its logarithm does not (mpmath, 50 digits)."""
    assert kinetic.log_retrieval_profile(0.1, 1, 1, 1000, 8) == pytest.approx(
        -854.30277980, abs=1e-8
    )
    assert kinetic.log_retrieval_profile(0.9, 1, 1, -1000, 8) == pytest.approx(
        -893.0572905, abs=1e-7
    )


def test_p2_9_without_a_slope_there_is_no_recency():
    """P2-9."""
    three = kinetic.retrieval_profile([0.05, 0.5, 0.95], 1.0, 1.0, 0.0)
    assert three == pytest.approx([2.081788, 1.232142, 1.049299], abs=1e-6)
    assert np.all(np.diff(kinetic.retrieval_profile(np.linspace(0.01, 1, 200), 1.0, 1.0, 0.0)) < 0)
    assert kinetic.profile_minimum(1.0, 0.05, 0.0) == 1.0


def test_primacy_is_the_stated_exponential_of_a_root():
    """log S - 2 sqrt(a t L) against its next orders, z (Y - L)/2L + log of the Bessel prefactor.

    L = log(1/s0), Y = L + log((e^lambda - 1)/lambda) + o(1); one mode (words small) so nothing is mixed.
    """
    s0, words = 1e-300, 1
    log_profile = kinetic.log_retrieval_profile(s0, 1.0, 2.0, 1.0, words)
    c, delay = 2 * kinetic.largest_rate(1.0), -np.log(s0) + np.log(np.expm1(1.0))
    z = 2 * np.sqrt(c * delay)
    prefactor = np.log(2 * c / z) - np.log(2 * np.pi * z) / 2 - 3 / (8 * z)
    front = -(np.pi**2) / 2 - np.log(np.expm1(1.0))
    # The next order of I_1 is 15/128 z^-2, below 1e-4 here (z = 56); mode 2 is e^{-15} of mode 1.
    assert log_profile == pytest.approx(front + prefactor + z, abs=1e-4)
    ratios = [
        kinetic.log_retrieval_profile(s, 1.0, 2.0, 1.0) / kinetic.primacy_exponent(s, 1.0, 2.0)
        for s in (1e-20, 1e-80, 1e-300)
    ]
    assert ratios[0] < ratios[1] < ratios[2] < 1.0


def test_the_double_well_of_signed_heads():
    """The authors' four heads: two wells of equal depth at .130 and .795, a hill at .364 of .0458."""
    s0 = np.linspace(0.02, 0.98, 2001)
    heights = kinetic.signed_profile(s0, kinetic.DOUBLE_WELL_TIME, kinetic.DOUBLE_WELL)
    turns = np.flatnonzero(np.diff(np.sign(np.diff(heights)))) + 1
    assert s0[turns] == pytest.approx([0.130, 0.364, 0.795], abs=1e-3)
    depth = heights[turns] - heights.min()
    assert depth == pytest.approx([0.0, 0.0458, 0.0], abs=1e-4)


@pytest.mark.parametrize("words", [1, 2, 8, 50])
def test_p2_13_two_forms_of_the_soft_accuracy(words):
    """P2-13: the Gaussian sum and Poisson's sum."""
    angles = np.linspace(-9.0, 9.0, 41)
    direct, by_modes = (
        form(angles, words) for form in (kinetic.soft_accuracy, kinetic.soft_accuracy_by_modes)
    )
    assert direct == pytest.approx(by_modes, abs=1e-10)
    mean = integrate.quad(lambda x: kinetic.soft_accuracy(x, words), -np.pi, np.pi, points=[0.0])[0]
    assert mean / (2 * np.pi) == pytest.approx(kinetic.chance_accuracy(words), rel=1e-9)


def test_expected_accuracy_is_chance_plus_the_profile_over_n():
    profile = kinetic.retrieval_profile(FIVE, 1.0, 1.0, 1.0, 6)
    printed = np.sqrt(np.pi / 2) / 6 + np.sqrt(2 * np.pi) / (6 * 400) * profile
    assert kinetic.expected_accuracy(FIVE, 1.0, 1.0, 1.0, 400, 6) == pytest.approx(
        printed, rel=1e-14
    )


def test_arguments_broadcast_and_vanish_at_the_start():
    grid = kinetic.retrieval_profile(FIVE[:, None], [0.5, 1.0], 1.0, [1.0, 0.0])
    assert grid.shape == (5, 2)
    assert grid[1, 1] == pytest.approx(kinetic.retrieval_profile(0.25, 1.0, 1.0, 0.0))
    assert not kinetic.retrieval_profile(FIVE, 1.0, 0.0, 1.0).any()
    assert not kinetic.retrieval_profile(FIVE, 0.0, 1.0, 1.0).any()
    mixed = kinetic.retrieval_profile(0.5, [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], 1.0)
    assert mixed == pytest.approx([0.0, 0.0, kinetic.retrieval_profile(0.5, 1.0, 1.0, 1.0)])


@pytest.mark.parametrize(
    "call",
    [
        lambda: kinetic.retrieval_profile(0.0, 1.0, 1.0, 1.0),
        lambda: kinetic.retrieval_profile(-5.0, 0.0, 1.0, 1.0),
        lambda: kinetic.retrieval_profile(0.5, -1.0, 1.0, 1.0),
        lambda: kinetic.profile_minimum(1.0, np.nan, 0.0),
        lambda: kinetic.retrieval_profile(0.5, 1.0, -1.0, 1.0),
        lambda: kinetic.mode_response(1.0, 1.0, 0.3, 0.5, 1.0),
        lambda: kinetic.soft_accuracy(0.1, 2.5),
        lambda: kinetic.graphon(0.5, 0.2, np.nan),
    ],
)
def test_refusals_say_what_is_needed(call):
    with pytest.raises(ValueError, match=r"must|needs"):
        call()
