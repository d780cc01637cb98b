"""solve inside the transformations of JAX: jit, vmap, map, scan, grad, jacfwd, hessian, and their nestings.

Every transformed result is compared with plain calls of solve: one at a time for vmap, map and scan, and
central differences of such calls for derivatives.
"""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.models import MODELS

START = flock.uniform(flock.Sphere(2), n=3, seed=1)
FLAT = flock.gaussian(flock.Euclidean(2), n=3, seed=1, scale=0.5)
BETAS = jnp.array([0.7, 1.6])
BETA = 1.3
# A leader is a jump of the field: no derivative in beta exists, and the others are those of the pieces.
PLAIN_MODELS = {
    "SA": flock.SA,
    "USA": flock.USA,
    "CausalSA": flock.CausalSA,
    "KineticFlow": lambda beta: flock.KineticFlow(beta, slope=0.5),
    "SinkhornSA": flock.SinkhornSA,
    "L2SA": flock.L2SA,
    "SigmoidSA": lambda beta: flock.SigmoidSA(beta, bias=-0.3),
    "LinearSA": flock.LinearSA,
    "KernelFlow": lambda beta: flock.KernelFlow([0.0, 1.0, 0.4], flock.Weights(V=beta)),
    "HardmaxFlow": lambda beta: flock.HardmaxFlow(flock.Weights(V=beta)),
    "RescaledSA": flock.RescaledSA,
    "NoisyUSA": lambda beta: flock.NoisyUSA(beta, temperature=0.05),
    "StochasticSA": lambda beta: flock.StochasticSA(beta, scale=0.4),
}
ON_SPACE = {"HardmaxFlow": FLAT, "RescaledSA": FLAT}


def final_tokens(name, beta, points=None, **numerics):
    """x(t1) of a model as a function of beta, or of the tokens."""
    start = ON_SPACE.get(name, START)
    if points is not None:
        start = flock.from_array(start.space, points, normalise=True)
    return flock.solve(PLAIN_MODELS[name](beta), start, t1=0.4, **numerics).states[-1]


def score(name, **numerics):
    """A smooth number of the final tokens, so that derivatives of every order are at hand."""
    mixer = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)))
    return lambda beta, points=None: jnp.sum(
        jnp.sin(mixer * final_tokens(name, beta, points, **numerics))
    )


def slope(function, at, step=1e-5):
    return (function(at + step) - function(at - step)) / (2 * step)


def curvature(function, at, step=1e-3):
    return (function(at + step) - 2 * function(at) + function(at - step)) / step**2


def quick(name):
    """Few stages, few steps: the cheapest program that is still a solve."""
    solver = diffrax.Euler() if "Noisy" in name or "Stochastic" in name else diffrax.Heun()
    return {"dt": 0.1, "method": solver, "max_steps": 16}


def test_every_public_model_is_tried_here():
    assert set(PLAIN_MODELS) == set(MODELS)


@pytest.mark.parametrize("name", PLAIN_MODELS)
def test_every_model_is_solved_batched_and_differentiated_inside_jit(name):
    f = score(name, **quick(name))
    value, forward = jax.jit(jax.vmap(lambda beta: jax.jvp(f, (beta,), (1.0,))))(BETAS)
    np.testing.assert_allclose(value, [f(beta) for beta in BETAS], rtol=1e-12)
    np.testing.assert_allclose(forward, [slope(f, beta) for beta in BETAS], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "name",
    ["SA", *(pytest.param(name, marks=pytest.mark.slow) for name in PLAIN_MODELS if name != "SA")],
)
def test_tokens_are_differentiated_inside_jit(name):
    f, points = score(name, **quick(name)), ON_SPACE.get(name, START).points
    across = jax.jit(jax.grad(lambda x: f(BETA, x)))(points)
    along = jnp.ones_like(points)
    moved = slope(lambda s: f(BETA, points + s * along), 0.0)
    np.testing.assert_allclose(jnp.sum(across * along), moved, rtol=1e-6, atol=1e-8)


NESTINGS = {
    "jit": lambda f: jax.jit(f)(BETA),
    "jit of the model": lambda f: jax.jit(f)(jnp.asarray(BETA)),
    "vmap": lambda f: jax.vmap(f)(BETAS),
    "map": lambda f: jax.lax.map(f, BETAS),
    "scan": lambda f: jax.lax.scan(lambda carry, beta: (carry + f(beta), f(beta)), 0.0, BETAS)[1],
    "vmap of jit of vmap": lambda f: jax.vmap(jax.jit(jax.vmap(f)))(jnp.stack([BETAS, BETAS]))[1],
}
DERIVATIVES = {
    "grad": lambda f: jax.grad(f)(BETA),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(BETA),
    "grad of jit": lambda f: jax.grad(jax.jit(f))(BETA),
    "jacfwd": lambda f: jax.jacfwd(f)(BETA),
    "jit of jacfwd": lambda f: jax.jit(jax.jacfwd(f))(BETA),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f))(jnp.full(2, BETA))[1],
    "grad of vmap": lambda f: jax.grad(lambda b: jnp.mean(jax.vmap(f)(jnp.stack([b, b]))))(BETA),
    "jacfwd of vmap": lambda f: jax.jacfwd(lambda b: jax.vmap(f)(jnp.stack([b, b])))(BETA)[1],
    "map of grad": lambda f: jax.lax.map(jax.grad(f), jnp.full(2, BETA))[1],
    "grad of scan": lambda f: jax.grad(
        lambda b: jax.lax.scan(lambda total, _: (total + f(b), None), 0.0, None, length=2)[0] / 2
    )(BETA),
}
SECOND = {
    "hessian": lambda f: jax.hessian(f)(BETA),
    "jit of hessian": lambda f: jax.jit(jax.hessian(f))(BETA),
    "vmap of hessian": lambda f: jax.vmap(jax.hessian(f))(jnp.full(2, BETA))[1],
    "jacfwd of jacfwd": lambda f: jax.jacfwd(jax.jacfwd(f))(BETA),
    "grad of grad": lambda f: jax.grad(jax.grad(f))(BETA),
    "grad of jacfwd": lambda f: jax.grad(jax.jacfwd(f))(BETA),
}


@pytest.fixture(scope="module")
def quick_score():
    return score("SA", **quick("SA"))


@pytest.mark.parametrize("nesting", NESTINGS)
def test_values_in_every_nesting(quick_score, nesting):
    found = np.atleast_1d(NESTINGS[nesting](quick_score))
    betas = [BETA] if found.size == 1 else BETAS
    np.testing.assert_allclose(found, [quick_score(beta) for beta in betas], rtol=1e-12)


LIGHT = ["jit of grad", "vmap of grad", "grad of scan", "jacfwd of vmap", "jit of hessian"]


def light_or_slow(nestings):
    return [n if n in LIGHT else pytest.param(n, marks=pytest.mark.slow) for n in nestings]


@pytest.mark.parametrize("nesting", light_or_slow(DERIVATIVES))
def test_derivatives_in_every_nesting(quick_score, nesting):
    found = DERIVATIVES[nesting](quick_score)
    np.testing.assert_allclose(found, slope(quick_score, BETA), rtol=1e-7)


@pytest.mark.parametrize("nesting", light_or_slow(SECOND))
def test_second_derivatives_in_every_nesting(quick_score, nesting):
    found = SECOND[nesting](quick_score)
    np.testing.assert_allclose(found, curvature(quick_score, BETA), rtol=1e-5)


@pytest.mark.slow
def test_the_hessian_in_all_tokens_is_symmetric_and_that_of_differences(quick_score):
    def f(x):
        return quick_score(BETA, x)

    hessian = jax.jit(jax.hessian(f))(START.points).reshape(6, 6)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-12)
    gradient = jax.jit(jax.grad(f))
    for k in range(6):
        step = 1e-5 * jnp.eye(6)[k].reshape(3, 2)
        row = (gradient(START.points + step) - gradient(START.points - step)) / 2e-5
        np.testing.assert_allclose(hessian[k], row.ravel(), rtol=1e-6, atol=1e-8)


def test_adaptive_steps_in_jit_map_grad_and_jacfwd():
    """The default solver, with the example that named the defect: a model and tokens as arguments of jit."""
    accuracy = {"rtol": 1e-6, "atol": 1e-8}
    f = score("SA", **accuracy)
    solved = jax.jit(lambda model, x: flock.solve(model, x, t1=0.4, **accuracy).states[-1])
    plain = flock.solve(flock.SA(BETA), START, t1=0.4, **accuracy).states[-1]
    np.testing.assert_allclose(solved(flock.SA(BETA), START), plain, rtol=1e-12)
    change = slope(f, BETA, 1e-4)
    assert jax.jit(jax.grad(f))(BETA) == pytest.approx(change, rel=1e-4)
    assert jax.jacfwd(f)(BETA) == pytest.approx(change, rel=1e-4)


def test_models_made_inside_jit_stay_known():
    """Numbers that are plain inside jit can be checked there, and reductions may choose by them."""

    @jax.jit
    def inside(x):
        model = flock.SA(2.0, flock.Weights(B=np.diag([3.0, 1.0])))
        assert model.terms.task(START).largest_score() == 6.0
        with pytest.raises(flock.errors.InputError, match="beta must be finite"):
            flock.SA(-1.0)
        with pytest.raises(flock.errors.InputError, match="off the sphere"):
            flock.from_array(flock.Sphere(2), np.ones((3, 2)))
        run = flock.solve(model, START, 0.1, dt=0.1, reduction=flock.Spectral(1e-8))
        return x + jnp.sum(run.states[-1])

    assert np.isfinite(inside(1.0))


def test_densities_are_transformed_like_tokens():
    start = flock.Density.from_law(
        flock.meanfield.Fourier(modes=8), flock.laws.cosine(amplitude=0.2, mode=1)
    )

    def f(beta):
        run = flock.solve(flock.SA(beta), start, t1=0.2, dt=0.1, method=diffrax.Heun())
        return jnp.sum(jnp.sin(run.array("final_state")))

    change = slope(f, 0.5)
    assert jax.jit(f)(0.5) == pytest.approx(float(f(0.5)), rel=1e-12)
    assert jax.jit(jax.grad(f))(0.5) == pytest.approx(change, rel=1e-6)
    assert jax.jit(jax.jacfwd(f))(0.5) == pytest.approx(change, rel=1e-6)


def test_coefficients_that_are_zero_have_second_derivatives():
    """The tail of a density is made of powers between 1 and 2."""
    start = flock.Density.from_law(
        flock.meanfield.Fourier(modes=8), flock.laws.cosine(amplitude=0.2, mode=1)
    )

    def f(beta):
        run = flock.solve(
            flock.SA(beta), start, t1=0.1, dt=0.05, method=diffrax.Heun(), max_steps=4
        )
        return 1e3 * jnp.sum(jnp.sin(run.array("final_state")))

    assert jax.jit(jax.hessian(f))(1.0) == pytest.approx(curvature(f, 1.0, 1e-2), rel=1e-3)


def test_numbers_of_the_call_and_of_starts_may_be_traced():
    def by_step(dt):
        return jnp.sum(flock.solve(flock.SA(1.0), START, 0.2, dt=dt).states[-1] ** 3)

    def by_tolerance(rtol):
        run = flock.solve(flock.SA(1.0), START, 0.2, rtol=rtol, atol=1e-9)
        return jnp.sum(run.states[-1] ** 3)

    def by_start(radius):
        cap = flock.starts.cap(flock.Sphere(2), 4, seed=0, radius=radius)
        pair = flock.equiangular(flock.Sphere(4), 3, correlation=radius)
        box = flock.starts.box(flock.Euclidean(2), 4, seed=0, half_width=radius)
        return jnp.stack([jnp.sum(each.points**3) for each in (cap, pair, box)])

    for function, at in ((by_step, 0.1), (by_tolerance, 1e-6), (by_start, 0.3)):
        np.testing.assert_allclose(jax.jit(function)(at), function(at), rtol=1e-12)
    found = jax.jacfwd(by_start)(0.3)
    np.testing.assert_allclose(found, slope(by_start, 0.3), rtol=1e-6)


def test_a_stopped_run_rests_where_it_stopped_and_can_be_differentiated():
    """Inside jit rows cannot be left out: those after the stop hold the state of the stop."""

    def ends(beta):
        run = flock.solve(
            flock.SA(beta),
            START,
            t1=20.0,
            rtol=1e-9,
            atol=1e-11,
            stop=flock.at_diameter(0.5),
            save=flock.Save(every=1.0, states=True),
            max_steps=256,
        )
        return run.array("states", time=-1), run.array("final_time")

    points, time = jax.jit(ends)(BETA)
    plain, stopped = ends(BETA)
    assert time == stopped < 20.0
    np.testing.assert_allclose(points, plain, rtol=1e-10)
    change = jax.jacfwd(lambda beta: ends(beta)[1])(BETA)
    assert change == pytest.approx(slope(lambda beta: ends(beta)[1], BETA, 1e-4), rel=1e-5)


def test_a_run_that_failed_inside_jit_is_not_a_number():
    def last(beta):
        return flock.solve(
            flock.SA(beta), START, t1=50.0, rtol=1e-9, atol=1e-11, max_steps=3
        ).states[-1]

    assert np.all(np.isnan(jax.jit(last)(BETA)))


@pytest.mark.slow
@pytest.mark.parametrize("nesting", [*DERIVATIVES, *SECOND])
@pytest.mark.parametrize("name", PLAIN_MODELS)
def test_every_model_in_every_nesting(name, nesting):
    f = score(name, **quick(name))
    if nesting in DERIVATIVES:
        expected, tolerance = slope(f, BETA), 1e-6
    else:
        expected, tolerance = curvature(f, BETA), 1e-4
    found = {**DERIVATIVES, **SECOND}[nesting](f)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-7)


def test_a_batch_of_starts_is_mapped_sample_by_sample():
    """vmap, map and scan over the Measure itself: equal weights are no array that would be mapped, too."""
    starts = flock.uniform(flock.Sphere(3), n=4, seed=2, samples=3)

    def end(start):
        return flock.solve(flock.SA(2.0), start, t1=0.4, dt=0.1).states[-1]

    def scanned(many):
        return jax.lax.scan(lambda none, one: (none, end(one)), None, many)[1]

    run = flock.solve(flock.SA(2.0), starts, t1=0.4, dt=0.1)
    for mapped in (jax.vmap(end), jax.jit(lambda many: jax.lax.map(end, many)), scanned):
        np.testing.assert_allclose(mapped(starts), run.array("states", time=-1), rtol=1e-14)
    weighted = flock.from_array(starts.space, starts.points[0], weights=[1.0, 2.0, 3.0, 4.0])
    assert flock.solve(flock.SA(2.0), weighted, t1=0.1, dt=0.1).final.weights[3] == 0.4
