import numpy as np
import pytest
from named_kinds import named_kind
from scipy.special import eval_gegenbauer, iv, ive

from tokenflock import theory


def circle_kernel_modes(beta, modes=64):
    """Fourier coefficients of e^{beta cos}/beta on the circle, by FFT."""
    grid = 2 * np.pi * np.arange(2 * modes) / (2 * modes)
    return np.fft.rfft(np.exp(beta * np.cos(grid)) / beta).real / (2 * modes)


def test_critical_kappa_golden():
    kappa = theory.critical_kappa(1, [2, 2, 2, 3], [0, 1, 4, 1])
    np.testing.assert_allclose(kappa, [2, 1.769413, 0.409859, 2.718282], atol=5.1e-7)
    coupling = theory.critical_coupling([2, 3], 1.0)
    np.testing.assert_allclose(coupling, [0.884707, 1.359141], atol=5.1e-7)
    temperature = theory.critical_temperature(1, [2, 3], 1.0)
    np.testing.assert_allclose(temperature, [0.565159, 0.367879], atol=5.1e-7)
    assert theory.critical_kappa(2, 2, 0.0) == np.inf


def test_critical_temperature_by_fft():
    modes = circle_kernel_modes(3.2)
    k = np.arange(1, 6)
    np.testing.assert_allclose(theory.critical_temperature(k, 2, 3.2), modes[1:6], rtol=1e-12)
    soft = theory.critical_temperature(k, 2, 3.2, named_kind("SA"))
    np.testing.assert_allclose(soft, modes[1:6] / (3.2 * modes[0]), rtol=1e-12)
    slow = theory.critical_temperature(k, 2, 3.2, named_kind("USA", "metastability"))
    np.testing.assert_allclose(slow, modes[1:6] * np.exp(-3.2), rtol=1e-12)
    assert theory.critical_coupling(5, 2.0) == pytest.approx(
        2**2.5 / (2**2.5 * 1.329340388 * iv(2.5, 2))
    )


@pytest.mark.parametrize("model", ["SA", "USA"])
@pytest.mark.parametrize("k", [1, 3])
def test_noisy_growth_of_the_mean_field_equation(model, k):
    beta, temperature, eps, size = 2.7, 0.31, 1e-6, 128
    theta = 2 * np.pi * np.arange(size) / size
    wave = 1j * np.fft.fftfreq(size, 1 / size)
    density = 1 + eps * np.cos(k * theta)
    kernel = np.exp(beta * np.cos(theta[:, None] - theta)) / size
    potential = kernel @ density / beta
    if model == "SA":
        potential = np.log(kernel @ density) / beta

    def derivative(f):
        return np.fft.ifft(wave * np.fft.fft(f)).real

    rhs = temperature * derivative(derivative(density)) - derivative(
        density * derivative(potential)
    )
    rate = 2 * (rhs * np.cos(k * theta)).mean() / eps
    expected = theory.noisy_growth_rate(k, 2, beta, temperature, named_kind(model))
    assert rate == pytest.approx(expected, abs=1e-6)


def test_K6_11_order_parameter_golden():
    r = theory.order_parameter([1.0, 2.0, 2.5, 3.0, 4.0])
    np.testing.assert_allclose(r, [0, 0, 0.5897, 0.7242, 0.8315], atol=5.1e-5)


@pytest.mark.parametrize(("d", "kappa"), [(2, 2.6), (3, 5.0), (6, 9.0)])
def test_order_parameter_by_iterating_the_stationary_density(d, kappa):
    node, weight = np.polynomial.legendre.leggauss(80)
    theta, r = np.pi * (node + 1) / 2, 1.0
    surface = weight * np.sin(theta) ** (d - 2)
    for _ in range(400):
        weight = surface * np.exp(kappa * r * (np.cos(theta) - 1))
        r = (weight * np.cos(theta)).sum() / weight.sum()
    assert theory.order_parameter(kappa, d) == pytest.approx(r, abs=1e-11)


def test_order_parameter_near_the_threshold():
    for d in (2, 5):
        r = theory.order_parameter(d + 1e-4, d)
        assert r == pytest.approx(np.sqrt((d + 2) * 1e-4) / d, rel=1e-3)
        assert theory.order_parameter(float(d), d) == 0


def test_continuity_beta_golden():
    np.testing.assert_allclose(theory.continuity_beta([2, 3]), [2.446918, 1.816155], atol=5.1e-7)
    for d in (2, 4, 9):
        beta = theory.continuity_beta(d)
        ratio = theory.kernel_eigenvalue(2, d, beta) / theory.kernel_eigenvalue(1, d, beta)
        assert ratio == pytest.approx(1 / d, rel=1e-12)


@pytest.mark.parametrize(("beta", "clustered"), [(2.2, False), (2.7, True)])
def test_continuity_beta_separates_two_kinds_of_transition(beta, clustered):
    """Just above the critical temperature a clustered state survives iff beta > beta_* = 2.447."""
    temperature = 1.0005 * theory.critical_temperature(1, 2, beta)
    theta = 2 * np.pi * np.arange(64) / 64
    modes = circle_kernel_modes(beta, 32)
    density = np.exp(3 * np.cos(theta))
    for _ in range(20000):
        coefficients = np.fft.rfft(density / density.mean()) * modes
        potential = np.fft.irfft(coefficients, 64)
        density = np.exp((potential - potential.max()) / temperature)
    order = (density * np.cos(theta)).mean() / density.mean()
    assert (order > 0.1) == clustered


@pytest.mark.parametrize("k", [1, 2, 4])
def test_brownian_decay_is_the_laplacian_spectrum(k):
    d, h = 5, 1e-4
    t = np.array([-0.6, 0.1, 0.7])
    f = [eval_gegenbauer(k, d / 2 - 1, t + s * h) for s in (-1, 0, 1)]
    laplacian = (1 - t**2) * (f[2] - 2 * f[1] + f[0]) / h**2 - (d - 1) * t * (f[2] - f[0]) / (2 * h)
    decay = -np.log(theory.brownian_correlation(0.9, d, 0.4, k)) / (0.9 * 0.4)
    np.testing.assert_allclose(laplacian, -decay * f[1], atol=1e-5 * np.abs(f[1]).max())


def test_brownian_correlation_by_monte_carlo():
    rng, d, temperature, t, steps, paths = np.random.default_rng(2), 4, 0.3, 0.8, 160, 6000
    start = np.eye(d)[0]
    x = np.tile(start, (paths, 1))
    for _ in range(steps):
        noise = np.sqrt(2 * temperature * t / steps) * rng.normal(size=x.shape)
        x = x + noise - x * (x * noise).sum(1, keepdims=True)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    error = x[:, 0].std() / np.sqrt(paths)
    expected = theory.brownian_correlation(t, d, temperature)
    assert abs(x[:, 0].mean() - expected) < 3 * error + 0.003
    assert expected == pytest.approx(np.exp(-3 * 0.8 * 0.3))


@pytest.mark.parametrize("ratio", [0.4, 1.0, 1.7])
def test_hybrid_exponents_by_one_layer(ratio):
    """E[log of the angle] over one Ito step, with the noise integrated by Gauss-Hermite."""
    beta, dt = 0.8, 1e-6
    noise_squared = ratio * theory.hybrid_threshold(beta)
    node, weight = np.polynomial.hermite_e.hermegauss(40)
    weight = weight / weight.sum()
    step = dt + np.sqrt(noise_squared * dt) * node

    def mean_log_growth(angle, centre):
        """Tokens at +-(centre + angle)/2; both move symmetrically."""
        half = (centre + angle) / 2
        overlap = np.cos(2 * half)
        along = 1 + step * (np.exp(beta) + np.exp(beta * overlap) * overlap) / 2
        across = step * np.exp(beta * overlap) * np.sin(2 * half) / 2
        after = 2 * (half - np.arctan2(across, along)) - centre
        return weight @ np.log(np.abs(after / angle)) / dt

    near, far = theory.hybrid_exponents(noise_squared, beta)
    assert mean_log_growth(1e-4, 0.0) == pytest.approx(near, abs=2e-4)
    assert mean_log_growth(-1e-4, np.pi) == pytest.approx(far, abs=2e-4)
    if ratio == 1:
        assert near == pytest.approx(0, abs=1e-15)
    assert theory.hybrid_threshold(1.0) == pytest.approx(0.7358, abs=5e-5)


def test_thresholds_past_the_largest_float_are_infinite():
    """e^800 is no float; in the other convention the same threshold is I_1(800) e^{-800}/800."""
    assert theory.critical_temperature(1, 2, 800.0) == np.inf
    assert theory.kernel_eigenvalue(1, 2, 800.0) == np.inf
    assert theory.critical_kappa(1, 2, 800.0) == 0
    scaled = theory.critical_temperature(1, 2, 800.0, kind=named_kind("USA", "metastability"))
    assert scaled == pytest.approx(ive(1, 800.0) / 800, rel=1e-12)
