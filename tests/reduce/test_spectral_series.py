"""Coefficients, harmonics and tails of the zonal series, against scipy and against their bounds."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_legendre, ive, sph_harm_y, spherical_in
from spectral_problems import clustered, dense, make, on_sphere, pulled

import tokenflock as flock
from tokenflock.reduce.spectral import series
from tokenflock.reduce.spectral.circle import Fourier
from tokenflock.reduce.spectral.fallback import series_rows
from tokenflock.reduce.spectral.plan import make_plan
from tokenflock.reduce.spectral.products import Products, monomials
from tokenflock.reduce.spectral.sphere import SphericalHarmonics

ARGUMENTS = np.array([0.0, 1e-3, 0.1, 1.0, 9.0, 100.0])
DEGREE, TOP = 60, 110


@pytest.mark.parametrize("d", [2, 3])
def test_coefficients_are_bessel_functions(d):
    degrees = np.arange(DEGREE + 1)[:, None]
    if d == 2:
        exact = np.where(degrees == 0, 1, 2) * ive(degrees, ARGUMENTS)
    else:
        exact = (2 * degrees + 1) * spherical_in(degrees, ARGUMENTS) * np.exp(-ARGUMENTS)
    found = jax.jit(lambda x: series.law(x, d, DEGREE, TOP))(jnp.asarray(ARGUMENTS))
    np.testing.assert_allclose(found, exact, rtol=1e-13, atol=1e-30)


@pytest.mark.parametrize("d", [2, 3])
def test_tails_increase_with_the_argument_and_fall_with_the_degree(d):
    tails = np.array(
        [[series.tail(x, d, k) for x in (0.1, 1.0, 3.0, 9.0, 30.0)] for k in (1, 4, 9, 20)]
    )
    assert np.all(np.diff(tails, axis=1) > 0)
    assert np.all(np.diff(tails, axis=0) < 0)
    assert series.tail(9.0, d, 0) + series.evenly_spread(9.0, d) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize(("d", "beta", "tol"), [(2, 9.0, 1e-10), (2, 400.0, 1e-6), (3, 50.0, 1e-8)])
def test_degree_follows_the_square_root_law(d, beta, tol):
    degree = series.needed_degree(beta, d, tol)
    assert degree == pytest.approx(np.sqrt(2 * beta * np.log(1 / tol)), rel=0.35)
    largest = series.largest_argument(degree, d, tol)
    assert beta <= largest
    assert series.needed_degree(1.001 * largest, d, tol) > degree


def test_fourier_groups_are_chebyshev_polynomials_of_the_product():
    x, y = pulled(2, 7), pulled(2, 7, seed=1)
    basis = Fourier(40)
    terms = np.asarray(basis.features(jnp.asarray(x.T)) * basis.features(jnp.asarray(y.T)))
    sums = np.stack([terms[basis.groups == k].sum(0) for k in range(41)])
    angle = np.arctan2(y[:, 1], y[:, 0]) - np.arctan2(x[:, 1], x[:, 0])
    np.testing.assert_allclose(sums, np.cos(np.arange(41)[:, None] * angle), atol=1e-14)


def test_harmonics_are_scipys():
    degree = 12
    x = pulled(3, 5)
    theta, phi = np.arccos(x[:, 2]), np.arctan2(x[:, 1], x[:, 0])
    found = np.asarray(jax.jit(SphericalHarmonics(degree).features)(jnp.asarray(x.T)))
    row = 0
    for order in range(degree + 1):
        for m in range(order + 1):
            # scipy's are orthonormal with (-1)^m; ours sum to P_l.
            scale = (-1) ** m * np.sqrt(4 * np.pi / (2 * order + 1)) * (1 if m == 0 else np.sqrt(2))
            exact = scale * sph_harm_y(order, m, theta, phi)
            np.testing.assert_allclose(found[row], exact.real, atol=1e-13)
            row += 1
            if m:
                np.testing.assert_allclose(found[row], exact.imag, atol=1e-13)
                row += 1
    assert row == len(found) == SphericalHarmonics(degree).size


@pytest.mark.slow
def test_harmonics_add_up_at_high_degree_and_at_the_poles():
    x = np.concatenate([pulled(3, 2), [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1e-9, 0.0, 1.0]]])
    y = np.concatenate([x[1:], x[:1]])
    basis = SphericalHarmonics(40)
    features = jax.jit(basis.features)
    terms = np.asarray(features(jnp.asarray(x.T)) * features(jnp.asarray(y.T)))
    sums = np.stack([terms[basis.groups == degree].sum(0) for degree in range(41)])
    exact = eval_legendre(np.arange(41)[:, None], np.sum(x * y, -1))
    np.testing.assert_allclose(sums, exact, atol=2e-13)


def test_products_add_up_to_powers():
    x, y = RNG_POINTS
    basis = Products(5, 6)
    features = jax.jit(basis.features)
    terms = np.asarray(features(jnp.asarray(x.T)) * features(jnp.asarray(y.T)))
    assert len(terms) == basis.size == 462
    sums = np.stack([terms[basis.groups == m].sum(0) for m in range(7)])
    np.testing.assert_allclose(sums, np.sum(x * y, -1) ** np.arange(7)[:, None], rtol=1e-12)
    u = np.linspace(-1, 1, 9)
    chebyshev = monomials(6) @ u ** np.arange(7)[:, None]
    np.testing.assert_allclose(chebyshev, np.cos(np.arange(7)[:, None] * np.arccos(u)), atol=1e-13)


RNG_POINTS = (np.array([[0.3, -1.2, 0.5, 0.1, 2.0]]), np.array([[1.0, 0.4, -0.2, 0.7, 0.6]]))


@pytest.mark.parametrize("d", [2, 3])
def test_computed_series_of_the_exponential_is_the_law(d):
    kind, beta = flock.kinds.Unnormalised("metastability"), jnp.asarray(4.0)
    found, left_out, largest = series.computed(kind, beta, 1.0, d, 20)
    np.testing.assert_allclose(found, series.reference_law(4.0, d)[:21], atol=3e-14)
    assert left_out == pytest.approx(2 * series.tail(4.0, d, 20), rel=0.2, abs=3e-13)
    assert largest == pytest.approx(1.0, abs=0.02)
    cubic = flock.kinds.Kernel(flock.kinds.as_function([0.0, 1.0, 0.5, 0.0, -0.25]))
    assert series.computed_degree(cubic, 1.0, 1.0, d, 1e-10) == 3


@pytest.mark.parametrize(
    ("d", "degrees"), [(2, (1, 9, 20)), pytest.param(3, (2, 9), marks=pytest.mark.slow)]
)
def test_the_bound_bounds_and_is_reached(d, degrees):
    """Z of a Dirac is all at u = 1, where the truncation error is the whole tail."""
    measure = jax.jit(series_rows, static_argnums=1)
    for points, sharpness in ((pulled(d), 0.0), (clustered(d), 0.9)):
        problem = make(points, flock.kinds.Unnormalised("metastability"), m=1)
        problem = dataclasses.replace(problem, values=jnp.ones((len(points), 1)))
        for degree in degrees:
            plan = make_plan(problem, 0.99, degree, 9.0, 1.0)
            out, good = measure(problem, plan)
            worst = float(jnp.max(jnp.abs(out - dense(problem))))
            assert bool(jnp.all(good))
            assert sharpness * series.tail(9.0, d, degree) <= worst <= plan.error


@pytest.mark.slow
def test_off_sphere_noise_of_the_keys_is_removed():
    points = on_sphere(pulled(2)) * (1 + 1e-9)
    problem = make(points)
    exact = dense(make(on_sphere(points)))
    np.testing.assert_allclose(flock.Spectral(1e-11)(problem), exact, atol=1e-11)
