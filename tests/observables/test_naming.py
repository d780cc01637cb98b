"""Names of observables: what results call their own is refused, and is all that results call their own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import random_depth
from tokenflock.errors import InputError
from tokenflock.integrate.core import integrate
from tokenflock.lab.catalogue import example_text
from tokenflock.lab.files import parse
from tokenflock.lab.job import Job
from tokenflock.observables import OBSERVABLES, Observable, gram_histogram
from tokenflock.observables.naming import is_own
from tokenflock.states import DensityState
from tokenflock.states.densities import WATCHED
from tokenflock.sweeps.cells import Cells
from tokenflock.sweeps.plan import parse_sweep
from tokenflock.sweeps.probe import layout_of
from tokenflock.sweeps.program import run_cell

SWEEP_TEXT = """
[model]
name = "SA"
beta = 1.0
[tokens]
law = "uniform"
d = 2
n = 4
seed = 0
[solve]
t1 = 1.0
rtol = 1e-6
atol = 1e-8
[save]
every = 0.5
[sweep.axes]
beta = [1.0, 2.0]
"""
SMALL = ["n=4", "t1=1.0", "every=0.5"]
RUNS = {
    "batch": ("circle", [*SMALL, "beta=[1.0, 2.0]", "samples=2"]),
    "stop": ("circle", [*SMALL, "stop.clusters={count=1, angle=0.1}"]),
    "radii": ("normalisation", SMALL),
    "merge": ("metastable", ["per_cluster=2", "count=5"]),
}
DENSITIES = {
    "fourier": ("density", ["density.modes=8", "density.law.modes=2", "save.observe=['energy']"]),
    "layered": ("layers", ["density.modes=4", "positions=3"]),
}
TINY_SWEEP = ["n=4", "every=0.5", "save.states=true", "sweep.axes.seed={seeds=2, per='cell'}"]
TINY_SWEEP += ["sweep.axes.beta=[1.0, 2.0]", "sweep.axes.t1=[1.0, 2.0]"]
TINY_SWEEP += ["stop.clusters={count=1, angle=0.1}"]
COLLIDING = [
    *("outcome", "finite", "outcome_code", "steps", "accepted_steps", "rejected_steps"),
    *("time", "token", "beta", "sample", "coordinate", "states", "radii", "owners", "save"),
    *(
        "points",
        "masses",
        "state",
        "work",
        "final_points",
        "final_energy",
        "initial_points",
        "sample_0",
        "tokens_seed",
        "solve_seed",
    ),
]


def stored(name, settings):
    """The names in the result of a run, without computing it."""
    job = Job(parse(example_text(name), settings))
    arguments = job._arguments(job.start(), job.parts[0])
    shapes = eqx.filter_eval_shape(integrate, *arguments)
    result = job.label(jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), shapes))
    observed = {thing.name for thing in job.plan.observe}
    axes = {axis for thing in job.plan.observe for axis in thing.axes}
    return {*result.arrays, *result.coords} - observed - axes, job


def without_observable(names, job):
    """What an observable could be named so that its last value would be stored in the place of another."""
    observed = {thing.name for thing in job.plan.observe}
    ends = {name.removeprefix("final_") for name in names if name.startswith("final_")}
    return {name for name in ends - observed if not is_own(name)}


class TestTheListIsWhole:
    @pytest.mark.parametrize("case", RUNS)
    def test_runs(self, case):
        names, job = stored(*RUNS[case])
        assert {"steps", "time", "final_points"} <= names
        assert {name for name in names if not is_own(name)} == set()
        assert without_observable(names, job) == set()

    @pytest.mark.parametrize("case", DENSITIES)
    def test_densities(self, case):
        names, job = stored(*DENSITIES[case])
        kept = {*WATCHED, *job.x0.on.axes}
        assert kept <= names
        assert {name for name in names - kept if not is_own(name)} == set()
        assert without_observable(names, job) - kept == set()

    def test_sweeps(self):
        sweep = parse_sweep(SWEEP_TEXT, TINY_SWEEP)
        cells = Cells(sweep)
        layout = layout_of(sweep, cells)
        cell = cells.cell((0,) * len(sweep.axes))
        plan, times = cell.frame.plan, jax.numpy.asarray(cell.frame.times)
        inside = eqx.filter_eval_shape(run_cell, plan, cell.varying, times)
        names = {*(v.name for v in layout.variables), *layout.coordinates, *inside, "save"}
        observed = {thing.name for thing in plan.observe}
        assert {"outcome", "finite", "tokens_seed", "final_time"} <= names
        assert {name for name in names - observed if not is_own(name)} == set()

    def test_our_observables_have_names_of_their_own(self):
        assert not any(is_own(name) for name in OBSERVABLES)


class TestRefusals:
    @pytest.mark.parametrize("name", COLLIDING)
    def test_names_that_results_use(self, name):
        with pytest.raises(InputError, match=f"'{name}' cannot name an observable"):
            flock.Save(observe=[flock.clusters(angle=0.1).named(name)])

    @pytest.mark.parametrize("name", ["", "a b", "a/b", "../x", "3d"])
    def test_names_that_are_none(self, name):
        with pytest.raises(InputError, match="cannot name an observable; use letters"):
            flock.Save(observe=[flock.energy.named(name)])

    @pytest.mark.parametrize("name", ["accepted_steps", "outcome", "final_energy"])
    def test_in_files(self, name):
        asked = f"save.observe=[{{name='clusters', angle=0.1, as='{name}'}}]"
        text = "cannot name an observable"
        with pytest.raises(InputError, match=text):
            Job(parse(example_text("circle"), [*SMALL, asked]))
        with pytest.raises(InputError, match=text):
            Job(parse(example_text("density"), ["density.modes=32", asked]))
        with pytest.raises(InputError, match=text):
            layout_of(parse_sweep(SWEEP_TEXT, ["n=4", asked]))

    @pytest.mark.parametrize("name", [*WATCHED, "mode"])
    def test_what_a_density_keeps(self, name):
        asked = f"save.observe=[{{name='diameter', as='{name}'}}]"
        with pytest.raises(InputError, match=f"'{name}' cannot name"):
            Job(parse(example_text("density"), ["density.modes=32", asked]))

    def test_the_free_energy_may_be_asked_for(self):
        asked = "save.observe=['free_energy']"
        assert Job(parse(example_text("density"), ["density.modes=32", asked])).parts

    def test_the_name_of_another_observable(self):
        with pytest.raises(InputError, match="'scaled_energy' cannot name this observable"):
            flock.Save(observe=[flock.clusters(angle=0.1).named("scaled_energy")])
        with pytest.raises(InputError, match="'energy' cannot name this observable"):
            flock.Save(observe=[Observable("energy", "1", lambda snapshot: snapshot.t)])
        assert flock.Save(observe=[flock.energy.named("mine").named("energy")]).observe

    def test_an_axis_of_another(self):
        with pytest.raises(InputError, match="it is an axis of gram_histogram"):
            flock.Save(observe=[gram_histogram(), flock.energy.named("inner_product")])

    def test_one_axis_with_two_sets_of_values(self):
        many = gram_histogram(bins=4).named("many")
        with pytest.raises(InputError, match="share the axis 'inner_product' but not its values"):
            flock.Save(observe=[gram_histogram(bins=3), many])
        assert flock.Save(observe=[gram_histogram(bins=4), many]).observe

    def test_axes_that_every_result_has(self):
        mine = Observable("mine", "1", lambda snapshot: snapshot.measure.points, axes=("time", "b"))
        with pytest.raises(InputError, match="mine has the axis time"):
            flock.Save(observe=[mine])

    def test_the_axis_of_a_density(self):
        """States of a Fourier density have the axis mode; moments have one of their own."""
        asked = "save.observe=[{name='fourier_moments', modes=3}]"
        job = Job(parse(example_text("density"), ["density.modes=32", asked]))
        assert job.plan.observe[0].axes == ("moment",)
        clash = Observable("mine", "1", lambda s: s.t + jnp.ones(2), axes=("mode",))
        on = flock.meanfield.Fourier(modes=8)
        start = flock.Density.from_law(on, flock.laws.cosine(amplitude=0.1, mode=1))
        with pytest.raises(InputError, match="size 2 along 'mode', which has size"):
            flock.solve(flock.SA(1.0), start, 0.1, dt=0.1, save=flock.Save(observe=[clash]))

    @pytest.mark.parametrize("name", ["sample", "time", "points"])
    def test_chains(self, name):
        law = random_depth.HeadLaw.gaussian(3, beta=0.0)
        x0 = flock.uniform(flock.Sphere(3), n=3, seed=0)
        observe = [random_depth.mean_overlap.named(name)]
        with pytest.raises(InputError, match=f"'{name}' cannot name an observable"):
            random_depth.random_chains(law, x0, 2, 0.1, chains=2, observe=observe)


class TestAnotherName:
    def test_a_density_observes_the_same_under_another_name(self):
        """Not what the other name would mean to its scheme."""
        start = flock.Density.from_law(flock.meanfield.Fourier(modes=8), flock.laws.cosine(0.3))
        renamed = flock.entropy.named("information")
        found = [
            float(
                thing(
                    DensityState(start).stored_snapshot(flock.SA(1.0), jnp.zeros(()), start.state)
                )
            )
            for thing in (flock.entropy, renamed)
        ]
        assert found[0] == found[1] > 0
