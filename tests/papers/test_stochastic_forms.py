import numpy as np
import pytest

from tokenflock.papers.stochastic import closed_forms


def pair(overlap, d):
    x = np.zeros((2, d))
    x[0, 0] = 1
    x[1, :2] = overlap, np.sqrt(1 - overlap**2)
    return x


@pytest.mark.parametrize(("overlap", "d", "beta"), [(0.3, 3, 1.0), (-0.7, 5, 2.0), (0.9, 4, 0.5)])
def test_drift_and_variance_from_the_attention_averages(particles, overlap, d, beta):
    m = particles.attention(pair(overlap, d), beta)
    s, c = m[0] @ m[0], m[0] @ m[1]
    drift = ((d - 2 + overlap**2) * c - (d - 1) * overlap * s) / d
    assert closed_forms.overlap_drift(overlap, d, beta) == pytest.approx(drift, rel=1e-12)
    variance = 2 / d * (1 - overlap**2) * (s - overlap * c)
    assert closed_forms.overlap_variance(overlap, d, beta) == pytest.approx(variance, rel=1e-12)
    assert closed_forms.overlap_drift(overlap, d, beta, 0.6) == pytest.approx(
        0.6 * d * drift, rel=1e-12
    )


@pytest.mark.parametrize(("overlap", "d", "beta"), [(-0.5, 3, 1.2), (0.4, 6, 0.8)])
def test_drift_and_variance_of_one_random_layer(particles, overlap, d, beta):
    rng, eta, samples = np.random.default_rng(4), 0.01, 100_000
    x = pair(overlap, d)
    m = particles.attention(x, beta)
    v = rng.normal(size=(samples, d, d)) / np.sqrt(d)
    v = np.concatenate([v, -v])  # odd powers of eta cancel in the mean
    y = x + eta * np.einsum("sab,ib->sia", v, m)
    y /= np.linalg.norm(y, axis=-1, keepdims=True)
    change = np.einsum("sa,sa->s", y[:, 0], y[:, 1]) - overlap
    even = (change[:samples] + change[samples:]) / 2
    error = even.std() / np.sqrt(samples) / eta**2
    assert abs(even.mean() / eta**2 - closed_forms.overlap_drift(overlap, d, beta)) < 3.5 * error
    assert error < 0.02
    variance = closed_forms.overlap_variance(overlap, d, beta)
    assert change.var() / eta**2 == pytest.approx(variance, rel=0.015)


@pytest.mark.parametrize(("d", "beta"), [(2, 0.3), (3, 1.0), (8, 1.0), (8, 1.5)])
def test_exponents_are_the_linearised_diffusion(d, beta):
    h = 1e-6
    for end, expected in [
        (1, closed_forms.collapse_exponent(d)),
        (-1, closed_forms.antipodal_exponent(d, beta)),
    ]:
        overlap = end * (1 - h)
        drift = -end * closed_forms.overlap_drift(overlap, d, beta) / h
        spread = closed_forms.overlap_variance(overlap, d, beta) / h**2
        assert drift - spread / 2 == pytest.approx(expected, abs=1e-4)


def test_antipodal_threshold():
    for d in (4, 8, 50):
        beta = closed_forms.antipodal_threshold(d)
        assert np.cosh(2 * beta) == pytest.approx(d - 2)
        assert closed_forms.antipodal_exponent(d, beta) == pytest.approx(0, abs=1e-12)
        assert closed_forms.antipodal_probability(0.0, d, beta * 0.999) == 0
        assert closed_forms.antipodal_probability(0.0, d, beta * 1.05) > 0
    assert closed_forms.antipodal_threshold([2, 3]).tolist() == [0, 0]


def test_P6a_1_probability_golden():
    value = closed_forms.antipodal_probability(
        [0, 0, 0, 0, -0.5], [3, 8, 8, 8, 3], [1, 2, 1.5, 1, 1]
    )
    np.testing.assert_allclose(value, [0.2224, 0.0929, 0.0256, 0, 0.3999], atol=5.1e-5)
    overlap = np.array([-0.8, 0.1, 0.9])
    np.testing.assert_allclose(
        closed_forms.antipodal_probability(overlap, 2, 1.7), np.arccos(overlap) / np.pi, atol=1e-14
    )


@pytest.mark.parametrize(("overlap", "d", "beta"), [(0.0, 3, 1.0), (-0.4, 8, 1.6), (0.2, 30, 3.0)])
def test_P6a_1_probability_by_the_scale_function(overlap, d, beta):
    """exp(-int 2 drift/variance) in z = artanh R, from the two coefficients themselves."""

    def slope(z):
        r = np.tanh(z)
        drift, spread = (
            f(r, d, beta) for f in (closed_forms.overlap_drift, closed_forms.overlap_variance)
        )
        shrink = 1 - r * r
        return 2 * (drift / shrink + r * spread / shrink**2) / (spread / shrink**2)

    z, step = np.linspace(-16, 16, 64001, retstep=True)
    inner = slope(np.clip(z, -15, 15))
    potential = np.concatenate([[0], np.cumsum((inner[1:] + inner[:-1]) / 2) * step])
    density = np.exp(-(potential - potential[len(z) // 2]))
    above = density[z >= np.arctanh(overlap)].sum()
    tail = density[0] / -inner[0] / step  # e^{-mu|z|} beyond the grid
    assert closed_forms.antipodal_probability(overlap, d, beta) == pytest.approx(
        above / (density.sum() + tail), abs=4e-4
    )


def test_probability_is_harmonic():
    """The generator annihilates it: drift P' + variance P''/2 = 0."""
    d, beta, r, h = 5, 1.4, np.array([-0.5, 0.0, 0.4]), 1e-3
    low, middle, high = (closed_forms.antipodal_probability(r + s * h, d, beta) for s in (-1, 0, 1))
    first, second = (high - low) / (2 * h), (high - 2 * middle + low) / h**2
    drift, spread = (
        closed_forms.overlap_drift(r, d, beta),
        closed_forms.overlap_variance(r, d, beta),
    )
    scale = np.abs(drift * first).max()
    np.testing.assert_allclose(drift * first + spread * second / 2, 0, atol=1e-4 * scale)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="absorbing"):
        closed_forms.antipodal_probability(-1.0, 3, 1.0)
