"""Closed forms for Gaussian measures, against integrals, other solvers and other derivations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import sqrtm
from scipy.optimize import linear_sum_assignment

from tokenflock.papers.gaussian import closed_forms

RNG = np.random.default_rng(5)
COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.5]])
SCORE = np.array([[-0.5, 0.2], [0.2, -0.3]])


def positive(d, rank=None):
    """A random covariance of the given rank."""
    factor = RNG.normal(size=(d, rank or d))
    return factor @ factor.T / d


def symmetric(d):
    matrix = RNG.normal(size=(d, d))
    return (matrix + matrix.T) / 2


def hermite(mean, covariance, nodes=60):
    """Gauss-Hermite points and weights of a two-dimensional Gaussian."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), -1).reshape(-1, 2)
    return mean + grid @ np.linalg.cholesky(covariance).T, np.outer(w, w).ravel()


@pytest.mark.parametrize("d", [1, 2, 4])
def test_softmax_solution_is_that_of_an_ode_solver(d):
    """Against scipy on the equations of mean and covariance; its rtol 1e-11 over O(1) steps."""
    covariance, A, mean = positive(d), symmetric(d), RNG.normal(size=d)
    t = min(1.0, 0.8 * closed_forms.softmax_blow_up_time(covariance, A))

    def rate(_, y):
        alpha, sigma = y[:d], y[d:].reshape(d, d)
        half = sigma @ A @ sigma
        return np.concatenate([alpha + sigma @ A @ alpha, (half + half.T).ravel()])

    start = np.concatenate([mean, covariance.ravel()])
    end = solve_ivp(rate, (0, t), start, "DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(
        closed_forms.softmax_mean(t, mean, covariance, A), end[:d], rtol=1e-8
    )
    np.testing.assert_allclose(
        closed_forms.softmax_covariance(t, covariance, A),
        end[d:].reshape(d, d),
        rtol=1e-8,
        atol=1e-9,
    )


def test_P6b_1_inverse_form_and_the_root_of_a_matrix_that_is_not_symmetric():
    expected = np.linalg.inv(np.linalg.inv(COVARIANCE) - 4 * SCORE)
    np.testing.assert_allclose(
        closed_forms.softmax_covariance(2.0, COVARIANCE, SCORE), expected, rtol=1e-13
    )
    mean = np.array([1.0, -0.5])
    inverse_root = np.linalg.inv(sqrtm(np.eye(2) - 4 * COVARIANCE @ SCORE))
    np.testing.assert_allclose(
        closed_forms.softmax_mean(2.0, mean, COVARIANCE, SCORE),
        np.exp(2) * inverse_root @ mean,
        rtol=1e-12,
    )


def test_times_are_vectorised_and_a_lost_direction_stays_lost():
    covariance, A = positive(3, rank=2), symmetric(3)
    lost = np.linalg.eigh(covariance)[1][:, 0]
    times = (
        0.9 * min(1.0, closed_forms.softmax_blow_up_time(covariance, A)) * np.array([0.0, 0.5, 1.0])
    )
    several = closed_forms.softmax_covariance(times, covariance, A)
    np.testing.assert_allclose(several[0], covariance, atol=1e-14)
    np.testing.assert_allclose(several @ lost, 0.0, atol=1e-13)
    means = closed_forms.softmax_mean(times, lost, covariance, A)
    np.testing.assert_array_equal(means[0], lost)
    assert means.shape == (3, 3)


def test_P6b_4_blow_up_in_one_dimension():
    """sigma(t) = sigma/(1 - 2 a sigma t), alpha(t) = e^t alpha (1 - 2 a sigma t)^{-1/2}."""
    a, sigma, t = 0.7, 1.3, 0.4
    assert closed_forms.softmax_blow_up_time([[1.0]], [[1.0]]) == 0.5
    assert closed_forms.softmax_blow_up_time([[sigma]], [[a]]) == pytest.approx(1 / (2 * a * sigma))
    assert closed_forms.softmax_blow_up_time([[sigma]], [[-a]]) == np.inf
    left = 1 - 2 * a * sigma * t
    assert closed_forms.softmax_covariance(t, [[sigma]], [[a]])[0, 0] == pytest.approx(sigma / left)
    grown = closed_forms.softmax_mean(t, [0.6], [[sigma]], [[a]])[0]
    assert grown == pytest.approx(0.6 * np.exp(t) / np.sqrt(left), rel=1e-14)
    with pytest.raises(ValueError, match="blows up"):
        closed_forms.softmax_covariance(1.0, [[1.0]], [[1.0]])


@pytest.mark.parametrize("rank", [0, 1, 3, 4])
def test_P6b_5_limit_is_the_inverse_on_the_kernel(rank):
    d = 4
    frame = np.linalg.qr(RNG.normal(size=(d, d)))[0]
    A = -(frame[:, :rank] * RNG.uniform(0.5, 2.0, rank)) @ frame[:, :rank].T
    covariance = positive(d) + 0.3 * np.eye(d)
    kernel = frame[:, rank:]
    inside = kernel.T @ np.linalg.inv(covariance) @ kernel
    expected = kernel @ np.linalg.inv(inside) @ kernel.T if rank < d else np.zeros((d, d))
    limit = closed_forms.softmax_limit(covariance, A)
    np.testing.assert_allclose(limit, expected, atol=1e-12)
    assert closed_forms.limit_rank(covariance, A) == d - rank
    late = closed_forms.softmax_covariance(1e8, covariance, A)
    np.testing.assert_allclose(late, limit, atol=1e-6)


def test_a_limit_needs_a_score_without_positive_direction():
    with pytest.raises(ValueError, match="blows up"):
        closed_forms.softmax_limit(np.eye(2), np.diag([1.0, -1.0]))


@pytest.mark.parametrize("injective", [True, False])
def test_l2_slope_is_the_derivative_of_a_conditional_mean(injective):
    """The weighted mean at two points by quadrature; the integrand is entire, 60 nodes reach 1e-9."""
    mean, Q = np.array([0.4, -0.2]), RNG.normal(size=(2, 2))
    K = RNG.normal(size=(2, 2)) if injective else np.array([[1.0, 0.5], [0.0, 0.0]])
    points, weights = hermite(mean, COVARIANCE)

    def centre(x):
        mass = weights * np.exp(-0.3 * np.sum((Q @ x - points @ K.T) ** 2, axis=-1))
        return mass @ points / mass.sum()

    slope = closed_forms.l2_slope(COVARIANCE, Q, K, 0.3)
    measured = np.stack([centre(e) - centre(np.zeros(2)) for e in np.eye(2)], axis=-1)
    np.testing.assert_allclose(slope, measured, atol=1e-7)


def test_l2_slope_stays_bounded_only_for_injective_keys():
    Q, K = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2))
    huge = 1e12 * positive(2)
    np.testing.assert_allclose(
        closed_forms.l2_slope(huge, Q, K, 0.3), np.linalg.solve(K, Q), rtol=1e-6
    )
    low = np.array([[1.0, 0.0]])
    # Sigma_12 grows while Sigma_11 rests: the slope 2c Sigma_12/(1 + 2c Sigma_11) has no bound.
    slope = closed_forms.l2_slope([[1.0, 50.0], [50.0, 1e4]], [[0.0, 1.0]], low, 0.3)
    assert slope[1, 1] == pytest.approx(0.6 * 50 / 1.6)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("strength", [0.3, 30.0])
def test_sinkhorn_slope_solves_its_equation(d, strength):
    covariance, A = positive(d) + 0.1 * np.eye(d), strength * RNG.normal(size=(d, d))
    M = closed_forms.sinkhorn_slope(covariance, A)
    rest = M - (covariance - M @ covariance @ M.T) @ A
    assert np.abs(rest).max() < 1e-10 * strength
    # A coupling: the covariance of y given x is positive.
    assert np.linalg.eigvalsh(covariance - M @ covariance @ M.T).min() > 0


def test_P6b_2_sinkhorn_slope_by_alternate_scaling():
    """A discretised Gaussian, rows and columns scaled in turn: .686799098 for a = 1.3, sigma = 1."""
    x = np.linspace(-9, 9, 301)
    mass = np.exp(-(x**2) / 2)
    mass /= mass.sum()
    kernel = np.exp(1.3 * (np.outer(x, x) - (x[:, None] ** 2 + x**2) / 2))
    left = np.ones_like(x)
    for _ in range(400):
        right = 1 / (kernel.T @ (left * mass))
        left = 1 / (kernel @ (right * mass))
    centre = (left[:, None] * kernel * right * mass) @ x
    measured = np.sum(mass * x * centre) / np.sum(mass * x**2)
    assert measured == pytest.approx(0.686799098, abs=1e-9)
    assert closed_forms.sinkhorn_slope([[1.0]], [[1.3]])[0, 0] == pytest.approx(
        0.686799098, abs=1e-9
    )
    assert closed_forms.sinkhorn_correlation(1.3) == pytest.approx(0.686799098, abs=1e-9)


def test_P6c_slopes_of_small_bandwidth():
    """With a = 1/eps the mean shift E[y] - x is -eps/(2 sigma^2) x under Sinkhorn, to second order."""
    sigma2 = 1.7
    for eps in (1e-2, 1e-3):
        shift = closed_forms.sinkhorn_slope([[sigma2]], [[1 / eps]])[0, 0] - 1
        assert shift == pytest.approx(-eps / (2 * sigma2), abs=eps**2)
        # A Gaussian kernel of variance eps is l2 attention with c = 1/(2 eps): twice the shift.
        gaussian = closed_forms.l2_slope([[sigma2]], [[1.0]], [[1.0]], 1 / (2 * eps))[0, 0] - 1
        assert gaussian == pytest.approx(-eps / sigma2, abs=eps**2)


def test_P6b_6_w2_of_gaussians():
    """One dimension, commuting covariances, the trace formula, and samples."""
    assert closed_forms.bures_w2([1.0], [[4.0]], [-2.0], [[0.25]]) == pytest.approx(
        np.hypot(3, 1.5)
    )
    first, second = np.diag([1.0, 4.0, 0.0]), np.diag([9.0, 1.0, 1.0])
    assert closed_forms.bures_w2(np.zeros(3), first, np.zeros(3), second) == pytest.approx(6**0.5)
    first, second = positive(3), positive(3)
    root = np.real(sqrtm(first))
    trace = np.trace(first + second - 2 * np.real(sqrtm(root @ second @ root)))
    distance = closed_forms.bures_w2(np.zeros(3), first, np.zeros(3), second)
    assert distance**2 == pytest.approx(trace, rel=1e-7)
    assert closed_forms.bures_w2(np.zeros(3), first, np.zeros(3), first) < 1e-14
    nudged = closed_forms.bures_w2(np.zeros(3), first, np.zeros(3), (1 + 1e-10) ** 2 * first)
    assert nudged == pytest.approx(1e-10 * np.trace(first) ** 0.5, rel=1e-4)


def test_P6b_6_w2_of_samples():
    """n = 1000 matched tokens; in two dimensions the empirical W2 errs by O(log n/sqrt n) ~ 0.1."""
    moments = [([0.0, 1.0], COVARIANCE), ([2.0, 0.0], np.array([[0.4, -0.3], [-0.3, 1.5]]))]
    clouds = [RNG.multivariate_normal(mean, covariance, 1000) for mean, covariance in moments]
    cost = np.sum((clouds[0][:, None] - clouds[1]) ** 2, axis=-1)
    rows, columns = linear_sum_assignment(cost)
    measured = cost[rows, columns].mean() ** 0.5
    assert measured == pytest.approx(closed_forms.bures_w2(*moments[0], *moments[1]), abs=0.1)


def test_wrong_matrices_are_refused():
    with pytest.raises(ValueError, match="symmetric"):
        closed_forms.softmax_covariance(1.0, np.eye(2), [[0.0, 1.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="semidefinite"):
        closed_forms.bures_w2([0.0], [[-1.0]], [0.0], [[1.0]])


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: closed_forms.softmax_covariance(0.1, np.eye(2), np.eye(3)), "same dimension"),
        (
            lambda: closed_forms.softmax_covariance(0.1, np.ones((2, 3)), np.eye(2)),
            r"give \(d, d\)",
        ),
        (
            lambda: closed_forms.softmax_mean(0.1, np.ones(3), COVARIANCE, SCORE),
            "give mean 2 numbers",
        ),
        (lambda: closed_forms.l2_slope(COVARIANCE, np.eye(2), np.eye(3), 1.0), "give K 2 columns"),
        (
            lambda: closed_forms.l2_slope(COVARIANCE, np.eye(2), np.ones((1, 2)), 1.0),
            "equally many, so",
        ),
        (lambda: closed_forms.l2_blow_up_time(-1.0, 1.0, -0.5), "c >= 0"),
        (lambda: closed_forms.l2_blow_up_time(1.0, -1.0, 0.5), "variance"),
        (lambda: closed_forms.sinkhorn_slope(COVARIANCE, np.eye(3)), "same dimension"),
        (lambda: closed_forms.bures_w2([0, 0], np.eye(2), [0, 0, 0], np.eye(3)), "same dimension"),
        (lambda: closed_forms.bures_w2([0, 0], np.eye(2), [0], np.eye(2)), "give mean1 2 numbers"),
    ],
)
def test_shapes_and_signs_are_told_in_sentences(ask, says):
    with pytest.raises(ValueError, match=says):
        ask()
