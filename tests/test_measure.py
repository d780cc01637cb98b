"""Spaces, measures and their named laws; refusals with a sentence."""

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.space import angle, normalise


def test_angles_are_accurate_at_zero_and_at_pi():
    x = np.array([1.0, 0.0])
    for true in (1e-9, 1e-4, 1.0, np.pi - 1e-9):
        y = np.array([np.cos(true), np.sin(true)])
        measured = float(angle(jnp.asarray(x), jnp.asarray(y)))
        assert measured == pytest.approx(true, rel=1e-7)


def test_projection_and_retraction():
    sphere = flock.Sphere(4)
    x = sphere.retract(jnp.asarray(np.random.default_rng(0).normal(size=(5, 4))))
    v = jnp.asarray(np.random.default_rng(1).normal(size=(5, 4)))
    tangent = sphere.project(x, v)
    np.testing.assert_allclose(jnp.sum(tangent * x, axis=-1), 0, atol=1e-15)
    np.testing.assert_allclose(sphere.project(x, tangent), tangent, atol=1e-15)
    np.testing.assert_array_equal(normalise(jnp.zeros((1, 3))), np.zeros((1, 3)))


def test_uniform_tokens_are_uniform():
    """First and second moments of the uniform law, and the marginal of one coordinate (Archimedes)."""
    points = np.asarray(flock.uniform(flock.Sphere(3), 20_000, seed=0).points)
    assert np.max(np.abs(points.mean(axis=0))) < 3 * (1 / 3 / 20_000) ** 0.5 * 1.3
    np.testing.assert_allclose(points.T @ points / 20_000, np.eye(3) / 3, atol=0.01)
    heights = np.histogram(points[:, 2], bins=10, range=(-1, 1))[0]
    assert np.max(np.abs(heights - 2000)) < 4.5 * (2000 * 0.9) ** 0.5


def test_laws():
    rho = -0.12
    gram = np.asarray(flock.equiangular(flock.Sphere(9), 8, correlation=rho).points)
    np.testing.assert_allclose(gram @ gram.T, (1 - rho) * np.eye(8) + rho, atol=1e-12)
    assert np.all(np.asarray(flock.starts.hemisphere(flock.Sphere(3), 50, seed=1).points)[:, 0] > 0)
    centre = np.array([0.0, 2.0, 1.0])
    cap = flock.starts.cap(flock.Sphere(3), 50, seed=2, radius=0.2, centre=centre)
    away = angle(cap.points, jnp.asarray(centre / np.linalg.norm(centre)))
    assert float(jnp.max(away)) <= 0.2
    groups = flock.starts.mixture(flock.Sphere(3), np.eye(3), per_cluster=4, seed=3, radius=0.1)
    assert groups.n == 12
    assert float(jnp.max(angle(groups.points[4:8], jnp.asarray([0.0, 1.0, 0.0])))) <= 0.1
    gaussian = flock.gaussian(flock.Sphere(100), 200, seed=4)
    assert float(jnp.mean(gaussian.radii)) == pytest.approx(10.0, rel=0.02)
    spread = np.asarray(flock.starts.box(flock.Euclidean(2), 500, seed=5, half_width=3.0).points)
    assert np.abs(spread).max() <= 3.0 < np.abs(spread).max() * 1.05
    arcs = flock.starts.arcs(flock.Sphere(2), [0.0, 2.0], per_cluster=3, width=0.01, seed=6)
    np.testing.assert_allclose(
        np.arctan2(*np.asarray(arcs.points).T[::-1]), [0] * 3 + [2] * 3, atol=0.05
    )


def test_position_codes():
    words = np.random.default_rng(0).normal(size=(5, 6))
    tokens = np.asarray(flock.starts.with_positions(words).points)
    code = np.array(
        [
            [
                np.sin(i / 1e4 ** (k / 6)) if k % 2 == 0 else np.cos(i / 1e4 ** ((k - 1) / 6))
                for k in range(6)
            ]
            for i in range(5)
        ]
    )
    expected = words + code
    np.testing.assert_allclose(tokens, expected / np.linalg.norm(expected, axis=1, keepdims=True))


def test_seeds_decide():
    first = flock.uniform(flock.Sphere(3), 6, seed=7).points
    np.testing.assert_array_equal(first, flock.uniform(flock.Sphere(3), 6, seed=7).points)
    assert np.max(np.abs(first - flock.uniform(flock.Sphere(3), 6, seed=8).points)) > 0.1
    start = flock.equiangular(flock.Sphere(4), 4)
    moved = flock.perturbed(start, 1e-3, seed=1)
    assert 1e-4 < float(jnp.max(jnp.abs(moved.points - start.points))) < 1e-2
    assert float(jnp.max(moved.space.defect(moved.points))) < 1e-15


SPHERE = flock.Sphere(3)
UNIT = np.eye(3)[:2]
REFUSALS = {
    "one token": (lambda: flock.uniform(SPHERE, 1, seed=0), "n >= 2"),
    "no token": (lambda: flock.uniform(SPHERE, 0, seed=0), "n >= 2"),
    "no dimension": (lambda: flock.Sphere(1), "d >= 2"),
    "off the sphere": (lambda: flock.from_array(SPHERE, 1.1 * UNIT), "off the sphere by up to 0.1"),
    "not a number": (lambda: flock.from_array(SPHERE, UNIT * np.nan), "NaN"),
    "wrong shape": (lambda: flock.from_array(SPHERE, np.eye(2)), r"shape \(..., n, 3\)"),
    "negative mass": (lambda: flock.from_array(SPHERE, UNIT, weights=[1.0, -1.0]), "positive"),
    "too few masses": (lambda: flock.from_array(SPHERE, UNIT, weights=[1.0]), "one per token"),
    "negative beta": (lambda: flock.SA(-1.0), "V=-I"),
    "beta not a number": (lambda: flock.SA(float("nan")), "finite"),
    "a matrix of betas": (lambda: flock.SA(np.ones((2, 2))), "vector"),
    "V not square": (lambda: flock.Weights(V=np.ones((2, 3))), "square"),
    "B beside Q": (lambda: flock.Weights(Q=np.eye(3), B=np.eye(3)), "not both"),
    "unequal heads": (lambda: flock.Weights(Q=np.ones((2, 3, 3)), V=np.ones((4, 3, 3))), "heads"),
    "uniform on R^d": (lambda: flock.uniform(flock.Euclidean(2), 4, seed=0), "no uniform law"),
    "impossible angle": (lambda: flock.equiangular(flock.Sphere(9), 4, -0.5), "correlation"),
    "too many orthogonal": (lambda: flock.equiangular(SPHERE, 4), "d >= n"),
    "negative temperature": (lambda: flock.Brownian(-1.0), "temperature"),
    "zero layer": (lambda: flock.Layers(0.0), "positive"),
    "unequal pieces": (lambda: flock.Piecewise([1.0], [flock.Weights()]), "need 2 values"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_gets_a_sentence(case):
    make, words = REFUSALS[case]
    with pytest.raises(flock.errors.InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("call", "words"),
    [("flock.Sphere(2.5)", "d >= 2"), ("flock.USA(1.0, 'fast')", "perspective, metastability")],
)
def test_wrong_types_get_a_sentence_too(call, words):
    """In a process of its own: here the shape checks of the tests would speak first."""
    code = f"import tokenflock as flock\ntry: {call}\nexcept flock.errors.InputError as error: print(error)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert words in out.stdout


TOKENS = flock.uniform(SPHERE, 5, seed=0)
CHECKS = {
    "wrong V": (flock.SA(1.0, flock.Weights(V=np.eye(2))), "last axis must be 3"),
    "Q without K": (flock.SA(1.0, flock.Weights(Q=np.ones((1, 2, 3)))), "same number of rows"),
    "another space": (flock.Dynamics(flock.Sphere(4), flock.Attention()), "the tokens on"),
    "perceptron of another d": (
        flock.SA(1.0, plus=flock.Perceptron.random(2, 3, 0)),
        "acts on d=2",
    ),
    "rescaled on the sphere": (flock.RescaledSA(1.0), "lives on R"),
    "drift of another d": (flock.Dynamics(None, flock.Drift(np.eye(2))), "drift matrix"),
}


@pytest.mark.parametrize("case", CHECKS)
def test_models_refuse_tokens_they_cannot_act_on(case):
    model, words = CHECKS[case]
    with pytest.raises(flock.errors.InputError, match=words):
        flock.solve(model, TOKENS, t1=1.0, rtol=1e-6, atol=1e-8)


def test_masks_need_an_order():
    loose = flock.from_array(SPHERE, TOKENS.points, ordered=False)
    for model in (flock.CausalSA(1.0), flock.KineticFlow(1.0)):
        with pytest.raises(flock.errors.InputError, match="need an order"):
            flock.solve(model, loose, t1=1.0, rtol=1e-6, atol=1e-8)
    flock.solve(flock.SA(1.0), loose, t1=0.1, rtol=1e-6, atol=1e-8)


def test_a_huge_dense_request_is_refused_with_its_size(monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "1")
    many = flock.uniform(SPHERE, 20_000, seed=0)
    with pytest.raises(flock.errors.InputError, match=r"with Dense need about 8\.94 GiB.*Tiled"):
        flock.solve(flock.SA(1.0), many, t1=1.0, rtol=1e-6, atol=1e-8)


def test_schemes_need_a_sphere():
    flat = flock.starts.box(flock.Euclidean(3), 4, seed=0, half_width=1.0)
    with pytest.raises(flock.errors.InputError, match="need tokens on a sphere"):
        flock.solve(
            flock.SA(1.0, normalisation=flock.normalisation.PreLN()),
            flat,
            t1=1.0,
            rtol=1e-6,
            atol=1e-8,
        )
