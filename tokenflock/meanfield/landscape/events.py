"""Where something happens on a branch of critical points: eigenvalues vanish, or the branch turns.

With n eigenvalues that change sign at a point and D = det [DF; tangent], the tangent's part along the
parameter is det DF/D (Cramer): the branch turns where exactly one of det DF and D changes sign.

    n = 1, the branch turns    fold: D keeps its sign, the branch is a smooth curve that turns back
    n = 1, it goes on          bifurcation: D changes sign, another branch crosses (Crandall and Rabinowitz)
    n = 0, it turns            bifurcation: D changes sign again, as where a pitchfork is met from its side
    n > 1                      bifurcation, of a kernel of several dimensions
    n = 0, it goes on          touch: eigenvalues reach zero and go back, or cross it in opposite directions.
                               D keeps its sign, and other branches may cross here or not
    none vanishes              kink: an activation with a kink made eigenvalues jump, or the branch turn
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Literal, cast

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import brentq, minimize_scalar

from ...errors import InputError
from ..continuation import Curve, Number, Point, follow
from .certifying import Spectrum

Kind = Literal["fold", "bifurcation", "touch", "kink"]
SpectrumAt = Callable[[Point], Spectrum]
# An eigenvalue is zero at a located point if it is smaller than this part of the largest one.
VANISHING = 1e-4
# What happens within this part of a step happens in one place.
SAME_PLACE = 0.05
# A step on which more than one sign changes, or the branch turns, is followed again in this many.
FINE = 32


@dataclasses.dataclass(frozen=True)
class Event:
    """What happens, how many eigenvalues vanish (kink: change sign) there, and the point."""

    kind: Kind
    multiplicity: int
    at: Point


@dataclasses.dataclass(frozen=True)
class Zero:
    """Where an eigenvalue (`mode`) or the tangent's part along the parameter (None) changes its sign."""

    mode: int | None
    at: Point


def events_of(curve: Curve, spectrum_at: SpectrumAt, values: np.ndarray) -> list[Event]:
    """The events between the points of a curve, in order; `values` are its eigenvalues (point, mode)."""
    found: list[Event] = []
    for index, arc in enumerate(_arcs(curve)):
        crossed = _crossed(values, index)
        if _turns(arc) or len(crossed) > 1 or (not len(crossed) and _aiming(values, index).size):
            found += _seen_closely(_finely(arc), spectrum_at)
        elif len(crossed):
            found += _named(arc, spectrum_at, _zeros_on(arc, spectrum_at, crossed))
    return found


def _seen_closely(fine: Curve, spectrum_at: SpectrumAt) -> list[Event]:
    """The events of an arc in small steps: changes of signs and turns; without any, a touch."""
    values = np.stack([spectrum_at(at).transverse for at in fine.points])
    arcs = _arcs(fine)
    zeros = [_zeros_on(arc, spectrum_at, _crossed(values, i)) for i, arc in enumerate(arcs)]
    if any(zeros):
        return _named(fine, spectrum_at, [zero for some in zeros for zero in some])
    lowest = [
        _smallest(arc, spectrum_at, m) for i, arc in enumerate(arcs) for m in _aiming(values, i)
    ]
    if not lowest:
        return []
    nearest = min(lowest, key=lambda at: np.abs(spectrum_at(at).transverse).min())
    count = _vanishing(spectrum_at(nearest))
    return [Event("touch", count, nearest)] if count else []


def _arcs(curve: Curve) -> list[Curve]:
    pairs = zip(curve.points[:-1], curve.points[1:], strict=True)
    return [Curve(curve.problem, pair, curve.ended) for pair in pairs]


def _crossed(values: np.ndarray, index: int) -> np.ndarray:
    """The modes that change sign on an arc; a zero at a point counts as positive, so once."""
    return np.flatnonzero((values[index] >= 0) != (values[index + 1] >= 0))


def _turns(arc: Curve) -> bool:
    return (arc.points[0].tangent[-1] >= 0) != (arc.points[1].tangent[-1] >= 0)


def _aiming(values: np.ndarray, index: int) -> np.ndarray:
    """Modes whose size falls toward an arc from both sides, so fast that it may vanish within it."""
    size = np.abs(values)
    if not 0 < index < len(values) - 2:
        return np.zeros(0, dtype=int)
    before, after = size[index - 1] - size[index], size[index + 2] - size[index + 1]
    reach = 2 * (before + after) > size[index] + size[index + 1]
    return np.flatnonzero((before > 0) & (after > 0) & reach)


def _zeros_on(arc: Curve, spectrum_at: SpectrumAt, crossed: np.ndarray) -> list[Zero]:
    found = [Zero(int(mode), _located(arc, _mode(spectrum_at, mode))) for mode in crossed]
    if _turns(arc):
        found.append(Zero(None, _located(arc, lambda at: at.tangent[-1])))
    return [Zero(zero.mode, _placed(arc, zero.at)) for zero in found]


def _named(curve: Curve, spectrum_at: SpectrumAt, zeros: list[Zero]) -> list[Event]:
    """One event per place; what changes sign twice in one place does not change it."""
    near = SAME_PLACE * _distance(curve, *curve.points[:2])
    groups: list[list[Zero]] = []
    for zero in sorted(zeros, key=lambda zero: _distance(curve, curve.points[0], zero.at)):
        if groups and _distance(curve, groups[-1][0].at, zero.at) <= near:
            groups[-1].append(zero)
        else:
            groups.append([zero])
    found = [_event(spectrum_at(group[0].at), group) for group in groups]
    return [event for event in found if event is not None]


def _event(spectrum: Spectrum, group: list[Zero]) -> Event | None:
    times = collections.Counter(zero.mode for zero in group)
    turns = times.pop(None, 0) % 2 == 1
    signs = sum(count % 2 for count in times.values())
    vanishing, at = _vanishing(spectrum), group[0].at
    if not vanishing:
        return Event("kink", signs, at) if signs or turns else None
    if not signs and not turns:
        return Event("touch", vanishing, at)
    return Event("fold" if turns and signs == 1 else "bifurcation", max(vanishing, signs), at)


def _placed(arc: Curve, at: Point) -> Point:
    return dataclasses.replace(at, tangent=_tangent_between(arc, at))


def _distance(curve: Curve, one: Point, other: Point) -> float:
    return float(np.linalg.norm(curve.problem.joined(one) - curve.problem.joined(other)))


def _mode(spectrum_at: SpectrumAt, mode: int) -> Number:
    return lambda at: float(spectrum_at(at).transverse[mode])


def _vanishing(spectrum: Spectrum) -> int:
    return int(np.sum(np.abs(spectrum.transverse) <= VANISHING * spectrum.scale))


def _smallest(arc: Curve, spectrum_at: SpectrumAt, mode: int) -> Point:
    """Where an eigenvalue is smallest in size on a short arc, interpolated: Newton is singular there."""
    at, length = _cubic(arc)
    number = _mode(spectrum_at, mode)
    least = minimize_scalar(
        lambda place: abs(number(at(place))),
        bounds=(0.0, length),
        method="bounded",
        options={"xatol": 1e-9 * length},
    )
    return at(float(least.x))  # type: ignore[attr-defined]


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
    """The same arc in small steps from both ends, until they meet or Newton fails near a singularity."""
    start, end = arc.points
    ahead = _small_steps(arc, start, end)
    back = [
        dataclasses.replace(at, tangent=-at.tangent)
        for at in _small_steps(arc, dataclasses.replace(end, tangent=-end.tangent), start)
    ]
    reached = max((_distance(arc, start, at) for at in ahead), default=0.0)
    small = _distance(arc, start, end) / FINE
    rest = [at for at in back if _distance(arc, start, at) > reached + 0.5 * small]
    return Curve(arc.problem, (start, *ahead, *reversed(rest), end), arc.ended)


def _small_steps(arc: Curve, start: Point, end: Point) -> list[Point]:
    """Points between two, in steps of 1/32 of their distance."""
    chord = arc.problem.joined(end) - arc.problem.joined(start)
    small = float(np.linalg.norm(chord)) / FINE
    try:
        fine = follow(
            arc.problem.equation,
            start.state,
            start.parameter,
            args=arc.problem.args,
            tangent=start.tangent,
            step=small,
            largest=small,
            smallest=small / 4,
            points=FINE,
            unit=arc.problem.unit,
        )
    except InputError:
        return []
    left = [float(chord @ (arc.problem.joined(end) - arc.problem.joined(at))) for at in fine.points]
    far = 0.5 * small * float(np.linalg.norm(chord))
    return [at for at, rest in zip(fine.points, left, strict=True) if rest > far]


def _interpolated(arc: Curve, number: Number) -> Point:
    """The zero of a number on the cubic through two points of a fine arc."""
    signs = np.array([number(point) >= 0 for point in arc.points])
    index = int(np.flatnonzero(signs[1:] != signs[:-1])[0])
    at, length = _cubic(_arcs(arc)[index])
    return at(cast(float, brentq(lambda place: number(at(place)), 0.0, length)))


def _cubic(arc: Curve) -> tuple[Callable[[float], Point], float]:
    """The cubic through two points with their tangents, of error O(length^4), and its length."""
    ends = [arc.problem.joined(point) for point in arc.points]
    length = _distance(arc, *arc.points)
    cubic = CubicHermiteSpline([0.0, length], ends, [point.tangent for point in arc.points])

    def at(place: float) -> Point:
        joined, tangent = cubic(place), cubic(place, 1)
        value = float(joined[-1]) * arc.problem.unit
        return bare(joined[:-1], value, tangent / np.linalg.norm(tangent))

    return at, length


def bare(state: np.ndarray, parameter: float, tangent: np.ndarray) -> Point:
    """A point of the curve that Newton did not make: its determinant and residual are not known."""
    return Point(state, parameter, tangent, (0.0, -np.inf), float("nan"), 0)


def _tangent_between(arc: Curve, at: Point) -> np.ndarray:
    """The arc's direction at a point between its ends; where branches cross, Newton's own is undetermined."""
    start, end = arc.points
    ends = [_distance(arc, at, p) for p in (start, end)]
    part = ends[0] / (ends[0] + ends[1])
    tangent = (1 - part) * start.tangent + part * end.tangent
    return tangent / np.linalg.norm(tangent)
