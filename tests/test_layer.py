"""One layer: against NumPy, through jax.grad and jax.vmap, with tokens that are not there, without norm."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.dynamics import Particles
from tokenflock.errors import InputError
from tokenflock.measure import padded
from tokenflock.normalisation import Residual
from tokenflock.serialise import describe, rebuild

RNG = np.random.default_rng(11)
BETA, STEP = 1.7, 0.3
Q, K, V = 0.6 * RNG.normal(size=(3, 2, 3, 3))
INNER, OUTER, BIAS = RNG.normal(size=(5, 3)), 0.4 * RNG.normal(size=(3, 5)), RNG.normal(size=5)
TOKENS = RNG.normal(size=(6, 3))


def model(values=V, normalisation=None):
    """Two heads with generic weights and a perceptron: nothing is symmetric."""
    attention = flock.Attention(flock.Weights(Q=Q, K=K, V=values), BETA)
    return flock.Dynamics(
        None, attention + flock.Perceptron(INNER, OUTER, BIAS), normalisation=normalisation
    )


def in_numpy(x, keep=1.0):
    """keep x + step (attention + perceptron), head by head and token by token."""
    force = np.maximum(x @ INNER.T + BIAS, 0.0) @ OUTER.T
    for q, k, v in zip(Q, K, V, strict=True):
        for i, token in enumerate(x):
            scores = np.array([BETA * (q @ token) @ (k @ other) for other in x])
            weights = np.exp(scores - scores.max())
            force[i] += weights / weights.sum() @ x @ v.T
    return (1 - STEP * (1 - keep)) * x + STEP * force


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def layer(dynamics, mu):
    return dynamics.layer(0.0, Particles(mu.points), mu, STEP).points


def test_a_layer_is_that_of_numpy_on_both_spaces():
    flat = flock.from_array(flock.Euclidean(3), TOKENS)
    np.testing.assert_allclose(layer(model(), flat), in_numpy(TOKENS), atol=1e-13)
    kept = layer(model(normalisation=Residual(0.25)), flat)
    np.testing.assert_allclose(kept, in_numpy(TOKENS, keep=0.25), atol=1e-13)
    round_ = flock.from_array(flock.Sphere(3), unit(TOKENS))
    np.testing.assert_allclose(layer(model(), round_), unit(in_numpy(unit(TOKENS))), atol=1e-13)


def test_two_layers_are_a_run_and_have_derivatives_in_batches():
    """`solve` with `Layers` makes the same layers; grad under vmap against central differences."""
    x0 = flock.from_array(flock.Sphere(3), unit(TOKENS))

    @jax.jit
    def ends(values):
        def two(one):
            state = Particles(x0.points)
            for k in range(2):
                state = model(one).layer(k * STEP, state, x0, STEP)
            return state.points

        return jax.vmap(two)(values)

    values = np.stack([V, 0.5 * V])
    run = flock.solve(model(), x0, t1=2 * STEP, method=flock.Layers(STEP))
    np.testing.assert_allclose(ends(values)[0], run.final.points, atol=1e-14)

    def loss(values):
        return jnp.sum(ends(values)[:, 0] ** 3)

    turn, h = RNG.normal(size=values.shape), 1e-5
    slope = jnp.vdot(jax.grad(loss)(values), turn)
    difference = (loss(values + h * turn) - loss(values - h * turn)) / (2 * h)
    assert float(slope) == pytest.approx(float(difference), abs=1e-8)
    assert abs(float(slope)) > 0.01


@pytest.mark.parametrize(
    "kind", [flock.kinds.Softmax(), flock.kinds.Hardmax()], ids=["softmax", "hardmax"]
)
def test_tokens_that_are_not_there_move_nobody(kind):
    term = flock.Attention(flock.Weights(Q=Q[:1], K=K[:1], V=V[:1]), BETA, kind)
    dynamics = flock.Dynamics(None, term)
    alone = layer(dynamics, flock.from_array(flock.Euclidean(3), TOKENS[:4]))
    present = jnp.array([True, False, True, True, False, True])
    places = jnp.asarray(TOKENS[[0, 5, 1, 2, 4, 3]])
    among = padded(flock.Euclidean(3), places, present)
    np.testing.assert_allclose(layer(dynamics, among)[present], alone, atol=1e-13)
    everybody = flock.from_array(flock.Euclidean(3), places)
    assert np.max(np.abs(layer(dynamics, everybody)[present] - alone)) > 1e-2


def test_padding_keeps_precision_and_an_empty_sequence_is_finite():
    nobody = padded(flock.Sphere(3), jnp.ones((4, 3), np.float32), jnp.zeros(4, bool))
    assert nobody.points.dtype == nobody.weights.dtype == np.float32
    np.testing.assert_array_equal(nobody.weights, 0.0)
    assert padded(flock.Euclidean(1), jnp.ones((1, 1)), jnp.ones(1, bool)).n == 1


def test_what_is_kept_of_a_token_decays():
    """With no force x' = -(1 - keep) x: e^{-t(1 - keep)} in the flow, (1 - h (1 - keep))^k in layers."""
    still = flock.Attention(flock.Weights(V=0.0))
    kept = flock.Dynamics(None, still, normalisation=Residual(0.25))
    x0 = flock.from_array(flock.Euclidean(3), TOKENS)
    flow = flock.solve(kept, x0, t1=2.0, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(flow.states[-1], np.exp(-1.5) * TOKENS, rtol=1e-9)
    layers = flock.solve(kept, x0, t1=2.0, method=flock.Layers(0.5))
    np.testing.assert_allclose(layers.states[-1], (1 - 0.375) ** 4 * TOKENS, rtol=1e-14)
    switched = flock.Dynamics(
        None, still, normalisation=Residual(flock.Piecewise([1.0], [0.25, 2.0]))
    )
    later = flock.solve(switched, x0, t1=2.0, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(later.states[-1], np.exp(-0.75 + 1.0) * TOKENS, rtol=1e-9)


def test_keeping_less_is_a_drift_in_the_flow_and_no_energy_is_watched():
    """x' = A - (1 - keep) x; where x decays, the energy need not rise."""
    x0 = flock.from_array(flock.Euclidean(3), TOKENS)
    numerics = {"t1": 1.0, "rtol": 1e-10, "atol": 1e-12}
    kept = flock.solve(flock.SA(BETA, normalisation=Residual(0.25)), x0, **numerics)
    drift = flock.solve(flock.SA(BETA, plus=flock.Drift(-0.75)), x0, **numerics)
    np.testing.assert_allclose(kept.states[-1], drift.states[-1], rtol=1e-8)
    assert "energy_violation" not in kept.health
    assert "energy_violation" in flock.solve(flock.SA(BETA), x0, **numerics).health


def test_residual_belongs_to_flat_space_and_to_the_tokens_as_they_are():
    sphere = flock.from_array(flock.Sphere(3), unit(TOKENS))
    with pytest.raises(InputError, match=r"Residual.* R\^d.* use PostLN"):
        flock.solve(model(normalisation=Residual(0.5)), sphere, t1=1.0, method=flock.Layers(0.5))
    plain = flock.RescaledSA(1.0)
    both = flock.Dynamics(None, plain.terms, normalisation=Residual(0.5), frame=plain.frame)
    flat = flock.from_array(flock.Euclidean(3), TOKENS)
    with pytest.raises(InputError, match="either the normalisation or the frame Rescaled"):
        flock.solve(both, flat, t1=1.0, method=flock.Layers(0.5))


def test_residual_is_plain_data():
    again = rebuild(json.loads(json.dumps(describe(Residual(flock.Piecewise([1.0], [0.5, 1.0]))))))
    assert [float(again.keep.at(t)) for t in (0.5, 1.5)] == [0.5, 1.0]
