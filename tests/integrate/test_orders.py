"""Orders of convergence: the retraction loses none, on the sphere and on R^d; strong and weak for noise."""

from typing import ClassVar

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import theory
from tokenflock.noise import Noise
from tokenflock.papers.stochastic import closed_forms

TURN = np.array([[0.0, 1.0], [-1.0, -0.3]])
SPHERE = (flock.SA(2.0), flock.uniform(flock.Sphere(3), 6, seed=1), 4.0)
BOX = flock.starts.box(flock.Euclidean(2), 6, seed=2, half_width=1.0)
PLANE = (flock.Dynamics(None, flock.Attention(flock.Weights(V=TURN))), BOX, 4.0)
# Dopri8 is of higher order than 8 on nearly linear problems: a sharper attention shows its own.
SHARP = (flock.Dynamics(None, flock.Attention(flock.Weights(V=TURN), beta=5.0)), BOX, 2.0)
# Numbers of steps in the asymptotic range: the leading error dominates, rounding does not.
ORDERS = [
    ("sphere", SPHERE, diffrax.Euler(), 1, [64, 128, 256, 512]),
    ("sphere", SPHERE, diffrax.Heun(), 2, [64, 128, 256]),
    ("sphere", SPHERE, diffrax.Bosh3(), 3, [64, 96, 128]),
    ("sphere", SPHERE, diffrax.Tsit5(), 5, [64, 96, 128]),
    ("sphere", SPHERE, diffrax.Dopri8(), 8, [8, 10, 12, 16]),
    ("plane", PLANE, diffrax.Euler(), 1, [256, 512, 1024]),
    ("plane", PLANE, diffrax.Heun(), 2, [64, 128, 256]),
    ("plane", PLANE, diffrax.Bosh3(), 3, [64, 96, 128]),
    ("plane", PLANE, diffrax.Tsit5(), 5, [32, 48, 64, 96]),
    ("plane", SHARP, diffrax.Dopri8(), 8, [6, 8, 10, 12]),
]


# High orders by default; the retraction is what could lose order.
QUICK = {("sphere", "Dopri8"), ("plane", "Dopri8")}


def marks_of(case):
    return () if (case[0], type(case[2]).__name__) in QUICK else pytest.mark.slow


@pytest.mark.parametrize(
    ("problem", "solver", "order", "counts"),
    [pytest.param(*case[1:], marks=marks_of(case)) for case in ORDERS],
    ids=[f"{case[0]}-{type(case[2]).__name__}" for case in ORDERS],
)
def test_order_is_kept(problem, solver, order, counts):
    model, tokens, t1 = problem
    exact = flock.solve(model, tokens, t1=t1, rtol=1e-13, atol=1e-14).final.points
    errors = []
    for count in counts:
        run = flock.solve(model, tokens, t1=t1, dt=t1 / count, method=solver, max_steps=2000)
        assert run.health["accepted_steps"] == count
        errors.append(np.max(np.abs(run.final.points - exact)))
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.15)


def test_layers_are_first_order_with_another_clock():
    """Near a cluster N(x + step A) is slower than the flow by 1/(1 + step): compare exponents."""
    step, start = 0.1, flock.equiangular(flock.Sphere(4), 4, correlation=0.99)
    run = flock.solve(
        flock.SA(1.0),
        start,
        t1=4.0,
        method=flock.Layers(step),
        save=flock.Save(every=step, states=True),
    )
    gap = np.sum((run.states[:, 0] - run.states[:, 1]) ** 2, axis=-1) / 2
    rate = -np.polyfit(np.asarray(run.time)[-10:], np.log(gap[-10:]), 1)[0]
    assert rate == pytest.approx(2 * np.log1p(step) / step, rel=1e-2)
    assert rate < 2.0


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, diffrax.Heun()], ids=["ito-euler", "stratonovich-heun"])
def test_strong_order_one_half(method):
    """Same Brownian path at halved steps: the root mean square error falls like dt^{1/2}."""
    tokens = flock.from_array(flock.Sphere(3), np.broadcast_to(np.eye(3)[:2], (128, 2, 3)).copy())
    model = flock.NoisyUSA(1.0, 0.4)

    def final(count):
        return flock.solve(
            model, tokens, t1=0.5, dt=0.5 / count, seed=3, method=method, max_steps=10_000
        ).final.points

    exact = final(1024)
    counts = [8, 16, 32, 64]
    errors = [float(jnp.sqrt(jnp.mean(jnp.sum((final(c) - exact) ** 2, axis=-1)))) for c in counts]
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert slope == pytest.approx(0.5, abs=0.15)


@pytest.mark.slow
def test_ito_and_stratonovich_agree_for_independent_noise():
    """Spherical Brownian motion: both readings have the same limit path."""
    tokens = flock.from_array(flock.Sphere(3), np.broadcast_to(np.eye(3)[:2], (64, 2, 3)).copy())
    ends = [
        flock.solve(
            flock.NoisyUSA(1.0, 0.4),
            tokens,
            t1=0.5,
            dt=0.5 / 512,
            seed=5,
            method=m,
            max_steps=10_000,
        ).final.points
        for m in (None, diffrax.Heun())
    ]
    assert float(jnp.mean(jnp.linalg.norm(ends[0] - ends[1], axis=-1))) < 0.03


@pytest.mark.slow
def test_brownian_motion_decorrelates_at_the_exact_rate():
    """E<x_t, x_0> = e^{-(d-1) T t} with no drift, within three standard errors."""
    samples, d, temperature = 4000, 3, 0.5
    start = np.broadcast_to(np.eye(d)[:2], (samples, 2, d)).copy()
    model = flock.Dynamics(None, flock.Drift(0.0), noise=flock.Brownian(temperature))
    run = flock.solve(model, flock.from_array(flock.Sphere(d), start), t1=1.0, dt=0.01)
    overlap = np.sum(np.asarray(run.final.points) * start, axis=-1).ravel()
    error = overlap.std() / np.sqrt(overlap.size)
    expected = float(theory.brownian_correlation(1.0, d, temperature))
    assert overlap.mean() == pytest.approx(expected, abs=3 * error + 2e-3)


@pytest.mark.slow
def test_weak_order_one():
    """Bias of E<x_t, x_0> against e^{-(d-1)Tt} falls like the step (bias .02 to .08, error 7e-4)."""
    samples, d, temperature = 400_000, 3, 0.5
    start = np.broadcast_to(np.eye(d)[:2], (samples, 2, d)).copy()
    tokens = flock.from_array(flock.Sphere(d), start)
    model = flock.Dynamics(None, flock.Drift(0.0), noise=flock.Brownian(temperature))
    exact = float(theory.brownian_correlation(1.0, d, temperature))
    steps, biases = (0.1, 0.05, 0.025), []
    for dt in steps:
        final = np.asarray(flock.solve(model, tokens, t1=1.0, dt=dt, seed=2).final.points)
        biases.append(abs(np.mean(np.sum(final * start, axis=-1)) - exact))
    slope = np.polyfit(np.log(steps), np.log(biases), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.15)


@pytest.mark.slow
def test_common_noise_overlap_drift_matches_theory():
    """Two tokens, one shared value matrix: mean change of the overlap over a short time (2601.21942)."""
    d, beta, overlap, samples, t1 = 4, 1.0, 0.3, 40_000, 0.05
    pair = np.zeros((2, d))
    pair[0, 0] = 1.0
    pair[1, :2] = overlap, np.sqrt(1 - overlap**2)
    tokens = flock.from_array(flock.Sphere(d), np.broadcast_to(pair, (samples, 2, d)).copy())
    run = flock.solve(flock.StochasticSA(beta, scale=d**-0.5), tokens, t1=t1, dt=t1 / 10, seed=1)
    final = np.asarray(run.final.points)
    change = (np.sum(final[:, 0] * final[:, 1], axis=-1) - overlap) / t1
    error = change.std() / np.sqrt(samples)
    # The drift changes along the way by O(t1); the variance rate pins the noise itself.
    assert change.mean() == pytest.approx(
        float(closed_forms.overlap_drift(overlap, d, beta)), abs=3 * error + 0.02
    )
    variance = change.var() * t1
    assert variance == pytest.approx(
        float(closed_forms.overlap_variance(overlap, d, beta)), rel=0.05
    )


def test_common_noise_refuses_a_stratonovich_solver():
    tokens = flock.uniform(flock.Sphere(3), 4, seed=0)
    with pytest.raises(flock.errors.InputError, match="Ito"):
        flock.solve(flock.StochasticSA(1.0, 0.5), tokens, t1=1.0, dt=0.1, method=diffrax.Heun())


@pytest.mark.slow
def test_the_noise_path_does_not_depend_on_the_save_plan():
    tokens = flock.uniform(flock.Sphere(3), 5, seed=0)
    one = flock.solve(flock.NoisyUSA(1.0, 0.1), tokens, t1=1.0, dt=0.05, seed=4)
    many = flock.solve(
        flock.NoisyUSA(1.0, 0.1),
        tokens,
        t1=1.0,
        dt=0.05,
        seed=4,
        save=flock.Save(every=0.1, states=True),
    )
    np.testing.assert_allclose(one.final.points, many.final.points, atol=1e-13)
    other = flock.solve(flock.NoisyUSA(1.0, 0.1), tokens, t1=1.0, dt=0.05, seed=5)
    assert np.max(np.abs(other.final.points - one.final.points)) > 1e-2


@pytest.mark.parametrize(
    "solver", [diffrax.Heun(), diffrax.Tsit5()], ids=["Heun", "first-same-as-last"]
)
def test_order_is_kept_across_switches(solver):
    """A last stage at the end of a step sees the weights of that step, not those that start there.

    Each piece by itself, continued by hand, is what the run in one go must be: to rounding.
    """
    entry, step = flock.random_weights.Ginibre(0.8), 0.1
    drawn = flock.random_weights.RandomWeights(
        d=3, seed=4, Q=entry, K=entry, V=entry, period=3 * step
    )
    tokens = flock.uniform(flock.Sphere(3), 6, seed=1)
    whole = flock.solve(flock.SA(1.0, drawn), tokens, t1=0.9, dt=step, method=solver)
    for layer in range(3):
        piece = flock.SA(1.0, drawn.at(3 * step * (layer + 0.5)))
        tokens = flock.solve(piece, tokens, t1=0.3, dt=step, method=solver).final
    np.testing.assert_allclose(whole.final.points, tokens.points, atol=1e-13)


@pytest.mark.slow
def test_a_density_sees_the_weights_of_the_step():
    """As tokens do: in one go and piece by piece."""
    pieces = [flock.Weights(B=scale * np.eye(2)) for scale in (1.0, -3.0)]
    state = flock.Density.from_law(
        flock.meanfield.Fourier(modes=32), flock.laws.cosine(0.05, mode=1)
    )
    model = flock.SA(1.0, flock.Piecewise([0.3], pieces))
    whole = flock.solve(model, state, t1=0.6, dt=0.1, method=diffrax.Tsit5())
    for piece in pieces:
        run = flock.solve(flock.SA(1.0, piece), state, t1=0.3, dt=0.1, method=diffrax.Tsit5())
        state = run.final
    np.testing.assert_allclose(whole.final.state, state.state, atol=1e-14)


class EverySecondLayer(Noise):
    """Noise that rests in the layers 0, 2, 4, ... of length 0.1."""

    reading_free: ClassVar[bool] = True

    def brownian_shape(self, mu):
        return mu.points.shape[-2:]

    def amplitude(self, t, x, mu, reduction):
        layer = jnp.searchsorted(0.1 * jnp.arange(1, 12), t, side="right")
        return jnp.where(layer % 2 == 0, 0.0, 0.3)

    def apply(self, amplitude, increment):
        return amplitude * increment


@pytest.mark.parametrize(
    "numerics", [{"dt": 0.1}, {"method": flock.Layers(0.1)}], ids=["dt", "layers"]
)
def test_noise_belongs_to_the_layer_of_its_step(numerics):
    """0.1 + 0.1 + 0.1 lies above 0.3, and eight such sums below 0.8: noise must not ask at the sums."""
    tokens = flock.uniform(flock.Sphere(3), 4, seed=1)
    still = flock.Dynamics(None, flock.Drift(0.0), noise=EverySecondLayer())
    save = flock.Save(states=True, every=0.1)
    run = flock.solve(still, tokens, t1=1.0, seed=2, save=save, **numerics)
    moved = np.abs(np.diff(run.states, axis=0)).max(axis=(1, 2))
    assert np.all(moved[0::2] < 1e-12)
    assert np.all(moved[1::2] > 1e-3)
