"""Statistical checks: many seeds, minutes each. Run by `make test-all`."""

import numpy as np
import pytest
from scipy.optimize import linprog

import tokenflock as flock
from tokenflock import theory

pytestmark = pytest.mark.slow
ANGLE = float(np.arccos(0.999))


@pytest.mark.parametrize(
    ("beta", "means", "at_18"),
    [
        (4.0, (16.8, 2.17, 2.07), {2: 25 / 30, 3: 5 / 30}),
        (9.0, (14.6, 3.40, 3.23), {3: 16 / 30, 4: 13 / 30}),
    ],
)
def test_circle_monte_carlo_reference(beta, means, at_18):
    """SA on the circle, n = 32: cluster counts at t = 2.5, 18, 30 (reference: 30 seeds).

    With 300 seeds the reference's own error dominates: 30 runs of standard deviation sd give
    sd/sqrt(30), so means must agree within three of those.
    """
    tokens = flock.uniform(flock.Sphere(2), 32, seed=2024, samples=300)
    save = flock.Save(at=[2.5, 18.0], observe=[flock.clusters(angle=ANGLE)])
    run = flock.solve(flock.SA(beta), tokens, t1=30.0, rtol=1e-8, atol=1e-11, save=save)
    counts = np.asarray(run.array("clusters"))[:, 1:]
    for column, mean in zip(counts.T, means, strict=True):
        spread = max(column.std(), 0.15)
        assert column.mean() == pytest.approx(mean, abs=3 * spread * (1 / 30 + 1 / 300) ** 0.5)
    for count, share in at_18.items():
        measured = np.mean(counts[:, 1] == count)
        error = np.sqrt(max(share * (1 - share), 0.02) * (1 / 30 + 1 / 300))
        assert measured == pytest.approx(share, abs=3 * error)


def mean_overlap(d, beta, times, seeds, seed=1):
    tokens = flock.uniform(flock.Sphere(d), 32, seed=seed, samples=seeds)
    run = flock.solve(
        flock.SA(beta),
        tokens,
        t1=float(times[-1]),
        rtol=1e-7,
        atol=1e-9,
        save=flock.Save(at=times[:-1], states=True),
    )
    total = np.linalg.norm(np.asarray(run.array("states")).sum(axis=-2), axis=-1) ** 2
    return ((total - 32) / (32 * 31))[:, 1:]


TIMES = np.array([1.0, 2.0, 3.0, 5.0, 6.9535])


def test_K1_10_high_dimension_follows_the_orthogonal_curve():
    gamma = theory.equiangular_gamma(TIMES, n=32, beta=4.0)
    high = mean_overlap(1024, 4.0, TIMES, 4).mean(axis=0)
    np.testing.assert_allclose(high, gamma, atol=0.03)
    middle = mean_overlap(128, 4.0, TIMES, 16)
    spread = np.array([0.011, 0.026, 0.066, 0.021, 0.0005])
    assert np.all(np.abs(middle.mean(axis=0) - gamma) < 3 * spread / 4 + 2e-3)


def test_K1_10_dimension_eight_does_not():
    """The negative control: at d = 8 the mean overlap is far below gamma at t = 5 and 6.95."""
    low = mean_overlap(8, 4.0, TIMES, 40)
    error = low.std(axis=0) / np.sqrt(40)
    for column, expected in ((3, 0.50), (4, 0.60)):
        assert low[:, column].mean() == pytest.approx(
            expected, abs=3 * np.hypot(error[column], 0.07)
        )
        assert low[:, column].mean() < 0.85


@pytest.mark.parametrize("d", [12, 16, 20])
def test_K1_11_wendel_by_linear_programming(d):
    """Fraction of 32 uniform points in one open hemisphere."""
    samples = np.asarray(flock.uniform(flock.Sphere(d), 32, seed=d, samples=400).points)

    def in_a_hemisphere(points):
        # maximise s with <x_i, w> >= s and |w_l| <= 1
        cost = np.zeros(d + 1)
        cost[-1] = -1
        bound = np.hstack([-points, np.ones((32, 1))])
        result = linprog(cost, bound, np.zeros(32), bounds=[(-1, 1)] * d + [(None, 1)])
        return result.x[-1] > 1e-9

    share = np.mean([in_a_hemisphere(points) for points in samples])
    expected = float(theory.wendel_probability(32, d))
    assert share == pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / 400) + 1e-9)


def test_K5_4_the_dominant_mode_wins_most_often():
    """USA on the circle, beta = 5, N = 2000 iid tokens: mode 3 dominates at saturation."""
    tokens = flock.uniform(flock.Sphere(2), 2000, seed=7, samples=20)
    run = flock.solve(
        flock.USA(5.0),
        tokens,
        t1=0.34,
        rtol=1e-6,
        atol=1e-8,
        save=flock.Save(observe=[flock.observables.fourier_moments(modes=5)]),
    )
    final = np.asarray(run.array("final_fourier_moments"))
    dominant = 1 + np.argmax(final[:, :5], axis=1)
    assert np.mean(dominant == 3) >= 0.45


@pytest.mark.parametrize(("kappa", "expected"), [(1.0, None), (3.0, 0.7242), (4.0, 0.8315)])
def test_K6_11_noisy_kuramoto(kappa, expected):
    """beta = 0, d = 2, temperature 1/kappa: order parameter averaged over t in [30, 60]."""
    tokens = flock.uniform(flock.Sphere(2), 2000, seed=3)
    model = flock.NoisyUSA(0.0, 1 / kappa)
    run = flock.solve(
        model,
        tokens,
        t1=60.0,
        dt=0.02,
        seed=1,
        save=flock.Save(at=np.linspace(30, 60, 61), observe=[flock.order_parameter]),
    )
    mean = float(np.mean(run.array("order_parameter")[1:]))
    if expected is None:
        assert mean < 0.09
    else:
        assert mean == pytest.approx(expected, abs=0.03)
        assert float(theory.order_parameter(kappa)) == pytest.approx(expected, abs=1e-3)
