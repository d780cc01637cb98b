"""W2 on the circle: against linear programs, closed forms and itself."""

import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import tokenflock as flock
from tokenflock.density import Density
from tokenflock.errors import InputError
from tokenflock.meanfield import transport
from tokenflock.meanfield.cdf import distribution_of_law, trimmed
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.laws import cosine, uniform, von_mises
from tokenflock.meanfield.quantiles import Quantiles
from tokenflock.meanfield.transport import w2_on_circle
from tokenflock.observables.transport import _program

RNG = np.random.default_rng(8)
LEFT, RIGHT = cosine(0.5, 1, 0.2), cosine(0.4, 2, 1.0)


def by_linear_program(mu, nu):
    """HiGHS on all pairs of geodesic distances."""
    cost = np.asarray(flock.Sphere(2).distance(mu.points[:, None], nu.points[None])) ** 2
    return np.sqrt(_program(cost, np.asarray(mu.weights), np.asarray(nu.weights)))


@pytest.mark.parametrize(("n", "m"), [(5, 7), (20, 31), (16, 16), (40, 3)])
def test_atoms_agree_with_the_linear_program(n, m):
    for spread in (0.3, 9.0):
        weights = (None, None) if n == m else (RNG.uniform(0.1, 1, n), RNG.uniform(0.1, 1, m))
        mu = flock.from_angles(spread * RNG.uniform(-1, 1, n), weights[0])
        nu = flock.from_angles(RNG.normal(3, 1, m), weights[1])
        found = w2_on_circle(mu, nu)
        # HiGHS is feasible to 1e-7 of the masses, mostly to rounding; W2 is of order one.
        assert found == pytest.approx(by_linear_program(mu, nu), abs=1e-8)
        assert found == pytest.approx(w2_on_circle(nu, mu), abs=1e-14)


def test_a_series_of_any_angles_is_the_sum_of_its_modes():
    """Looked up on a grid by Taylor series, against the sums themselves."""
    for modes in (1, 5, 300):
        k = np.arange(1, modes + 1)
        c = (RNG.normal(size=modes) + 1j * RNG.normal(size=modes)) * np.exp(-9 * k / modes) / modes
        law, theta = trimmed(c), RNG.uniform(-8, 8, 500)
        waves = np.exp(1j * np.outer(theta, k))
        exact = 1 + 2 * np.real(waves @ c)
        np.testing.assert_allclose(law.densities(theta), exact, atol=1e-13)
        primitive = c / (1j * k) / np.pi
        rise = np.real(waves @ primitive - np.sum(primitive * np.exp(-1j * k * np.pi)))
        np.testing.assert_allclose(law.masses(theta), (theta / np.pi + 1) / 2 + rise, atol=1e-14)


def test_many_tokens_and_many_modes_are_not_multiplied():
    """20,000 tokens times 300 modes would be 96 MB of waves."""
    density = Density.from_law(Fourier(300), von_mises(2000.0))
    many = flock.from_angles(2 * np.pi * (np.arange(20_000) + 0.5) / 20_000)
    few = flock.from_angles(2 * np.pi * (np.arange(64) + 0.5) / 64)
    w2_on_circle(density, few)
    tracemalloc.start()
    found = w2_on_circle(density, many)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16e6
    # The n-gon is pi/(n sqrt 3) from uniform, and W2 obeys the triangle inequality.
    even = Density.from_law(Fourier(300), uniform())
    assert abs(found - w2_on_circle(density, even)) <= np.pi / 20_000 / np.sqrt(3) + 1e-10


@pytest.mark.parametrize("law", [cosine(1.0, 2), von_mises(20.0), von_mises(50.0)])
def test_a_narrow_bracket_finds_the_least_cost_where_the_density_vanishes(law, monkeypatch):
    """Quantiles cross the empty arc within rounding of the shift; the others move along straight lines."""
    density = Density.from_law(Fourier(256), law)
    tokens, looked_up = density.sample(5_000, seed=3), []
    count = transport._lifted_quantiles
    monkeypatch.setattr(
        transport,
        "_lifted_quantiles",
        lambda mu, levels, *rest: looked_up.append(levels.size) or count(mu, levels, *rest),
    )
    narrow = w2_on_circle(density, tokens)
    assert sum(looked_up) < 10 * 5_000
    # Without a guess the shift is sought by quantiles of all levels, on the whole line.
    monkeypatch.setattr(transport, "NEARBY_LINES", 1e-300)
    assert narrow**2 == pytest.approx(w2_on_circle(density, tokens) ** 2, abs=2e-13)


@pytest.mark.parametrize("n", [2, 9, 60])
def test_equal_tokens_agree_with_every_shift_and_with_assignment(n):
    """The best of n cyclic shifts of sorted angles; and scipy's assignment on geodesic distances."""
    theta, other = np.sort(RNG.uniform(-np.pi, np.pi, n)), np.sort(RNG.normal(2.0, 1.5, n))
    found = w2_on_circle(flock.from_angles(theta), flock.from_angles(other))
    apart = np.angle(np.exp(1j * (theta[:, None] - other))) ** 2
    rows, columns = linear_sum_assignment(apart)
    assert found**2 == pytest.approx(apart[rows, columns].mean(), abs=1e-13)
    in_order = np.sort(np.angle(np.exp(1j * other)))
    shifts = [np.mean(np.angle(np.exp(1j * (theta - np.roll(in_order, s)))) ** 2) for s in range(n)]
    assert found**2 == pytest.approx(min(shifts), abs=1e-13)


def test_a_turn_and_the_cut_do_not_matter():
    theta = RNG.uniform(-np.pi, np.pi, 50)
    other = RNG.normal(np.pi, 0.3, 50)
    apart = w2_on_circle(flock.from_angles(theta), flock.from_angles(other))
    for turn in (0.4, np.pi, 3.0):
        moved = w2_on_circle(flock.from_angles(theta + turn), flock.from_angles(other + turn))
        assert moved == pytest.approx(apart, abs=1e-13)
    # Short across the cut: both tokens move on by 0.02.
    here, there = np.array([np.pi - 0.02, np.pi - 0.01]), np.array([-np.pi, -np.pi + 0.01])
    short = w2_on_circle(flock.from_angles(here), flock.from_angles(there))
    assert short == pytest.approx(0.02, abs=1e-14)


def test_closed_forms_of_densities():
    even = Density.from_law(Fourier(16), uniform())
    pole = flock.from_angles(np.zeros(2))
    # int theta^2 dtheta/(2 pi) = pi^2/3; with 1 + 0.5 cos it gains 0.5 int theta^2 cos/(2 pi) = -1.
    assert w2_on_circle(even, pole) == pytest.approx(np.pi / np.sqrt(3), abs=1e-13)
    half = Density.from_law(Fourier(16), cosine(0.5, 1))
    assert w2_on_circle(half, pole) == pytest.approx(np.sqrt(np.pi**2 / 3 - 1), abs=1e-13)
    # n equally spaced atoms take their arcs of 2 pi/n: each quantile moves by a uniform |.| <= pi/n.
    gon = flock.from_angles(2 * np.pi * np.arange(7) / 7 + 0.3)
    assert w2_on_circle(even, gon) == pytest.approx(np.pi / 7 / np.sqrt(3), abs=1e-12)
    # To first order in its amplitude, a wave eps cos k theta is eps/(sqrt 2 k) from uniform.
    for k in (1, 3):
        wave = Density.from_law(Fourier(16), cosine(1e-4, k, 0.5))
        assert w2_on_circle(even, wave) == pytest.approx(1e-4 / np.sqrt(2) / k, rel=1e-6)


def test_all_pairs_of_kinds_agree_in_the_limit():
    exact = w2_on_circle(Density.from_law(Fourier(24), LEFT), Density.from_law(Fourier(24), RIGHT))
    back = w2_on_circle(Density.from_law(Fourier(24), RIGHT), Density.from_law(Fourier(24), LEFT))
    assert back == pytest.approx(exact, abs=1e-13)
    errors = {}
    for n in (100, 1000):
        atoms = Density.from_law(Quantiles(n), RIGHT)
        mixed = w2_on_circle(Density.from_law(Fourier(24), LEFT), atoms)
        # Atoms in the middle of their masses: W2^2 gains the variance within, of second order.
        errors[n] = abs(mixed - exact)
        assert abs(w2_on_circle(Density.from_law(Quantiles(n), LEFT), atoms) - exact) < 20 / n**2
    assert 80 < errors[100] / errors[1000] < 120
    assert w2_on_circle(atoms, atoms) == 0
    assert w2_on_circle(atoms, atoms.as_measure()) < 1e-12


@pytest.mark.slow
def test_densities_that_get_small():
    """Two von Mises laws of concentration 8, a radian apart: densities down to 1e-7.

    Against 20000 atoms at the quantiles of equal mass.
    """
    laws = von_mises(8.0), von_mises(8.0, [float(np.cos(1.0)), float(np.sin(1.0))])
    found = w2_on_circle(*(Density.from_law(Fourier(128), law) for law in laws))
    # Atoms see shifts of 1/n alone, and the best shift is 2e-4: off by half of
    # 1/n costs C''/(8 n^2). C' rises from -4 pi at 0 to 0 there: C'' is about 6e4.
    n = 20_000
    by_atoms = w2_on_circle(*(Density.from_law(Quantiles(n), law) for law in laws))
    assert found == pytest.approx(by_atoms, abs=1e5 / n**2 / 8)
    # Turning it is not the best way: the little mass behind goes the other way round.
    assert found < 1 - 1e-4
    assert w2_on_circle(*(Density.from_law(Fourier(128), laws[0]) for _ in range(2))) < 1e-11


@pytest.mark.slow
def test_sharp_densities_of_many_modes():
    """Turned by 0.7, von Mises of concentration 1e4 moves as a whole: behind it lies e^{-2e4} of its mass."""
    turned = von_mises(1e4, [float(np.cos(0.7)), float(np.sin(0.7))])
    densities = [Density.from_law(Fourier(1024), law) for law in (von_mises(1e4), turned)]
    found = w2_on_circle(*densities)
    # Densities are differences of distribution functions over 32 cells a mode, each rounded to eps; that
    # noise lies on all of the circle, 2 pi long: 32 x 2 pi eps = 4.5e-14 a mode.
    assert found**2 == pytest.approx(0.49, abs=1024 * 4.5e-14)


def test_a_rule_that_has_not_come_to_rest_says_so(monkeypatch):
    monkeypatch.setattr(transport, "MOST_NODES", 256)
    turned = von_mises(1e3, [float(np.cos(0.7)), float(np.sin(0.7))])
    densities = [Density.from_law(Fourier(384), law) for law in (von_mises(1e3), turned)]
    with pytest.warns(UserWarning, match=r"last rule, of 256 nodes, changed W2\^2"):
        w2_on_circle(*densities)


def test_a_table_by_fft_is_the_sum():
    law = distribution_of_law(von_mises(30.0, [0.6, 0.8]))
    angles, masses = law.table(512)
    np.testing.assert_allclose(masses, law.masses(angles), atol=1e-14)
    uniform_angles, uniform_masses = trimmed(np.zeros(3)).table(256)
    np.testing.assert_allclose(uniform_masses, (uniform_angles + np.pi) / (2 * np.pi), atol=1e-15)


def test_sentences():
    mu = flock.uniform(flock.Sphere(3), 5, seed=0)
    with pytest.raises(InputError, match="compares measures on the circle"):
        w2_on_circle(mu, mu)
    batch = flock.uniform(flock.Sphere(2), 5, seed=0, samples=3)
    with pytest.raises(InputError, match="compares two measures, got samples of shape"):
        w2_on_circle(batch, batch)
    negative = Density(Fourier(1), [1.0, 0.0, 0.0]).at(jnp.array([1.0, 1.0, 0.0]))
    with pytest.raises(InputError, match="the density is negative on a mass of"):
        w2_on_circle(negative, negative)
