"""Densities that are not what they seem: finer than their grid, aliased, no measures, beyond doubles."""

import jax.numpy as jnp
import numpy as np
import pytest
from named_kinds import named_kind
from scipy.special import gammaln, ive

import tokenflock as flock
from tokenflock import theory
from tokenflock.errors import InputError
from tokenflock.meanfield.kernel import kernel_series
from tokenflock.states.dissipation import identity_defect

LOOSE = {"rtol": 1e-6, "atol": 1e-9}


@pytest.mark.slow
def test_a_symmetric_density_that_outgrows_its_modes_is_unresolved():
    """Multiples of 12 alone are populated: 12 and 24 of 32 modes, and none among the last quarter."""
    model = flock.USA(60.0, convention="metastability")
    start = flock.laws.cosine(0.3, mode=12)
    run = flock.solve(
        model,
        flock.Density.from_law(flock.meanfield.Fourier(32), start),
        20.0,
        **LOOSE,
        throw=False,
    )
    assert run.outcome == "unresolved"
    fine = flock.solve(
        model, flock.Density.from_law(flock.meanfield.Fourier(200), start), 20.0, **LOOSE
    )
    assert fine.outcome == "finished"
    assert float(jnp.max(fine.final.values)) == pytest.approx(1.8126, abs=2e-4)


@pytest.mark.parametrize(
    ("on", "law"),
    [
        (flock.meanfield.Fourier(32), flock.laws.cosine(0.5, mode=40)),
        # 99 on 100 nodes looks like 1.
        (flock.meanfield.Fourier(32), flock.laws.cosine(0.5, mode=99)),
        (flock.meanfield.Fourier(16), flock.laws.von_mises(200.0)),
        (flock.meanfield.Zonal(8, 12), flock.laws.zonal_mode(0.5, degree=14)),
        (flock.meanfield.Harmonics(8), flock.laws.zonal_mode(0.5, degree=10)),
    ],
)
def test_a_law_beyond_the_grid_is_refused(on, law):
    with pytest.raises(InputError, match="this law has scales that degree"):
        flock.Density.from_law(on, law)


@pytest.mark.parametrize(
    ("on", "state", "sentence"),
    [
        (flock.meanfield.Fourier(2), [1.0, 2.0, 0.0, 0.0, 0.0], "falls to -1.8"),
        (flock.meanfield.Fourier(2), [2.0, 0.0, 0.0, 0.0, 0.0], "has mass 1"),
        (flock.meanfield.Zonal(5, 2), [1.0, 3.0, 0.0], "a density is not negative"),
        (flock.meanfield.Quantiles(3), [0.0, 2.0, 1.0], "increasing order"),
        (flock.meanfield.Quantiles(3), [0.0, 2.0, 7.0], "span at most 2 pi"),
    ],
)
def test_numbers_that_are_no_measure_are_refused(on, state, sentence):
    with pytest.raises(InputError, match=sentence):
        flock.Density(on, state)


def test_a_start_that_is_not_resolved_is_refused_at_once():
    rough = flock.Density(flock.meanfield.Fourier(4), [1.0, *[0.0] * 3, 0.1, *[0.0] * 4])
    with pytest.raises(InputError, match="the start is finer than"):
        flock.solve(flock.SA(1.0), rough, 1.0, **LOOSE)


@pytest.mark.parametrize("d", [2, 3, 8, 65])
@pytest.mark.parametrize("beta", [0.1, 50.0, 1e5])
def test_kernel_numbers_against_scipy(d, beta):
    degrees = np.arange(41)
    bessel = ive(degrees + d / 2 - 1, beta)
    exact = np.exp(gammaln(d / 2) + (d / 2 - 1) * np.log(2 / beta)) * bessel
    seen = bessel > 1e-250
    found = np.asarray(kernel_series(jnp.asarray(beta), d, 40).partition)
    np.testing.assert_allclose(found[seen], exact[seen], rtol=1e-12)


def test_growth_rates_at_large_beta():
    measured = flock.meanfield.growth_rates(flock.SA(1e5), flock.meanfield.Fourier(40), [1, 5, 20])
    np.testing.assert_allclose(
        measured, theory.growth_rate([1, 5, 20], 2, 1e5, named_kind("SA")), rtol=1e-9
    )


@pytest.mark.parametrize(
    "on",
    [
        flock.meanfield.Fourier(32),
        pytest.param(flock.meanfield.Quantiles(256), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_beta_whose_energy_leaves_the_doubles_is_solved_and_checked(on):
    start = flock.Density.from_law(on, flock.laws.cosine(0.1))
    run = flock.solve(flock.SA(720.0), start, 1.0, **LOOSE)
    assert run.outcome == "finished"
    assert run.health["dissipation_defect"] < 1e-4


def test_what_was_not_compared_is_not_called_perfect():
    assert identity_defect(np.zeros(3), np.zeros(3)) is None
    assert identity_defect(np.array([1.0, np.inf]), np.zeros(2)) is None


def test_every_beta_is_judged_by_its_own_energy():
    energy = np.array([[1.0, 2.0], [1e6, 2e6]])
    work = np.array([[0.0, 0.5], [0.0, 1e6]])
    assert identity_defect(energy, work) == pytest.approx(0.5)
