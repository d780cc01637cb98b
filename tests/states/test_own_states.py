"""A state that is not the library's goes through the same solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock

X0 = flock.uniform(flock.Sphere(3), n=4, seed=2)
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


class Tangent(flock.states.State):
    """Tokens x and a small change xi of them: x' = v(x), xi' = Dv(x) xi."""

    tokens: flock.Measure
    change: jax.Array

    @property
    def sizes(self):
        return {"part": 2, "token": self.tokens.n, "coordinate": self.tokens.d}

    def begin(self, model):
        return jnp.stack([self.tokens.points, self.change])

    def velocity(self, model, t, y):
        def speed(x):
            return model.field(t, x, self.tokens.at(x))

        return jnp.stack(jax.jvp(speed, (y[0],), (y[1],)))

    def snapshot(self, model, t, y):
        return flock.observables.Snapshot(t, self.tokens.at(y[0]), model, flock.Dense())


CHANGE = X0.space.project(X0.points, jnp.arange(12.0).reshape(4, 3) / 10)


def end(x, beta=2.0):
    return flock.solve(flock.SA(beta), flock.from_array(flock.Sphere(3), x), 1.0, **TIGHT).states[
        -1
    ]


@pytest.fixture(scope="module")
def run():
    save = flock.Save(at=[0.5], states=True, observe=[flock.order_parameter])
    return flock.solve(
        flock.SA(2.0),
        Tangent(X0, CHANGE),
        1.0,
        **TIGHT,
        save=save,
        integrate={"spent": lambda s: flock.order_parameter(s) ** 2},
    )


def test_it_moves_as_its_velocity_says(run):
    """xi is the derivative of the end of a run by its start: against differences of two runs of tokens."""
    assert run["states"].dims == ("time", "part", "token", "coordinate")
    x, change = run.array("states", time=-1)
    np.testing.assert_allclose(x, end(X0.points), atol=1e-9)
    step = 1e-5
    ahead, back = (end(X0.space.retract(X0.points + s * CHANGE)) for s in (step, -step))
    np.testing.assert_allclose(change, (ahead - back) / (2 * step), atol=1e-8)


def test_observables_integrals_and_health_come_along(run):
    tokens = flock.solve(
        flock.SA(2.0),
        X0,
        1.0,
        **TIGHT,
        save=flock.Save(at=[0.5], observe=[flock.order_parameter]),
        integrate={"spent": lambda s: flock.order_parameter(s) ** 2},
    )
    for name in ("order_parameter", "spent"):
        np.testing.assert_allclose(run.array(name), tokens.array(name), rtol=1e-8)
    assert run.outcome == "finished"
    assert run.health["finite"]
    assert run.outcomes.item() == "finished"
    later = run.observe(flock.order_parameter)
    np.testing.assert_allclose(later, run.array("order_parameter"), rtol=1e-12)


def test_a_batch_of_models_moves_it_too():
    many = flock.solve(flock.SA([1.0, 2.0]), Tangent(X0, CHANGE), 1.0, **TIGHT)
    assert many["states"].dims == ("beta", "time", "part", "token", "coordinate")
    np.testing.assert_allclose(many.array("states", time=-1, beta=1)[0], end(X0.points), atol=1e-9)


def test_options_of_tokens_are_refused():
    with pytest.raises(flock.errors.InputError, match="merge has no meaning"):
        flock.solve(flock.SA(1.0), Tangent(X0, CHANGE), 1.0, **TIGHT, merge=flock.Merge(0.1))
    with pytest.raises(flock.errors.InputError, match="has no layers"):
        flock.solve(flock.SA(1.0), Tangent(X0, CHANGE), 1.0, method=flock.Layers(0.1))


def test_what_is_no_state_is_refused():
    with pytest.raises(flock.errors.InputError, match="must be a Measure or a Density, got list"):
        flock.solve(flock.SA(1.0), [1.0, 2.0], 1.0, **TIGHT)
