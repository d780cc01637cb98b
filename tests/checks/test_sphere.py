"""Checks K1.x: the sphere dynamics of 2312.10794 against identities, closed forms and symmetries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from named_kinds import named_kind
from scipy.linalg import expm

import tokenflock as flock
from tokenflock import theory
from tokenflock.dynamics import Particles

MODELS = {"SA": flock.SA, "USA": flock.USA}
# Flows of both models are compared where they differ; elsewhere the second runs with the slow tests.
ONE_QUICK = ["SA", pytest.param("USA", marks=pytest.mark.slow)]
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def field(model, tokens, t=0.0):
    return np.asarray(model.velocity(t, Particles(tokens.points), tokens, flock.Dense()).points)


@pytest.mark.parametrize(
    ("beta", "weights"),
    [
        pytest.param(6.0, None, marks=pytest.mark.slow),
        (2.0, flock.Weights.gaussian(d=4, seed=1, heads=3, scale=1.0)),
    ],
)
def test_T01_K1_1_norms_after_many_steps(beta, weights):
    run = flock.solve(
        flock.SA(beta, weights),
        flock.uniform(flock.Sphere(4), 12, seed=3),
        t1=20.0,
        **TIGHT,
        save=flock.Save(every=1.0, states=True),
    )
    norms = np.linalg.norm(run.states, axis=-1)
    assert np.max(np.abs(norms - 1)) < 1e-12
    assert run.health["norm_drift"] < 1e-12


@pytest.mark.parametrize("name", ONE_QUICK)
def test_T02_K1_2_permutations_and_rotations_commute_with_the_flow(name):
    rng = np.random.default_rng(0)
    tokens = flock.uniform(flock.Sphere(4), 9, seed=2)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    order = rng.permutation(9)
    points = np.asarray(tokens.points)
    stacked = flock.from_array(tokens.space, np.stack([points, points[order], points @ rotation.T]))
    final = np.asarray(flock.solve(MODELS[name](2.0), stacked, t1=3.0, **TIGHT).final.points)
    np.testing.assert_allclose(final[1], final[0][order], atol=1e-9)
    np.testing.assert_allclose(final[2], final[0] @ rotation.T, atol=1e-9)


def energy(points, beta):
    n = len(points)
    return jnp.sum(jnp.exp(beta * points @ points.T)) / (2 * beta * n**2)


@pytest.mark.parametrize("name", ONE_QUICK)
def test_T03_K1_3_dissipation_identities(name):
    """dE/dt by a central difference along the flow against both sides of (3.6)."""
    beta, h, model = 3.0, 1e-5, MODELS[name](3.0)
    tokens = flock.uniform(flock.Sphere(4), 12, seed=1)
    x, v = np.asarray(tokens.points), field(model, tokens)
    moved = [np.asarray(tokens.space.retract(jnp.asarray(x + s * h * v))) for s in (1, -1)]
    slope = float(energy(moved[0], beta) - energy(moved[1], beta)) / (2 * h)
    partition = np.exp(beta * x @ x.T).mean(axis=1) if name == "SA" else np.ones(12)
    assert slope == pytest.approx(np.mean(partition * np.sum(v**2, axis=1)), rel=1e-6)
    snapshot = flock.observables.Snapshot(jnp.zeros(()), tokens, model, flock.Dense())
    assert float(flock.observables.dissipation(snapshot)) == pytest.approx(slope, rel=1e-6)


def test_T04_K1_4_gradient_flow_structure():
    """USA = n grad E; Z_i x_i' (SA) = grad_i of (1/2beta) sum e^{beta <x_i,x_j>}, by autodiff."""
    beta, tokens = 2.5, flock.uniform(flock.Sphere(3), 8, seed=4)
    x, n = tokens.points, 8
    gradient = jax.grad(energy)(x, beta)
    expected = tokens.space.project(x, n * gradient)
    np.testing.assert_allclose(field(flock.USA(beta), tokens), expected, rtol=1e-10, atol=1e-12)
    partition = jnp.sum(jnp.exp(beta * x @ x.T), axis=1)[:, None]
    softmax = partition * field(flock.SA(beta), tokens)
    np.testing.assert_allclose(
        softmax, n**2 * tokens.space.project(x, gradient), rtol=1e-10, atol=1e-9
    )


def test_T05_K1_6_SA_is_the_gradient_of_log_Z_over_beta():
    """X_SA = beta^{-1} grad log Z; the printed (3.7) misses the 1/beta."""
    beta, tokens = 3.0, flock.uniform(flock.Sphere(3), 10, seed=5)
    probe = flock.uniform(flock.Sphere(3), 4, seed=6)

    def log_partition(y):
        return jnp.log(jnp.mean(jnp.exp(beta * tokens.points @ y)))

    slope = jax.vmap(jax.grad(log_partition))(probe.points)
    expected = tokens.space.project(probe.points, slope) / beta
    measured = flock.SA(beta).field(0.0, probe.points, tokens)
    np.testing.assert_allclose(measured, expected, atol=1e-12)
    assert np.max(np.abs(measured - beta * expected)) > 1e-2


def inner(run):
    return np.einsum("...tic,...tjc->...tij", run.array("states"), run.array("states"))


ORTHOGONAL = flock.equiangular(flock.Sphere(16), 8)


@pytest.mark.parametrize("name", ONE_QUICK)
def test_T06_K1_7_orthogonal_start_follows_the_scalar_ode(name):
    beta = 2.0
    times = np.array([0.1, 0.3, 0.7, 1.2, 2.0, 3.0])
    run = flock.solve(
        MODELS[name](beta),
        ORTHOGONAL,
        t1=3.0,
        rtol=1e-9,
        atol=1e-11,
        save=flock.Save(at=times, states=True),
    )
    gamma = theory.equiangular_gamma(run.time, n=8, beta=beta, kind=named_kind(name))
    gram = inner(run)
    pairs = ~np.eye(8, dtype=bool)
    assert np.max(np.abs(gram[:, pairs] - np.asarray(gamma)[:, None])) < 1e-8


@pytest.mark.parametrize(
    ("name", "beta", "expected"),
    [("SA", 4.0, 6.953502), pytest.param("USA", 4.0, 1.130770, marks=pytest.mark.slow)],
)
def test_T07_K1_8_reference_times_from_the_particles(name, beta, expected):
    """The time where 32 orthogonal tokens reach inner product .999, by a stop."""
    close = flock.when(lambda s: 0.999 - jnp.dot(s.measure.points[0], s.measure.points[1]))
    run = flock.solve(
        MODELS[name](beta), flock.equiangular(flock.Sphere(32), 32), t1=10.0, **TIGHT, stop=close
    )
    assert run.outcome == "stopped"
    assert run.reached == pytest.approx(expected, abs=2e-6)


@pytest.mark.slow  # the same path as in T06, further along
@pytest.mark.parametrize(("name", "slope"), [("SA", 2.0), ("USA", 2 * np.exp(1.0))])
def test_T08_K1_9_tail_slopes(name, slope):
    """-d log(1 - gamma)/dt where 1 - gamma <= 1e-4, with |x - y|^2/2 for 1 - <x,y>."""
    run = flock.solve(
        MODELS[name](1.0),
        ORTHOGONAL,
        t1=20.0 / slope,
        rtol=1e-11,
        atol=1e-13,
        save=flock.Save(every=0.25 / slope, states=True),
    )
    gap = np.sum((run.states[:, 0] - run.states[:, 1]) ** 2, axis=-1) / 2
    tail = (gap < 1e-4) & (gap > 1e-7)
    measured = -np.polyfit(np.asarray(run.time)[tail], np.log(gap[tail]), 1)[0]
    assert measured == pytest.approx(slope, rel=1e-3)


def test_T09_K1_14_USA_conserves_angular_momentum_and_SA_does_not():
    def moment(model, tokens):
        x, v = np.asarray(tokens.points), field(model, tokens)
        return np.max(np.abs(np.einsum("ia,ib->ab", x, v) - np.einsum("ia,ib->ab", v, x)))

    tokens = flock.uniform(flock.Sphere(4), 9, seed=7)
    assert moment(flock.USA(3.0), tokens) < 1e-12
    assert moment(flock.SA(3.0), tokens) > 1e-2


@pytest.mark.slow
def test_T09_K1_14_lifted_angles_on_the_circle():
    start = flock.uniform(flock.Sphere(2), 11, seed=8)
    drift = {}
    for name, model in MODELS.items():
        run = flock.solve(
            model(2.0),
            start,
            t1=2.0,
            rtol=1e-12,
            atol=1e-13,
            save=flock.Save(every=0.01, states=True),
        )
        angles = np.unwrap(np.arctan2(run.states[..., 1], run.states[..., 0]), axis=0)
        total = angles.sum(axis=1)
        drift[name] = np.max(np.abs(total - total[0]))
    assert drift["USA"] < 1e-10
    assert drift["SA"] > 1e-3


@pytest.mark.parametrize(
    ("name", "expected"), [("SA", 5.1632648), pytest.param("USA", None, marks=pytest.mark.slow)]
)
def test_T10_K1_15_two_tokens(name, expected):
    """phi' = -2 sin phi/(1 + e^{beta(1-cos phi)}) (SA), -e^{beta cos phi} sin phi (USA)."""
    beta, phi = 2.0, 1.1
    tokens = flock.from_angles([0.0, phi])
    v = field(MODELS[name](beta), tokens)
    rate = v[1] @ [-np.sin(phi), np.cos(phi)] - v[0] @ [0.0, 1.0]
    law = {
        "SA": -2 * np.sin(phi) / (1 + np.exp(beta * (1 - np.cos(phi)))),
        "USA": -np.exp(beta * np.cos(phi)) * np.sin(phi),
    }[name]
    assert rate == pytest.approx(law, rel=1e-12)
    if expected is not None:
        close = flock.when(lambda s: 0.999 - jnp.dot(s.measure.points[0], s.measure.points[1]))
        run = flock.solve(
            flock.SA(beta), flock.from_angles([0.0, np.pi / 2]), t1=9.0, **TIGHT, stop=close
        )
        assert run.reached == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_T11_K1_16_critical_configurations_rest_and_are_saddles():
    """Antipodal pair and regular n-gon: zero field; the n-gon's Hessian has a positive eigenvalue."""
    for angles, beta in (([0.3, 0.3 + np.pi], 2.0), (2 * np.pi * np.arange(5) / 5, 4.0)):
        for model in (flock.SA(beta), flock.USA(beta)):
            assert np.max(np.abs(field(model, flock.from_angles(angles)))) < 1e-13

    def circle_energy(theta, beta):
        gap = theta[:, None] - theta[None, :]
        return jnp.sum(jnp.exp(beta * jnp.cos(gap))) / (2 * beta * theta.size**2)

    for n, beta, largest in ((3, 1.0, 0.252721), (4, 5.0, 1.25)):
        theta = 2 * jnp.pi * jnp.arange(n) / n
        eigenvalues = np.linalg.eigvalsh(jax.hessian(circle_energy)(theta, beta))
        assert eigenvalues[-1] == pytest.approx(largest, abs=1e-5 if n == 3 else 2e-3)
        closed = np.sort(theory.ngon_hessian_eigenvalues(n, beta))
        np.testing.assert_allclose(np.sort(eigenvalues), closed, atol=1e-10)


def test_T12_K1_17_layers_follow_the_exact_scalar_map():
    beta, step, n = 4.0, 0.1, 8
    run = flock.solve(
        flock.SA(beta),
        ORTHOGONAL,
        t1=3.0,
        method=flock.Layers(step),
        save=flock.Save(every=step, states=True),
    )
    gamma = [0.0]
    for _ in range(30):
        gamma.append(float(theory.layer_map(gamma[-1], n=n, beta=beta, step=step)))
    np.testing.assert_allclose(inner(run)[:, 0, 1], gamma, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "d", "beta", "expected"), [(32, 2, 1.0, 0.6557238131), (32, 3, 4.0, 1.0394336262)]
)
def test_T13_K1_19_mean_energy_of_independent_tokens(n, d, beta, expected):
    samples = flock.uniform(flock.Sphere(d), n, seed=11, samples=4000)
    energies = np.asarray(jax.vmap(lambda x: energy(x, beta))(samples.points))
    error = energies.std() / np.sqrt(energies.size)
    assert energies.mean() == pytest.approx(expected, abs=3 * error)
    assert float(theory.energy_iid(n, d, beta)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ONE_QUICK)
def test_K1_5_energy_is_monotone_and_reversed_by_repulsion(name):
    """Attraction is V = 1 and not the default, so that one compiled program serves both signs."""
    for sign in (1.0, -1.0):
        run = flock.solve(
            MODELS[name](2.0, weights=flock.Weights(V=sign)),
            flock.uniform(flock.Sphere(3), 16, seed=9),
            t1=5.0,
            rtol=1e-9,
            atol=1e-11,
            save=flock.Save(every=0.1, observe=[flock.energy]),
        )
        values = run.array("energy")
        assert np.min(sign * np.diff(values)) > -1e-10 * values.max()
        assert run.health["energy_violation"] < 1e-10


@pytest.mark.slow  # the claims of 2312.10794v4 measure the collapse in a cone
def test_K1_12_cone_collapse():
    """In a hemisphere min <x_i, w> never falls, and the terminal slope of 1 - <x_i,x_j> is 2."""
    run = flock.solve(
        flock.SA(1.0),
        flock.starts.hemisphere(flock.Sphere(3), 10, seed=2),
        t1=14.0,
        rtol=1e-11,
        atol=1e-13,
        save=flock.Save(every=0.25, states=True),
    )
    height = run.states[..., 0].min(axis=1)
    assert np.min(np.diff(height)) > -1e-9
    gap = np.sum((run.states[:, 0] - run.states[:, 1]) ** 2, axis=-1) / 2
    tail = (gap < 1e-5) & (gap > 1e-12)
    assert np.polyfit(np.asarray(run.time)[tail], np.log(gap[tail]), 1)[0] == pytest.approx(
        -2, rel=1e-2
    )


@pytest.mark.slow
def test_K1_13_small_beta_is_close_to_beta_zero():
    """sup |x^beta - x^0|/beta is bounded as beta -> 0: constant within 3 % for beta <= 1e-2."""
    betas = jnp.array([0.0, 1e-2, 1e-3, 1e-4])
    run = flock.solve(
        flock.SA(betas),
        flock.uniform(flock.Sphere(3), 8, seed=1),
        t1=3.0,
        rtol=1e-12,
        atol=1e-14,
        save=flock.Save(every=0.5, states=True),
    )
    states = run.array("states")
    gap = np.linalg.norm(states[1:] - states[:1], axis=-1).max(axis=(1, 2))
    ratio = gap / np.asarray(betas[1:])
    assert np.ptp(ratio) < 0.03 * ratio.mean()


def test_T23_K4_3_first_causal_token_moves_alone():
    value = np.random.default_rng(3).normal(size=(3, 3)) / 2
    tokens = flock.uniform(flock.Sphere(3), 6, seed=5)
    run = flock.solve(
        flock.CausalSA(2.0, flock.Weights(V=value)), tokens, t1=1.5, rtol=1e-11, atol=1e-13
    )
    expected = expm(1.5 * value) @ np.asarray(tokens.points[0])
    np.testing.assert_allclose(run.final.points[0], expected / np.linalg.norm(expected), atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(flock.CausalSA(2.0), marks=pytest.mark.slow),
        pytest.param(flock.CausalSA(2.0, self_term=False), marks=pytest.mark.slow),
        flock.CausalSA(2.0, slope=1.0),
    ],
    ids=["plain", "others alone", "ALiBi"],
)
def test_T22_K4_1_causality_is_exact(model):
    """Perturbing token k leaves tokens before it bitwise unchanged (fixed steps)."""
    import diffrax

    tokens = flock.uniform(flock.Sphere(3), 8, seed=6)
    moved = np.asarray(tokens.points).copy()
    moved[5] = -moved[5]
    stacked = flock.from_array(tokens.space, np.stack([tokens.points, moved]))
    final = flock.solve(model, stacked, t1=2.0, dt=0.05, method=diffrax.Tsit5()).final.points
    np.testing.assert_array_equal(final[0, :5], final[1, :5])
    assert np.max(np.abs(final[0, 5:] - final[1, 5:])) > 1e-3


@pytest.mark.slow
def test_K4_2_causal_tokens_collapse_on_the_first():
    rng = np.random.default_rng(0)
    weights = flock.Weights(Q=rng.normal(size=(3, 3)) / 3**0.5, K=rng.normal(size=(3, 3)) / 3**0.5)
    tokens = flock.uniform(flock.Sphere(3), 8, seed=1)
    run = flock.solve(flock.CausalSA(2.0, weights), tokens, t1=40.0, rtol=1e-9, atol=1e-11)
    first = np.asarray(tokens.points[0])
    assert np.linalg.norm(run.final.points[0] - first) < 1e-12
    assert np.max(np.linalg.norm(run.final.points - first, axis=1)) < 1e-2
