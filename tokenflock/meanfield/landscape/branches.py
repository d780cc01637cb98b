"""Branches of critical points in beta or in the perceptron's scale, with their folds and bifurcations.

The atoms are continued as vectors of R^d: F_i/scale_i + (|x_i|^2 - 1) x_i = 0, whose solutions are the
critical points on the sphere, with one more condition per rotation that leaves the model as it is. Along the
branch the second variation is certified; `events` names what happens where its eigenvalues vanish.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from ...errors import require
from ...space import normalise
from ..continuation import Curve, Point, Problem, follow, null_vector
from .certifying import Spectrum, turning_motions
from .events import bare, events_of
from .points import CriticalPoint
from .structure import Landscape

Parameter = Literal["beta", "scale"]


def continue_branch(
    point: CriticalPoint,
    parameter: Parameter,
    to: float,
    step: float = 0.02,
    *,
    within: tuple[float, float] | None = None,
    largest: float = 0.1,
    points: int = 400,
) -> xr.Dataset:
    """The branch through `point`, with the masses held, until the parameter leaves `within`.

    `parameter="beta"` changes beta, "scale" multiplies every omega (the point itself has scale 1). `within`
    reaches from the start to `to` unless given; a branch that turns at a fold may come back to the start.
    `step` is the first step in arclength (atoms in radians, parameter in its own units), `largest` the
    longest, `points` how many are made at most.

    The dataset has, along `step`: the parameter, `points`, `angle` (circle), `kappa` (the smallest eigenvalue
    across rotations), `negative` (how many are), `energy`, `residual`; `masses`; and per `event` its kind
    ("fold", "bifurcation", "touch", "kink": see `events`), parameter, atoms, and multiplicity: how many
    eigenvalues vanish. `attrs["ended"]` says why the branch ends: "left the range", "enough points", or
    "lost". Cost: a few dense solves of size k d per step.
    """
    start = _value(point.landscape, parameter)
    require(to != start, f"the point has {parameter}={start:g} already; give another value of `to`")
    lowest = min(start, to) if within is None else within[0]
    require(
        parameter != "beta" or lowest > 0,
        f"a branch in beta stays above 0, where attention has a kernel; {lowest:g} is asked for",
    )
    curve = follow(
        EQUATIONS[parameter],
        point.points.ravel(),
        start,
        args=_arguments(point, point.points),
        direction=float(np.sign(to - start)),
        within=(min(start, to), max(start, to)) if within is None else within,
        step=min(step, largest),
        largest=largest,
        points=points,
    )
    return _as_dataset(point, parameter, curve)


def switch_branch(
    point: CriticalPoint,
    branch: xr.Dataset,
    event: int = 0,
    side: float = 1.0,
    step: float = 0.02,
    *,
    within: tuple[float, float] | None = None,
    largest: float = 0.1,
    points: int = 400,
) -> xr.Dataset:
    """The other branch through a simple bifurcation of `branch`, from there to one side (+1 or -1).

    `point` is the one `branch` was continued from (its model and masses). The first point is the bifurcation
    itself, the next a `step` away: where the branch turns soon, `step` must be shorter than the way to its
    fold. `within` are the values of the parameter to stay in: those of the branch unless given.
    """
    require(
        0 <= event < branch.sizes["event"],
        f"this branch has {branch.sizes['event']} events, there is no number {event}",
    )
    kind, count = str(branch.event_kind[event].item()), int(branch.event_multiplicity[event])
    require(
        kind == "bifurcation" and count == 1,
        f"event {event} is a {kind} of multiplicity {count}; only simple bifurcations are switched",
    )
    parameter = branch.attrs["parameter"]
    value = float(branch.event_parameter[event])
    atoms = branch.event_points[event].values
    values = branch[parameter].values
    span = (float(values.min()), float(values.max())) if within is None else within
    here = bare(atoms.ravel(), value, branch.event_tangent[event].values)
    problem = Problem(EQUATIONS[parameter], _arguments(point, atoms), 1.0, 1e-12)
    curve = follow(
        problem.equation,
        atoms.ravel(),
        value,
        args=problem.args,
        tangent=side * null_vector(here, problem),
        within=span,
        step=min(step, largest),
        largest=largest,
        points=points,
    )
    return _as_dataset(point, parameter, _from_bifurcation(here, curve))


def _from_bifurcation(here: Point, curve: Curve) -> Curve:
    """The curve with the bifurcation it leaves from as its first point."""
    problem = curve.problem
    chord = problem.joined(curve.points[0]) - problem.joined(here)
    field = problem.equation(jnp.asarray(here.state), jnp.asarray(here.parameter), problem.args)
    start = dataclasses.replace(
        here, tangent=chord / np.linalg.norm(chord), residual=float(jnp.max(jnp.abs(field)))
    )
    return dataclasses.replace(curve, points=(start, *curve.points))


def branch_point(point: CriticalPoint, branch: xr.Dataset, index: int) -> CriticalPoint:
    """The critical point at one step of a branch, as a point of the model with that parameter."""
    from .finding import critical_near
    from .structure import with_parameter

    parameter = branch.attrs["parameter"]
    model = with_parameter(point.model, parameter, float(branch[parameter][index]))
    return critical_near(model, branch.points[index].values, point.masses, point.direction)


def _value(landscape: Landscape, parameter: str) -> float:
    require(parameter in ("beta", "scale"), f"parameter is 'beta' or 'scale', got {parameter!r}")
    require(
        parameter == "beta" or bool(landscape.external),
        "there is no perceptron whose scale could change; use parameter='beta' or add one",
    )
    return float(getattr(landscape, parameter))


def _equation_in(parameter: Parameter) -> Any:
    def equation(flat: Array, value: Array, args: Any) -> Float[Array, " all"]:
        landscape, masses, modes, reference = args
        x = flat.reshape(masses.size, -1)
        unit = normalise(x)
        own = landscape.with_parameter(parameter, value)
        force = own.relative_field(unit, masses)
        radial = (jnp.sum(x**2, axis=-1, keepdims=True) - 1.0) * unit
        return (force + radial).ravel() + modes.T @ (modes @ (flat - reference))

    return equation


# One function per parameter, so that programs are compiled once.
EQUATIONS = {"beta": _equation_in("beta"), "scale": _equation_in("scale")}


def _arguments(point: CriticalPoint, atoms: np.ndarray) -> tuple[Any, ...]:
    """Landscape, masses, orthonormal rotations of the atoms, and the atoms: what fixes the equation."""
    landscape = point.landscape
    modes = turning_motions(landscape, atoms)
    return landscape, jnp.asarray(point.masses), jnp.asarray(modes), jnp.asarray(atoms.ravel())


def _spectrum(point: CriticalPoint, parameter: str, at: Point) -> Spectrum:
    landscape = point.landscape.with_parameter(parameter, at.parameter)
    return Spectrum.of(landscape, _atoms(point, at), point.masses)


def _atoms(point: CriticalPoint, at: Point) -> np.ndarray:
    atoms = at.state.reshape(point.points.shape)
    return atoms / np.linalg.norm(atoms, axis=-1, keepdims=True)


def _as_dataset(point: CriticalPoint, parameter: Parameter, curve: Curve) -> xr.Dataset:
    rows = [_spectrum(point, parameter, at) for at in curve.points]
    atoms = np.stack([_atoms(point, at) for at in curve.points])
    values = np.stack([spectrum.transverse for spectrum in rows])
    data = xr.Dataset(
        {
            "points": (("step", "atom", "coordinate"), atoms),
            "masses": (("atom",), point.masses),
            "eigenvalues": (("step", "mode"), values),
            "kappa": (("step",), values.min(axis=1, initial=np.inf)),
            "negative": (("step",), np.sum(values < 0, axis=1)),
            "energy": (("step",), [spectrum.energy for spectrum in rows]),
            "residual": (("step",), [at.residual for at in curve.points]),
            **_events(point, parameter, curve, values),
        },
        coords={parameter: (("step",), curve.parameters)},
        attrs={"parameter": parameter, "ended": curve.ended, "model": point.model.label},
    )
    if point.d == 2:
        angle = np.unwrap(np.arctan2(atoms[..., 1], atoms[..., 0]), axis=0)
        data["angle"] = (("step", "atom"), angle)
    return data


def _events(
    point: CriticalPoint, parameter: Parameter, curve: Curve, values: np.ndarray
) -> dict[str, Any]:
    # A switched branch begins at a bifurcation, which is not its own event: the sign there is rounding.
    switched = np.isinf(curve.points[0].determinant[1])
    own = Curve(curve.problem, curve.points[1:], curve.ended) if switched else curve
    found = events_of(
        own, lambda at: _spectrum(point, parameter, at), values[1:] if switched else values
    )
    places = [event.at for event in found]
    shape = (0, *point.points.shape)
    atoms = np.stack([_atoms(point, at) for at in places]) if found else np.zeros(shape)
    tangents = [at.tangent for at in places] or np.zeros((0, point.points.size + 1))
    return {
        "event_kind": (("event",), np.array([event.kind for event in found], dtype=str)),
        "event_multiplicity": (("event",), np.array([e.multiplicity for e in found], dtype=int)),
        "event_parameter": (("event",), np.array([at.parameter for at in places])),
        "event_points": (("event", "atom", "coordinate"), atoms),
        "event_tangent": (("event", "joined"), np.asarray(tangents)),
    }
