"""Growth rates around the uniform measure: from the equation, against Bessel and Gegenbauer."""

import numpy as np
import pytest
from named_kinds import named_kind

import tokenflock as flock
from tokenflock import theory
from tokenflock.dynamics import Dynamics
from tokenflock.errors import InputError, SolveError
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.linear import fastest_degree, growth_rates, growth_rates_of_runs
from tokenflock.meanfield.sphere import Harmonics
from tokenflock.meanfield.zonal import Zonal
from tokenflock.space import Sphere
from tokenflock.terms import Drift
from tokenflock.weights import Weights

BASES = [Fourier(40), Zonal(3, 40), Harmonics(16), Zonal(8, 40), Zonal(64, 40)]
ALL = pytest.mark.parametrize("on", BASES, ids=str)


def degrees_of(on):
    return np.arange(1, on.scheme().basis.degree + 1)


@ALL
@pytest.mark.parametrize("label", ["USA", "SA"])
def test_K5_1_all_modes_grow_as_foretold(on, label):
    """Every degree of every basis, from rates of 1e2 to 1e-80: relative, so that none hides.

    The kernel's numbers come from a recurrence here and from scipy's Bessel functions there, and both
    know Funk and Hecke's theorem; below, sums over nodes do not.
    """
    degrees = degrees_of(on)
    for beta in (1.0, 5.0, 20.0):
        model = flock.USA(beta) if label == "USA" else flock.SA(beta)
        found = growth_rates(model, on, degrees)
        expected = theory.growth_rate(degrees, on.space.d, beta, named_kind(label))
        np.testing.assert_allclose(found, expected, rtol=1e-11)


def summed(label, beta, d):
    """Attention as weights B = I, V = I, whose field is summed over nodes: no Funk-Hecke number enters."""
    weights = Weights(B=np.eye(d), V=np.eye(d))
    return (flock.USA if label == "USA" else flock.SA)(beta, weights=weights)


def seen_in_sums(rates):
    """Rounding of some hundred terms, 1e-14 of the fastest rate, is 1e-5 of a rate 1e-9 times as fast."""
    return rates >= 1e-9 * np.max(rates)


@pytest.mark.parametrize("label", ["USA", "SA"])
@pytest.mark.parametrize(
    ("on", "least"),
    [(Fourier(40), 19), (Zonal(3, 40), 18), (Zonal(8, 40), 16), (Zonal(64, 40), 9)],
    ids=["2", "3", "8", "64"],
)
def test_sums_over_nodes_grow_as_foretold(on, least, label):
    """Rates that know neither Bessel functions nor that harmonics are eigenfunctions of the kernel.

    A formula with k^2 or k in the place of k(k+d-2), or with another beta, is told apart.
    """
    degrees, d, beta = degrees_of(on), on.space.d, 5.0
    expected = theory.growth_rate(degrees, d, beta, named_kind(label))
    seen = seen_in_sums(expected)
    assert np.sum(seen) >= least
    found = growth_rates(summed(label, beta, d), on, degrees)
    np.testing.assert_allclose(found[seen], expected[seen], rtol=1e-4)
    other_beta = theory.growth_rate(degrees, d, 1.001 * beta, named_kind(label))
    assert np.max(np.abs(found / other_beta - 1)[seen]) > 1e-3
    if d > 2:
        flat = expected * degrees / (degrees + d - 2)
        assert np.min(np.abs(found / flat - 1)[seen]) > 0.05


@ALL
def test_noise_takes_its_share(on):
    """k(k+d-2)(c_k - T); where the two nearly cancel the error is relative to each of them."""
    degrees, d = degrees_of(on), on.space.d
    found = growth_rates(flock.NoisyUSA(2.0, 0.1), on, degrees)
    expected = theory.noisy_growth_rate(degrees, d, 2.0, 0.1)
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.max(np.abs(expected)))


def test_printed_rates():
    """K5.1 and K5.2 of the notes: numbers that neither module here computed."""
    modes = np.arange(1, 6)
    usa = growth_rates(flock.USA(5.0), Fourier(40), modes)
    np.testing.assert_allclose(usa, [4.86713, 14.00449, 18.59607, 16.34635, 10.78987], atol=6e-6)
    assert growth_rates(flock.SA(5.0), Fourier(40), [3]) == pytest.approx(0.6826783336, abs=1e-9)
    sphere = growth_rates(flock.USA(4.0), Harmonics(16), [1, 2, 3])
    np.testing.assert_allclose(sphere, [2.5607192, 4.4721008, 4.1840632], atol=6e-8)


@pytest.mark.parametrize(
    ("on", "betas", "fastest"),
    [
        (
            Fourier(40),
            (1, 2, 4, 5, 7, 9, 16, 25, 50, 100, 200),
            (1, 2, 3, 3, 4, 4, 6, 7, 10, 14, 20),
        ),
        (
            Zonal(3, 40),
            (1, 2, 4, 5, 7, 9, 16, 25, 50, 100, 200),
            (1, 2, 2, 3, 3, 4, 5, 7, 10, 14, 20),
        ),
        (Zonal(8, 40), (5, 6, 10, 16, 25, 50, 100, 200), (1, 2, 2, 3, 5, 7, 11, 17)),
    ],
    ids=["2", "3", "8"],
)
def test_K5_3_the_fastest_degree(on, betas, fastest):
    """The table of k* in the notes, from the equation."""
    found = [fastest_degree(flock.SA(float(beta)), on) for beta in betas]
    assert tuple(found) == fastest


def test_transitions_are_where_two_rates_meet():
    """Just below and above the root of lambda_k = lambda_{k+1} the winner changes (d = 2, 3, 64)."""
    for on in (Fourier(40), Zonal(3, 40), Zonal(64, 40)):
        for k in (1, 3, 5):
            edge = float(theory.transition_beta(k, on.space.d))
            winners = [fastest_degree(flock.SA(edge * f), on) for f in (1 - 1e-6, 1 + 1e-6)]
            assert winners == [k, k + 1]


# Noise damps degree 1 at the rate (d - 1) T: 0.1 in every dimension, so that some degrees grow.
MEASURED = {
    "USA": (lambda d: flock.USA(5.0), lambda k, d: theory.growth_rate(k, d, 5.0)),
    "SA": (lambda d: flock.SA(5.0), lambda k, d: theory.growth_rate(k, d, 5.0, named_kind("SA"))),
    "noisy": (
        lambda d: flock.NoisyUSA(2.0, 0.1 / (d - 1)),
        lambda k, d: theory.noisy_growth_rate(k, d, 2.0, 0.1 / (d - 1)),
    ),
}


def check_runs(on, name, degrees):
    model, law = MEASURED[name]
    expected = law(degrees, on.space.d)
    # Fewer e-folds than this are lost in rounding: 1e-10 over 1e-6 is the 1e-4 that is asked.
    folds = np.minimum(5 * np.abs(expected) / np.max(expected), 1)
    seen = degrees[folds > 1e-5]
    found = growth_rates_of_runs(model(on.space.d), on, seen)
    np.testing.assert_allclose(found, law(seen, on.space.d), rtol=1e-4)
    return seen


@pytest.mark.slow
def test_runs_grow_as_foretold():
    """One program: all degrees that can be seen to grow on the circle."""
    assert len(check_runs(Fourier(24), "SA", np.arange(1, 19))) >= 14


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("on", [Fourier(24), Zonal(3, 24), Zonal(8, 24), Zonal(64, 24)], ids=str)
def test_runs_in_every_dimension(on, name, request):
    if name == "noisy" and on.space.d == 64:
        reason = "the free energy of so small a bump changes by less than its own rounding"
        request.applymarker(pytest.mark.xfail(raises=SolveError, strict=True, reason=reason))
    assert len(check_runs(on, name, np.arange(1, 19))) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_runs_on_the_sphere(name):
    check_runs(Harmonics(12), name, np.arange(1, 9))


@pytest.mark.slow
@pytest.mark.parametrize("on", [Fourier(24), Zonal(3, 24), Zonal(8, 24), Zonal(64, 24)], ids=str)
def test_runs_of_sums_over_nodes(on):
    d, degrees = on.space.d, np.arange(1, 5)
    found = growth_rates_of_runs(summed("SA", 5.0, d), on, degrees)
    np.testing.assert_allclose(
        found, theory.growth_rate(degrees, d, 5.0, named_kind("SA")), rtol=1e-4
    )


def test_models_with_a_direction_are_refused():
    model = Dynamics(Sphere(2), flock.SA(1.0).terms + Drift(np.diag([1.0, 0.0])))
    with pytest.raises(InputError, match="without a preferred direction"):
        growth_rates(model, Fourier(8), [1, 2])
    with pytest.raises(InputError, match="degree 0 is the mass"):
        growth_rates(flock.SA(1.0), Fourier(8), [0])
    with pytest.raises(InputError, match="three quarters"):
        growth_rates_of_runs(flock.SA(1.0), Fourier(8), [8])
