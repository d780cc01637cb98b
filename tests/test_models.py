"""Every model against a slow oracle: plain loops over tokens, written from the papers' formulas."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from scipy.linalg import expm

import tokenflock as flock
from tokenflock.dynamics import Particles

N, D = 7, 3
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
MASS = RNG.uniform(0.3, 1.7, size=N)
MASS /= MASS.sum()
Q, K, V = (RNG.normal(size=(2, D, D)) for _ in range(3))
B = RNG.normal(size=(D, D))
TOKENS = flock.from_array(flock.Sphere(D), X, weights=MASS)
FLAT = flock.from_array(flock.Euclidean(D), 1.3 * X + 0.2, weights=MASS)


def project(x, v):
    return v - np.dot(x, v) * x


def velocity(model, tokens, t=0.0, reduction=None):
    state = model.particles(tokens)
    return model.velocity(t, state, tokens, reduction or flock.Dense())


def attention_oracle(x, mass, weight, score, value, visible=lambda i, j: True, normalise=True):
    """sum_j w_j f(s_ij) V x_j, over sum_j w_j f(s_ij) or over the visible mass."""
    out = np.zeros_like(x)
    for i in range(len(x)):
        numerator, total, seen = np.zeros(x.shape[1]), 0.0, 0.0
        for j in range(len(x)):
            if visible(i, j):
                kernel = mass[j] * weight(score(x[i], x[j]), i, j)
                numerator += kernel * value(x[j])
                total += kernel
                seen += mass[j]
        out[i] = numerator / (total if normalise else seen) if seen else 0.0
    return out


def sphere_oracle(*arguments, **options):
    raw = attention_oracle(X, MASS, *arguments, **options)
    return np.array([project(x, v) for x, v in zip(X, raw, strict=True)])


def dot(x, y):
    return x @ y


def same(y):
    return y


CASES = {
    "SA": (flock.SA(3.0), sphere_oracle(lambda s, i, j: np.exp(3 * s), dot, same)),
    "repulsive": (
        flock.SA(3.0, flock.Weights(V=-1.0)),
        -sphere_oracle(lambda s, i, j: np.exp(3 * s), dot, same),
    ),
    "USA perspective": (
        flock.USA(2.0),
        sphere_oracle(lambda s, i, j: np.exp(2 * s), dot, same, normalise=False),
    ),
    "USA metastability": (
        flock.USA(2.0, "metastability"),
        sphere_oracle(lambda s, i, j: np.exp(2 * (s - 1)), dot, same, normalise=False),
    ),
    "USA kinetic": (
        flock.USA(2.0, "kinetic"),
        sphere_oracle(lambda s, i, j: 2 * np.exp(2 * s), dot, same, normalise=False),
    ),
    "bilinear": (
        flock.SA(1.5, flock.Weights(B=B, V=V[0])),
        sphere_oracle(lambda s, i, j: np.exp(1.5 * s), lambda x, y: x @ B @ y, lambda y: V[0] @ y),
    ),
    "two heads": (
        flock.SA(1.5, flock.Weights(Q=Q, K=K, V=V)),
        sum(
            sphere_oracle(
                lambda s, i, j: np.exp(1.5 * s),
                lambda x, y, h=h: (Q[h] @ x) @ (K[h] @ y),
                lambda y, h=h: V[h] @ y,
            )
            for h in range(2)
        ),
    ),
    "causal": (
        flock.CausalSA(2.0),
        sphere_oracle(lambda s, i, j: np.exp(2 * s), dot, same, lambda i, j: j <= i),
    ),
    "causal without self": (
        flock.CausalSA(2.0, self_term=False),
        sphere_oracle(lambda s, i, j: np.exp(2 * s), dot, same, lambda i, j: j < i),
    ),
    "ALiBi": (
        flock.CausalSA(2.0, slope=1.7),
        sphere_oracle(
            lambda s, i, j: np.exp(2 * s - 1.7 * (i - j) / N), dot, same, lambda i, j: j <= i
        ),
    ),
    "L2": (
        flock.L2SA(0.8, flock.Weights(Q=Q[:1], K=K[:1])),
        sphere_oracle(
            lambda s, i, j: np.exp(-0.8 * s), lambda x, y: np.sum((Q[0] @ x - K[0] @ y) ** 2), same
        ),
    ),
    "sigmoid": (
        flock.SigmoidSA(2.0, bias=-0.4),
        sphere_oracle(lambda s, i, j: scipy.special.expit(2 * s - 0.4), dot, same, normalise=False),
    ),
    "linear": (
        flock.LinearSA(0.7),
        sphere_oracle(lambda s, i, j: 0.7 * s, dot, same, normalise=False),
    ),
    "kernel": (
        flock.KernelFlow(lambda u: jnp.log1p(jnp.exp(3 * u))),
        sphere_oracle(lambda s, i, j: 3 * scipy.special.expit(3 * s), dot, same, normalise=False),
    ),
    "polynomial kernel": (
        flock.KernelFlow([0.3, 0.5, -0.2, 0.1]),
        sphere_oracle(lambda s, i, j: 0.5 - 0.4 * s + 0.3 * s**2, dot, same, normalise=False),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("reduction", [flock.Dense(), flock.Tiled(3)], ids=["dense", "tiled"])
def test_velocity_is_the_formula(name, reduction):
    model, expected = CASES[name]
    model.check(TOKENS, 1.0)
    measured = velocity(model, TOKENS, reduction=reduction).points
    np.testing.assert_allclose(measured, expected, rtol=1e-12, atol=1e-13)


def test_kinetic_model_divides_by_the_alibi_mass():
    beta, slope = 1.3, 0.9
    expected = np.zeros_like(X)
    for i in range(1, N):
        factor = [MASS[j] * np.exp(-slope * (i - j) / N) for j in range(i)]
        pull = sum(f * beta * np.exp(beta * X[i] @ X[j]) * X[j] for j, f in enumerate(factor))
        expected[i] = project(X[i], pull / sum(factor))
    measured = velocity(flock.KineticFlow(beta, slope), TOKENS).points
    np.testing.assert_allclose(measured, expected, rtol=1e-12, atol=1e-13)
    assert np.all(np.asarray(measured[0]) == 0.0)


def test_kinetic_pair_on_the_circle_is_the_papers_equation():
    """theta_2' = w'(theta_2 - theta_1), w = e^{beta cos}: -beta sin e^{beta cos}."""
    beta, angles = 1.4, np.array([0.3, 1.5])
    tokens = flock.from_angles(angles)
    speed = velocity(flock.KineticFlow(beta, 0.5), tokens).points[1]
    tangent = np.array([-np.sin(angles[1]), np.cos(angles[1])])
    gap = angles[1] - angles[0]
    assert float(speed @ tangent) == pytest.approx(-beta * np.sin(gap) * np.exp(beta * np.cos(gap)))


def test_sinkhorn_is_doubly_stochastic_and_matches_alternating_scaling():
    beta = 2.0
    model = flock.SinkhornSA(beta)
    matrix = np.asarray(model.attentions()[0].matrix(0.0, TOKENS)[0])
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(MASS @ matrix, MASS, atol=1e-9)
    plan = np.exp(beta * X @ X.T)
    rows, columns = np.ones(N), np.ones(N)
    for _ in range(2000):
        rows = MASS / (plan @ columns)
        columns = MASS / (plan.T @ rows)
    expected = (rows[:, None] * plan * columns[None, :]) @ X / MASS[:, None]
    expected = np.array([project(x, v) for x, v in zip(X, expected, strict=True)])
    np.testing.assert_allclose(velocity(model, TOKENS).points, expected, atol=1e-9)


def test_sinkhorn_transports_the_mean_exactly():
    """Columns sum to one, so sum_i w_i x_i' = V sum_j w_j x_j on R^d; softmax violates it."""
    terms = {
        "sinkhorn": flock.Attention(flock.Weights(V=V[:1]), 1.0, flock.kinds.Sinkhorn()),
        "softmax": flock.Attention(flock.Weights(V=V[:1]), 1.0, flock.kinds.Softmax()),
    }
    drift = {
        name: MASS @ np.asarray(velocity(flock.Dynamics(None, term), FLAT).points)
        for name, term in terms.items()
    }
    mean = V[0] @ (MASS @ np.asarray(FLAT.points))
    np.testing.assert_allclose(drift["sinkhorn"], mean, atol=1e-9)
    assert np.max(np.abs(drift["softmax"] - mean)) > 1e-2


def test_hardmax_follows_the_argmax_and_shares_ties():
    z = np.array([[1.0, 0.2], [-0.5, 0.4], [0.1, -0.3], [0.9, -0.8]])
    metric = np.array([[2.0, 0.3], [0.3, 0.7]])
    tokens = flock.from_array(flock.Euclidean(2), z)
    measured = velocity(flock.HardmaxFlow(flock.Weights(B=metric)), tokens).points
    leaders = np.argmax(z @ metric @ z.T, axis=1)
    np.testing.assert_allclose(measured, z[leaders] - z, atol=1e-14)
    square = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.0]])
    tie = velocity(flock.HardmaxFlow(), flock.from_array(flock.Euclidean(2), square)).points
    np.testing.assert_allclose(tie[2], [0.5, 0.0], atol=1e-15)


def test_hardmax_layer_is_the_papers_update():
    """(z_i + alpha mean)/(1 + alpha) is Layers(alpha/(1+alpha)); a follower contracts by 1/(1+alpha)."""
    alpha = 0.5
    z = np.array([[1.0, 1 / 3], [-1.0, -1.0], [0.8, 0.1], [-0.3, -0.7]])
    run = flock.solve(
        flock.HardmaxFlow(),
        flock.from_array(flock.Euclidean(2), z),
        t1=10 * alpha / (1 + alpha),
        method=flock.Layers(alpha / (1 + alpha)),
    )
    expected = z[[0, 1, 0, 1]] + (z - z[[0, 1, 0, 1]]) * (1 + alpha) ** -10.0
    np.testing.assert_allclose(run.final.points, expected, atol=1e-14)


def test_softmax_tends_to_hardmax():
    soft = flock.Dynamics(None, flock.Attention(beta=400.0) + flock.Drift(-1.0))
    gap = velocity(soft, FLAT).points - velocity(flock.HardmaxFlow(), FLAT).points
    assert np.max(np.abs(gap)) < 1e-6


@pytest.mark.parametrize("activation", [flock.terms.RELU, flock.terms.GELU], ids=["relu", "gelu"])
def test_perceptron_terms(activation):
    sigma = {
        "relu": lambda s: np.maximum(s, 0),
        "gelu": lambda s: s * scipy.special.ndtr(s),
    }[activation.name]
    general = flock.Perceptron.random(D, 5, seed=1, scale=0.7, activation=activation)
    a, w, b = (np.asarray(m) for m in (general.inner, general.outer, general.bias))
    expected = np.array([project(x, w @ sigma(a @ x + b)) for x in X])
    attention = CASES["SA"][1]
    model = flock.SA(3.0, plus=general)
    np.testing.assert_allclose(velocity(model, TOKENS).points, expected + attention, atol=1e-12)


@pytest.mark.parametrize("activation", [flock.terms.RELU, flock.terms.GELU], ids=["relu", "gelu"])
def test_gradient_perceptron_is_half_the_gradient_of_its_potential(activation):
    """Catches the primitive s^2 Phi + s pdf found in public code: its derivative is not 2 s Phi."""
    term = flock.Perceptron.random(D, 4, seed=2, gradient=True, activation=activation)
    gradient = jax.vmap(jax.grad(lambda x: term.v(x[None])[0] / 2))(jnp.asarray(X))
    field = term.field(0.0, TOKENS.points, TOKENS, flock.Dense())
    np.testing.assert_allclose(field, gradient, atol=1e-12)


@pytest.mark.slow
def test_rescaled_frame_is_the_lab_frame_seen_from_e_tV():
    """K2.8: x = e^{TV} z, integrated both ways."""
    value = np.array([[0.5, 0.3], [-0.2, 0.8]])
    weights = flock.Weights(V=value)
    x0 = flock.starts.box(flock.Euclidean(2), 9, seed=3, half_width=1.0)
    options = {"t1": 2.0, "rtol": 1e-10, "atol": 1e-12}
    lab = flock.solve(flock.Dynamics(None, flock.Attention(weights)), x0, **options).final.points
    z = flock.solve(flock.RescaledSA(1.0, weights), x0, **options).final.points
    back = np.asarray(z) @ expm(2.0 * value).T
    assert np.max(np.abs(back - lab)) < 1e-7 * np.max(np.abs(lab))


def test_schedules_choose_the_weights_of_their_time():
    first, second = flock.Weights(V=V[0]), flock.Weights(V=V[1])
    model = flock.SA(1.0, flock.Piecewise([0.7], [first, second]))
    for t, weights in ((0.0, first), (0.69, first), (0.7, second), (5.0, second)):
        expected = velocity(flock.SA(1.0, weights), TOKENS).points
        np.testing.assert_array_equal(velocity(model, TOKENS, t).points, expected)
    assert model.jumps(1.0) == [0.7]
    assert model.jumps(0.5) == []


def test_adaptive_steps_land_on_the_switches():
    """A piecewise run equals the run of each piece after the other."""
    first, second = flock.SA(1.0, flock.Weights(V=V[0])), flock.SA(1.0, flock.Weights(V=V[1]))
    both = flock.SA(1.0, flock.Piecewise([0.7], [flock.Weights(V=V[0]), flock.Weights(V=V[1])]))
    options = {"rtol": 1e-10, "atol": 1e-12}
    middle = flock.solve(first, TOKENS, t1=0.7, **options).final
    expected = flock.solve(second, middle, t1=0.8, **options).final.points
    measured = flock.solve(both, TOKENS, t1=1.5, **options).final.points
    np.testing.assert_allclose(measured, expected, atol=1e-8)


class Cubic(flock.kinds.Weighted):
    """A kind nobody has published: weight (1 + s)^3."""

    def weight(self, scores, beta):
        return (1.0 + scores) ** 3


class Pinned(flock.terms.Term):
    """A term nobody has published: the first token is nailed down."""

    def field(self, t, x, mu, reduction):
        return jnp.where(jnp.arange(x.shape[0])[:, None] == 0, -3.0 * x[:, ::-1], 0.0)


def invented():
    return flock.Dynamics(None, flock.Attention(beta=0.5, kind=Cubic()) + Pinned())


def test_an_invented_model_works_with_no_change_to_the_library():
    """A new kind and a new term: velocity, tiles, batches, layers, gradients, observables, solve."""
    model = invented()
    raw = attention_oracle(X, MASS, lambda s, i, j: (1 + 0.5 * s) ** 3, dot, same, normalise=False)
    raw[0] += -3.0 * X[0, ::-1]
    expected = np.array([project(x, v) for x, v in zip(X, raw, strict=True)])
    for reduction in (flock.Dense(), flock.Tiled(2)):
        np.testing.assert_allclose(
            velocity(model, TOKENS, 0.0, reduction).points, expected, atol=1e-13
        )
    batch = flock.uniform(flock.Sphere(3), 6, seed=0, samples=2)
    save = flock.Save(every=0.5, states=True, observe=[flock.clusters(angle=0.1)])
    run = flock.solve(model, batch, t1=1.0, rtol=1e-8, atol=1e-10, save=save)
    assert run["clusters"].dims == ("sample", "time")
    layers = flock.solve(model, batch, t1=1.0, method=flock.Layers(0.25))
    assert np.all(np.isfinite(layers.final.points))


@pytest.mark.slow
def test_an_invented_model_takes_another_solver():
    batch = flock.uniform(flock.Sphere(3), 6, seed=0, samples=2)
    options = {"t1": 1.0, "rtol": 1e-8, "atol": 1e-10, "save": flock.Save(every=0.5, states=True)}
    run = flock.solve(invented(), batch, **options)
    tsit = flock.solve(invented(), batch, method=diffrax.Tsit5(), **options)
    np.testing.assert_allclose(tsit.array("states"), run.array("states"), atol=1e-6)


def test_large_beta_never_overflows():
    for model in (flock.SA(1e4), flock.USA(1e4, "metastability"), flock.CausalSA(1e4)):
        assert np.all(np.isfinite(velocity(model, TOKENS).points))


def test_self_term_keeps_relative_accuracy_far_below_rounding():
    """Two tokens at distance 2 and beta = 60: the speed is e^{-85}, not the rounding of one."""
    angle, beta = 2.0, 60.0
    tokens = flock.from_angles([0.0, angle])
    speed = velocity(flock.SA(beta), tokens).points[0]
    expected = np.sin(angle) / (1 + np.exp(beta * (1 - np.cos(angle))))
    assert float(speed[1]) == pytest.approx(expected, rel=1e-12)


def test_states_of_a_measure_are_what_a_model_starts_from():
    state = flock.SA(1.0, normalisation=flock.normalisation.PreLN()).particles(TOKENS)
    assert isinstance(state, Particles)
    np.testing.assert_array_equal(state.radii, np.ones(N))
