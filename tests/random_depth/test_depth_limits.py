"""The limits of random layers: ballistic, modified and diffusive models in flock.solve."""

import itertools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import random_depth as rd
from tokenflock import theory
from tokenflock.errors import InputError
from tokenflock.reduce import Dense
from tokenflock.serialise import describe, rebuild

D = 3
X0 = flock.uniform(flock.Sphere(D), 4, seed=5)
RNG = np.random.default_rng(4)
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def end(model, t=1.0, **numerics):
    return np.asarray(flock.solve(model, X0, t, **(numerics or TIGHT)).states[-1])


def test_the_ballistic_limit_of_a_fixed_head_is_self_attention():
    law = rd.HeadLaw.deterministic(2.0)
    field = rd.ballistic(law, D).field(0.0, X0.points, X0)
    np.testing.assert_allclose(field, flock.SA(2.0).field(0.0, X0.points, X0), atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("projected", [True, False])
def test_p3_5_layers_follow_the_modified_equation_to_second_order(projected):
    """P3-5: slopes 1 (ODE) and 2 (modified) in eta at grid times, +-0.15, for a head that is no gradient."""
    V, A = np.eye(D) + 0.5 * RNG.normal(size=(D, D)), RNG.normal(size=(D, D))
    law = rd.HeadLaw.deterministic(1.5, V, A)
    plain = end(rd.ballistic(law, D))
    steps = [0.1, 0.05]
    errors = []
    for eta in steps:
        run = rd.random_chains(law, X0, round(1 / eta), eta, chains=1, projected=projected)
        layers = run.array("final_points")[0]
        better = end(rd.modified(law, D, eta, projected))
        errors.append([np.max(np.abs(layers - exact)) for exact in (plain, better)])
    slopes = np.log2(np.divide(*errors))
    assert slopes[0] == pytest.approx(1, abs=0.15)
    assert slopes[1] == pytest.approx(2, abs=0.15)
    assert errors[1][1] < errors[1][0] / 5


@pytest.mark.slow
def test_p3_5_the_two_layers_need_their_own_modified_equation():
    """Exchanging the projected and the unprojected form leaves an error of first order."""
    law, eta = rd.HeadLaw.deterministic(1.5, np.eye(D), np.eye(D)), 0.05
    run = rd.random_chains(law, X0, 20, eta, chains=1, projected=False)
    right, wrong = (
        np.max(np.abs(run.array("final_points")[0] - end(rd.modified(law, D, eta, projected))))
        for projected in (False, True)
    )
    assert wrong > 10 * right


@pytest.mark.slow
def test_p3_4_many_heads_and_small_steps_follow_the_mean():
    """P3-4: EV = I, A random; E x(t) of the chain against X' = P EV E_A m, 4 errors + O(eta + 1/H)."""
    eta, heads, chains = 0.02, 32, 200
    law = rd.HeadLaw(
        rd.Values(D**-0.5, mean=1.0, entries=rd.Normal()),
        rd.ProductScores(D**-0.5),
        rd.AmongTokens(2.0),
    )
    run = rd.random_chains(law, X0, 25, eta, heads=heads, chains=chains)
    tokens = run.array("final_points")
    exact = end(rd.ballistic(law, D, panel=20_000), t=0.5)
    error = 4 * tokens.std(axis=0) / np.sqrt(chains) + eta + eta / heads
    assert np.all(np.abs(tokens.mean(axis=0) - exact) < error)
    # The chain moved much farther than that.
    assert np.max(np.abs(exact - np.asarray(X0.points))) > 0.2


@pytest.mark.slow
def test_the_diffusive_limit_has_the_chains_overlaps():
    """E R_12 and E R_12^2 at tau = 0.5 of SDE and chain; 4 standard errors, eta^2, and the panel's error."""
    law, samples = rd.HeadLaw.gaussian(D, 1.0), 1500
    chain = rd.random_chains(law, X0, 50, 0.1, chains=samples, observe=[rd.overlaps])
    batch = X0.at(jnp.broadcast_to(X0.points, (samples, *X0.points.shape)))
    save = flock.Save(observe=[rd.overlaps])
    model = rd.diffusive(law, D, panel=1000)
    run = flock.solve(model, batch, 0.5, dt=1 / 64, seed=2, save=save)
    for power in (1, 2):
        one = chain.array("overlaps")[:, -1] ** power
        other = run.array("overlaps")[:, -1] ** power
        error = 4 * np.sqrt((one.var(axis=0) + other.var(axis=0)) / samples)
        # Over tau = 0.5 an s_ij off by 1000^{-1/2} of its spread (below 0.5) moves R by half of that.
        assert np.all(
            np.abs(one.mean(axis=0) - other.mean(axis=0)) < error + 0.1**2 + 0.5 * 0.5 / 1000**0.5
        )


def test_the_noise_has_the_covariance_of_random_heads():
    """J J^T of the linear map increment -> push, against loops over the panel in NumPy."""
    d, n, eta, heads = 3, 2, 0.3, 4
    EV = RNG.normal(size=(d, d))
    law = rd.HeadLaw(
        rd.Values(0.7, mean=EV, entries=rd.Normal()), rd.ProductScores(0.8), rd.AmongTokens(1.5)
    )
    model = rd.diffusive(law, d, step=eta, heads=heads, panel=8)
    noise = model.noise
    x0 = flock.uniform(flock.Sphere(d), n, seed=8)
    amplitude = noise.amplitude(0.0, x0.points, x0, Dense())
    size = noise.brownian_shape(x0)[0]
    assert size == n * d + 8
    J = np.asarray(jax.vmap(lambda basis: noise.apply(amplitude, basis))(jnp.eye(size)))
    found = np.einsum("kia,kjb->iajb", J, J)
    x = np.asarray(x0.points)
    m = []
    for A in np.asarray(noise.panel.A):
        weight = np.exp(1.5 * np.array([[(A @ x[i]) @ x[k] for k in range(n)] for i in range(n)]))
        m.append(weight / weight.sum(axis=1, keepdims=True) @ x)
    m = np.array(m)
    swing = (m - m.mean(axis=0)) @ EV.T
    s = np.einsum("pid,pjd->ij", m, m) / len(m)
    expected = 0.7**2 * np.einsum("ij,ab->iajb", s, np.eye(d))
    expected = eta / heads * (expected + np.einsum("pia,pjb->iajb", swing, swing) / len(m))
    np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_allclose(noise.panel.attended(x0.points, x0), s, atol=1e-14)


def barycentres(x, A, beta):
    """m_A of all tokens, one A after the other, (panel, n, d)."""
    weights = np.exp(beta * np.einsum("pab,ib,ka->pik", A, x, x))
    return weights / weights.sum(axis=2, keepdims=True) @ x


def project(x, v):
    return v - np.sum(x * v, axis=-1, keepdims=True) * x


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("projected", [False, True])
def test_the_drift_with_a_mean_of_V_is_the_chains_mean_to_second_order(heads, projected):
    """E x(1) - x over all choices of the heads' A from a small panel, against eta b + (eta^2/2) P b'b.

    b is the drift of the limit at the start. With F = E EV m_A, the chain's mean moves by eta PF + O(eta^2)
    and so does the flow, which turns on the way: (eta^2/2) grad_F F, here by finite differences.
    """
    beta, eta, panel = 1.5, 1e-4, 6
    EV = np.array([[1.0, 0.7, -0.4], [0.2, 0.5, 0.9], [-0.8, 0.3, 1.2]])
    law = rd.HeadLaw(
        rd.Values(0.6, mean=EV, entries=rd.Normal()), rd.ProductScores(1.0), rd.AmongTokens(beta)
    )
    model = rd.diffusive(law, D, step=eta, heads=heads, projected=projected, panel=panel)
    A, x = np.asarray(model.noise.panel.A), np.asarray(X0.points)
    pushes = barycentres(x, A, beta) @ EV.T
    choices = np.array(list(itertools.product(range(panel), repeat=heads)))
    push = pushes[choices].mean(axis=1)
    push = project(x, push) if projected else push
    ends = x + eta * push
    ends /= np.linalg.norm(ends, axis=-1, keepdims=True)
    mean = project(x, ends.mean(axis=0) - x) / eta

    def field(x):
        return project(x, (barycentres(x, A, beta) @ EV.T).mean(axis=0))

    along = field(x)
    turned = project(x, field(x + 1e-5 * along) - field(x - 1e-5 * along)) / 2e-5
    second = np.asarray(model.field(0.0, X0.points, X0) - along) / eta
    np.testing.assert_allclose(second, (mean - along) / eta - turned / 2, atol=20 * eta)
    # Each of the three parts is far larger than what is allowed here.
    assert np.max(np.abs(turned)) > 0.3
    if not projected:
        swing = pushes - pushes.mean(axis=0)
        radial = project(x, (np.sum(swing * x, axis=-1, keepdims=True) * swing).mean(axis=0))
        assert np.max(np.abs(radial)) / heads > 5 * 20 * eta


def test_gaussian_heads_have_no_drift_and_the_model_can_be_described():
    model = rd.diffusive(rd.HeadLaw.gaussian(D, 1.0), D, panel=4)
    assert not np.any(model.field(0.0, X0.points, X0))
    again = rebuild(describe(model))
    np.testing.assert_allclose(again.noise.panel.A, model.noise.panel.A)
    assert theory.depth_regime(1000, 0.03, 1, 16).limit == "diffusive"


def test_p3_regimes_are_told_apart():
    """Noise matters from L ~ H/(eta^2 varsig^2) on."""
    assert theory.depth_regime(10, 0.05, 8, 64).limit == "ballistic"
    assert theory.depth_regime(100, 0.05, 64, 64).limit == "modified"
    assert theory.depth_regime(10_000, 0.05, 1, 64).limit == "none"
    regime = theory.depth_regime(400, 0.05, 1, 64)
    assert regime.noise == pytest.approx(0.05**2 * 400 * 63 / 64)


def test_tokens_of_another_dimension_are_refused():
    with pytest.raises(InputError, match="drawn in d=4, the tokens have d=3"):
        flock.solve(rd.diffusive(rd.HeadLaw.gaussian(4, 1.0), 4, panel=4), X0, 0.1, dt=0.1)
    model = rd.diffusive(rd.HeadLaw.gaussian(D, 1.0), D, panel=4)
    with pytest.raises(InputError, match="Ito equation"):
        flock.solve(model, X0, 0.1, dt=0.1, method=diffrax.Heun())
