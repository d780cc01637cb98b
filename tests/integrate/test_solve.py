"""solve: batches, saves, stops, failures, derivatives, determinism."""

import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock

TOKENS = flock.uniform(flock.Sphere(3), 8, seed=1)
TIGHT = {"rtol": 1e-9, "atol": 1e-11}
STATES = flock.Save(every=0.5, states=True)


def test_a_batch_is_its_members():
    """Samples and betas in one call equal the single runs, each with its own steps."""
    samples = flock.uniform(flock.Sphere(3), 6, seed=2, samples=(2, 3))
    betas = jnp.array([0.5, 3.0])
    run = flock.solve(flock.SA(betas), samples, t1=2.0, **TIGHT, save=STATES)
    assert run["states"].dims == ("beta", "sample_0", "sample_1", "time", "token", "coordinate")
    assert run["states"].shape == (2, 2, 3, 5, 6, 3)
    np.testing.assert_allclose(run["states"].coords["beta"], betas)
    one = flock.from_array(flock.Sphere(3), samples.points[1, 2])
    alone = flock.solve(flock.SA(3.0), one, t1=2.0, **TIGHT, save=STATES)
    np.testing.assert_allclose(
        run.array("states", beta=1, sample_0=1, sample_1=2), alone.states, atol=1e-10
    )


@pytest.mark.slow
def test_per_sample_weights_differ_and_per_run_weights_do_not():
    same = np.broadcast_to(np.asarray(TOKENS.points), (2, 8, 3)).copy()
    batch = flock.from_array(flock.Sphere(3), same)
    entry = flock.random_weights.Ginibre(0.8)
    for per, differs in (("run", False), ("sample", True)):
        weights = flock.random_weights.RandomWeights(
            d=3, seed=4, heads=2, Q=entry, K=entry, V=entry, per=per
        )
        final = flock.solve(flock.SA(1.0, weights), batch, t1=1.0, **TIGHT).final.points
        assert (np.max(np.abs(final[0] - final[1])) > 1e-3) == differs


def test_redrawn_weights_change_every_period_and_only_there():
    weights = flock.random_weights.RandomWeights(
        d=3, seed=4, V=flock.random_weights.GOE(), period=0.25
    )
    drawn = [np.asarray(weights.at(t).V) for t in (0.0, 0.2499, 0.25, 0.499, 0.5)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[2], drawn[3])
    assert np.max(np.abs(drawn[0] - drawn[2])) > 0.1
    assert np.max(np.abs(drawn[2] - drawn[4])) > 0.1
    assert weights.jumps(1.0) == [0.25, 0.5, 0.75]
    layers = flock.solve(
        flock.SA(1.0, weights), TOKENS, t1=1.0, method=flock.Layers(0.25)
    ).final.points
    x = np.asarray(TOKENS.points)
    for layer in range(4):
        kernel = np.exp(x @ x.T)
        out = (
            kernel
            @ x
            / kernel.sum(axis=1, keepdims=True)
            @ np.asarray(weights.at(0.25 * layer).V[0]).T
        )
        x = x + 0.25 * out
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(layers, x, atol=1e-12)


@pytest.mark.parametrize(
    ("law", "check"),
    [
        (flock.random_weights.Ginibre(), lambda m: np.abs(m - m.T).max() > 0.5),
        (flock.random_weights.Wigner(), lambda m: np.array_equal(m, m.T)),
        (flock.random_weights.GOE(), lambda m: np.allclose(m, m.T)),
        (
            flock.random_weights.PositiveSemidefinite(),
            lambda m: np.linalg.eigvalsh(m).min() > -1e-9,
        ),
        (flock.random_weights.Product(), lambda m: np.abs(m - m.T).max() > 0.5),
    ],
)
def test_random_matrix_laws_have_their_symmetry_and_scale(law, check):
    draws = np.asarray(
        jax.vmap(lambda k: law.sample(k, 40))(jax.random.split(jax.random.key(0), 50))
    )
    assert all(check(m) for m in draws[:5])
    off = draws[:, 0, 1]
    variance = {"Product": 40.0, "PositiveSemidefinite": 40.0}.get(type(law).__name__, 1.0)
    assert draws[:, ~np.eye(40, dtype=bool)].var() == pytest.approx(variance, rel=0.05)
    assert off.shape == (50,)
    diagonal = draws[:, np.arange(40), np.arange(40)].var()
    expected = {"GOE": 2.0, "Ginibre": 1.0, "Wigner": 1.0}.get(type(law).__name__)
    if expected is not None:
        assert diagonal == pytest.approx(expected, rel=0.1)


def test_save_rules():
    np.testing.assert_allclose(flock.Save(every=0.3).times(1.0), [0, 0.3, 0.6, 0.9, 1.0])
    np.testing.assert_allclose(flock.Save(every=0.1).times(0.3), [0, 0.1, 0.2, 0.3])
    np.testing.assert_allclose(flock.Save(at=[0.5, 0.2]).times(1.0), [0, 0.2, 0.5, 1.0])
    np.testing.assert_allclose(flock.Save(log=(0.01, 3)).times(1.0), [0, 0.01, 0.1, 1.0])
    with pytest.raises(flock.errors.InputError, match="choose one"):
        flock.Save(every=1.0, at=[0.5])
    with pytest.raises(flock.errors.InputError, match="lie in"):
        flock.Save(at=[2.0]).times(1.0)


def test_observables_during_the_solve_equal_those_from_states():
    save = flock.Save(every=0.5, states=True, observe=[flock.energy, flock.clusters(angle=0.3)])
    run = flock.solve(flock.SA(jnp.array([1.0, 4.0])), TOKENS, t1=2.0, **TIGHT, save=save)
    for thing in (flock.energy, flock.clusters(angle=0.3)):
        later = run.observe(thing)
        assert later.dims == ("beta", "time")
        np.testing.assert_allclose(later, run[thing.name], rtol=1e-12)
    assert run["clusters"].dtype.kind == "i"
    assert run["energy"].attrs["units"]
    light = flock.solve(
        flock.SA(2.0), TOKENS, t1=2.0, **TIGHT, save=flock.Save(every=0.5, observe=[flock.energy])
    )
    with pytest.raises(flock.errors.InputError, match="did not keep its states"):
        _ = light.states
    with pytest.raises(flock.errors.InputError, match="has no 'entropy'"):
        _ = light["entropy"]


def test_stops():
    """By clusters; by diameter (located inside the step) beside a user's event."""
    by_count = flock.solve(
        flock.SA(1.0), TOKENS, t1=50.0, **TIGHT, stop=flock.at_clusters(1, 0.1), save=STATES
    )
    assert by_count.outcome == "stopped"
    assert by_count.reached < 50.0
    assert by_count["states"].sizes["time"] == len(by_count.time)
    assert by_count.time[-1] == pytest.approx(by_count.reached)
    stops = [flock.at_diameter(0.05), flock.when(lambda s: s.t > 40.0)]
    run = flock.solve(
        flock.SA(1.0),
        TOKENS,
        t1=50.0,
        **TIGHT,
        stop=stops,
        save=flock.Save(every=0.5, observe=[flock.diameter]),
    )
    assert run.array("diameter")[-1] == pytest.approx(0.05, abs=1e-8)


@pytest.mark.slow
def test_a_stop_by_time_is_met_inside_a_step():
    timed = flock.solve(
        flock.SA(1.0), TOKENS, t1=50.0, **TIGHT, stop=flock.when(lambda s: 7.5 - s.t)
    )
    assert timed.reached == pytest.approx(7.5, abs=1e-9)


@pytest.mark.slow
def test_a_batch_stops_member_by_member():
    samples = flock.uniform(flock.Sphere(3), 6, seed=5, samples=3)
    run = flock.solve(
        flock.SA(1.0),
        samples,
        t1=40.0,
        **TIGHT,
        stop=flock.at_diameter(0.01),
        save=flock.Save(every=1.0, observe=[flock.diameter]),
    )
    ends = np.asarray(run.array("final_time"))
    assert len(set(np.round(ends, 6))) == 3
    for sample in range(3):
        values = np.asarray(run["diameter"][sample])
        done = np.isfinite(values)
        assert np.all(np.asarray(run.time)[done] <= ends[sample] + 1e-9)
        assert not np.any(done[np.asarray(run.time) > ends[sample]])
    np.testing.assert_allclose(run.array("final_diameter"), 0.01, atol=1e-8)


@pytest.mark.slow
def test_gradients_match_finite_differences():
    """Through the adaptive solve, to the tokens, to beta and to the weights."""
    value = np.random.default_rng(0).normal(size=(3, 3))

    def loss(points, beta, V):
        tokens = flock.Measure(flock.Sphere(3), points)
        run = flock.solve(
            flock.SA(beta, flock.Weights(V=V)), tokens, t1=1.0, rtol=1e-10, atol=1e-12
        )
        return jnp.sum(run.states[-1, 0] * jnp.array([0.3, -1.0, 0.7])) + run.states[-1, 3, 1]

    arguments = (TOKENS.points, jnp.asarray(1.5), jnp.asarray(value))
    gradients = jax.grad(loss, argnums=(0, 1, 2))(*arguments)
    rng = np.random.default_rng(1)
    for position, gradient in enumerate(gradients):
        direction = rng.normal(size=gradient.shape)
        if position == 0:
            direction = np.asarray(TOKENS.space.project(TOKENS.points, jnp.asarray(direction)))
        h = 1e-5
        ends = []
        for sign in (1, -1):
            moved = list(arguments)
            moved[position] = arguments[position] + sign * h * direction
            ends.append(float(loss(*moved)) if position else float(_loss_on_sphere(loss, moved)))
        numeric = (ends[0] - ends[1]) / (2 * h)
        assert float(jnp.sum(gradient * direction)) == pytest.approx(numeric, rel=1e-5)


def _loss_on_sphere(loss, arguments):
    arguments[0] = arguments[0] / jnp.linalg.norm(arguments[0], axis=-1, keepdims=True)
    return loss(*arguments)


@pytest.mark.slow
def test_gradient_of_an_observable():
    def final_energy(beta):
        save = flock.Save(observe=[flock.energy])
        return flock.solve(flock.SA(beta), TOKENS, t1=1.0, rtol=1e-10, atol=1e-12, save=save).array(
            "energy"
        )[-1]

    slope = jax.grad(final_energy)(2.0)
    numeric = (final_energy(2.0 + 1e-5) - final_energy(2.0 - 1e-5)) / 2e-5
    assert float(slope) == pytest.approx(float(numeric), rel=1e-6)


def test_failures_carry_advice():
    with pytest.raises(flock.errors.SolveError, match="raise max_steps"):
        flock.solve(flock.SA(1.0), TOKENS, t1=100.0, **TIGHT, max_steps=5)
    run = flock.solve(flock.SA(1.0), TOKENS, t1=100.0, **TIGHT, max_steps=5, throw=False)
    assert run.outcome == "step-limit"
    assert "max_steps" in run.advice
    assert 0 < run.reached < 100.0
    assert np.all(np.isfinite(run.final.points))
    with pytest.raises(flock.errors.SolveError, match="metastability"):
        flock.solve(flock.USA(800.0), TOKENS, t1=1.0, **TIGHT)
    blown = flock.Dynamics(None, flock.Attention(beta=1.0), noise=flock.Brownian(0.1))
    far = flock.starts.box(flock.Euclidean(2), 4, seed=0, half_width=1e154)
    with pytest.raises(flock.errors.SolveError, match="NaN or infinite"):
        flock.solve(blown, far, t1=800.0, dt=1.0)


def test_the_accuracy_must_be_stated():
    for arguments, words in (
        ({}, "rtol and atol"),
        ({"rtol": 1e-8}, "rtol and atol"),
        ({"rtol": -1e-8, "atol": 1e-10}, "rtol must be a positive"),
        ({"rtol": 1e-8, "atol": float("nan")}, "atol must be a positive"),
        ({"rtol": 1e-8, "atol": 1e-10, "dt": 0.1}, "not both"),
        ({"method": flock.Layers(0.1), "rtol": 1e-8}, "fixed step"),
        ({"method": flock.Layers(0.3)}, "multiples of the step"),
    ):
        with pytest.raises(flock.errors.InputError, match=words):
            flock.solve(flock.SA(1.0), TOKENS, t1=1.0, **arguments)
    for t1 in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(flock.errors.InputError, match="t1 must be a positive"):
            flock.solve(flock.SA(1.0), TOKENS, t1=t1, **TIGHT)
    with pytest.raises(flock.errors.InputError, match="noise needs a fixed step"):
        flock.solve(flock.NoisyUSA(1.0, 0.1), TOKENS, t1=1.0, **TIGHT)


@pytest.mark.slow
def test_stiff_solver_agrees_and_saves_steps_in_tight_clusters():
    start = flock.equiangular(flock.Sphere(6), 6)
    options = {"t1": 2e4, "rtol": 1e-8, "atol": 1e-10, "save": flock.Save(at=[1e2, 5e3, 9e3])}
    explicit = flock.solve(flock.SA(12.0), start, **options)
    stiff = flock.solve(flock.SA(12.0), start, method=flock.Stiff(), **options)
    assert stiff.health["steps"] < explicit.health["steps"] / 10
    np.testing.assert_allclose(
        stiff.array("scaled_energy"), explicit.array("scaled_energy"), rtol=1e-6
    )


@pytest.mark.slow  # lifetimes in tests/checks/test_metastability.py are exact with the same clock
def test_clocks_do_not_change_the_path():
    times = [0.5, 1.0, 3.0]
    save = flock.Save(at=times, states=True)
    plain = flock.solve(flock.SA(2.0), TOKENS, t1=5.0, **TIGHT, save=save)
    logged = flock.solve(
        flock.SA(2.0), TOKENS, t1=5.0, **TIGHT, save=save, clock=flock.LogTime(0.3)
    )
    np.testing.assert_allclose(plain.states, logged.states, atol=1e-8)
    np.testing.assert_allclose(logged.time, [0, *times, 5.0])


def test_the_same_seed_gives_the_same_numbers():
    runs = [
        flock.solve(flock.SA(2.0), TOKENS, t1=2.0, **TIGHT, save=STATES).states for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])


def test_progress_is_reported_from_inside(monkeypatch):
    from rich.console import Console

    from tokenflock.integrate import progress

    screen = io.StringIO()
    monkeypatch.setattr(
        progress, "Console", lambda stderr: Console(file=screen, force_terminal=True)
    )
    flock.solve(flock.SA(2.0), TOKENS, t1=3.0, **TIGHT, progress=True)
    jax.effects_barrier()
    assert "100%" in screen.getvalue()
    assert "ETA" in screen.getvalue()


@pytest.mark.parametrize(
    "model",
    [flock.SA(3.0), pytest.param(flock.USA(1.0), marks=pytest.mark.slow)],
    ids=["SA", "USA"],
)
def test_weighted_tokens_are_repeated_tokens(model):
    """A token of mass 2/5 is two coincident tokens of mass 1/5."""
    x = np.asarray(flock.uniform(flock.Sphere(3), 4, seed=6).points)
    weighted = flock.from_array(flock.Sphere(3), x, weights=[2.0, 1.0, 1.0, 1.0])
    repeated = flock.from_array(flock.Sphere(3), x[[0, 0, 1, 2, 3]])
    save = flock.Save(observe=[flock.energy])
    few = flock.solve(model, weighted, t1=2.0, **TIGHT, save=save)
    many = flock.solve(model, repeated, t1=2.0, **TIGHT, save=save)
    np.testing.assert_allclose(few.final.points, np.asarray(many.final.points)[1:], atol=1e-9)
    np.testing.assert_allclose(few.array("energy"), many.array("energy"), rtol=1e-9)


@pytest.mark.slow
def test_weights_redrawn_in_a_flow_equal_the_same_weights_in_pieces():
    """The switches are met exactly: the error follows the tolerance, and no step is wasted on them."""
    entry = flock.random_weights.Ginibre(0.8)
    drawn = flock.random_weights.RandomWeights(
        d=3, seed=4, heads=2, Q=entry, K=entry, V=entry, period=0.3
    )
    pieces = flock.Piecewise(
        [0.3 * m for m in range(1, 5)], [drawn.at(0.3 * m + 0.1) for m in range(5)]
    )
    runs = [
        flock.solve(flock.SA(1.0, weights), TOKENS, t1=1.5, rtol=1e-10, atol=1e-12)
        for weights in (drawn, pieces)
    ]
    np.testing.assert_allclose(runs[0].final.points, runs[1].final.points, atol=1e-12)
    assert runs[0].health["steps"] == runs[1].health["steps"]
    assert "energy_violation" not in runs[0].health


def test_merge_refuses_what_it_cannot_express():
    for model in (flock.CausalSA(1.0), flock.SA(1.0, normalisation=flock.normalisation.PreLN())):
        with pytest.raises(flock.errors.InputError, match="merge"):
            flock.solve(model, TOKENS, t1=1.0, **TIGHT, merge=flock.Merge(1e-3))


def test_a_stop_leaves_tokens_on_the_sphere_and_layers_whole():
    loose = flock.solve(
        flock.SA(1.0), TOKENS, t1=50.0, rtol=1e-5, atol=1e-7, stop=flock.at_diameter(0.5)
    )
    assert loose.health["norm_drift"] < 1e-12
    network = flock.solve(
        flock.SA(1.0), TOKENS, t1=50.0, method=flock.Layers(0.1), stop=flock.at_diameter(0.5)
    )
    layers = network.reached / 0.1
    assert layers == pytest.approx(round(layers), abs=1e-9)
    again = flock.solve(flock.SA(1.0), TOKENS, t1=0.1 * round(layers), method=flock.Layers(0.1))
    np.testing.assert_allclose(network.final.points, again.final.points, atol=1e-13)


@pytest.mark.slow
def test_a_run_remembers_its_own_model_and_radii():
    """An invented kind cannot be rebuilt from a store, but its own run can still be observed."""

    class Quartic(flock.kinds.Weighted):
        def weight(self, scores, beta):
            return (1.0 + scores) ** 4

    model = flock.Dynamics(None, flock.Attention(kind=Quartic()))
    run = flock.solve(model, TOKENS, t1=0.5, **TIGHT, save=STATES)
    assert run.observe(flock.diameter).sizes["time"] == 2
    start = flock.gaussian(flock.Sphere(3), 5, seed=0)
    pre = flock.solve(
        flock.SA(1.0, normalisation=flock.normalisation.PreLN()), start, t1=0.5, **TIGHT
    )
    np.testing.assert_array_equal(pre.initial.radii, start.radii)


@pytest.mark.slow
def test_the_gradient_of_a_final_coordinate():
    def first_coordinate(beta):
        return flock.solve(flock.SA(beta), TOKENS, t1=0.5, **TIGHT).final.points[0, 0]

    assert np.isfinite(jax.grad(first_coordinate)(1.0))


def test_tiny_times_are_legal():
    run = flock.solve(flock.SA(1.0), TOKENS, t1=1e-20, **TIGHT)
    assert run.outcome == "finished"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: flock.solve(flock.SA(1.0), np.eye(3), t1=1.0, **TIGHT), "must be a Measure"),
        (lambda: flock.solve(flock.Attention(), TOKENS, t1=1.0, **TIGHT), "must be a Dynamics"),
        (lambda: flock.solve(flock.SA(1.0), TOKENS, t1="3", **TIGHT), "t1 must be a positive"),
        (lambda: flock.SA([]), "empty"),
        (lambda: flock.Weights(V=float("nan")), "NaN"),
    ],
)
def test_wrong_python_input_gets_a_sentence(call, words):
    with pytest.raises(flock.errors.InputError, match=words):
        call()
