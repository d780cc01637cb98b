"""Plain functions as observables: named, with axes found from their values, refused before the run."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
import tokenflock.random_depth as rd
from tokenflock.observables import settle as settling
from tokenflock.observables.plain import as_observable, as_observables
from tokenflock.states import as_state, settle_on

X0 = flock.uniform(flock.Sphere(3), 5, seed=4)
MODEL = flock.SA(2.0)
LOOSE = {"rtol": 1e-5, "atol": 1e-7}


def heights(snapshot):
    """Height of every token.

    More words.
    """
    return snapshot.measure.points[:, 0]


def mean_token(snapshot):
    return snapshot.measure.weights @ snapshot.measure.points


def above(snapshot, level):
    return snapshot.measure.points[:, 0] > level


@pytest.fixture(scope="module")
def run():
    gram = lambda s: s.measure.points @ s.measure.points.T  # noqa: E731
    observe = [heights, mean_token, functools.partial(above, level=0.1), gram, lambda s: 2 * s.t]
    save = flock.Save(every=0.5, observe=observe, states=True)
    return flock.solve(MODEL, X0, t1=1.0, **LOOSE, save=save)


def test_functions_are_observables_with_their_own_names_and_axes(run, tmp_path):
    x = np.asarray(run.states)
    expected = {
        "heights": (("time", "token"), x[..., 0]),
        "mean_token": (("time", "mean_token_dim_0"), x.mean(axis=1)),
        "above": (("time", "token"), x[..., 0] > 0.1),
        "observable_3": (("time", "token", "observable_3_dim_1"), x @ np.moveaxis(x, 1, 2)),
        "observable_4": (("time",), 2 * np.asarray(run.time)),
    }
    back = flock.open(run.save(tmp_path / "run.zarr"))
    for found in (run, back):
        for name, (dims, values) in expected.items():
            assert found[name].dims == dims
            np.testing.assert_allclose(found[name], values, atol=1e-14)
    assert run["above"].dtype == bool
    assert run["heights"].attrs["long_name"] == "Height of every token."


def test_a_finished_run_takes_functions_too(run):
    for thing in (heights, flock.observables.Observable("heights", "1", heights)):
        later = run.observe(thing)
        assert later.dims == ("time", "token")
        np.testing.assert_array_equal(later, run["heights"])
    assert run.observe(lambda s: s.t).name == "observable_0"
    with pytest.raises(flock.errors.InputError, match="clusters makes an observable"):
        run.observe(flock.clusters)
    with pytest.raises(flock.errors.InputError, match="observe takes observables"):
        run.observe("energy")


def test_a_token_axis_is_what_grows_with_the_tokens_and_not_what_has_their_size():
    """Five numbers of five tokens are no axis of tokens; nor is what fits five tokens only."""
    held = np.asarray(X0.points)
    cases = {
        "five": lambda s: jnp.arange(5.0) * s.t,
        "far": lambda s: jnp.sum((s.measure.points - held) ** 2, axis=1),
        "pairs": lambda s: s.measure.points @ s.measure.points.T,
    }
    found = {
        name: settle_on(as_state(X0), (as_observable(f),), MODEL)[0].axes
        for name, f in cases.items()
    }
    assert found == {
        "five": ("observable_0_dim_0",),
        "far": ("observable_0_dim_0",),
        "pairs": ("token", "observable_0_dim_1"),
    }


def vector(name="v", **options):
    return flock.observables.Observable(name, "1", mean_token, **options)


@pytest.mark.parametrize(
    ("observe", "said"),
    [
        ([flock.clusters], r"call it with its parameters, clusters\(angle, distance, link\)"),
        ([3], "observe takes observables such as flock.energy.*got 3"),
        (flock.energy, "observe takes a list"),
        ("energy", "observe takes a list"),
        ([int], "got <class 'int'>"),
        ([lambda s: None], "'observable_0' must give one array of numbers, and gave NoneType"),
        (
            [heights, lambda s: {"a": s.t}],
            "'observable_1' must give one array of numbers, and gave dict",
        ),
        ([lambda s: 1j * s.t], "complex values"),
        ([vector(axes=("a", "b"))], r"shape \(3,\), which axes=\('a', 'b'\) does not name"),
        ([vector(axes=("token",))], "size 3 along 'token', which has size 5 elsewhere"),
        ([vector(axes=("time",))], "has the axis time, which every result has already"),
        ([vector(axes=("a",), labels=(("a", (1.0, 2.0)),))], "2 labels for the 3 entries"),
        (
            [vector(axes=("a",)), flock.observables.Observable("h", "1", heights, axes=("a",))],
            "'h' has size 5 along 'a', which has size 3 elsewhere",
        ),
        (
            [
                vector("v", axes=("a",), labels=(("a", (1.0, 2.0, 3.0)),)),
                vector("w", axes=("a",), labels=(("a", (1.0, 2.0, 4.0)),)),
            ],
            "v and w share the axis 'a' but not its values",
        ),
        ([heights, heights], "different names"),
        (
            [vector("v"), flock.observables.Observable("v_dim_0", "1", lambda s: s.t)],
            "it is an axis of v",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_run(observe, said, monkeypatch):
    monkeypatch.setattr("tokenflock.integrate.core.integrate", None)
    with pytest.raises(flock.errors.InputError, match=said):
        flock.solve(MODEL, X0, t1=1.0, **LOOSE, save=flock.Save(observe=observe))


def test_an_error_in_a_function_is_its_own_and_says_when_it_came():
    def wrong(snapshot):
        return snapshot.tokens

    with pytest.raises(AttributeError, match="tokens") as raised:
        flock.solve(MODEL, X0, t1=1.0, **LOOSE, save=flock.Save(observe=[wrong]))
    assert any(
        "observable 'wrong', tried before the run" in note for note in raised.value.__notes__
    )


def test_shapes_are_traced_once(monkeypatch):
    calls = []

    def counted(snapshot):
        calls.append(snapshot)
        return snapshot.t

    things = as_observables([counted])
    for beta in (1.0, 2.0):
        settle_on(as_state(X0), things, flock.SA(beta))
    assert len(calls) == 1
    monkeypatch.setattr(settling, "MOST_KNOWN", 0)
    settle_on(as_state(X0), things, flock.SA(jnp.array([1.0, 2.0])))
    settle_on(as_state(flock.uniform(flock.Sphere(3), 6, seed=1)), things, MODEL)
    assert len(calls) == 2


def test_random_chains_take_functions():
    law = rd.HeadLaw.gaussian(3, 1.0)
    found = rd.random_chains(law, X0, 4, 0.1, chains=3, every=2, observe=[heights, lambda s: s.t])
    assert found["heights"].dims == ("sample", "time", "token")
    np.testing.assert_allclose(found["heights"][:, 0], np.broadcast_to(X0.points[:, 0], (3, 5)))
    np.testing.assert_allclose(found["observable_1"], np.broadcast_to([0.0, 0.2, 0.4], (3, 3)))
    with pytest.raises(flock.errors.InputError, match="complex values"):
        rd.random_chains(law, X0, 4, 0.1, chains=3, observe=[lambda s: 1j * s.t])


@pytest.mark.slow
def test_a_density_takes_functions_and_does_not_mistake_them_for_its_own():
    """A user's `entropy` is not the density's, which has that name: it is asked to take another."""

    def entropy(snapshot):
        return jnp.sum(snapshot.measure.weights * snapshot.measure.points[:, 0])

    def first_moment(snapshot):
        return entropy(snapshot)

    def moments(snapshot):
        return snapshot.measure.weights @ snapshot.measure.points

    start = flock.Density.from_law(flock.meanfield.Fourier(8), lambda x: 1 + 0.4 * x[:, 0])
    with pytest.raises(flock.errors.InputError, match="'entropy' cannot name this observable"):
        flock.Save(observe=[entropy])
    save = flock.Save(observe=[first_moment, moments], states=True)
    run = flock.solve(flock.SA(0.5), start, t1=0.01, **LOOSE, save=save)
    assert run["moments"].dims == ("time", "moments_dim_0")
    # int x (1 + 0.4 x) over the circle is 0.2.
    np.testing.assert_allclose(run.array("first_moment", time=0), 0.2, atol=1e-12)
    np.testing.assert_allclose(run.observe(first_moment), run["moments"][:, 0], atol=1e-12)
    with pytest.raises(flock.errors.InputError, match="complex"):
        flock.solve(
            flock.SA(0.5), start, t1=0.01, **LOOSE, save=flock.Save(observe=[lambda s: 1j * s.t])
        )


def test_a_function_of_plain_numbers_is_refused_with_the_way():
    for function in (
        lambda s: np.linalg.norm(np.asarray(s.measure.points)),
        lambda s: float(s.measure.points[0, 0]),
    ):
        with pytest.raises(flock.errors.InputError, match="write it with jax"):
            flock.solve(MODEL, X0, 1.0, save=flock.Save(every=1.0, observe=[function]), **LOOSE)
