"""Forces that fall between the nodes or the quantiles are refused, not followed wrongly."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import Density, Weights
from tokenflock.errors import InputError
from tokenflock.meanfield import Fourier, Harmonics, Quantiles, Zonal
from tokenflock.states.dissipation import identity_is_broken

LOOSE = {"rtol": 1e-6, "atol": 1e-9}


def tilted(on):
    return Density.from_law(on, lambda x: 1 + 0.3 * x[:, 0])


def plain_as_matrices(beta, d):
    """SA again, but summed over the nodes, since it has matrices."""
    return flock.SA(beta, Weights(B=np.eye(d), V=np.eye(d)))


@pytest.mark.parametrize(
    ("on", "resolved", "too_narrow"),
    [
        (Fourier(16), 60.0, 400.0),
        pytest.param(Zonal(3, 16), 60.0, 400.0, marks=pytest.mark.slow),
        pytest.param(Harmonics(12), 30.0, 200.0, marks=pytest.mark.slow),
    ],
    ids=["circle", "zonal", "sphere"],
)
def test_a_kernel_narrower_than_the_nodes_is_refused(on, resolved, too_narrow):
    """What is let through moves as plain attention does, whose kernel is exact at every beta."""
    start = tilted(on)
    by_nodes, exact = (
        on.scheme().prepared(model).transport(model, 0.0, start.state)
        for model in (plain_as_matrices(resolved, on.space.d), flock.SA(resolved))
    )
    on.check_forces(plain_as_matrices(resolved, on.space.d), start.state)
    assert jnp.linalg.norm(by_nodes - exact) < 1e-2 * jnp.linalg.norm(exact)
    with pytest.raises(InputError, match="the forces fall between the nodes"):
        flock.solve(plain_as_matrices(too_narrow, on.space.d), start, 0.1, **LOOSE)


def test_of_several_betas_the_largest_is_asked():
    with pytest.raises(InputError, match="between the nodes"):
        flock.solve(plain_as_matrices(np.array([1.0, 400.0]), 2), tilted(Fourier(16)), 0.1, **LOOSE)


def test_turns_about_the_axis_are_bounded():
    with pytest.raises(InputError, match="beta a = 900"):
        flock.solve(plain_as_matrices(900.0, 3), tilted(Zonal(3, 200)), 0.1, **LOOSE)


@pytest.mark.parametrize(
    "waves", [49, *(pytest.param(waves, marks=pytest.mark.slow) for waves in (30, 50, 117))]
)
def test_a_potential_finer_than_the_modes_is_refused(waves):
    """16 modes have 50 nodes: on these cos 49 looks like cos 1, and cos 50 like a constant."""
    wave = flock.Potential(lambda x: 0.01 * jnp.cos(waves * jnp.arctan2(x[..., 1], x[..., 0])))
    uniform = Density.from_law(Fourier(16), flock.laws.uniform())
    with pytest.raises(
        InputError, match=r"Potential's force has scales beyond degree 16|between the nodes"
    ):
        flock.solve(flock.USA(1.0, plus=wave), uniform, 0.02, **LOOSE)


@pytest.mark.slow
def test_a_kernel_that_falls_between_quantiles_is_refused():
    """The gaps 2 pi/n of a nearly uniform law reach 1.6 beta^{-1/2} at n = 176 for beta = 2000."""
    model = flock.SA(2000.0)
    with pytest.raises(InputError, match="quantiles stand alone within the kernel's width"):
        flock.solve(model, tilted(Quantiles(100)), 20.0, **LOOSE)
    run = flock.solve(
        model,
        tilted(Quantiles(400)),
        20.0,
        **LOOSE,
        save=flock.Save(observe=[flock.order_parameter]),
    )
    # v = grad log rho/beta to first order: every small mode k grows like e^{k^2 t/beta}.
    assert run["order_parameter"][-1].item() == pytest.approx(0.15 * np.exp(0.01), abs=1e-4)


@pytest.mark.slow
def test_quantiles_that_drift_apart_end_the_run():
    """Repelled quantiles of a narrow start spread until none has a neighbour within the kernel."""
    narrow = Density(Quantiles(24), np.linspace(0.0, 0.6, 24))
    run = flock.solve(
        flock.USA(400.0, weights=Weights(V=-1.0), convention="metastability"),
        narrow,
        1e6,
        **LOOSE,
        clock=flock.LogTime(),
        throw=False,
    )
    assert run.outcome == "unresolved"
    assert "quantiles stand alone" in run.advice
    assert 0 < run.reached < 1e6


@pytest.mark.slow
def test_atoms_do_not_count_as_alone():
    pairs = np.repeat(np.linspace(0.0, 5.0, 6), 2)
    run = flock.solve(flock.SA(2000.0), Density(Quantiles(12), pairs), 1.0, **LOOSE)
    assert run.outcome == "finished"


def test_a_broken_identity_is_no_finished_run():
    energy = np.array([0.0, 0.5, 1.0])
    assert not identity_is_broken(energy, np.array([0.0, 0.49, 0.98]), 0.0)
    assert identity_is_broken(energy, np.array([0.0, 0.5, 0.9]), 0.0)
    # Changes below what the solver was asked for say nothing; of several betas each has its own.
    assert not identity_is_broken(1e-10 * energy, np.zeros(3), 1e-9)
    both = np.stack([energy, energy]), np.stack([energy, 0.5 * energy])
    assert identity_is_broken(*both, 0.0).tolist() == [False, True]


@pytest.mark.slow
def test_steps_that_are_too_large_break_the_identity():
    """Euler moves by the first slope, 0.66 of the way, while the slope falls by half."""
    start = Density.from_law(Quantiles(16), flock.laws.von_mises(20.0))
    run = flock.solve(flock.USA(0.5), start, 2.4, dt=0.4, method=diffrax.Euler(), throw=False)
    assert run.health["dissipation_defect"] > 0.05
    assert run.outcome == "unresolved"
    assert "otherwise than its dissipation says" in run.advice


@pytest.mark.slow
def test_every_beta_has_its_own_health():
    """N(0, I) blows up at 1/(2 beta): after t1 = 1 for the first beta, within it for the second."""
    run = flock.solve(
        flock.SA(np.array([0.1, 2.0])),
        flock.meanfield.gaussian_density(np.zeros(2), np.eye(2)),
        1.0,
        **LOOSE,
        throw=False,
    )
    first, second = run.health["blow_up_time"]
    assert first == np.inf
    assert second == pytest.approx(0.25, abs=1e-6)
    np.testing.assert_allclose(run.array("final_time"), [1.0, 0.25], atol=1e-6)
    # The end of the second, far beyond its last save, counts too.
    assert run.health["largest_tail"] > 1e6
