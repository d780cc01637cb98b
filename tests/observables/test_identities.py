"""Dissipation identities (K1.3): formula, derivative of E and central differences agree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tokenflock.dynamics import Dynamics
from tokenflock.errors import InputError
from tokenflock.kinds import Unnormalised
from tokenflock.models import (
    L2SA,
    SA,
    USA,
    CausalSA,
    HardmaxFlow,
    KernelFlow,
    LinearSA,
    NoisyUSA,
    RescaledSA,
    SigmoidSA,
    SinkhornSA,
)
from tokenflock.normalisation import PostLN, PreLN
from tokenflock.observables import Snapshot, dissipation, energy, energy_rate
from tokenflock.reduce import Dense
from tokenflock.space import Euclidean, Sphere
from tokenflock.terms import Attention, Drift
from tokenflock.terms.perceptron import Perceptron
from tokenflock.weights import Weights

B1 = np.array(
    [[1.1, 0.3, -0.2, 0.0], [0.3, 0.4, 0.1, 0.5], [-0.2, 0.1, -0.7, 0.2], [0, 0.5, 0.2, 0.9]]
)
HEADS = np.stack([B1, np.diag([0.3, -0.6, 1.2, 0.1])])
Q = np.random.default_rng(1).normal(size=(3, 4))
KINETIC = Dynamics(None, Attention(None, 2.0, Unnormalised("kinetic")), label="kinetic, full mask")

GRADIENT_FLOWS = {
    "SA": SA(3.0),
    "SA beta 0": SA(0.0),
    "USA": USA(3.0),
    "USA metastability": USA(3.0, "metastability"),
    "USA kinetic": KINETIC,
    "repulsive SA": SA(3.0, weights=Weights(V=-1.0)),
    "repulsive USA": USA(2.0, weights=Weights(V=-0.5)),
    "SA, V a multiple of I as a matrix": SA(2.0, Weights(V=3.0 * np.eye(4))),
    "SA, V = 2 B": SA(1.5, Weights(B=B1, V=2 * B1)),
    "SA, V = -Q^T K, Q = K of rank 3": SA(1.5, Weights(Q=Q, K=Q, V=-Q.T @ Q)),
    "USA, two heads, V = B": USA(1.5, weights=Weights(B=HEADS, V=HEADS)),
    "kernel": KernelFlow(lambda s: s**3 + jnp.exp(s)),
    "linear": LinearSA(2.0),
    "sigmoid": SigmoidSA(2.0, bias=-0.3),
    "post-LN by name": SA(2.0, normalisation=PostLN()),
}


@pytest.mark.parametrize("name", GRADIENT_FLOWS)
def test_identity_is_the_derivative_of_the_energy(name, weighted, read):
    model, mu = GRADIENT_FLOWS[name], weighted()
    value = read(dissipation, mu, model)
    assert value == pytest.approx(read(energy_rate, mu, model), rel=1e-10)
    h = 1e-5
    step = h * model.field(0.0, mu.points, mu)
    ahead, behind = (
        read(energy, mu.at(mu.space.retract(mu.points + sign * step)), model) for sign in (1, -1)
    )
    assert value == pytest.approx((ahead - behind) / (2 * h), rel=1e-6)
    attracts = "repulsive" not in name and "V = -" not in name
    assert value > 0 if attracts else value < 0


def test_identity_in_euclidean_space(cloud, read):
    mu = cloud(d=2, n=6)
    mu = mu.at(0.3 * mu.points)
    model = Dynamics(Euclidean(2), Attention(None, 0.8))
    rate = read(energy_rate, mu, model)
    assert read(dissipation, mu, model) == pytest.approx(rate, rel=1e-11)


def test_softmax_identity_by_hand(weighted, read):
    """Eq. (3.6) with Zbar_i = sum_k w_k e^{beta <x_i, x_k>}, loops in numpy."""
    mu, beta = weighted(n=7), 2.0
    x, w = np.asarray(mu.points), np.asarray(mu.weights)
    total = 0.0
    for i in range(mu.n):
        kernel = np.array([w[k] * np.exp(beta * x[i] @ x[k]) for k in range(mu.n)])
        pull = kernel @ x / kernel.sum()
        speed = pull - (pull @ x[i]) * x[i]
        total += w[i] * kernel.sum() * speed @ speed
    assert read(dissipation, mu, SA(beta)) == pytest.approx(total, rel=1e-12)


def test_metastability_clock_is_slower_by_e_to_beta(weighted, read):
    mu = weighted()
    fast = read(dissipation, mu, USA(3.0))
    slow = read(dissipation, mu, USA(3.0, "metastability"))
    assert fast == pytest.approx(np.exp(3.0) * float(slow), rel=1e-12)


def test_no_values_and_no_temperature_move_nothing(weighted, read):
    mu = weighted()
    assert read(dissipation, mu, SA(2.0, Weights(V=0.0))) == 0.0
    still = Dynamics(None, Attention(None, 0.0, Unnormalised("kinetic")))
    assert read(dissipation, mu, still) == 0.0


def test_compiled_over_samples_and_beta(weighted, read):
    mu = weighted(samples=3)
    betas = jnp.array([0.5, 1.0, 4.0])

    def value(x, beta):
        return dissipation(Snapshot(jnp.zeros(()), mu.at(x), SA(beta), Dense()))

    compiled = jax.jit(jax.vmap(value))(mu.points, betas)
    each = [read(dissipation, mu.at(mu.points[k]), SA(float(betas[k]))) for k in range(3)]
    np.testing.assert_allclose(compiled, each, rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (CausalSA(1.0), "Causal"),
        (NoisyUSA(1.0, 0.1), "noise"),
        (SA(1.0, plus=Drift(1.0)), "further terms"),
        (USA(1.0, plus=Perceptron.random(4, 3, seed=0, gradient=True)), "further terms"),
        (SA(1.0, normalisation=PreLN()), "PreLN"),
        (SA(1.0, Weights(B=HEADS, V=HEADS)), "several heads"),
        (L2SA(1.0), "Softmax"),
        (SinkhornSA(1.0), "Sinkhorn"),
        (RescaledSA(1.0), "frame"),
    ],
)
def test_models_without_an_identity_are_refused(model, word, weighted, read):
    with pytest.raises(InputError, match=f"{word}.*; use energy_rate"):
        read(dissipation, weighted(), model)


def test_model_without_attention_is_refused(weighted, read):
    with pytest.raises(InputError, match="attention"):
        read(dissipation, weighted(), Dynamics(Sphere(4), Drift(1.0)))
    with pytest.raises(InputError, match="Hardmax"):
        read(dissipation, weighted(), HardmaxFlow())


UNTIED = {
    "V = I, B not": Weights(B=B1),
    "B not symmetric": Weights(B=np.triu(B1), V=np.triu(B1)),
    "V not a multiple of I": Weights(V=B1),
}


@pytest.mark.parametrize("name", UNTIED)
def test_untied_values_are_refused_or_nan_when_compiled(name, weighted, snapshot, read):
    mu, model = weighted(), SA(1.0, UNTIED[name])
    with pytest.raises(InputError, match="V = c Q"):
        dissipation(snapshot(mu, model))
    assert np.isnan(read(dissipation, mu, model))
