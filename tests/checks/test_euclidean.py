"""Checks K2.x: attention on R^d without layer norm (2305.05465), in the rescaled and the lab frame."""

import numpy as np
import pytest

import tokenflock as flock


def test_T14_K2_1_hull_never_grows():
    """V = I, any A: the convex hull of the rescaled tokens is non-increasing."""
    weights = flock.Weights(B=np.array([[1.0, 0.4], [-0.3, 0.8]]))
    x0 = flock.starts.box(flock.Euclidean(2), 20, seed=0, half_width=5.0)
    run = flock.solve(
        flock.RescaledSA(1.0, weights),
        x0,
        t1=5.0,
        rtol=1e-10,
        atol=1e-12,
        save=flock.Save(every=0.25, observe=[flock.observables.convex_hull_volume]),
    )
    area = run.array("convex_hull_volume")
    assert np.max(np.diff(area)) < 1e-9 * area[0]
    assert area[-1] < 0.999 * area[0]


@pytest.mark.slow
def test_K2_2_K2_3_tokens_reach_the_polytope():
    """V = I: at T = 10 every token satisfies |x|^2 = max over hull vertices <x, v> to 2e-4."""
    from scipy.spatial import ConvexHull

    x0 = flock.starts.box(flock.Euclidean(2), 20, seed=1, half_width=5.0)
    z = np.asarray(
        flock.solve(flock.RescaledSA(1.0), x0, t1=10.0, rtol=1e-10, atol=1e-12).final.points
    )
    vertices = z[ConvexHull(z).vertices]
    best = (z @ vertices.T).max(axis=1)
    squared = np.sum(z**2, axis=1)
    assert np.max(np.abs(squared - best) / np.maximum(best, 1e-9)) < 2e-4


HYPERPLANE = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])


@pytest.mark.slow
def test_K2_4_hyperplanes():
    """One leading eigenvalue: the left eigenform takes at most three values at T = 10."""
    x0 = flock.starts.box(flock.Euclidean(2), 20, seed=2, half_width=5.0)
    run = flock.solve(
        flock.RescaledSA(1.0, flock.Weights(V=HYPERPLANE)), x0, t1=10.0, rtol=1e-10, atol=1e-12
    )
    values, left = np.linalg.eig(HYPERPLANE.T)
    form = np.real(left[:, np.argmax(values.real)])
    levels = np.sort(np.asarray(run.final.points) @ form / np.linalg.norm(form))
    groups = np.split(levels, np.flatnonzero(np.diff(levels) > 0.1) + 1)
    assert 1 <= len(groups) <= 3
    assert max(np.ptp(group) for group in groups) < 2e-4


def test_T15_K2_6_boolean_attention_in_one_dimension():
    start = np.array([-1.3, -0.4, 0.1, 0.25, 0.9, 1.6])[:, None]
    run = flock.solve(
        flock.RescaledSA(1.0),
        flock.from_array(flock.Euclidean(1), start),
        t1=8.0,
        rtol=1e-10,
        atol=1e-12,
        save=flock.Save(at=[8.0], states=True),
    )
    lab = np.exp(8.0) * np.asarray(run.final.points)
    scores = lab @ lab.T
    attention = np.exp(scores - scores.max(axis=1, keepdims=True))
    attention /= attention.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(attention, np.eye(6)[[0, 0, 5, 5, 5, 5]], atol=1e-6)


def test_T16_K2_7_repulsive_tokens_shrink_like_one_over_2t():
    """V = -I: t tr C -> d/2, and the mean is slaved to the skewness, slope -5/2.

    The approach depends on the start (a Gaussian cloud has C = (C_0^{-1} + 2t)^{-1}, from below; a
    wide box comes from above), so the band is two-sided.
    """
    x0 = flock.starts.box(flock.Euclidean(2), 20, seed=3, half_width=3.0)
    model = flock.Dynamics(None, flock.Attention(flock.Weights(V=-1.0)))
    run = flock.solve(
        model,
        x0,
        t1=1000.0,
        rtol=1e-11,
        atol=1e-16,
        save=flock.Save(at=[50.0, 100.0, 200.0, 500.0], states=True),
    )
    times, x = np.asarray(run.time)[1:], np.asarray(run.states)[1:]
    mean = x.mean(axis=1)
    trace = np.mean(np.sum((x - mean[:, None]) ** 2, axis=-1), axis=1)
    assert np.all(np.abs(times * trace - 1.0) < 0.03)
    assert abs(times[-1] * trace[-1] - 1.0) < 1e-3
    size = np.linalg.norm(mean, axis=1)
    assert size[0] < 1e-5
    slope = np.polyfit(np.log(times[1:]), np.log(size[1:]), 1)[0]
    assert slope == pytest.approx(-2.5, abs=0.1)


@pytest.mark.slow
def test_K2_9_layers_converge_at_first_order():
    x0 = flock.starts.box(flock.Euclidean(2), 12, seed=4, half_width=1.0)
    model = flock.RescaledSA(1.0)
    exact = flock.solve(model, x0, t1=1.0, rtol=1e-11, atol=1e-13).final.points
    steps = (0.1, 0.05, 0.025)
    errors = [
        np.max(
            np.abs(flock.solve(model, x0, t1=1.0, method=flock.Layers(step)).final.points - exact)
        )
        for step in steps
    ]
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert np.all((ratios > 1.9) & (ratios < 2.05))
