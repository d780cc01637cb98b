"""Checks K6.x: normalisation schemes (2510.22026), general kernels (2405.18273), mean shift."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import theory
from tokenflock.dynamics import Particles

SCHEMES = {
    "post": (flock.normalisation.PostLN(), {}),
    "pre": (flock.normalisation.PreLN(), {}),
    "mix": (flock.normalisation.MixLN(5.0), {"tau": 5.0}),
    "peri": (flock.normalisation.PeriLN(), {}),
    "ngpt": (flock.normalisation.NGPT(0.7), {"alpha": 0.7}),
    "sqrt": (flock.normalisation.SqrtScaling(), {}),
}
N, BETA = 16, 2.0
TIMES = np.array([0.5, 2.0, 5.0, 7.0, 10.0])
START = flock.equiangular(flock.Sphere(N), N)


@functools.cache
def path(name):
    model = flock.SA(BETA, normalisation=SCHEMES[name][0])
    run = flock.solve(
        model,
        START,
        t1=float(TIMES[-1]),
        rtol=1e-10,
        atol=1e-12,
        save=flock.Save(at=TIMES[:-1], states=True),
    )
    gap = np.sum((run.states[:, 0] - run.states[:, 1]) ** 2, axis=-1) / 2
    radii = np.asarray(run.array("radii"))[1:, 0] if "radii" in run else np.ones(len(TIMES))
    return gap[1:], radii


FEW = ("pre", "ngpt")  # one that moves radii and one that does not; the others are slow tests


@pytest.mark.parametrize(
    "name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in SCHEMES]
)
def test_T28_K6_3_particles_follow_the_equiangular_system(name):
    """1 - rho(t) and r(t) of the particle run against the closed scalar system."""
    gap, radii = path(name)
    expected = theory.solve_scheme(name, TIMES, N, BETA, **SCHEMES[name][1])
    np.testing.assert_allclose(gap, expected.gap, rtol=2e-6, atol=1e-11)
    np.testing.assert_allclose(radii, expected.radius, rtol=1e-8)


@pytest.mark.slow
def test_T28_K6_3_printed_values():
    printed = {
        "post": (2, 1.71723e-3),
        "pre": (4, 3.22146e-2),
        "peri": (4, 2.24708e-2),
        "mix": (4, 4.77322e-5),
    }
    for name, (row, value) in printed.items():
        assert path(name)[0][row] == pytest.approx(value, rel=2e-5)


@pytest.mark.parametrize("name", SCHEMES)
def test_T29_K6_4_initial_slopes(name):
    """gamma'(0) from the field, to 1e-12."""
    model = flock.SA(BETA, normalisation=SCHEMES[name][0])
    state = model.particles(START)
    speed = model.velocity(0.0, state, START, flock.Dense()).points
    slope = float(speed[0] @ START.points[1] + START.points[0] @ speed[1])
    alpha = {key: value for key, value in SCHEMES[name][1].items() if key == "alpha"}
    expected = theory.initial_slope(name, N, BETA, **alpha)
    assert slope == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.slow
def test_T30_K6_6_sqrt_scaling_is_post_LN_on_another_clock():
    """rho_sqrt(t) = rho_post(2(sqrt(t+1) - 1)), for any start."""
    tokens = flock.uniform(flock.Sphere(3), 9, seed=1)
    times = np.array([0.4, 1.3, 3.0])
    options = {"rtol": 1e-10, "atol": 1e-12}
    slow = flock.solve(
        flock.SA(3.0, normalisation=flock.normalisation.SqrtScaling()),
        tokens,
        t1=3.0,
        **options,
        save=flock.Save(at=times, states=True),
    )
    clock = 2 * (np.sqrt(times + 1) - 1)
    fast = flock.solve(
        flock.SA(3.0),
        tokens,
        t1=float(clock[-1]),
        **options,
        save=flock.Save(at=clock[:-1], states=True),
    )
    np.testing.assert_allclose(slow.states, fast.states, atol=1e-8)


@pytest.mark.slow
def test_K6_5_pre_LN_radius_grows_at_most_linearly():
    tokens = flock.starts.cap(flock.Sphere(3), 8, seed=0, radius=1e-3)
    run = flock.solve(
        flock.SA(1.0, normalisation=flock.normalisation.PreLN()),
        tokens,
        t1=5.0,
        rtol=1e-9,
        atol=1e-11,
    )
    radii = np.asarray(run.array("final_radii"))
    assert np.all((radii >= 1 + (1 - 4e-6) * 5.0) & (radii <= 1 + 5.0 + 1e-9))


LAYERS = {
    "post": lambda x, a, t: (x + a) / np.linalg.norm(x + a),
    "pre": lambda x, a, t: x + a,
    "peri": lambda x, a, t: x + 0.25 * a / np.linalg.norm(a),
    "ngpt": lambda x, a, t: _unit(x + 0.25 * 0.7 * a / np.linalg.norm(a)),
    "sqrt": lambda x, a, t: _unit(x + a / np.sqrt(1 + t)),
}


def _unit(v):
    return v / np.linalg.norm(v)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_the_discrete_updates(name):
    """Three layers by hand: x <- the scheme's update with step 0.25 times the attention at N(x)."""
    x = np.asarray(flock.uniform(flock.Sphere(3), 5, seed=4).points)
    tokens = flock.from_array(flock.Sphere(3), x)
    run = flock.solve(
        flock.SA(2.0, normalisation=SCHEMES[name][0]), tokens, t1=0.75, method=flock.Layers(0.25)
    )
    for layer in range(3):
        theta = x / np.linalg.norm(x, axis=1, keepdims=True)
        kernel = np.exp(2.0 * theta @ theta.T)
        attention = 0.25 * kernel @ theta / kernel.sum(axis=1, keepdims=True)
        x = np.array([LAYERS[name](p, a, 0.25 * layer) for p, a in zip(x, attention, strict=True)])
    np.testing.assert_allclose(
        run.final.points, x / np.linalg.norm(x, axis=1, keepdims=True), atol=1e-13
    )
    if name in ("pre", "peri"):
        np.testing.assert_allclose(run.array("final_radii"), np.linalg.norm(x, axis=1), atol=1e-13)


def test_T31_K6_7_kernels_reduce_to_USA():
    tokens = flock.uniform(flock.Sphere(3), 7, seed=2)

    def speed(model):
        return model.velocity(0.0, Particles(tokens.points), tokens, flock.Dense()).points

    np.testing.assert_allclose(
        speed(flock.KernelFlow([0.0, 1.0])), speed(flock.USA(0.0)), atol=1e-14
    )
    kernel = flock.KernelFlow(lambda u: jnp.exp(3.0 * u) / 3.0)
    np.testing.assert_allclose(speed(kernel), speed(flock.USA(3.0)), atol=1e-13)


@pytest.mark.slow
def test_K6_8_a_convex_kernel_with_a_stable_pentagon():
    """phi(u) = w log(1 + e^{u/w}), w = .05 keeps a perturbed pentagon; e^{beta u} does not."""
    angles = 2 * np.pi * np.arange(5) / 5 + 0.03 * np.array([1.0, -0.6, 0.3, -1.0, 0.4])
    start = flock.from_angles(angles)
    kernel = flock.KernelFlow(lambda u: 0.05 * jax.nn.softplus(u / 0.05))
    ends = {}
    for name, model in (("softplus", kernel), ("exponential", flock.USA(2.0))):
        run = flock.solve(model, start, t1=200.0, rtol=1e-8, atol=1e-10)
        ends[name] = np.sort(np.arctan2(*np.asarray(run.final.points).T[::-1]))
    gaps = np.diff(ends["softplus"])
    np.testing.assert_allclose(gaps, 2 * np.pi / 5, atol=1e-6)
    assert (
        np.ptp(ends["exponential"]) < 1e-3
        or np.ptp(np.mod(ends["exponential"] + 1, 2 * np.pi)) < 1e-3
    )


def test_T33_K6_10_mean_shift_identity():
    """SA = (1/beta) P grad log(K * mu), K = e^{-beta |x|^2/2} (the survey omits the 1/beta)."""
    beta, tokens = 4.0, flock.uniform(flock.Sphere(3), 9, seed=3)

    def log_density(y):
        return jnp.log(jnp.mean(jnp.exp(-beta * jnp.sum((y - tokens.points) ** 2, axis=-1) / 2)))

    slope = jax.vmap(jax.grad(log_density))(tokens.points)
    expected = tokens.space.project(tokens.points, slope) / beta
    measured = flock.SA(beta).velocity(0.0, Particles(tokens.points), tokens, flock.Dense()).points
    np.testing.assert_allclose(measured, expected, atol=1e-10)
