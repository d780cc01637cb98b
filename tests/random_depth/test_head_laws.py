"""Random heads: exact joint draws, the same layer as the engine's, and the overlap drift they cause."""

import functools

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import random_depth as rd
from tokenflock import theory
from tokenflock.errors import InputError
from tokenflock.random_depth.laws import gaussian_image

RNG = np.random.default_rng(7)


def unit(shape):
    x = RNG.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize(("n", "p"), [(2, 5), (5, 2)])
def test_images_have_the_covariance_of_the_tokens(n, p):
    """Cov of the rows of x G is x x^T, the columns are independent; n < p goes through the root."""
    x, draws = RNG.normal(size=(n, p)), 20_000
    found = jax.vmap(lambda key: gaussian_image(key, x, 2))(jr.split(jr.key(1), draws))
    flat = np.asarray(found).transpose(0, 2, 1).reshape(draws, 2 * n)
    expected = np.kron(np.eye(2), x @ x.T)
    sizes = np.sqrt(np.diag(expected))
    # An entry of a covariance of N Gaussian draws has the standard error sqrt((c_ij^2 + c_ii c_jj)/N).
    error = np.sqrt((expected**2 + np.outer(sizes**2, sizes**2)) / draws)
    assert np.all(np.abs(flat.T @ flat / draws - expected) < 4.5 * error)


def test_coinciding_tokens_receive_the_same_push_and_close_ones_nearly():
    """A root of the Gram matrix by eigenvectors would part them by 1e-8."""
    x = np.tile(unit((1, 6)), (3, 1))
    x[2] += 1e-12 * unit((1, 6))[0]
    image = np.asarray(gaussian_image(jr.key(3), jnp.asarray(x), 6))
    assert np.max(np.abs(image[0] - image[1])) < 1e-14
    assert 1e-13 < np.max(np.abs(image[0] - image[2])) < 1e-11


@pytest.mark.slow
def test_a_layer_with_given_matrices_is_the_engines_layer():
    """Same V and A in `SA` with Layers(eta): B = A^T, V/H."""
    d, heads, eta = 4, 2, 0.3
    law = rd.HeadLaw.gaussian(d, 1.5)
    x0 = flock.uniform(flock.Sphere(d), 5, seed=2)
    drawn = law.draw(jr.key(5), d, heads)
    moved = law.moved_by(drawn, x0.points, jnp.log(x0.weights))
    ours = x0.space.retract(x0.points + eta * moved)
    weights = flock.Weights(B=jnp.swapaxes(drawn.A, 1, 2), V=drawn.V / heads)
    run = flock.solve(flock.SA(1.5, weights=weights), x0, eta, method=flock.Layers(eta))
    np.testing.assert_allclose(ours, run.states[-1], atol=1e-13)


@pytest.mark.parametrize("drawn", [False, True])
def test_heads_are_independent(drawn):
    """Var of (1/H) sum_h V_h m_h falls like 1/H, with V = I as well: every head has an A of its own."""
    d, n, draws = 3, 4, 4000
    x, log_weights = jnp.asarray(unit((n, d))), jnp.log(jnp.full(n, 1 / n))
    law = rd.HeadLaw(rd.Values(0.0, mean=1.0), rd.ProductScores(1.0), rd.AmongTokens(3.0))

    def push(key, heads):
        if drawn:
            return law.moved_by(law.draw(key, d, heads), x, log_weights)
        return law.displacement(key, x, log_weights, heads)

    spreads = []
    for heads in (1, 4):
        keys = jr.split(jr.key(heads), draws)
        found = np.asarray(jax.vmap(functools.partial(push, heads=heads))(keys))
        squares = np.sum((found - found.mean(axis=0)) ** 2, axis=(1, 2))
        spreads.append((squares.mean(), squares.std() / np.sqrt(draws) / squares.mean()))
    (one, error), (four, other) = spreads
    assert one / four == pytest.approx(4, abs=4 * 4 * np.hypot(error, other))
    assert np.hypot(error, other) < 0.05


@pytest.mark.slow
def test_p3_1_overlaps_drift_and_spread_as_predicted():
    """P3-1: E dR_ij/(eta^2/H) = D_ij to 2.5e-3, and its variance to 4 standard errors + O(eta^2/H).

    Antithetic in V, with the s_ij of the very A's that were drawn: what is left is the noise of V.
    """
    d, n, heads, eta, draws = 6, 4, 2, 0.05, 200_000
    law = rd.HeadLaw.gaussian(d, 1.5)
    x = jnp.asarray(unit((n, d)))
    log_weights = jnp.log(jnp.full(n, 1 / n))

    def drawn(key):
        push = eta * law.displacement(key, x, log_weights, heads)
        ends = [flock.Sphere(d).retract(x + sign * push) for sign in (1, -1)]
        scoring = jr.split(jr.split(key)[0], heads)
        m = jax.vmap(lambda k: law.attending.sampled(law.scores, k, x, log_weights))(scoring)
        return jnp.stack([end @ end.T for end in ends]), jnp.einsum("hid,hjd->ij", m, m) / heads

    grams, own = jax.lax.map(drawn, jr.split(jr.key(0), draws), batch_size=4096)
    change, s = np.asarray(grams - x @ x.T), np.asarray(own).mean(axis=0)
    clock = eta**2 / heads
    mean = change.mean(axis=1) / clock
    R = np.clip(np.asarray(x @ x.T), -1, 1)
    drift, variation = theory.gram_drift(R, s, d), theory.gram_variation(R, s, d)
    assert np.max(mean.std(axis=0)) / np.sqrt(draws) < 1e-3
    np.testing.assert_allclose(mean.mean(axis=0), drift, atol=2.5e-3)
    square = (change**2).mean(axis=1) / clock
    error = 4 * square.std(axis=0) / np.sqrt(draws) + 2 * clock
    assert np.all(np.abs(square.mean(axis=0) - variation) < error)
    # The test can fail: another V for every token has no s_ij term at all.
    assert (
        np.max(np.abs(drift + (d - 1) / (2 * d) * R * np.add.outer(np.diag(s), np.diag(s)))) > 0.1
    )


@pytest.mark.parametrize("entries", [rd.Normal(), rd.Signs(), rd.Flat()])
def test_entries_are_centred_with_variance_one(entries):
    values = np.asarray(entries.sample(jr.key(0), (40_000,)))
    assert abs(values.mean()) < 4 / np.sqrt(values.size)
    spread = max((values**2).std(), 1e-3)
    assert abs((values**2).mean() - 1) < 4 * spread / np.sqrt(values.size)


def test_means_are_added_to_values_and_scores():
    d = 3
    EV, EA = RNG.normal(size=(2, d, d))
    law = rd.HeadLaw(
        rd.Values(0.0, mean=EV, entries=rd.Normal()),
        rd.ProductScores(0.0, mean=EA),
        rd.AmongTokens(2.0),
    )
    x = unit((4, d))
    logits = 2.0 * x @ EA.T @ x.T
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = law.displacement(jr.key(0), jnp.asarray(x), jnp.log(jnp.full(4, 0.25)), 3)
    np.testing.assert_allclose(found, p @ x @ EV.T, atol=1e-13)
    drawn = law.draw(jr.key(0), d, 1)
    np.testing.assert_allclose(drawn.V[0], EV)
    np.testing.assert_allclose(drawn.A[0], EA)


def test_a_crowd_at_zero_temperature_is_the_limit_of_softmax():
    """m -> A z/|A z| among uniform tokens as beta grows; the gap is 1 - I_1/I_0 ~ 1/(2 beta |Az|)."""
    crowd = flock.from_angles(np.linspace(0, 2 * np.pi, 4000, endpoint=False))
    A = jnp.array([[1.0, 0.4], [-0.3, 0.8]])
    z = jnp.asarray(unit((3, 2)))
    sharp = rd.FullSupport().given(A, z, crowd.points, jnp.log(crowd.weights))
    soft = rd.AmongTokens(400.0).given(A, z, crowd.points, jnp.log(crowd.weights))
    strength = 400.0 * np.linalg.norm(z @ A.T, axis=1)
    assert np.all(np.linalg.norm(np.asarray(sharp - soft), axis=1) < 0.6 / strength)


def test_impossible_laws_are_refused():
    with pytest.raises(InputError, match="must be >= 0"):
        rd.Values(-1.0)
    with pytest.raises(InputError, match="number or a d x d matrix"):
        rd.FixedScores(np.ones((2, 3)))
    with pytest.raises(InputError, match="one or two Gaussian factors"):
        rd.HeadLaw.zero_temperature(4, factors=3)
