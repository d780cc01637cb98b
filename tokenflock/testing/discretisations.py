"""Conformance of a discretisation of densities."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ..density import Density
from ..dynamics import Dynamics
from ..errors import require
from ..integrate import solve
from ..reduce import Dense
from .suite import Findings, Suite, close

T1 = 0.2


def check_discretisation(start: Density, model: Dynamics) -> Findings:
    """A density on it, under a model: mass, positivity, transport of moments, the free energy, tokens."""
    suite = Suite(start.on)
    suite.run("it takes this model", lambda: start.on.check(model))
    suite.run("mass is one and stays one", lambda: _mass(start, model))
    suite.run("moments move as tokens there do", lambda: _moments(start, model))
    suite.run("the free energy changes by its power", lambda: _power(start, model))
    suite.run("a run is healthy", lambda: _run(start, model))
    suite.run("samples have its mean", lambda: _samples(start))
    return suite.findings


def _mass(start: Density, model: Dynamics) -> None:
    scheme = start.on.scheme().prepared(model)
    close(scheme.mass(start.state), 1.0, 1e-10, "the mass")
    moved = start.state + 1e-3 * scheme.transport(model, 0.0, start.state)
    close(scheme.mass(moved), 1.0, 1e-12, "the mass after a step")


def _mean(start: Density, state: jnp.ndarray) -> jnp.ndarray:
    here = start.at(state).as_measure()
    return here.weights @ here.points


def _moments(start: Density, model: Dynamics) -> None:
    """d/dt int x dmu = int v dmu without noise, v the field of points with the same integrals."""
    require(model.noise is None, "with noise the mean shrinks, too; try the model without it")
    scheme = start.on.scheme().prepared(model)
    here = start.as_measure()
    wanted = here.weights @ model.field(0.0, here.points, here, Dense())
    step, rate = 1e-4, scheme.transport(model, 0.0, start.state)
    found = (_mean(start, start.state + step * rate) - _mean(start, start.state - step * rate)) / (
        2 * step
    )
    size = float(jnp.max(jnp.linalg.norm(model.field(0.0, here.points, here, Dense()), axis=-1)))
    close((found - wanted) / size + 1.0, np.ones_like(found), 1e-6, "the velocity of the mean")


def _power(start: Density, model: Dynamics) -> None:
    """dA/dt along the transport and the noise, against the power that runs integrate."""
    require(model.noise is None, "the noise of a density is stepped implicitly; try it without")
    scheme = start.on.scheme().prepared(model)
    rate, step = scheme.transport(model, 0.0, start.state), 1e-4
    up, down = (scheme.free_energy(model, 0.0, start.state + s * rate) for s in (step, -step))
    close((up - down) / (2 * step), scheme.power(model, 0.0, start.state), 1e-5, "dA/dt")


def _run(start: Density, model: Dynamics) -> None:
    run = solve(model, start, T1, rtol=1e-7, atol=1e-9)
    assert run.outcome == "finished", f"{run.outcome}: {run.advice}"
    assert run.health["mass_drift"] < 1e-10, f"the mass drifts by {run.health['mass_drift']:.2g}"


def _samples(start: Density) -> None:
    """The mean of many tokens, within five standard errors of theirs (false alarm 1e-6 per coordinate)."""
    drawn = np.asarray(start.sample(4000, seed=0).points)
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    off = np.abs(drawn.mean(axis=0) - np.asarray(_mean(start, start.state)))
    assert np.all(off <= 5 * error + 1e-12), f"the mean of samples is off by {off / error} errors"
