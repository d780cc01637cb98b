"""Conformance of an observable."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics import Dynamics
from ..integrate import Save, solve
from ..measure import Measure
from ..models import SA
from ..observables.base import Observable, Snapshot
from ..observables.naming import check_names
from ..observables.plain import as_observable
from ..reduce import Dense, Tiled
from ..space import Sphere
from .samples import tokens
from .suite import Findings, Suite, close


def check_observable(
    thing: Observable | Any, model: Dynamics | None = None, start: Measure | None = None
) -> Findings:
    """The same number while a run goes on, afterwards from its states, compiled, mapped and by tiles."""
    observable = as_observable(thing)
    model = SA(1.7) if model is None else model
    mu = tokens(Sphere(3)) if start is None else start
    suite = Suite(observable)
    suite.of = observable.name
    suite.run("its name is free", lambda: check_names([observable]))
    suite.run("it says what it is", lambda: _told(observable))
    suite.run("compiled and mapped alike", lambda: _compiled(observable, model, mu))
    suite.run("Tiled", lambda: _tiled(observable, model, mu))
    suite.run("in a run, and from its states", lambda: _in_a_run(thing, model, mu))
    return suite.findings


def _value(thing: Observable, model: Dynamics, mu: Measure, reduction: Any = None) -> Any:
    return thing(Snapshot(jnp.zeros(()), mu, model, reduction or Dense()))


def _told(thing: Observable) -> None:
    if thing.is_ours:
        assert thing.says, "one sentence in `says` is missing"


def _compiled(thing: Observable, model: Dynamics, mu: Measure) -> None:
    plain = _value(thing, model, mu)
    close(jax.jit(lambda x: _value(thing, model, mu.at(x)))(mu.points), plain, 1e-10, "jit")
    both = jnp.stack([mu.points, mu.points[::-1]])
    mapped = jax.vmap(lambda x: _value(thing, model, mu.at(x)))(both)
    single = jnp.stack([jnp.asarray(_value(thing, model, mu.at(x))) for x in both])
    close(mapped, single, 1e-10, "vmap")


def _tiled(thing: Observable, model: Dynamics, mu: Measure) -> None:
    close(_value(thing, model, mu, Tiled(3)), _value(thing, model, mu), 1e-10, "tiles")


def _in_a_run(thing: Any, model: Dynamics, mu: Measure) -> None:
    save = Save(every=0.25, states=True, observe=[thing])
    run = solve(model, mu, t1=0.5, dt=0.125, save=save)
    name = as_observable(thing).name
    again = run.observe(thing)
    assert again.dims == run[name].dims, f"axes {again.dims}, in the run {run[name].dims}"
    close(np.asarray(again.values, dtype=float), run[name].values, 1e-10, "from the states")
