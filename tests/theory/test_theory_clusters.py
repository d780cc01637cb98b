import numpy as np
import pytest
from named_kinds import named_kind
from scipy.integrate import quad, solve_ivp
from scipy.optimize import minimize

from tokenflock import theory
from tokenflock.papers.metastability import closed_forms

MODELS = [("SA", "perspective"), ("USA", "perspective"), ("USA", "metastability")]
CLOSE = np.arccos(0.999)


def on_circle(*angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def turn(x, v):
    """Angular velocity of unit rows of R^2."""
    return x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]


@pytest.mark.parametrize(("model", "convention"), MODELS)
def test_K1_15_two_token_rate(particles, model, convention):
    x = on_circle(0.4, 1.9)
    speed = turn(x, particles.field(x, 2.3, model, convention))
    expected = theory.two_token_rate(1.5, 2.3, named_kind(model, convention))
    assert speed[1] - speed[0] == pytest.approx(expected, rel=1e-13)
    assert expected < 0


def test_K1_15_two_token_time():
    time = theory.two_cluster_lifetime(np.pi / 2, CLOSE, 0.5, 0.5, 2.0)
    assert time == pytest.approx(5.1632648, abs=5.1e-8)


@pytest.mark.parametrize(("model", "convention"), MODELS)
def test_two_tokens_are_equiangular_with_n_2(model, convention):
    beta = np.array([0.0, 0.5, 6.0])
    lifetime = theory.two_cluster_lifetime(2.2, 0.3, 0.5, 0.5, beta, named_kind(model, convention))
    closed = theory.equiangular_time(
        np.cos(0.3), 2, beta, np.cos(2.2), named_kind(model, convention)
    )
    np.testing.assert_allclose(lifetime, closed, rtol=1e-11)


@pytest.mark.parametrize(("model", "convention"), MODELS)
def test_two_cluster_rate_is_the_field_of_repeated_tokens(particles, model, convention):
    x = on_circle(*[0.2] * 3, *[2.0] * 5)
    speed = turn(x, particles.field(x, 1.9, model, convention))
    expected = theory.two_cluster_rate(1.8, 3 / 8, 5 / 8, 1.9, named_kind(model, convention))
    assert speed[-1] - speed[0] == pytest.approx(expected, rel=1e-12)


def test_K3_4_lifetimes():
    beta = np.array([2.0, 4, 8])
    times = theory.two_cluster_lifetime(2.0, CLOSE, 0.5, 0.5, beta)
    np.testing.assert_allclose(times, [7.972679, 43.005000, 5803.694357], rtol=0, atol=5.1e-7)
    logs = theory.log_two_cluster_lifetime(2.0, CLOSE, 0.5, 0.5, [6.0, 8.0])
    assert np.diff(logs)[0] / 2 == pytest.approx(1.274, abs=5e-4)


@pytest.mark.parametrize(("model", "convention"), MODELS)
def test_K3_4_lifetime_by_integrating_the_flow(model, convention):
    p, q, beta = 0.2, 0.7, 3.0

    def arrived(t, phi):
        return phi[0] - 0.4

    arrived.terminal = True
    run = solve_ivp(
        lambda t, phi: theory.two_cluster_rate(phi, p, q, beta, named_kind(model, convention)),
        (0, 1e6),
        [2.4],
        "DOP853",
        events=arrived,
        rtol=1e-12,
        atol=1e-13,
    )
    lifetime = theory.two_cluster_lifetime(2.4, 0.4, p, q, beta, named_kind(model, convention))
    assert run.t_events[0][0] == pytest.approx(lifetime, rel=1e-9)


def test_K3_4_log_lifetime_at_large_beta():
    beta, phi0 = 60.0, 2.9
    top = beta * (1 - np.cos(phi0))

    def scaled(phi):
        return (np.exp(beta * (1 - np.cos(phi)) - top) + np.exp(-top)) / (2 * np.sin(phi))

    integral = quad(scaled, CLOSE, phi0, epsabs=0, epsrel=1e-12, points=[2.5, 2.8], limit=500)[0]
    log_time = theory.log_two_cluster_lifetime(phi0, CLOSE, 0.5, 0.5, beta)
    assert log_time == pytest.approx(top + np.log(integral), rel=1e-13)
    assert np.isfinite(theory.log_two_cluster_lifetime(3.1, 0.01, 0.9, 0.1, 2000.0))
    assert theory.two_cluster_lifetime(3.1, 0.01, 0.9, 0.1, 2000.0) == np.inf


def test_K6_2_antipodal_growth():
    beta = 1.3
    assert theory.antipodal_growth_rate(0.5, 0.5, beta) == pytest.approx(2 / (1 + np.exp(2.6)))
    assert theory.antipodal_growth_rate(0.3, 0.7, beta, named_kind("USA")) == pytest.approx(
        np.exp(-1.3)
    )
    h = 1e-5
    for model, convention in MODELS:
        slope = (
            -theory.two_cluster_rate(np.pi - h, 0.3, 0.7, beta, named_kind(model, convention)) / h
        )
        expected = theory.antipodal_growth_rate(0.3, 0.7, beta, named_kind(model, convention))
        assert slope == pytest.approx(expected, rel=1e-8)


def test_plateau_energy_is_the_large_beta_energy():
    sizes, angles = [1, 2, 4], [0.0, 1.0, 2.5]
    x = on_circle(*np.repeat(angles, sizes))
    energy = np.exp(500 * (x @ x.T - 1)).mean()
    assert theory.plateau_energy(np.array(sizes) / 7) == pytest.approx(energy, abs=1e-12)
    with pytest.raises(ValueError, match="sum to 1"):
        theory.plateau_energy([0.5, 0.6])


def test_K3_3_plateau_levels():
    singles = np.full(5, 0.2)
    one_by_one = theory.plateau_levels(singles, [(0, 1), (0, 2), (0, 3), (0, 4)])
    np.testing.assert_allclose(one_by_one, [0.20, 0.28, 0.44, 0.68, 1], atol=1e-15)
    staircase = theory.plateau_levels(singles, [(0, 1), (0, 2), (3, 4), (0, 3)])
    np.testing.assert_allclose(staircase, [0.20, 0.28, 0.44, 0.52, 1], atol=1e-15)
    with pytest.raises(ValueError, match="living clusters"):
        theory.plateau_levels(singles, [(0, 1), (1, 2)])


def test_K3_1_window_constants():
    window = closed_forms.metastability_window(0.01, np.pi, 10, 12.0, 1.0)
    assert window.alpha == pytest.approx(-0.9208, abs=1e-12)
    assert window.gamma == pytest.approx(1.01551, abs=5.1e-6)
    assert window.collapse_time == pytest.approx(408.0817, abs=5.1e-5)
    assert np.exp(window.log_lifetime) == pytest.approx(1.02403e7, rel=5e-6)
    assert window.lambda_bounds[0] == pytest.approx(28777, abs=0.5)
    assert window.lambda_bounds[1] == pytest.approx(1.39233, abs=5.1e-6)
    assert window.holds
    assert not closed_forms.metastability_window(0.01, np.pi, 10, 12.0, 1.5).holds
    assert not closed_forms.metastability_window(0.01, np.pi / 2, 10, 12.0, 0.1).holds


def test_K3_1_first_lambda_bound_is_equality_of_the_times():
    first = closed_forms.metastability_window(0.02, 2.5, 4, 15.0, 1.0).lambda_bounds[0]
    edge = closed_forms.metastability_window(0.02, 2.5, 4, 15.0, first)
    assert edge.collapse_time == pytest.approx(np.exp(edge.log_lifetime), rel=1e-10)


@pytest.mark.parametrize(("model", "convention"), [MODELS[0], MODELS[2]])
def test_K3_1_particles_obey_the_window(particles, model, convention):
    rng, n, beta, eps = np.random.default_rng(3), 10, 12.0, 0.01
    signs = np.array([1] * 6 + [-1] * 4)
    tilt = np.arccos(1 - eps * rng.uniform(size=n))
    turnaround = rng.uniform(0, 2 * np.pi, n)
    x = np.stack(
        [np.sin(tilt) * np.cos(turnaround), np.sin(tilt) * np.sin(turnaround), np.cos(tilt)], 1
    )
    x *= signs[:, None]
    window = closed_forms.metastability_window(eps, np.pi, n, beta, 1.0)

    def velocity(t, y):
        z = y.reshape(n, 3)
        return particles.field(z, beta, model, convention).ravel()

    times = [409.0, 3000.0]
    assert times[0] > window.collapse_time
    run = solve_ivp(velocity, (0, 3000), x.ravel(), "LSODA", t_eval=times, rtol=1e-9, atol=1e-11)
    for y in run.y.T:
        z = y.reshape(n, 3)
        assert (z[:, 2] * signs).min() >= 1 - 2 * eps
        for sign in (1, -1):
            cap = z[signs == sign]
            gaps = ((cap[:, None] - cap[None]) ** 2).sum(-1)
            assert gaps.max() <= 2 * np.exp(-beta)


@pytest.mark.parametrize(("eps", "angle"), [(0.01, np.pi), (0.04, 1.9), (0.05, 0.7)])
def test_K3_5_alpha_by_brute_force(eps, angle):
    first, second = np.array([0, 0, 1.0]), np.array([np.sin(angle), 0, np.cos(angle)])
    size = np.arccos(1 - 2 * eps)

    def point(centre, shift, turning):
        side = np.array([centre[2], 0, -centre[0]])
        tangent = np.cos(turning) * side + np.sin(turning) * np.array([0, 1.0, 0])
        return np.cos(shift) * centre + np.sin(shift) * tangent

    def loss(u):
        x = point(first, size * np.sin(u[0]) ** 2, u[1])
        y = point(second, size * np.sin(u[2]) ** 2, u[3])
        return -x @ y

    rng = np.random.default_rng(0)
    starts = rng.uniform(-3, 3, size=(12, 4))
    best = -min(minimize(loss, start, tol=1e-12).fun for start in starts)
    assert closed_forms.cap_alpha(eps, angle) == pytest.approx(best, abs=1e-6)


def test_cap_alpha_at_orthogonal_centres_and_smallest_angle():
    eps = np.array([0.0, 0.003, 0.02])
    expected = 4 * (1 - 2 * eps) * np.sqrt(eps * (1 - eps))
    np.testing.assert_allclose(closed_forms.cap_alpha(eps, np.pi / 2), expected, atol=1e-15)
    centres = on_circle(0.0, 2.0, 2.0 + 1e-9, 4.1)
    assert closed_forms.smallest_angle(centres) == pytest.approx(1e-9, rel=1e-6)
    assert closed_forms.smallest_angle([[3.0, 0, 0], [0.2, 0.2, 0]]) == pytest.approx(np.pi / 4)
    with pytest.raises(ValueError, match="k >= 2"):
        closed_forms.smallest_angle([[1.0, 0, 0]])
    with pytest.raises(ValueError, match="0 <= eps <= 1"):
        closed_forms.cap_alpha(1.1, 1.0)
    gap = closed_forms.separation(0.01, np.pi / 2, 32, 40.0)
    expected = 1 - 4 * 0.98 * np.sqrt(0.01 * 0.99) - 0.08 - np.log(2 * 32**2 / 0.01) / 40
    assert gap == pytest.approx(expected, rel=1e-13)


def slow_clock_pair(masses, beta, model, s_values):
    """Angles (theta_1, theta_2) of two clusters in ds = e^{-beta(1-cos)} dt, by brute force."""
    p, q = masses

    def velocity(s, theta):
        c = np.cos(theta[1] - theta[0])
        if model == "SA":
            first = q / (p + q * np.exp(beta * (c - 1)))
            second = p / (q + p * np.exp(beta * (c - 1)))
        else:
            first, second = q, p
        pull = np.sin(theta[1] - theta[0])
        return first * pull, -second * pull

    run = solve_ivp(
        velocity, (0, s_values[-1]), [0.0, 0.8], t_eval=s_values, rtol=1e-11, atol=1e-13
    )
    return run.y


def test_K5_6_pairing_law_golden():
    angle = theory.pairing_angle([0.1, 0.2, 0.3, 0.4, 0.6], 0.8, theory.pairing_rate(1 / 3, 1 / 3))
    expected = [0.66649, 0.55233, 0.45600, 0.37547, 0.25332]
    np.testing.assert_allclose(angle, expected, atol=5.1e-6)


@pytest.mark.parametrize("model", ["SA", "USA"])
def test_K5_6_pairing_law_of_three_clusters(particles, model):
    masses, beta = np.array([0.3, 0.2, 0.5]), 60.0
    x0 = np.array([[1, 0, 0], [np.cos(0.8), np.sin(0.8), 0], [0, 0, 1.0]])
    rate = theory.pairing_rate(0.3, 0.2, kind=named_kind(model, "metastability"))
    assert rate == pytest.approx(0.2 / 0.3 + 0.3 / 0.2 if model == "SA" else 0.5)

    def velocity(s, y):
        x = y.reshape(3, 3)
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        gram = x @ x.T
        kernel = masses * np.exp(beta * (gram - gram[0, 1]))  # the slow clock is in the exponent
        np.fill_diagonal(kernel, 0.0)  # a token does not pull itself: P_x x = 0, no rounding
        if model == "SA":
            kernel /= (masses * np.exp(beta * (gram - 1))).sum(axis=1, keepdims=True)
        return particles.project(x, kernel @ x).ravel()

    s = np.linspace(0, 0.7 / rate, 4)
    run = solve_ivp(velocity, (0, s[-1]), x0.ravel(), t_eval=s, rtol=1e-9, atol=1e-12)
    paths = run.y.T.reshape(-1, 3, 3)
    phi = np.arccos(np.einsum("sd,sd->s", paths[:, 0], paths[:, 1]))
    np.testing.assert_allclose(phi, theory.pairing_angle(s, 0.8, rate), rtol=0.01)
    assert phi[-1] > 2.3 / np.sqrt(beta)
    assert np.abs(paths[:, 2] - x0[2]).max() < 1e-12


@pytest.mark.parametrize(("model", "beta"), [("SA", 400.0), ("USA", 1.5)])
def test_merge_fraction_by_integration(model, beta):
    masses, s = (0.15, 0.4), np.linspace(0, 0.5, 5)
    first, second = slow_clock_pair(masses, beta, model, s)
    fraction = first[-1] / (first[-1] + 0.8 - second[-1])
    assert theory.merge_fraction(*masses, named_kind(model)) == pytest.approx(fraction, abs=1e-4)


def test_merge_point():
    x, y = np.array([1.0, 0, 0]), np.array([np.cos(1.1), 0, np.sin(1.1)])
    point = theory.merge_point(x, y, 0.3, 0.1, named_kind("USA"))
    np.testing.assert_allclose(point, [np.cos(1.1 / 4), 0, np.sin(1.1 / 4)], atol=1e-15)
    point = theory.merge_point(x, y, 0.3, 0.1, named_kind("SA"))
    np.testing.assert_allclose(point, [np.cos(0.11), 0, np.sin(0.11)], atol=1e-15)
    batch = theory.merge_point(
        np.stack([x, x]), np.stack([y, x]), [0.3, 0.2], [0.1, 0.5], named_kind("SA")
    )
    np.testing.assert_allclose(batch, [point, x], atol=1e-15)
    with pytest.raises(ValueError, match="antipodal"):
        theory.merge_point(x, -x, 0.5, 0.5)


def test_perspective_pairing_rate_carries_the_exponential():
    fast = theory.pairing_rate(0.3, 0.2, 4.0, named_kind("USA", "perspective"))
    assert fast == pytest.approx(0.5 * np.exp(4.0))
    with pytest.raises(ValueError, match="pass beta"):
        theory.pairing_rate(0.3, 0.2, kind=named_kind("USA", "perspective"))


def test_M7_descent():
    beta, c, u0 = 30.0, 0.7, 1.4
    run = solve_ivp(
        lambda t, u: -c * np.log(beta) * np.sin(u), (0, 0.6), [u0], rtol=1e-11, atol=1e-13
    )
    assert theory.descent_angle(0.6, u0, c, beta) == pytest.approx(run.y[0, -1], rel=1e-8)
    times = theory.descent_time(1.0, 1.0, [1e2, 1e4, 1e8])
    np.testing.assert_allclose(times, [0.3526, 0.3891, 0.4257], atol=5.1e-5)
    radius = theory.descent_angle(theory.descent_time(u0, c, beta), u0, c, beta)
    assert radius == pytest.approx(np.sqrt(np.log(beta) / beta), rel=1e-12)
    # 1/(2c) is the limit: the excess falls like log log beta/log beta
    assert abs(theory.descent_time(1.0, 1.0, 1e300) - 0.5) < 0.01


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="antipodal pairs never meet"):
        theory.two_cluster_lifetime(np.pi, 0.1, 0.5, 0.5, 1.0)
    with pytest.raises(ValueError, match="phi1"):
        theory.two_cluster_lifetime(1.0, 1.1, 0.5, 0.5, 1.0)
    with pytest.raises(ValueError, match="mass > 0"):
        theory.two_cluster_rate(1.0, 0.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="eps < 1/16"):
        closed_forms.metastability_window(0.1, np.pi, 10, 12.0, 1.0)
