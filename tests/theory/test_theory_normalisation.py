import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tokenflock import theory

SCHEMES = ["post", "pre", "mix", "peri", "ngpt", "sqrt"]


def normalise(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def particle_velocity(particles, scheme, t, x, beta, alpha=1.0, tau=5.0):
    """Velocity of the unnormalised tokens x = r theta, from the meaning of each scheme."""
    r = np.linalg.norm(x, axis=1, keepdims=True)
    theta = x / r
    a = particles.attention(theta, beta)
    if scheme == "pre" or (scheme == "mix" and t > tau):
        return a
    if scheme == "peri":
        return normalise(a)
    step = {"ngpt": alpha * normalise(a), "sqrt": a / np.sqrt(t + 1)}.get(scheme, a)
    return r * particles.project(theta, step)


@pytest.mark.parametrize("rho", [-0.19, 0.0, 0.45])
def test_attention_moments_by_brute_force(particles, rho):
    n, beta = 6, 1.3
    x = particles.equiangular(n, rho)
    a = particles.attention(x, beta)
    expected = theory.attention_projection(rho, n, beta)
    np.testing.assert_allclose((x * a).sum(axis=1), expected, atol=1e-13)
    norm = theory.attention_norm(rho, n, beta)
    np.testing.assert_allclose(np.linalg.norm(a, axis=1), norm, atol=1e-13)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("t", [2.0, 7.0])
def test_scheme_rates_are_the_particle_field(particles, scheme, t):
    n, beta, rho, r, alpha, tau = 5, 1.6, 0.21, 1.7, 0.4, 5.0
    x = r * particles.equiangular(n, rho)
    v = particle_velocity(particles, scheme, t, x, beta, alpha, tau)
    radial = (x * v).sum(axis=1) / r
    gram_rate = (v @ x.T + x @ v.T) / r**2 - 2 * rho * radial[:, None] / r
    rates = theory.scheme_rates(scheme, t, rho, r, n, beta, alpha=alpha, tau=tau)
    np.testing.assert_allclose(gram_rate[~np.eye(n, dtype=bool)], rates[0], atol=1e-13)
    np.testing.assert_allclose(radial, rates[1], atol=1e-13)


@pytest.mark.parametrize("scheme", ["pre", "peri", "ngpt", "mix"])
def test_solution_is_the_particle_flow(particles, scheme):
    n, beta, times = 4, 2.0, np.array([1.0, 4.0])
    x0 = 1.5 * particles.equiangular(n, -0.1)

    def velocity(t, y):
        x = y.reshape(x0.shape)
        return particle_velocity(particles, scheme, t, x, beta, alpha=0.3, tau=1.0).ravel()

    y = x0.ravel()
    path = theory.solve_scheme(scheme, times, n, beta, rho0=-0.1, radius0=1.5, alpha=0.3, tau=1.0)
    for k, (begin, end) in enumerate([(0, 1), (1 + 1e-14, 4)]):
        y = solve_ivp(velocity, (begin, end), y, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
        x = y.reshape(x0.shape)
        theta = normalise(x)
        assert theta[0] @ theta[2] == pytest.approx(path.rho[k], abs=1e-9)
        assert np.linalg.norm(x[1]) == pytest.approx(path.radius[k], abs=1e-9)


def test_K6_3_post_and_sqrt():
    post = theory.solve_scheme("post", [5, 15], 16, 2)
    assert post.gap[0] == pytest.approx(1.71723e-3, rel=3e-6)
    assert np.diff(np.log(post.gap))[0] / 10 == pytest.approx(-2.000, abs=5e-4)
    root = theory.solve_scheme("sqrt", [10, 15], 16, 2)
    slope = np.diff(np.log(root.gap))[0] / np.diff(np.sqrt(root.t + 1))[0]
    assert slope == pytest.approx(-3.995, abs=5e-4)


def test_K6_3_pre_and_peri():
    times = np.array([10, 20, 40, 80, 160])
    pre = theory.solve_scheme("pre", times, 16, 2)
    peri = theory.solve_scheme("peri", times, 16, 2)
    np.testing.assert_allclose(pre.gap[[0, -1]], [3.22146e-2, 9.44997e-5], rtol=3e-6)
    assert peri.gap[0] == pytest.approx(2.24708e-2, rel=3e-6)
    slopes = np.diff(np.log([pre.gap, peri.gap])) / np.log(2)
    np.testing.assert_allclose(slopes[0], [-2.207, -2.116, -2.060, -2.030], atol=6e-4)
    np.testing.assert_allclose(slopes[1], [-1.954, -1.983, -1.993, -1.997], atol=6e-4)


def test_K6_3_ngpt_and_mix():
    ngpt = theory.solve_scheme("ngpt", 5, 16, 2, alpha=1.0)
    assert ngpt.gap[0] == pytest.approx(2.09729e-4, rel=3e-6)
    mix = theory.solve_scheme("mix", [0, 5, 10], 16, 2, tau=5)
    np.testing.assert_allclose(mix.gap, [1, 1.71723e-3, 4.77322e-5], rtol=3e-6)
    assert mix.radius[1] == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_K6_4_initial_slopes(particles, scheme):
    n, beta, r0, alpha = 6, 1.4, 1.8, 0.35
    slope = theory.initial_slope(scheme, n, beta, radius0=r0, alpha=alpha)
    options = {"alpha": alpha, "tau": 5.0}
    rate = theory.scheme_rates(scheme, 0, 0, r0, n, beta, **options)[0]
    assert slope == pytest.approx(rate, rel=1e-12)
    x = r0 * particles.equiangular(n, 0.0)
    v = particle_velocity(particles, scheme, 0, x, beta, alpha)
    assert (v[0] @ x[3] + x[0] @ v[3]) / r0**2 == pytest.approx(slope, rel=1e-12)
    h = 1e-4
    path = theory.solve_scheme(scheme, [0, h, 2 * h], n, beta, radius0=r0, **options)
    difference = path.rho @ np.array([-3, 4, -1]) / (2 * h)
    assert difference == pytest.approx(slope, rel=1e-6)


def test_K6_5_pre_radius_grows_linearly():
    delta, t = 1e-3, np.array([1.0, 10.0, 100.0])
    radius = theory.solve_scheme("pre", t, 5, 1.0, rho0=1 - delta, radius0=2.0).radius
    assert (radius >= 2 + (1 - delta) * t).all()
    assert (radius <= 2 + t).all()


def test_K6_6_schemes_share_one_orbit():
    t = np.array([0.5, 3.0, 12.0])
    root = theory.solve_scheme("sqrt", t, 9, 2.5, rho0=-0.05).gap
    clock = 2 * (np.sqrt(t + 1) - 1)
    np.testing.assert_allclose(root, theory.equiangular_gap(clock, 9, 2.5, -0.05), rtol=1e-8)
    post = theory.solve_scheme("post", t, 9, 2.5, rho0=-0.05).gap
    np.testing.assert_allclose(post, theory.equiangular_gap(t, 9, 2.5, -0.05), rtol=1e-8)


def test_ngpt_clock_is_the_integral_of_alpha():
    t = np.array([0.4, 2.0, 6.0])
    varying = theory.solve_scheme("ngpt", t, 7, 1.5, alpha=lambda s: 1 / (1 + s)).gap
    constant = theory.solve_scheme("ngpt", np.log1p(t), 7, 1.5, alpha=1.0).gap
    np.testing.assert_allclose(varying, constant, rtol=1e-8)


@pytest.mark.parametrize("rho", [-0.12, 0.0, 0.6])
def test_K1_17_layer_map_by_brute_force(particles, rho):
    n, beta, eta = 8, 1.9, 0.7
    x = particles.equiangular(n, rho)
    y = normalise(x + eta * particles.attention(x, beta))
    inner = (y @ y.T)[np.triu_indices(n, 1)]
    np.testing.assert_allclose(inner, theory.layer_map(rho, eta, n, beta), atol=1e-13)


def test_K1_17_layer_counts():
    counts = [theory.layer_steps(0.999, eta, 32, 4) * eta for eta in (1, 0.1, 0.01)]
    np.testing.assert_allclose(counts, [12, 7.5, 7.01], atol=1e-9)
    counts = [theory.layer_steps(0.999, eta, 32, 8) * eta for eta in (1, 0.1, 0.01)]
    np.testing.assert_allclose(counts, [147, 80.8, 74.18], atol=1e-9)


def test_layer_steps_from_another_start():
    gamma, count = -0.1, 0
    while gamma < 0.9:
        gamma, count = theory.layer_map(gamma, 0.3, 6, 1.5), count + 1
    assert theory.layer_steps(0.9, 0.3, 6, 1.5, gamma0=-0.1) == count
    assert count > theory.layer_steps(0.9, 0.3, 6, 1.5, gamma0=0.1)


def test_layer_map_tends_to_the_flow():
    rho, eta = np.array([0.0, 0.3, 0.9]), np.array([[1e-5], [5e-6]])
    slope = (theory.layer_map(rho, eta, 12, 2.0) - rho) / eta
    extrapolated = 2 * slope[1] - slope[0]
    np.testing.assert_allclose(extrapolated, theory.equiangular_rate(rho, 12, 2.0), rtol=1e-8)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="scheme must be one of"):
        theory.solve_scheme("sandwich", [1.0], 4, 1.0)
    with pytest.raises(ValueError, match="tau"):
        theory.solve_scheme("mix", [1.0], 4, 1.0)
    with pytest.raises(ValueError, match=r"-0\.333333"):
        theory.attention_norm(-0.4, 4, 1.0)
    with pytest.raises(ValueError, match="increasing"):
        theory.solve_scheme("post", [2.0, 1.0], 4, 1.0)
    with pytest.raises(ValueError, match="rho0 must lie in"):
        theory.solve_scheme("post", [2.0], 4, 1.0, rho0=1.0)
    with pytest.raises(ValueError, match="not reached"):
        theory.layer_steps(0.999, 0.01, 32, 8, most=100)
