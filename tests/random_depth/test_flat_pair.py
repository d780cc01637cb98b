"""Two tokens at beta = 0: the quadratures of chain and diffusion against grids, sampling and each other."""

import numpy as np
import pytest
from scipy.linalg import solve_banded

from tokenflock import theory
from tokenflock.papers.homogenized import flat_pair


def itself(r):
    return r


def by_finite_differences(tau, d, start, reach=None, cells=6000, steps=1500):
    """E R(tau): Crank and Nicolson in z = artanh R, central differences, reflecting ends; second order."""
    low = -8.0 - 6 * np.sqrt(tau / d) if reach is None else -reach
    z, h = np.linspace(low, 10.0 if reach is None else reach, cells + 1, retstep=True)
    dt, drift = tau / steps, (d - 2 + np.tanh(z)) / (2 * d)
    up, down = 1 / (2 * d * h**2) + drift / (2 * h), 1 / (2 * d * h**2) - drift / (2 * h)
    up[-1] = down[0] = 0.0
    bands = np.zeros((3, z.size))
    bands[0, 1:], bands[1], bands[2, :-1] = up[:-1], -up - down, down[1:]
    u, left = np.tanh(z), -dt / 2 * bands
    left[1] += 1
    for _ in range(steps):
        moved = bands[1] * u
        moved[:-1] += bands[0, 1:] * u[1:]
        moved[1:] += bands[2, :-1] * u[:-1]
        u = solve_banded((1, 1), left, u + dt / 2 * moved)
    return np.interp(np.arctanh(start), z, u)


@pytest.mark.parametrize(
    ("tau", "d", "reach"), [(1.28, 8, None), (20.0, 16, None), (100.0, 3, None), (20.0, 2, 20.0)]
)
def test_the_diffusion_agrees_with_finite_differences(tau, d, reach):
    found = flat_pair.diffusion_expectation(itself, tau, d)
    starts = np.array([-0.9, 0.2, 0.7])
    expected = by_finite_differences(tau, d, starts, reach)
    np.testing.assert_allclose(found(starts), expected, atol=5e-5)
    assert found.error < 1e-9
    assert np.all(np.abs(found(np.linspace(-1, 1, 99))) <= 1 + 1e-8)
    np.testing.assert_allclose(found([-1, 1]), [-1, 1], atol=1e-8)


@pytest.mark.parametrize(
    ("layers", "step", "d"), [(2, 0.6, 4), (500, 0.1, 4), (64, 0.1, 2), (20, 0.25, 300)]
)
def test_the_chain_agrees_with_sampling(layers, step, d):
    """V m has N(0, |m|^2/d) coordinates; 4 standard errors of 4000 chains (2000 in many dimensions)."""
    random, runs, start = np.random.default_rng(2), 4000 if d < 100 else 2000, 0.0
    x = np.zeros((2, runs, d))
    x[0, :, 0] = x[1, :, 1] = 1.0
    for _ in range(layers):
        size = step * np.linalg.norm(x.mean(axis=0), axis=1, keepdims=True) / np.sqrt(d)
        x = x + size * random.normal(size=(runs, d))
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
    R = np.sum(x[0] * x[1], axis=-1)
    found = flat_pair.chain_expectation(itself, layers, step, d)
    assert found(start) == pytest.approx(R.mean(), abs=4 * R.std() / np.sqrt(runs))
    square = flat_pair.chain_expectation(np.square, layers, step, d)(start)
    assert square == pytest.approx(np.mean(R**2), abs=4 * np.std(R**2) / np.sqrt(runs))


@pytest.mark.parametrize("d", [4, 8])
def test_p3_10_the_weak_error_is_of_second_order_in_the_step(d):
    """P3-10: E R_12 at tau = 1.28, b = 0, by quadrature of the chain against its diffusion: slope 2 in eta.

    No sampling, so the slope is measurable after all; the theorem only promises 1.
    """
    exact = flat_pair.diffusion_expectation(itself, 1.28, d)(0.2)
    steps = {0.4: 8, 0.2: 32, 0.1: 128}
    chains = [flat_pair.chain_expectation(itself, n, eta, d) for eta, n in steps.items()]
    errors = [chain(0.2) - exact for chain in chains]
    slopes = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(slopes, 2, atol=0.1)
    assert abs(errors[0]) < 0.01
    assert max(chain.error for chain in chains) < 1e-8


def test_a_deep_chain_is_its_diffusion_to_second_order():
    """tau = 10, where few pairs are left: errors at two steps in the ratio 4."""
    exact = flat_pair.diffusion_expectation(itself, 10.0, 4)(0.0)
    coarse, fine = (flat_pair.chain_expectation(itself, 10 * n, n**-0.5, 4)(0.0) for n in (16, 64))
    assert (coarse - exact) / (fine - exact) == pytest.approx(4, abs=0.4)


def test_p3_10_at_six_dimensions_the_second_order_nearly_cancels():
    """Why no slope was seen: the error changes sign between d = 4 and 8; .02 and .003 hold at 6."""

    def error(d, eta):
        exact = flat_pair.diffusion_expectation(itself, 1.28, d)(0.2)
        return flat_pair.chain_expectation(itself, round(1.28 / eta**2), eta, d)(0.2) - exact

    assert abs(error(6, 0.8)) < 0.02
    assert abs(error(6, 0.4)) < 0.003
    assert error(4, 0.4) > 0.005 > -0.005 > error(8, 0.4)


def test_one_flat_layer_has_the_moments_of_the_gram_formulas():
    """(E dR, E dR^2)/eta^2 by quadrature as eta -> 0 against both formulas with s = |mean|^2."""
    d, R, eta = 5, 0.3, 0.01
    gram = np.array([[1, R], [R, 1]])
    s = np.full((2, 2), (1 + R) / 2)
    drift = flat_pair.chain_expectation(lambda r: r - R, 1, eta, d)(R) / eta**2
    square = flat_pair.chain_expectation(lambda r: (r - R) ** 2, 1, eta, d)(R) / eta**2
    assert drift == pytest.approx(theory.gram_drift(gram, s, d)[0, 1], abs=1e-3)
    assert square == pytest.approx(theory.gram_variation(gram, s, d)[0, 1], abs=1e-3)


def test_no_layer_and_no_time_change_nothing():
    starts = np.linspace(-1, 1, 11)
    for found in (
        flat_pair.chain_expectation(np.exp, 0, 0.1, 4),
        flat_pair.diffusion_expectation(np.exp, 0.0, 4),
    ):
        np.testing.assert_allclose(found(starts), np.exp(starts), atol=1e-8)


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda: flat_pair.chain_expectation(itself, -5, 0.1, 4), "layers"),
        (lambda: flat_pair.chain_expectation(itself, 5, 0.0, 4), "step"),
        (lambda: flat_pair.chain_expectation(itself, 5, np.inf, 4), "step must lie"),
        (lambda: flat_pair.chain_expectation(itself, 5, 0.1, 1), "d must lie"),
        (lambda: flat_pair.chain_expectation(itself, 1, 0.1, 10**7), "cannot be computed"),
        (lambda: flat_pair.chain_expectation(itself, 10**6, 0.1, 8), "grid points"),
        (lambda: flat_pair.diffusion_expectation(itself, -1.0, 4), "tau"),
        (lambda: flat_pair.diffusion_expectation(itself, 1e4, 8), "grid points"),
        (lambda: flat_pair.diffusion_expectation(np.sign, 0.01, 4), "is not known to 1e-06"),
        (lambda: flat_pair.diffusion_expectation(lambda r: r / 0 * r, 0.1, 4), "finite"),
        (lambda: flat_pair.diffusion_expectation(itself, 0.1, 4)(1.5), "start must lie"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_cannot_be_computed_is_refused(ask, why):
    with pytest.raises(ValueError, match=why):
        ask()
