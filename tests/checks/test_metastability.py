"""Checks K3.x and K5.x: metastable windows, merge times with the right clock, growth around uniform."""

import jax.numpy as jnp
import numpy as np
import pytest
from named_kinds import named_kind

import tokenflock as flock
from tokenflock import theory
from tokenflock.dynamics import Particles
from tokenflock.papers.metastability import closed_forms

KINETIC = np.array(
    [
        (0.99806638, 0.06215705),
        (0.97712061, 0.21268594),
        (-0.24578194, 0.96932515),
        (-0.97354734, 0.2284854),
        (-0.99892629, -0.04632772),
    ]
)


@pytest.mark.slow  # the claim 2410.06833v1/caps-hold-sa measures the same window
def test_T18_K3_1_tokens_stay_in_their_caps_on_the_proved_window():
    """d=3, n=10, two antipodal caps, eps=.01, beta=12: T1 <= 408 and T2 >= 1.02e7."""
    eps, beta = 0.01, 12.0
    pole = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    tokens = flock.starts.mixture(
        flock.Sphere(3), pole, 5, seed=0, radius=float(np.arccos(1 - eps))
    )
    window = closed_forms.metastability_window(eps, np.pi, 10, beta, 1.0)
    assert bool(window.holds)
    assert float(np.exp(window.log_lifetime)) == pytest.approx(1.02403e7, rel=1e-5)
    assert float(window.collapse_time) == pytest.approx(408.0817, rel=1e-6)
    run = flock.solve(
        flock.SA(beta),
        tokens,
        t1=3000.0,
        rtol=1e-9,
        atol=1e-13,
        save=flock.Save(at=[408.0, 1000.0], states=True),
    )
    for states in np.asarray(run.states)[1:]:
        for cap, centre in zip((states[:5], states[5:]), pole, strict=True):
            assert np.min(cap @ centre) >= 1 - 2 * eps
            gaps = np.sum((cap[:, None] - cap[None]) ** 2, axis=-1)
            assert np.max(gaps) <= 2 * np.exp(-beta)


def test_T19_K3_2_merge_times_of_the_five_token_example():
    """A right clock: stable to 0.1 under halved tolerances, and earlier than fixed Euler steps.

    The published script (Euler, step 0.1 with renormalisation) gives 1.4, 2.6, 5.7 and 364.1.
    """
    start = flock.from_array(flock.Sphere(2), KINETIC, normalise=True)
    save = flock.Save(every=0.01, observe=[flock.clusters(angle=float(np.arccos(0.999)))])
    times = []
    for rtol in (1e-8, 5e-9, 1e-10):
        run = flock.solve(flock.SA(4.0), start, t1=360.0, rtol=rtol, atol=1e-2 * rtol, save=save)
        events = flock.observables.merge_events(np.asarray(run.time), run.array("clusters"))
        assert [event.to_count for event in events] == [4, 3, 2, 1]
        times.append([event.time for event in events])
    times = np.array(times)
    assert np.max(np.ptp(times, axis=0)) < 0.1
    euler = np.array([1.4, 2.6, 5.7, 364.1])
    assert np.all(times[-1] < euler)


@pytest.mark.slow
def test_the_published_euler_steps_are_reproduced_as_layers():
    """Layers(0.1) is the published scheme: its merge times are the published ones, about 10 % late."""
    start = flock.from_array(flock.Sphere(2), KINETIC, normalise=True)
    save = flock.Save(every=0.1, observe=[flock.clusters(angle=float(np.arccos(0.999)))])
    run = flock.solve(flock.SA(4.0), start, t1=400.0, method=flock.Layers(0.1), save=save)
    events = flock.observables.merge_events(np.asarray(run.time), run.array("clusters"))
    np.testing.assert_allclose([e.time for e in events], [1.4, 2.6, 5.7, 364.1], atol=0.11)


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2.0, 7.972679), (4.0, 43.005))),
        (8.0, 5803.694357),
    ],
)
def test_T20_K3_4_two_cluster_lifetimes(beta, expected):
    """Equal masses, phi0 = 2, to cos = .999: particles and quadrature."""
    quadrature = float(theory.two_cluster_lifetime(2.0, np.arccos(0.999), 0.5, 0.5, beta))
    assert quadrature == pytest.approx(expected, rel=1e-6)
    assert _lifetime(beta, [0.0, 0.0, 2.0, 2.0]) == pytest.approx(expected, rel=1e-6)


def _lifetime(beta, angles):
    close = flock.when(lambda s: 0.999 - jnp.dot(s.measure.points[0], s.measure.points[-1]))
    run = flock.solve(
        flock.SA(beta),
        flock.from_angles(angles),
        t1=1e9,
        rtol=1e-9,
        atol=1e-11,
        merge=flock.Merge(1e-4),
        clock=flock.LogTime(),
        stop=close,
    )
    assert run.outcome == "stopped"
    return run.reached


@pytest.mark.slow  # the README runs beta = 14
@pytest.mark.parametrize("beta", [6.0, 10.0, 14.0])
def test_cluster_reduced_flow_keeps_time_up_to_beta_14(beta):
    """Unequal clusters 3 : 5 whose lifetime grows like e^{1.4 beta}, up to 1.5e7."""
    expected = float(theory.two_cluster_lifetime(2.0, np.arccos(0.999), 3 / 8, 5 / 8, beta))
    measured = _lifetime(beta, [0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    assert measured == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_merging_agrees_with_the_full_flow():
    """The reduced flow follows the full one while tokens merge, and re-expands to all n tokens."""
    tokens = flock.uniform(flock.Sphere(2), 12, seed=3)
    save = flock.Save(every=2.0, states=True, observe=[flock.clusters(angle=0.05), flock.energy])
    options = {"t1": 40.0, "rtol": 1e-10, "atol": 1e-12, "save": save}
    full = flock.solve(flock.SA(5.0), tokens, **options)
    reduced = flock.solve(flock.SA(5.0), tokens, merge=flock.Merge(1e-4), **options)
    assert reduced.states.shape == full.states.shape
    np.testing.assert_array_equal(reduced.array("clusters"), full.array("clusters"))
    np.testing.assert_allclose(reduced.states, full.states, atol=5e-4)
    np.testing.assert_allclose(reduced.array("energy"), full.array("energy"), rtol=1e-5)
    masses = np.asarray(reduced.array("final_masses"))
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.count_nonzero(masses) == full.array("clusters")[-1]
    owners = np.asarray(reduced.array("final_owners"))
    assert len(set(owners.tolist())) == np.count_nonzero(masses)


GROWTH = {
    ("USA", 5.0): [4.86713, 14.00449, 18.59607, 16.34635, 10.78987],
    ("USA", 7.0): [22.2913, 70.86361, 109.51134, 116.58, 96.01959],
}


@pytest.mark.parametrize(("name", "beta"), GROWTH)
def test_T25_K5_1_growth_rates_of_the_particle_field(name, beta):
    """theta_i = 2 pi i/N - eps sin(k theta)/k: (d/dt muhat_k)/muhat_k is k^2 I_k/beta."""
    grid = 2 * np.pi * np.arange(1000) / 1000
    for k, printed in enumerate(GROWTH[name, beta], start=1):
        for model, field in ((name, flock.USA(beta)), ("SA", flock.SA(beta))):
            theta = grid - 1e-4 * np.sin(k * grid) / k
            tokens = flock.from_angles(theta)
            velocity = field.velocity(0.0, Particles(tokens.points), tokens, flock.Dense()).points
            rate = np.asarray(velocity[:, 1]) * np.cos(theta) - np.asarray(velocity[:, 0]) * np.sin(
                theta
            )
            wave = np.exp(-1j * k * theta)
            measured = (np.mean(-1j * k * rate * wave) / np.mean(wave)).real
            expected = float(theory.growth_rate(k, 2, beta, kind=named_kind(model)))
            assert measured == pytest.approx(expected, rel=1e-6)
            if model == name:
                assert expected == pytest.approx(printed, abs=1e-5)


@pytest.mark.slow
def test_K5_6_pairing_phase():
    """Three equal clusters, beta = 40: in running-overlap time the closest pair follows the limit law.

    The pair accelerates at the end, so the save times are those where its angle is on a uniform grid.
    """
    beta, phi0 = 40.0, 0.8
    points = np.array([[1.0, 0, 0], [np.cos(phi0), np.sin(phi0), 0], [0, 0, 1.0]])
    grid = np.linspace(phi0, 0.36, 2000)[1:]
    times = theory.two_cluster_lifetime(phi0, grid, 0.5, 0.5, beta)
    run = flock.solve(
        flock.SA(beta),
        flock.from_array(flock.Sphere(3), points),
        t1=float(times[-1]),
        rtol=1e-10,
        atol=1e-13,
        clock=flock.LogTime(),
        save=flock.Save(at=times[:-1], states=True),
    )
    states = np.asarray(run.states)
    angle = 2 * np.arcsin(np.linalg.norm(states[:, 0] - states[:, 1], axis=-1) / 2)
    time = np.asarray(run.time)
    speed = np.exp(-beta * (1 - np.cos(angle)))
    elapsed = np.concatenate([[0], np.cumsum(np.diff(time) * (speed[1:] + speed[:-1]) / 2)])
    expected = theory.pairing_angle(elapsed, phi0, theory.pairing_rate(1 / 3, 1 / 3))
    far = angle > 2.4 * beta**-0.5
    np.testing.assert_allclose(angle[far], expected[far], rtol=1e-2)
    printed = np.interp([0.1, 0.2, 0.3, 0.4], elapsed, angle)
    np.testing.assert_allclose(printed, [0.66650, 0.55244, 0.45678, 0.37859], atol=2e-5)
    assert np.linalg.norm(states[-1, 2] - points[2]) < 1e-12
