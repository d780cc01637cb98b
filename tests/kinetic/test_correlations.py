"""The correlation equations, against the closed form for uniform tokens and against sampled prompts."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize

import tokenflock as flock
from tokenflock import kinetic, theory
from tokenflock.ensembles import mean_and_error
from tokenflock.kinetic.correlations import fourier_coefficients

TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def angle(x):
    return jnp.arctan2(x[:, 1], x[:, 0])


def lopsided(x):
    """phi = cos theta + sin(2 theta)/2: its coefficients are 1/2 and -i/4."""
    return jnp.cos(angle(x)) + jnp.sin(2 * angle(x)) / 2


def uniform_case(positions, s0=0.2):
    start = flock.Density.from_law(
        flock.kinetic.LayeredDensity(positions, 12), flock.laws.uniform()
    )
    return kinetic.correlations(
        flock.KineticFlow(1.0, 1.0), start, lopsided, s0, [0.5, 1.0], **TIGHT
    )


def waves(run, name):
    """Complex coefficients (time, position, n) at the times that were asked for."""
    return fourier_coefficients(run.array(name))[1:]


def closed_form(found, s0):
    """C^(t, s, n) = phi^(n) g_{a_n}(t, s; s0) for n = 1, 2."""
    places = found["C"].position.values
    s = places[places >= s0 - 1e-12]
    rates = theory.mode_rates(2, 1.0)
    t = found.time[1:, None, None]
    return theory.mode_response(rates, t, s[:, None], s0, 1.0) * np.array([0.5, -0.25j])


def error(found, s0=0.2):
    late = waves(found, "C")[:, -closed_form(found, s0).shape[1] :, 1:3]
    return np.abs(late - closed_form(found, s0)).max()


@pytest.fixture(scope="module")
def fine():
    return uniform_case(40)


def test_uniform_tokens_give_the_closed_form(fine):
    """C = phi^ g_a: between grid points C is linear, off by h^2/8 max |d^2 C/ds^2|, amplified by e^{a t}.

    d^2 g/ds^2 is largest at s0 (31.5 for these numbers, by differences of the closed form below).
    """
    s = 0.2 + 1e-3 * np.arange(3)
    g = 0.5 * theory.mode_response(theory.mode_rates(1, 1.0)[0], 1.0, s, 0.2, 1.0)
    bend = abs(np.diff(g, 2)[0]) / 1e-6
    assert error(fine) < bend / (8 * 40**2) * np.exp(theory.largest_rate(1.0))
    assert np.nanmax(np.abs(waves(fine, "C")[..., 3:])) < 1e-12
    assert np.all(np.isnan(waves(fine, "C")[:, :8]))


def tokens_by_the_mean_field(amplitude, beta, t, n=64):
    """Angles at 0 and at t of n tokens at the quantiles of 1 + amplitude cos, each seeing all.

    Equal positions see themselves alone, whatever the mask: theta' = w' * f. Sums over quantiles of a smooth
    periodic law are exact to rounding, as the trapezoid rule is.
    """
    levels = 2 * np.pi * (np.arange(n) + 0.5) / n
    start = [
        optimize.brentq(lambda x, u=u: x + amplitude * np.sin(x) - u, 0, 2 * np.pi, xtol=1e-15)
        for u in levels
    ]

    def speeds(t, x):
        gaps = x[:, None] - x
        return np.mean(-beta * np.sin(gaps) * np.exp(beta * np.cos(gaps)), axis=1)

    path = integrate.solve_ivp(speeds, (0, t), start, method="DOP853", rtol=1e-11, atol=1e-12)
    return np.asarray(start), path.y[:, -1]


def test_a_is_carried_by_the_mean_field(fine):
    """A^(t, s, n) = E e^{-in theta(t)} (phi(theta(0)) - E phi): shapes as `fine`, so nothing is compiled."""
    start = flock.Density.from_law(flock.kinetic.LayeredDensity(40, 12), flock.laws.cosine(0.3))
    found = kinetic.correlations(
        flock.KineticFlow(1.0, 1.0), start, lopsided, 0.2, [0.2, 0.5], **TIGHT
    )
    early, late = tokens_by_the_mean_field(0.3, 1.0, 0.5)
    phi = np.cos(early) + np.sin(2 * early) / 2
    exact = [np.mean(np.exp(-1j * n * late) * (phi - phi.mean())) for n in (1, 2, 3)]
    np.testing.assert_allclose(waves(found, "A")[1, :, 1:4], np.tile(exact, (41, 1)), atol=1e-9)
    frozen = [np.mean(np.exp(-1j * n * early) * (phi - phi.mean())) for n in (1, 2, 3)]
    assert np.abs(np.subtract(exact, frozen)).max() > 0.01


def test_a_constant_is_remembered_by_nobody(fine):
    start = flock.Density.from_law(flock.kinetic.LayeredDensity(40, 12), flock.laws.cosine(0.3))
    known = kinetic.correlations(
        flock.KineticFlow(1.0, 1.0), start, lambda x: 0 * x[:, 0] + 0.7, 0.2, [0.2, 0.5], **TIGHT
    )
    assert not waves(known, "A").any()
    assert not np.nan_to_num(waves(known, "C")).any()


def test_modes_that_no_longer_hold_the_density_end_it(fine):
    """In the words of `solve`; shapes as `fine`."""
    start = flock.Density.from_law(flock.kinetic.LayeredDensity(40, 12), flock.laws.cosine(0.6))
    with pytest.raises(
        flock.errors.SolveError, match=r"stopped at t=0\.\d+ of 2: its highest modes"
    ):
        kinetic.correlations(flock.KineticFlow(2.0, 1.0), start, lopsided, 0.2, [0.1, 2.0], **TIGHT)


@pytest.mark.slow
def test_uniform_tokens_keep_f_and_a(fine):
    """f = 1 and A = phi - mean, for all times."""
    np.testing.assert_allclose(waves(fine, "states")[..., 0], 1.0, atol=1e-14)
    assert np.abs(waves(fine, "states")[..., 1:]).max() < 1e-14
    np.testing.assert_allclose(waves(fine, "A")[..., 1], 0.5, atol=1e-13)
    np.testing.assert_allclose(waves(fine, "A")[..., 2], -0.25j, atol=1e-13)
    assert fine.health["mass_drift"] == 0.0
    assert fine.health["lowest_density"] == pytest.approx(1.0)


@pytest.mark.slow
def test_order_in_position_of_the_correlations(fine):
    assert np.log2(error(uniform_case(20)) / error(fine)) == pytest.approx(2.0, abs=0.1)


@pytest.mark.slow
def test_other_starts_against_sampled_prompts():
    """From 1 + 0.6 cos theta: C(t, 1, n) against 2 x 1500 prompts, extrapolated in 1/n from 30 and 60.

    The sampled bias is c/n + O(1/n^2) up to logarithms, so 2 R_60 - R_30 is off by its noise; bounds are 4 of
    its standard errors plus 1% for what is left of the bias and the grid's h^2.
    """
    model, law, s0, t = flock.KineticFlow(1.2, 1.5), flock.laws.cosine(0.6), 0.4, 0.5
    start = flock.Density.from_law(flock.kinetic.LayeredDensity(40, 24), law)
    limit = []
    for n in (1, 2):
        pair = [
            waves(kinetic.correlations(model, start, phi, s0, [t], **TIGHT), "C")[0, -1, n]
            for phi in (lambda x, n=n: jnp.cos(n * angle(x)), lambda x, n=n: jnp.sin(n * angle(x)))
        ]
        limit.append(pair[0] + 1j * pair[1])
    sizes = [
        kinetic.sample_recall(
            model, n, [int(s0 * n)], t, prompts=1500, seed=3, dt=0.1, shifts=12, law=law
        )
        for n in (30, 60)
    ]
    averages = [mean_and_error(run, "final_response", over="prompt") for run in sizes]
    small, large = (mean.values[0, :2] for mean, _ in averages)
    errors = [error.values[0, :2] for _, error in averages]
    noise = np.hypot(errors[0], 2 * errors[1])
    off = (2 * large - small) - np.real(limit)
    assert np.all(np.abs(off) < 4 * noise + 0.01 * np.abs(limit))
    # The sample tells this start from the uniform one, whose closed form is another number.
    uniform = theory.mode_response(theory.mode_rates(2, 1.2)[1], t, 1.0, s0, 1.5)
    assert abs((2 * large - small)[1] - uniform) > 4 * noise[1] + 0.01 * uniform


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"s0": 0.21}, "inner positions"),
        ({"s0": 1.0}, "inner positions"),
        ({"s0": np.nan}, "inner positions"),
        ({"times": [1.0, 0.5]}, "increase"),
        ({"times": []}, "at least one"),
        ({"rtol": np.nan}, "rtol must be a positive number"),
        ({"phi": lambda x: jnp.cos(13 * angle(x))}, "mode 13 is off"),
        ({"phi": lambda x: jnp.cos(30 * angle(x))}, "cannot hold"),
        ({"phi": lambda x: jnp.cos(4 * angle(x))}, "finer than"),
        ({"phi": lambda x: jnp.nan * x[:, 0]}, "one finite number per point"),
        ({"model": flock.CausalSA(1.0, slope=1.0)}, "unnormalised"),
        ({"model": flock.USA(1.0)}, "later ones"),
        (
            {"start": flock.Density.from_law(flock.meanfield.Fourier(4), flock.laws.uniform())},
            "LayeredDensity",
        ),
    ],
)
def test_requests_that_have_no_answer(change, words):
    given = {
        "model": flock.KineticFlow(1.0, 1.0),
        "start": flock.Density.from_law(flock.kinetic.LayeredDensity(10, 4), flock.laws.uniform()),
        "phi": lopsided,
        "s0": 0.2,
        "times": [1.0],
    }
    with pytest.raises(flock.errors.InputError, match=words):
        kinetic.correlations(**{**given, **TIGHT, **change})
