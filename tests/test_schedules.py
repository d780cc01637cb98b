"""What changes with depth: each piece is a run of its own, and switches have derivatives."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.schedule import Piecewise

X0 = flock.uniform(flock.Sphere(3), n=5, seed=4)
TIGHT = {"rtol": 1e-10, "atol": 1e-12}
SWITCH = 0.7
A = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3)))


def height(x):
    return x[0] * x[1] - 0.3 * x[2]


def with_attention(term):
    return flock.Dynamics(None, flock.Attention(beta=1.0) + term)


NEURONS = [flock.Perceptron.random(3, 4, seed=s).neurons for s in (1, 2)]
# What changes, as a function of the value in force.
MODELS = {
    "beta": (flock.SA, [0.5, 4.0]),
    "weights": (lambda w: flock.SA(1.0, w), [flock.Weights(V=A), flock.Weights(V=-A.T)]),
    "neurons": (lambda w: with_attention(flock.Perceptron(weights=w)), NEURONS),
    "drift": (lambda m: with_attention(flock.Drift(m)), [A, A.T]),
    "potential": (lambda s: with_attention(flock.Potential(height, s)), [1.0, -2.0]),
    "alpha": (lambda a: flock.SA(2.0, normalisation=flock.normalisation.NGPT(a)), [1.0, 0.2]),
    "density beta": (lambda b: flock.USA(b), [0.5, 1.5]),
    "density temperature": (lambda t: flock.NoisyUSA(1.0, temperature=t), [0.1, 0.6]),
}


def run(model, start, t1):
    return flock.solve(model, start, t1, **TIGHT)


def start_of(name):
    if name.startswith("density"):
        return flock.Density.from_law(flock.meanfield.Fourier(24), flock.laws.cosine(0.3))
    return X0


@pytest.mark.parametrize("name", MODELS)
def test_a_schedule_is_one_run_after_the_other(name):
    build, values = MODELS[name]
    whole = run(build(Piecewise([SWITCH], values)), start_of(name), 1.5)
    first = run(build(values[0]), start_of(name), SWITCH)
    second = run(build(values[1]), first.final, 1.5 - SWITCH)
    end = "final_state" if name.startswith("density") else "final_points"
    np.testing.assert_allclose(whole.array(end), second.array(end), rtol=0, atol=1e-9)
    assert (
        np.abs(second.array(end) - run(build(values[0]), start_of(name), 1.5).array(end)).max()
        > 1e-3
    )


def test_noise_may_stop_on_the_way():
    """The Brownian path does not know of it: until the switch both runs are the same."""
    quiet = flock.Dynamics(
        None, flock.Attention(beta=1.0), flock.Brownian(Piecewise([0.5], [0.4, 0.0]))
    )
    noisy = flock.Dynamics(None, flock.Attention(beta=1.0), flock.Brownian(0.4))
    save = flock.Save(every=0.5, states=True)
    both = [flock.solve(m, X0, 1.0, dt=0.05, seed=3, save=save) for m in (quiet, noisy)]
    np.testing.assert_allclose(both[0].states[1], both[1].states[1], atol=1e-14)
    rest = flock.solve(
        flock.SA(1.0), both[0].state.value({"points": both[0].states[1]}), 0.5, dt=0.05
    )
    # Euler's steps of a model without noise, from where it stopped.
    euler = flock.solve(
        noisy.__class__(None, noisy.terms, flock.Brownian(0.0)), rest.initial, 0.5, dt=0.05
    )
    np.testing.assert_allclose(both[0].states[2], euler.states[-1], atol=1e-13)


def end_after(tau, values=(0.5, 4.0)):
    model = flock.SA(Piecewise(jnp.reshape(tau, (1,)), list(values)))
    return jnp.sum(jnp.sin(run(model, X0, 1.5).states[-1] * jnp.arange(3.0)))


@pytest.mark.parametrize("derivative", [jax.grad, jax.jacfwd, lambda f: jax.jit(jax.grad(f))])
def test_derivatives_by_a_switching_time(derivative):
    step = 1e-4
    slope = (end_after(SWITCH + step) - end_after(SWITCH - step)) / (2 * step)
    assert abs(slope) > 1e-2
    assert derivative(end_after)(SWITCH) == pytest.approx(slope, rel=1e-6)


def test_derivatives_by_the_values_of_the_pieces():
    def end(values):
        return end_after(SWITCH, values)

    values, step = jnp.array([0.5, 4.0]), 1e-4
    slopes = [
        (end(values.at[k].add(step)) - end(values.at[k].add(-step))) / (2 * step) for k in range(2)
    ]
    np.testing.assert_allclose(jax.grad(end)(values), slopes, rtol=1e-6)


# --- switching times and fixed steps ---------------------------------------------------------------

FIXED = {"dt": {"dt": 0.05}, "layers": {"method": flock.Layers(0.05)}}


def fixed_end(tau, values, how):
    run = flock.solve(flock.SA(Piecewise(jnp.reshape(tau, (1,)), list(values))), X0, 1.5, **how)
    return jnp.sum(jnp.sin(run.states[-1] * jnp.arange(3.0)))


DERIVATIVES = {"grad": jax.grad, "jacfwd": jax.jacfwd, "compiled": lambda f: jax.jit(jax.grad(f))}


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("how", FIXED.values(), ids=FIXED)
def test_fixed_steps_refuse_derivatives_by_a_switching_time(name, how):
    """They would be 0, and those of the flow are not."""
    with pytest.raises(flock.errors.InputError, match="they do not see by how much a switch moves"):
        DERIVATIVES[name](lambda tau: fixed_end(tau, (0.5, 4.0), how))(SWITCH)


def test_noise_and_mixed_schemes_refuse_them_too():
    def noisy(tau):
        noise = flock.Brownian(Piecewise(jnp.reshape(tau, (1,)), [0.1, 0.2]))
        model = flock.Dynamics(None, flock.Attention(beta=1.0), noise)
        return jnp.sum(flock.solve(model, X0, 1.0, dt=0.1).states[-1])

    def mixed(tau):
        model = flock.SA(2.0, normalisation=flock.normalisation.MixLN(tau))
        return jnp.sum(flock.solve(model, X0, 1.0, dt=0.1).states[-1])

    for function in (noisy, mixed):
        with pytest.raises(flock.errors.InputError, match="Use adaptive steps"):
            jax.grad(function)(SWITCH)


@pytest.mark.parametrize("how", FIXED.values(), ids=FIXED)
def test_fixed_steps_have_derivatives_by_the_values(how):
    """At times that are plain, traced, or held fixed."""
    values, step = jnp.array([0.5, 4.0]), 1e-4

    def slope(k):
        moved = [fixed_end(SWITCH, values.at[k].add(by), how) for by in (step, -step)]
        return (moved[0] - moved[1]) / (2 * step)

    slopes = np.array([slope(k) for k in range(2)])
    assert np.all(np.abs(slopes) > 1e-3)
    plain = jax.grad(lambda v: fixed_end(SWITCH, v, how))(values)
    traced = jax.jit(lambda tau, v: jax.grad(lambda v: fixed_end(tau, v, how))(v))(SWITCH, values)
    held = jax.grad(
        lambda both: fixed_end(jax.lax.stop_gradient(both["tau"]), both["values"], how)
    )({"tau": SWITCH, "values": values})
    for found in (plain, traced, held["values"]):
        np.testing.assert_allclose(found, slopes, rtol=1e-6)


def test_the_time_of_a_mixed_scheme_has_a_derivative():
    def end(tau):
        model = flock.SA(2.0, normalisation=flock.normalisation.MixLN(tau))
        return jnp.sum(jnp.sin(run(model, X0, 1.5).states[-1] * jnp.arange(3.0)))

    step = 1e-4
    slope = (end(SWITCH + step) - end(SWITCH - step)) / (2 * step)
    assert abs(slope) > 1e-3
    assert jax.grad(end)(SWITCH) == pytest.approx(slope, rel=1e-5)


def test_observables_see_the_numbers_in_force():
    model = flock.SA(Piecewise([SWITCH], [0.5, 4.0]))
    save = flock.Save(at=[0.5, 1.0], states=True, observe=[flock.energy])
    found = flock.solve(model, X0, 1.5, **TIGHT, save=save)
    for row, beta in ((1, 0.5), (2, 4.0)):
        mu = X0.at(jnp.asarray(found.states[row]))
        exact = flock.energy(
            flock.observables.Snapshot(jnp.zeros(()), mu, flock.SA(beta), flock.Dense())
        )
        assert found.array("energy")[row] == pytest.approx(float(exact), rel=1e-12)
    assert "energy_violation" not in found.health


def test_a_stored_run_knows_its_schedule(tmp_path):
    model = flock.SA(Piecewise([SWITCH], [0.5, 4.0]))
    made = flock.solve(model, X0, 1.0, **TIGHT, save=flock.Save(at=[0.5], states=True))
    made.save(tmp_path / "run.zarr")
    again = flock.open(tmp_path / "run.zarr")
    np.testing.assert_allclose(again.observe(flock.energy), made.observe(flock.energy), rtol=1e-14)
    made.plot()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Piecewise([1.0], [1.0]), "need 2 values"),
        (lambda: Piecewise([2.0, 1.0], [1.0, 2.0, 3.0]), "positive and increasing"),
        (lambda: Piecewise([1.0], [1.0, jnp.ones(2)]), "same arrays"),
        (lambda: Piecewise([[0.5], [0.7]], [1.0, 9.0]), "one vector of numbers"),
        (lambda: flock.SA(Piecewise([1.0], [1.0, -2.0])), "beta must be finite and >= 0"),
        (lambda: flock.SA(Piecewise([1.0], [jnp.ones(2), jnp.ones(2)])), "beta at one time"),
        (lambda: flock.Brownian(Piecewise([1.0], [1.0, -2.0])), "temperature must be >= 0"),
    ],
)
def test_schedules_that_are_none_are_refused(make, words):
    with pytest.raises(flock.errors.InputError, match=words):
        make()


# --- a vector of anything is a batch ---------------------------------------------------------------

BATCHES = {
    "temperature": (lambda v: flock.NoisyUSA(1.0, temperature=v), [0.1, 0.5], {"dt": 0.1}),
    "slope": (lambda v: flock.CausalSA(2.0, slope=v), [0.5, 3.0], TIGHT),
    "alpha": (
        lambda v: flock.SA(2.0, normalisation=flock.normalisation.NGPT(v)),
        [1.0, 0.3],
        TIGHT,
    ),
    "tau": (lambda v: flock.SA(2.0, normalisation=flock.normalisation.MixLN(v)), [0.3, 0.6], TIGHT),
    "bias": (lambda v: flock.SigmoidSA(2.0, bias=v), [0.0, 1.0], TIGHT),
    "matrix": (lambda v: with_attention(flock.Drift(v)), [A, A.T], TIGHT),
    "strength": (lambda v: with_attention(flock.Potential(height, v)), [1.0, -1.0], TIGHT),
    "V": (lambda v: flock.SA(1.0, flock.Weights(V=v)), [A[None], -A[None]], TIGHT),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_vector_of_anything_is_a_batch(name):
    build, values, how = BATCHES[name]
    batch = flock.solve(build(jnp.stack([jnp.asarray(v) for v in values])), X0, 1.0, **how)
    assert batch["states"].dims == (name, "time", "token", "coordinate")
    for index, value in enumerate(values):
        alone = flock.solve(build(value), X0, 1.0, **how)
        np.testing.assert_allclose(
            batch.array("states", **{name: index}), alone.states, rtol=0, atol=1e-9
        )


def test_numbers_that_change_together_need_one_length():
    model = flock.Dynamics(None, flock.Attention(beta=[1.0, 2.0]), flock.Brownian(jnp.ones(3)))
    with pytest.raises(flock.errors.InputError, match="one length"):
        flock.solve(model, X0, 1.0, dt=0.1)


def test_different_numbers_that_change_together_are_one_axis():
    model = flock.Dynamics(
        None, flock.Attention(beta=[1.0, 4.0]), flock.Brownian(jnp.array([0.1, 0.4]))
    )
    found = flock.solve(model, X0, 1.0, dt=0.1, seed=2)
    assert found.batch_axes == ("model",)
    alone = flock.solve(
        flock.Dynamics(None, flock.Attention(beta=4.0), flock.Brownian(0.4)),
        X0,
        1.0,
        dt=0.1,
        seed=2,
    )
    np.testing.assert_allclose(found.array("states", model=1), alone.states, atol=1e-12)


def test_vmap_over_values():
    """JAX's own way: a model per entry, inside vmap."""

    def end(V):
        return run(flock.SA(1.0, flock.Weights(V=V)), X0, 1.0).states[-1]

    many = jax.vmap(end)(jnp.stack([A, -A.T]))
    np.testing.assert_allclose(many[1], end(-A.T), atol=1e-9)


class Shifted(flock.kinds.Weighted):
    """Weight (2 + shift + s)^2, with nothing said of the shift."""

    shift: jax.Array

    def weight(self, scores, beta):
        return (2.0 + self.shift + scores) ** 2


class Declared(Shifted):
    """The same, of a number."""

    ranks: ClassVar[dict[str, tuple[int, ...]]] = {"shift": (0,)}


class Pull(flock.terms.Term):
    """x + pull, with nothing said of the pull."""

    pull: jax.Array

    def field(self, t, x, mu, reduction):
        return x + self.pull


def test_a_kind_that_declares_its_ranks_has_batches():
    shifts = jnp.array([0.0, 1.0])

    def of(shift):
        return flock.Dynamics(None, flock.Attention(beta=1.0, kind=Declared(shift)))

    batch = run(of(shifts), X0, 1.0)
    assert batch.batch_axes == ("shift",)
    for index, shift in enumerate(shifts):
        alone = run(of(shift), X0, 1.0).states
        np.testing.assert_allclose(batch.array("states", shift=index), alone, rtol=0, atol=1e-9)


def test_an_array_that_fits_the_tokens_needs_no_ranks():
    found = run(with_attention(Pull(jnp.arange(3.0))), X0, 0.5)
    assert found["states"].dims == ("time", "token", "coordinate")


TWO = jnp.array([1.0, 2.0])
V = jnp.stack([A[None], A.T[None]])
NO_BATCHES = {
    "kind": (
        lambda: flock.Dynamics(None, flock.Attention(kind=Shifted(TWO))),
        r'shift of Shifted has shape \(2,\).*write ranks = {"shift": \(0,\)}',
    ),
    "term": (lambda: with_attention(Pull(TWO)), r'write ranks = {"pull": \(0,\)}'),
    "shape": (
        lambda: with_attention(Pull(jnp.ones((2, 1, 1)))),
        r'write ranks = {"pull": \(2,\)}',
    ),
    "drift": (lambda: with_attention(flock.Drift(Piecewise([0.5], [TWO, TWO]))), "no batches"),
    "weights": (
        lambda: flock.SA(1.0, Piecewise([0.5], [flock.Weights(V=V), flock.Weights(V=-V)])),
        r"V of Weights has shape \(2, 1, 3, 3\).*no batches",
    ),
    "slope": (lambda: flock.CausalSA(2.0, slope=jnp.ones((2, 2))), "one axis more in front"),
    "law": (
        lambda: flock.SA(
            1.0,
            flock.random_weights.RandomWeights(3, 0, Q=flock.random_weights.Ginibre(TWO)),
        ),
        "the scale of Ginibre must be one number",
    ),
    "random V": (
        lambda: flock.SA(1.0, flock.random_weights.RandomWeights(3, 0, V=TWO)),
        "V of random weights must be one number",
    ),
    "kernel": (
        lambda: flock.kinds.Kernel(flock.kinds.as_function([[1.0, 2.0], [2.0, 3.0]])),
        "one list of coefficients",
    ),
}


@pytest.mark.parametrize("name", NO_BATCHES)
def test_what_cannot_be_a_batch_is_refused_with_a_sentence(name):
    make, words = NO_BATCHES[name]
    with pytest.raises(flock.errors.InputError, match=words):
        run(make(), X0, 1.0)
