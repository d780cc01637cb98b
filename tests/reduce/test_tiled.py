"""Tiled gives the sums of the dense matrix, their derivatives, and trajectories, in memory O(n)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Particles
from tokenflock.kinds import L2, Hardmax, Kernel, Linear, Sigmoid, Softmax, Unnormalised
from tokenflock.masks import ALiBi, Causal, Full
from tokenflock.reduce import Dense, Problem, Tiled

RNG = np.random.default_rng(1)
N = 13
MASS = RNG.uniform(0.2, 2.0, N)
POINTS = np.asarray(flock.uniform(flock.Sphere(3), N, seed=3).points)
CLUSTERED = np.asarray(flock.starts.cap(flock.Sphere(3), N, seed=1, radius=1e-7).points)
# Two piles and one token alone, far from both.
PILES = np.concatenate([CLUSTERED[:6], -CLUSTERED[:6], np.cross(CLUSTERED[:1], CLUSTERED[6:7])])
PILES = PILES / np.linalg.norm(PILES, axis=1, keepdims=True)
KINDS = [
    Softmax(),
    L2(),
    Unnormalised("metastability"),
    Sigmoid(-0.5),
    Linear(),
    Kernel(lambda u: u**3 / 3 + u),
    Hardmax(),
]
MASKS = [Full(), Causal(), Causal(self_term=False), ALiBi(2.0)]


@eqx.filter_jit
def sums(reduction, kind, mask, drop, own, beta, points):
    """Tokens with themselves, or general queries and values."""
    logs = jnp.log(jnp.asarray(MASS / MASS.sum()))
    if own:
        return reduction(
            Problem(kind, mask, beta, points, points, points, logs, drop, True, True, True)
        )
    queries = points @ jnp.asarray([[0.5, 1.0, 0.0], [-1.0, 0.3, 0.2], [0.1, 0.0, 0.7]])
    values = points @ jnp.asarray([[1.0, 0.2], [0.0, -1.0], [2.0, 0.5]])
    return reduction(Problem(kind, mask, beta, queries, points, values, logs, drop, True))


@pytest.mark.parametrize(
    "mask", MASKS, ids=lambda m: type(m).__name__ + str(getattr(m, "self_term", ""))
)
@pytest.mark.parametrize("kind", KINDS, ids=lambda k: type(k).__name__)
def test_every_kind_and_mask(kind, mask):
    for own in (True, False):
        for beta in (0.0, 0.1, 1.0, 9.0, 100.0):
            points = jnp.asarray(POINTS)
            exact = sums(Dense(), kind, mask, own, own, jnp.asarray(beta), points)
            tiled = sums(Tiled(4), kind, mask, own, own, jnp.asarray(beta), points)
            scale = max(1.0, float(jnp.max(jnp.abs(exact))))
            np.testing.assert_allclose(tiled, exact, atol=scale * Tiled(4).error_bound(N))
            assert scale > 1e-2


@pytest.mark.parametrize("points", [CLUSTERED, PILES], ids=["clustered", "piles"])
@pytest.mark.parametrize("tile", [1, 4, 64])
def test_tokens_that_almost_coincide(points, tile):
    for beta in (0.1, 9.0, 100.0):
        arguments = (Softmax(), Full(), True, True, jnp.asarray(beta), jnp.asarray(points))
        exact = sums(Dense(), *arguments)
        np.testing.assert_allclose(sums(Tiled(tile), *arguments), exact, atol=3e-15, rtol=1e-12)


@pytest.mark.parametrize("mask", [Full(), Causal()], ids=["full", "causal"])
def test_the_same_derivative(mask):
    direction = jnp.asarray(POINTS[::-1])

    def loss(points, beta, reduction):
        return jnp.sum(sums(reduction, Softmax(), mask, True, True, beta, points) * direction)

    gradient = jax.jit(jax.grad(loss, argnums=(0, 1)), static_argnums=2)
    exact = gradient(jnp.asarray(POINTS), jnp.asarray(3.0), Dense())
    tiled = gradient(jnp.asarray(POINTS), jnp.asarray(3.0), Tiled(4))
    for one, other in zip(tiled, exact, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-14)
        assert np.max(np.abs(other)) > 1e-2


def temporary_bytes(reduction, n, gradient):
    """What the compiled program holds beside its arguments and results."""

    def loss(points):
        mass = jnp.full(n, -np.log(n))
        beta = jnp.asarray(2.0)
        out = reduction(
            Problem(Softmax(), Full(), beta, points, points, points, mass, True, True, True)
        )
        return jnp.sum(out**2) if gradient else out

    function = jax.jit(jax.grad(loss) if gradient else loss)
    shape = jax.ShapeDtypeStruct((n, 3), jnp.float64)
    return function.lower(shape).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("gradient", [False, True], ids=["sums", "gradient"])
def test_memory_grows_like_n(gradient):
    """A tile of 64 x 64 in both sizes: what grows is what is kept per token."""
    small, large = (temporary_bytes(Tiled(64), n, gradient) for n in (1024, 4096))
    assert large < 0.01 * 8 * 4096**2
    assert large < 5 * small
    assert temporary_bytes(Dense(), 1024, gradient) > 8 * 1024**2


@pytest.mark.parametrize(("kind", "d"), [(Softmax(), 3), (L2(), 3), (Softmax(), 20)], ids=str)
def test_each_pair_of_blocks_once(kind, d, monkeypatch):
    """With small blocks, so that a few dozen tokens fill many; the last one is not full."""
    from tokenflock.reduce import mirrored

    monkeypatch.setattr(mirrored, "SIDE", 4)
    n = 27
    x = flock.uniform(flock.Sphere(d), n, seed=6).points
    logs = jnp.log(jnp.asarray(RNG.uniform(0.2, 2.0, n)))
    direction = jnp.asarray(RNG.normal(size=(n, d)))

    def loss(points, beta, reduction, drop):
        task = Problem(kind, Full(), beta, points, points, points, logs, drop, True, True, True)
        assert mirrored.can_mirror(task)
        return jnp.sum(reduction(task) * direction)

    for drop in (False, True):
        both = [
            jax.jit(jax.value_and_grad(loss, argnums=(0, 1)), static_argnums=(2, 3))(
                x, jnp.asarray(5.0), reduction, drop
            )
            for reduction in (Dense(), Tiled())
        ]
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-13), *both)
    tangent = jax.jvp(lambda b: loss(x, b, Tiled(), True), (jnp.asarray(5.0),), (jnp.ones(()),))[1]
    exact = jax.jvp(lambda b: loss(x, b, Dense(), True), (jnp.asarray(5.0),), (jnp.ones(()),))[1]
    assert float(tangent) == pytest.approx(float(exact), rel=1e-12)


def test_single_precision_states_its_error():
    x = flock.uniform(flock.Sphere(3), 700, seed=4)
    model = flock.SA(9.0)
    task = model.attentions()[0].task(x)
    exact = model.velocity(0.0, Particles(x.points), x, Dense()).points
    reduction = Tiled(precision="float32").settle([task])
    found = model.velocity(0.0, Particles(x.points), x, reduction).points
    error = float(jnp.max(jnp.linalg.norm(found - exact, axis=1)))
    assert found.dtype == jnp.float64
    assert 1e-8 < error < reduction.error_bound(700)


def test_float32_tokens_stay_float32():
    points = jnp.asarray(POINTS, jnp.float32)
    logs = jnp.full(N, -np.log(N), jnp.float32)
    task = Problem(
        Softmax(), Causal(), jnp.float32(2.0), points, points, points, logs, True, True, True
    )
    assert Tiled(4)(task).dtype == jnp.float32


@pytest.mark.slow
def test_along_a_trajectory_in_a_batch():
    tokens = flock.uniform(flock.Sphere(3), 10, seed=2, samples=2)
    options = {"t1": 2.0, "rtol": 1e-9, "atol": 1e-11}
    dense = flock.solve(flock.SA([2.0, 4.0]), tokens, **options)
    tiled = flock.solve(flock.SA([2.0, 4.0]), tokens, reduction=flock.Tiled(4), **options)
    np.testing.assert_allclose(tiled.final.points, dense.final.points, atol=1e-11)
    assert tiled.health["reduction_error_bound"] > 0
    assert tiled.attributes["numerics"]["reduction"]["class"] == "Tiled"


@pytest.mark.slow
def test_sinkhorn_tiles_its_iterations():
    tokens = flock.from_array(flock.Sphere(3), POINTS, weights=MASS)
    model = flock.SinkhornSA(2.0)
    exact = model.velocity(0.0, Particles(tokens.points), tokens, flock.Dense()).points
    tiled = model.velocity(0.0, Particles(tokens.points), tokens, flock.Tiled(4)).points
    np.testing.assert_allclose(tiled, exact, atol=1e-8)
    assert np.max(np.abs(exact)) > 1e-2


def test_a_tile_has_a_side():
    with pytest.raises(flock.errors.InputError, match="side of at least 1, got 0"):
        Tiled(0)
