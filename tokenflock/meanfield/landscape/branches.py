"""Branches of critical points in beta or in the perceptron's scale, with their folds and bifurcations.

The atoms are continued as vectors of R^d: F_i/scale_i + (|x_i|^2 - 1) x_i = 0, whose solutions are the
critical points on the sphere, with one more condition per rotation that leaves the model as it is. Along the
branch the second variation is certified; where an eigenvalue crosses zero there is a fold or another branch.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, cast

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import brentq, minimize_scalar

from ...errors import InputError, require
from ...space import normalise
from ..continuation import Curve, Number, Point, Problem, follow, null_vector
from .certifying import Spectrum, turning_motions
from .points import CriticalPoint
from .structure import Landscape

Parameter = Literal["beta", "scale"]
# An eigenvalue that changes sign with no smaller size than this part of the scale has jumped: a kink.
JUMP = 1e-4


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
    ("fold", "bifurcation", "kink"), parameter, atoms and multiplicity. `attrs["ended"]` says why the branch
    ends: "left the range", "enough points", or "lost". Cost: a few dense solves of size k d per step.
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
    """The other branch through a simple bifurcation of `branch`, left on one side (+1 or -1).

    `point` is the one `branch` was continued from (its model and masses). `within` are the values of the
    parameter to stay in: those of the branch unless given.
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
    here = _bare(atoms.ravel(), value, branch.event_tangent[event].values)
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
    return _as_dataset(point, parameter, curve)


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
    """Where eigenvalues cross or touch zero, or the branch turns: located between two points, and named."""
    found: list[tuple[str, int, Point]] = []
    arcs = [
        Curve(curve.problem, curve.points[i : i + 2], curve.ended)
        for i in range(len(curve.points) - 1)
    ]
    crossed = np.sign(values[1:]) * np.sign(values[:-1]) < 0
    for index, arc in enumerate(arcs):
        if crossed[index].any():
            modes = np.flatnonzero(crossed[index])
            found.append(_crossing(point, parameter, arc, modes))
        elif arc.points[0].tangent[-1] * arc.points[1].tangent[-1] < 0:
            # A fold changes one sign. A turn that changes none is where another branch is met.
            at = _located(arc, lambda at: at.tangent[-1])
            count = _vanishing(point, parameter, at)
            found.append(("bifurcation", max(count, 1), _placed(arc, at)))
        else:
            found += _touching(point, parameter, arc, values, index)
    shape = (0, *point.points.shape)
    atoms = np.stack([_atoms(point, at) for _, _, at in found]) if found else np.zeros(shape)
    tangents = [at.tangent for _, _, at in found] or np.zeros((0, point.points.size + 1))
    return {
        "event_kind": (("event",), np.array([kind for kind, _, _ in found], dtype=str)),
        "event_multiplicity": (("event",), np.array([n for _, n, _ in found], dtype=int)),
        "event_parameter": (("event",), np.array([at.parameter for _, _, at in found])),
        "event_points": (("event", "atom", "coordinate"), atoms),
        "event_tangent": (("event", "joined"), np.asarray(tangents)),
    }


def _crossing(
    point: CriticalPoint, parameter: Parameter, arc: Curve, modes: np.ndarray
) -> tuple[str, int, Point]:
    middle = int(modes[len(modes) // 2])
    at = _located(arc, lambda at: _mode(point, parameter, at, middle))
    return _kind(point, parameter, arc, at, middle), len(modes), _placed(arc, at)


def _touching(
    point: CriticalPoint, parameter: Parameter, arc: Curve, values: np.ndarray, index: int
) -> list[tuple[str, int, Point]]:
    """Zeros that no sign shows: an eigenvalue that turns back at zero, or two that cross it oppositely.

    Sorted eigenvalues that cross zero in opposite directions touch it. Candidates are those whose lines from
    the neighbouring steps reach zero on the arc; the smallest size on the arc decides.
    """
    for mode in range(values.shape[1]):
        if not _aims_at_zero(values[:, mode], index):
            continue
        at = _smallest(arc, lambda at, m=mode: abs(_mode(point, parameter, at, m)))
        if at is not None and (count := _vanishing(point, parameter, at)):
            return [("bifurcation", count, _placed(arc, at))]
    return []


def _aims_at_zero(values: np.ndarray, index: int) -> bool:
    """Whether |value| falls toward the arc from both sides, so fast that it may vanish within it."""
    size = np.abs(values)
    if not 0 < index < len(values) - 2:
        return False
    before, after = size[index - 1] - size[index], size[index + 2] - size[index + 1]
    return bool(before > 0 and after > 0 and 2 * (before + after) > size[index] + size[index + 1])


def _smallest(arc: Curve, number: Number) -> Point | None:
    """Where a number is smallest on the arc; None where Newton finds no point."""
    start, end = arc.points
    span = float(start.tangent @ (arc.problem.joined(end) - arc.problem.joined(start)))
    try:
        least = minimize_scalar(
            lambda length: number(arc.problem.along(start, length)),
            bounds=(0.0, span),
            method="bounded",
            options={"xatol": 1e-9 * span},
        )
        return arc.problem.along(start, float(least.x))  # type: ignore[attr-defined]
    except InputError:
        return None


def _vanishing(point: CriticalPoint, parameter: Parameter, at: Point) -> int:
    """How many eigenvalues are zero at a located point."""
    spectrum = _spectrum(point, parameter, at)
    return int(np.sum(np.abs(spectrum.transverse) <= JUMP * spectrum.scale))


def _placed(arc: Curve, at: Point) -> Point:
    return dataclasses.replace(at, tangent=_tangent_between(arc, at))


def _located(arc: Curve, number: Number) -> Point:
    """Where a number vanishes on the arc between two points.

    Newton's equations are singular where two branches cross, and the solution may not be found next to it.
    There the arc is followed in small steps and the state interpolated between the last two of them.
    """
    try:
        return arc.crossings(number)[0]
    except InputError:
        return _interpolated(_finely(arc), number)


def _finely(arc: Curve) -> Curve:
    start, end = arc.points
    small = float(np.linalg.norm(arc.problem.joined(end) - arc.problem.joined(start))) / 32
    fine = follow(
        arc.problem.equation,
        start.state,
        start.parameter,
        args=arc.problem.args,
        tangent=start.tangent,
        step=small,
        largest=small,
        smallest=small / 64,
        points=48,
        unit=arc.problem.unit,
    )
    return Curve(arc.problem, (start, *fine.points, end), arc.ended)


def _interpolated(arc: Curve, number: Number) -> Point:
    """The zero of a number on the cubic through two points and their tangents, of error O(step^4)."""
    signs = np.sign([number(point) for point in arc.points])
    index = int(np.flatnonzero(signs[1:] * signs[:-1] <= 0)[0])
    first, last = arc.points[index : index + 2]
    ends = [arc.problem.joined(point) for point in (first, last)]
    length = float(np.linalg.norm(ends[1] - ends[0]))
    cubic = CubicHermiteSpline([0.0, length], ends, [first.tangent, last.tangent])

    def at(place: float) -> Point:
        joined, tangent = cubic(place), cubic(place, 1)
        value = float(joined[-1]) * arc.problem.unit
        return _bare(joined[:-1], value, tangent / np.linalg.norm(tangent))

    return at(cast(float, brentq(lambda place: number(at(place)), 0.0, length)))


def _bare(state: np.ndarray, parameter: float, tangent: np.ndarray) -> Point:
    """A point of the curve that Newton did not make: its determinant and residual are not known."""
    return Point(state, parameter, tangent, (0.0, -np.inf), float("nan"), 0)


def _mode(point: CriticalPoint, parameter: str, at: Point, mode: int) -> float:
    return float(_spectrum(point, parameter, at).transverse[mode])


def _tangent_between(arc: Curve, at: Point) -> np.ndarray:
    """The arc's direction at a point between its ends; where branches cross, Newton's own is undetermined."""
    start, end = arc.points
    ends = [np.linalg.norm(arc.problem.joined(at) - arc.problem.joined(p)) for p in (start, end)]
    part = ends[0] / (ends[0] + ends[1])
    tangent = (1 - part) * start.tangent + part * end.tangent
    return tangent / np.linalg.norm(tangent)


def _kind(point: CriticalPoint, parameter: str, arc: Curve, at: Point, mode: int) -> str:
    spectrum = _spectrum(point, parameter, at)
    if abs(spectrum.transverse[mode]) > JUMP * spectrum.scale:
        return "kink"
    turns = arc.points[0].tangent[-1] * arc.points[1].tangent[-1] < 0
    return "fold" if turns else "bifurcation"
