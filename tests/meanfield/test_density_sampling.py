"""Tokens drawn from densities and laws: their distribution functions, by Kolmogorov's statistic.

By the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart P(D > e) <= 2 e^{-2 n e^2} for every law, so
that each comparison below raises a false alarm with probability at most 1e-6.
"""

import numpy as np
import pytest
from scipy import integrate, stats

import tokenflock as flock
from tokenflock.density import Density
from tokenflock.errors import InputError
from tokenflock.kinetic.layered_density import LayeredDensity, from_law_by_position
from tokenflock.meanfield.laws import cosine, sample, uniform, von_mises

FALSE_ALARM = 1e-6
N = 20_000


def has_law(numbers, cdf):
    """D = sup |F_n - F| is no larger than it is once in a million."""
    levels = np.sort(cdf(np.asarray(numbers)))
    n = levels.size
    steps = np.arange(n + 1) / n
    D = max(np.max(np.abs(levels - steps[1:])), np.max(np.abs(levels - steps[:-1])))
    return bool(np.sqrt(np.log(2 / FALSE_ALARM) / (2 * n)) >= D)


def flat(level):
    return np.clip(level, 0.0, 1.0)


def angles(mu):
    x = np.asarray(mu.points)
    return np.arctan2(x[:, 1], x[:, 0])


def von_mises_along(concentration):
    """The law of <x, w> on S^2 under e^{k <x, w>}."""
    top = -np.expm1(-2 * concentration)
    return lambda u: (np.exp(concentration * (u - 1)) - np.exp(-2 * concentration)) / top


def test_the_statistic_sees_a_wrong_law():
    """Otherwise nothing below could fail."""
    drawn = angles(Density.from_law(flock.meanfield.Fourier(32), von_mises(4.0)).sample(N, seed=0))
    assert has_law(drawn, stats.vonmises(4.0).cdf)
    assert not has_law(drawn, stats.vonmises(5.0).cdf)
    assert not has_law(drawn, stats.vonmises(4.0, loc=0.1).cdf)


def test_quantiles_are_uniform_between_neighbours():
    density = Density.from_law(flock.meanfield.Quantiles(50), von_mises(4.0))
    state = np.asarray(density.state)
    ends = np.append(state, state[0] + 2 * np.pi)
    drawn = np.mod(angles(density.sample(N, seed=1)) - state[0], 2 * np.pi) + state[0]
    assert has_law(drawn, lambda theta: np.interp(theta, ends, np.arange(51) / 50))
    atoms = Density(flock.meanfield.Quantiles(3), [0.0, 0.0, 2.0]).sample(999, seed=0)
    at_zero = np.mean(np.abs(angles(atoms)) < 1e-12)
    assert abs(at_zero - 1 / 3) < 5 * np.sqrt(2 / 9 / 999)


@pytest.mark.parametrize(("d", "concentration", "degree"), [(3, 200.0, 110), (8, 3.0, 24)])
def test_zonal_densities_along_the_axis_and_around_it(d, concentration, degree):
    density = Density.from_law(flock.meanfield.Zonal(d, degree), von_mises(concentration))
    mu = density.sample(N, seed=2)
    assert mu.space == flock.Sphere(d)
    x = np.asarray(mu.points)
    grid = np.linspace(-1, 1, 4001)
    weight = np.exp(concentration * (grid - 1)) * (1 - grid**2) ** ((d - 3) / 2)
    law = integrate.cumulative_simpson(weight, x=grid, initial=0.0)
    assert has_law(x[:, 0], lambda u: np.interp(u, grid, law / law[-1]))
    around = x[:, 1] / np.linalg.norm(x[:, 1:], axis=-1)
    assert has_law(around, lambda w: stats.beta((d - 2) / 2, (d - 2) / 2).cdf((1 + w) / 2))


def test_harmonics_about_an_axis_that_is_not_ours():
    w = np.array([1.0, 2.0, -2.0]) / 3.0
    density = Density.from_law(flock.meanfield.Harmonics(20), von_mises(5.0, [1.0, 2.0, -2.0]))
    x = np.asarray(density.sample(N, seed=3).points)
    assert has_law(x @ w, von_mises_along(5.0))
    first = np.array([2.0, -1.0, 0.0]) / np.sqrt(5.0)
    turn = np.arctan2(x @ np.cross(w, first), x @ first)
    assert has_law(turn, lambda phi: (phi + np.pi) / (2 * np.pi))


def test_gaussians_have_their_mean_and_covariance():
    spread = np.array([[2.0, 0.6, 0.0], [0.6, 0.5, 0.0], [0.0, 0.0, 0.0]])
    density = flock.meanfield.gaussian_density([1.0, -2.0, 0.5], spread)
    x = np.asarray(density.sample(N, seed=4).points) - [1.0, -2.0, 0.5]
    assert np.max(np.abs(x[:, 2])) == 0.0
    for direction in ([1.0, 0.0], [0.0, 1.0], [0.6, -0.8]):
        size = np.sqrt(direction @ spread[:2, :2] @ direction)
        assert has_law(x[:, :2] @ direction, stats.norm(scale=size).cdf)


def test_a_layered_density_gives_a_prompt():
    """Token i has the law of its position: levels by its own distribution function are uniform."""
    on = LayeredDensity(positions=8, modes=16)
    density = from_law_by_position(on, lambda s, x: cosine(0.9 * s, 1, 0.4)(x))
    theta = angles(density.sample(N, seed=5))
    s = (np.arange(N) + 0.5) / N

    def levels(position):
        wave = np.sin(theta - 0.4) - np.sin(-np.pi - 0.4)
        return (theta + np.pi) / (2 * np.pi) + 0.9 * position * wave / (2 * np.pi)

    assert has_law(levels(s), flat)
    late = s > 0.5
    assert has_law(levels(s)[late], flat)
    assert not has_law(levels(0.1)[late], flat)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_laws_give_tokens_without_a_discretisation(d):
    w = np.ones(d) / np.sqrt(d)
    x = np.asarray(sample(von_mises(2.0, [1.0] * d), flock.Sphere(d), N, seed=6).points)
    grid = np.linspace(-1, 1, 20001)[1:-1]
    weight = np.exp(2.0 * grid) * (1 - grid**2) ** ((d - 3) / 2)
    law = integrate.cumulative_simpson(weight, x=grid, initial=0.0)
    if d == 2:
        turned = np.arctan2(x[:, 1], x[:, 0]) - np.pi / 4
        assert has_law(np.angle(np.exp(1j * turned)), stats.vonmises(2.0).cdf)
    else:
        assert has_law(x @ w, lambda u: np.interp(u, grid, law / law[-1]))


def test_the_seed_gives_the_sample_again():
    for density in (
        Density.from_law(flock.meanfield.Fourier(8), cosine(0.5)),
        Density.from_law(flock.meanfield.Harmonics(4), uniform()),
    ):
        first, again, other = (density.sample(8, seed=s).points for s in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert not np.any(np.asarray(first) == np.asarray(other))


def circle(n, seed):
    return sample(uniform(), flock.Sphere(2), n, seed)


def test_refusals_say_what_is_needed():
    # 1 + 1.005 cos theta falls to -0.005, which a state may; its mass there is 1e-4.
    negative = Density(flock.meanfield.Fourier(1), [1.0, 1.005 / np.sqrt(2), 0.0])
    with pytest.raises(InputError, match=r"negative on a mass of .*; use more modes than 1"):
        negative.sample(10, seed=0)
    zonal = Density(flock.meanfield.Zonal(3, 1), [1.0, 1.005 / np.sqrt(3)])
    with pytest.raises(InputError, match=r"negative on a mass of .*; use more than degree=1"):
        zonal.sample(10, seed=0)
    with pytest.raises(InputError, match="n >= 2 tokens, got n=1"):
        Density.from_law(flock.meanfield.Fourier(2), uniform()).sample(1, seed=0)
    for draw in (Density.from_law(flock.meanfield.Fourier(2), uniform()).sample, circle):
        with pytest.raises(InputError, match=r"seed from 0 to 2\^63 - 1, got seed=-1"):
            draw(5, seed=-1)
        with pytest.raises(InputError, match=r"seed from 0 to 2\^63 - 1"):
            draw(5, seed=2**63)
    with pytest.raises(InputError, match="a law is a function of points"):
        sample(3.0, flock.Sphere(2), 10, seed=0)
    with pytest.raises(InputError, match="laws live on spheres"):
        sample(uniform(), flock.Euclidean(2), 10, seed=0)
    with pytest.raises(InputError, match="so sharp on"):
        sample(von_mises(1000.0), flock.Sphere(8), 10, seed=0)
    with pytest.raises(InputError, match="finite and non-negative"):
        sample(lambda x: x[:, 0], flock.Sphere(3), 10, seed=0)
