"""A registered observable is usable under its name, as ours are; nothing else is."""

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.errors import InputError
from tokenflock.lab.catalogue import example_text
from tokenflock.lab.files import parse
from tokenflock.lab.job import Job
from tokenflock.lab.spec import SaveSpec
from tokenflock.observables import OBSERVABLES, Observable, make, register
from tokenflock.testing import check_observable

pytestmark = pytest.mark.usefixtures("forgotten_after")
X0 = flock.uniform(flock.Sphere(3), 4, seed=0)
LOOSE = {"t1": 0.2, "rtol": 1e-6, "atol": 1e-8}


def lowest_height(s):
    """Height of the lowest token."""
    return jnp.min(s.measure.points[:, -1])


def share_above(level: float) -> Observable:
    """A closure, a new one in every call."""
    return Observable(
        "share_above",
        "1",
        lambda s, level: s.measure.weights @ (s.measure.points[:, -1] > level),
        parameters=(("level", level),),
    )


def solved(observe, start=X0):
    save = flock.Save(observe=observe, states=True)
    return flock.solve(flock.SA(1.0), start, save=save, **LOOSE)


@pytest.mark.parametrize(
    "given", [lowest_height, Observable("lowest_height", "1", lowest_height)], ids=["plain", "made"]
)
def test_a_registered_observable_is_used_under_its_name(given):
    known = register(given)
    assert isinstance(known, Observable)
    for asked in (
        known,
        make("lowest_height"),
        *SaveSpec(observe=["lowest_height"]).build().observe,
    ):
        run = solved([asked])
        lowest = np.asarray(run.states)[..., -1].min(axis=-1)
        np.testing.assert_allclose(run["lowest_height"], lowest, atol=1e-14)
        np.testing.assert_allclose(run.observe(asked), lowest, atol=1e-14)
    assert check_observable(known)["its name is free"] == "holds"


def test_a_spec_asks_for_it():
    register(lowest_height)
    register(share_above)
    asked = "save.observe=['lowest_height', {name='share_above', level=0.5}]"
    job = Job(parse(example_text("circle"), ["n=4", "t1=1.0", "every=0.5", asked]))
    assert [thing.name for thing in job.plan.observe][:2] == ["lowest_height", "share_above"]


def test_a_registered_function_makes_observables_from_parameters():
    made = register(share_above)
    assert OBSERVABLES["share_above"] is made
    assert solved([made(-2.0)]).array("share_above").tolist() == [1.0, 1.0]
    twice = [make("share_above", level=-2.0), made(2.0).named("share_far_above")]
    run = solved(twice)
    assert run.observe(made(level=-2.0)).values.tolist() == [1.0, 1.0]
    assert run.array("share_far_above").tolist() == [0.0, 0.0]


def test_a_density_has_it_from_points_and_weights():
    known = register(
        Observable("first_moment", "1", lambda s: s.measure.weights @ s.measure.points)
    )
    start = flock.Density.from_law(flock.meanfield.Fourier(8), lambda x: 1 + 0.4 * x[:, 0])
    run = solved([known], start)
    np.testing.assert_allclose(run.array("first_moment", time=0), [0.2, 0.0], atol=1e-12)


def another(s):
    return jnp.max(s.measure.points)


def test_another_function_under_a_registered_name_is_refused():
    register(lowest_height)
    register(share_above)
    for name in ("lowest_height", "share_above", "energy", "clusters"):
        with pytest.raises(InputError, match=f"'{name}' cannot name this observable: another one"):
            flock.Save(observe=[Observable(name, "1", another)])
    for thing in (make("share_above", level=0.1).named("lowest_height"), share_above(0.1)):
        with pytest.raises(InputError, match="cannot name this observable"):
            flock.Save(observe=[thing])
    with pytest.raises(InputError, match="there is an observable 'lowest_height' already"):
        register(Observable("lowest_height", "1", another))


def test_a_registered_function_may_make_one_of_ours():
    @register
    def wide(angle: float) -> Observable:
        return flock.clusters(angle)

    assert solved([wide(1.0), make("wide", angle=0.5).named("narrow")]).array("clusters").shape == (
        2,
    )


def unannotated(level, more):
    return share_above(level)


def lying(level):
    return share_above(0.5)


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (lambda s: s.t, "a lambda has no name"),
        (3, "observe takes observables"),
        (unannotated, "cannot be called with one snapshot.*-> Observable"),
        (Observable("final_height", "1", another), "results keep an array or an axis"),
        (Observable("two words", "1", another), "use letters, digits and _"),
    ],
)
def test_what_cannot_be_asked_for_is_not_registered(thing, said):
    before = dict(OBSERVABLES)
    with pytest.raises(InputError, match=said):
        register(thing)
    assert before == OBSERVABLES


def test_a_function_that_makes_observables_and_does_not_say_so():
    known = register(lying)
    with pytest.raises(InputError, match=r"'lying' gave an observable.*-> Observable"):
        solved([known])
    with pytest.raises(InputError, match=r"lying takes no parameters, got level; .*-> Observable"):
        make("lying", level=0.1)
