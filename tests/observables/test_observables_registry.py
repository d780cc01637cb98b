"""Every named observable: built by name, described, and the same one at a time or in a batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock.observables as observables
from tokenflock.dynamics import Dynamics
from tokenflock.errors import InputError
from tokenflock.measure import Measure
from tokenflock.models import SA
from tokenflock.observables import OBSERVABLES, Observable, Snapshot, make, w2
from tokenflock.observables.densities import OF_DENSITIES
from tokenflock.reduce import Dense
from tokenflock.space import Euclidean, Sphere
from tokenflock.terms import Attention

ANGLE = {"angle": 0.4}
PARAMETERS = {
    "clusters": ANGLE,
    "cluster_labels": ANGLE,
    "cluster_sizes": {**ANGLE, "largest": 3},
    "cluster_masses": {**ANGLE, "largest": 3},
    "cluster_centres": {**ANGLE, "largest": 3},
    "min_alignment": {"direction": [1.0, -2.0]},
    "renyi_centres": {"distance": 0.3},
    "renyi_centre_mask": {"distance": 0.3},
    "strong_centres": {"distance": 0.3},
    "strong_centre_mask": {"distance": 0.3},
}
NAMES = sorted(set(OBSERVABLES) - set(OF_DENSITIES))
N = 7


def setting(name):
    """Tokens (3 samples), and a model, on the space the observable is made for."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, N, 2))
    masses = np.arange(1.0, N + 1)
    if name in ("convex_hull_volume", "leaders", "leader_mask", "mean_radius"):
        return Measure(Euclidean(2), x, masses), Dynamics(Euclidean(2), Attention(beta=1.3))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return Measure(Sphere(2), x, masses), SA(1.3)


@pytest.mark.parametrize("name", NAMES)
def test_batched_and_compiled_equals_one_at_a_time(name):
    observable = make(name, **PARAMETERS.get(name, {}))
    mu, model = setting(name)

    def value(t, x):
        return observable(Snapshot(t, mu.at(x), model, Dense()))

    times, one = jnp.array([0.0, 1.0]), jax.jit(value)
    over_samples = jax.vmap(value, in_axes=(None, 0))
    batched = jax.jit(jax.vmap(over_samples, in_axes=(0, None)))(times, mu.points)
    single = np.stack([np.asarray(one(times[0], x)) for x in mu.points])
    for row in batched:
        np.testing.assert_allclose(row, single, rtol=1e-11, atol=1e-13)
    # Samples must differ, or a mixed-up axis would pass; three clouds may have as many leaders.
    distinct = np.unique(np.round(single.reshape(3, -1).astype(float), 9), axis=0)
    assert len(distinct) > 1 or name == "leaders"
    sizes = {"token": N, "other_token": N, "head": 1, "cluster": 3, "coordinate": 2}
    sizes |= {axis: len(values) for axis, values in observable.coords.items()}
    assert single.shape[1:] == tuple(sizes[axis] for axis in observable.axes)


@pytest.mark.parametrize("name", NAMES)
def test_every_observable_is_described(name):
    observable = make(name, **PARAMETERS.get(name, {}))
    assert isinstance(observable, Observable)
    assert observable.name == name
    assert observable.units
    assert len(observable.says.split()) >= 4
    assert not observable.says.endswith(".")
    assert observable.attributes["long_name"] == observable.says
    assert getattr(observables, name) is OBSERVABLES[name]


def test_observables_are_arguments_of_compiled_functions():
    """Two observables that differ in data share a program; a target travels as data."""
    mu, model = setting("w2")
    one = mu.at(mu.points[0])
    read = jax.jit(lambda observable: observable(Snapshot(jnp.zeros(()), one, model, Dense())))
    near, far = (w2(mu.at(mu.points[k])) for k in (0, 1))
    assert read(near) == pytest.approx(0.0, abs=1e-7)
    assert read(far) > 0.1


def test_named():
    coarse = make("clusters", angle=0.5).named("coarse_clusters")
    assert coarse.name == "coarse_clusters"
    assert coarse.attributes["angle"] == 0.5


def test_wrong_names_and_parameters():
    with pytest.raises(InputError, match="did you mean 'clusters'"):
        make("cluster", angle=0.1)
    with pytest.raises(InputError, match=r"known: .*energy"):
        make("zzzz")
    with pytest.raises(InputError, match="did you mean 'angle'"):
        make("clusters", angel=0.1)
    with pytest.raises(InputError, match="no parameter 'x'; known: angle, distance"):
        make("clusters", x=0.1)
    with pytest.raises(InputError, match="takes no parameters"):
        make("energy", beta=1.0)
    with pytest.raises(InputError, match="needs the parameter 'distance'"):
        make("renyi_centres")
    with pytest.raises(InputError, match="in Python"):
        make("w2")


@pytest.mark.parametrize("name", OF_DENSITIES)
def test_what_only_densities_have_is_refused_for_tokens(name):
    mu, model = setting(name)
    with pytest.raises(InputError, match=f"{name} is not known here: tokens have none"):
        make(name)(Snapshot(jnp.zeros(()), mu.at(mu.points[0]), model, Dense()))
