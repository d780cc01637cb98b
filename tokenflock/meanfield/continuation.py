"""Pseudo-arclength continuation: curves of solutions of F(x, parameter) = 0, through their folds.

    curve = follow(equation, x, parameter, within=(0.1, 2.0))
    curve.folds(), curve.branch_points(), curve.at(1.5)

A curve is followed by its length, not by its parameter (Keller 1977): from a point y = (x, parameter)
with unit tangent t the next one solves F(y) = 0 and <t, y - y0> = step by Newton (optimistix). Folds are
where the tangent has no part along the parameter; simple branch points where det [DF; t] changes sign;
`crossings` finds the zero of any other number along the curve. All are located to rounding by Brent's
method on the arc between two points.

`equation(x, parameter, args)` is a JAX function of n numbers and one, with n values. Programs are compiled
once per function: pass the same function with other `args` instead of a new closure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float
from scipy.optimize import brentq

from ..errors import InputError, require
from ..runtime import ArrayLike

Equation = Callable[[Array, Array, Any], Array]
Number = Callable[["Point"], float]
Ending = Literal["left the range", "stopped", "enough points", "lost"]
# Two neighbouring tangents may differ by this angle's cosine: about 25 degrees.
LEAST_COSINE = 0.9
NEWTON_STEPS = 16
# Relative singular values below this count as zero: at a branch point the matrix of Newton's step is
# singular, and rounding of F must not become a step along the other branch.
SINGULAR = 1e-7
# Newton iterations of a step below which the next one may be longer.
EASY = 4


@dataclasses.dataclass(frozen=True)
class Point:
    """One solution: F(state, parameter) = 0 with residual max|F|, and the curve's direction there.

    `tangent` has n + 1 entries, the last along the parameter (in its `unit`); `determinant` is the sign
    and the logarithm of |det [DF; tangent]|.
    """

    state: np.ndarray
    parameter: float
    tangent: np.ndarray
    determinant: tuple[float, float]
    residual: float
    iterations: int


@dataclasses.dataclass(frozen=True)
class Curve:
    """A followed branch: its points in order, and why it ends."""

    problem: Problem
    points: tuple[Point, ...]
    ended: Ending

    @property
    def states(self) -> np.ndarray:
        """(point, n)."""
        return np.stack([point.state for point in self.points])

    @property
    def parameters(self) -> np.ndarray:
        """(point,)."""
        return np.array([point.parameter for point in self.points])

    def folds(self) -> list[Point]:
        """Where the curve turns back in its parameter."""
        return self.crossings(lambda point: point.tangent[-1])

    def branch_points(self) -> list[Point]:
        """Simple branch points: det [DF; tangent] changes its sign."""
        scale = self.points[0].determinant[1]
        return self.crossings(
            lambda point: point.determinant[0] * float(np.exp(point.determinant[1] - scale))
        )

    def at(self, parameter: float) -> list[Point]:
        """All points of the curve with this parameter, in order."""
        return self.crossings(lambda point: point.parameter - parameter)

    def crossings(self, number: Number) -> list[Point]:
        """Where a number changes its sign along the curve, to rounding; a zero at a point counts."""
        found = []
        last = float("nan")
        for index, point in enumerate(self.points):
            value = number(point)
            if value == 0:
                found.append(point)
            elif last * value < 0:
                found.append(self._located(index - 1, number))
            last = value
        return found

    def _located(self, index: int, number: Number) -> Point:
        start, end = self.points[index], self.points[index + 1]
        span = float(start.tangent @ (self.problem.joined(end) - self.problem.joined(start)))

        def value(length: float) -> float:
            if 0 < length < span:
                return number(self.problem.along(start, length))
            return number(start if length <= 0 else end)

        length = cast(float, brentq(value, 0.0, span, xtol=1e-14 * (1 + span)))
        return self.problem.along(start, length)


@dataclasses.dataclass(frozen=True)
class Problem:
    """F with its args, the size of the parameter that counts as one, and Newton's tolerance."""

    equation: Equation
    args: Any
    unit: float
    tolerance: float

    def joined(self, point: Point) -> np.ndarray:
        """(state, parameter/unit)."""
        return np.append(point.state, point.parameter / self.unit)

    def along(self, start: Point, length: float) -> Point:
        """The solution at a length along the tangent of `start`, or InputError where Newton fails."""
        point = self.solve(self.joined(start) + length * start.tangent, start.tangent)
        if point is None:
            raise InputError(
                f"Newton found no solution near parameter {start.parameter:g} (step {length:g}); "
                "follow the curve with a smaller largest step"
            )
        return point

    def solve(self, guess: np.ndarray, normal: np.ndarray) -> Point | None:
        """The solution of F = 0 in the plane through `guess` across `normal`; None without one."""
        point = self._solve(guess, normal, careful=False)
        # Singular matrices, as at branch points, need the slower way.
        return self._solve(guess, normal, careful=True) if point is None else point

    def _solve(self, guess: np.ndarray, normal: np.ndarray, careful: bool) -> Point | None:
        found = _corrected(
            self.equation,
            self.args,
            jnp.asarray(guess, dtype=float),
            jnp.asarray(normal, dtype=float),
            jnp.asarray(self.unit, dtype=float),
            self.tolerance,
            careful,
        )
        joined, tangent, sign, size, residual, steps, converged = (np.asarray(v) for v in found)
        if not (converged and np.all(np.isfinite(joined)) and np.all(np.isfinite(tangent))):
            return None
        return Point(
            joined[:-1],
            float(joined[-1]) * self.unit,
            tangent,
            (float(sign), float(size)),
            float(residual),
            int(steps),
        )


def follow(
    equation: Equation,
    state: ArrayLike,
    parameter: float,
    *,
    args: Any = None,
    tangent: ArrayLike | None = None,
    direction: float = 1.0,
    within: tuple[float, float] = (-np.inf, np.inf),
    step: float = 0.02,
    smallest: float = 1e-7,
    largest: float = 0.2,
    points: int = 500,
    unit: float = 1.0,
    tolerance: float = 1e-12,
    keep: Callable[[Point], bool] | None = None,
) -> Curve:
    """The branch of F(x, parameter) = 0 through a start, until it leaves `within` or `keep` says no.

    Without `tangent` the start is first made a solution at this parameter by Newton, and followed to
    where the parameter grows (`direction=1`) or falls (-1). With a `tangent` (n + 1 numbers) the curve
    leaves the given point along it: this is how to leave a branch point, along its null vector. Steps
    grow and shrink between `smallest` and `largest`, as Newton and the bend of the curve allow.
    """
    require(
        within[0] <= parameter <= within[1],
        f"the start has parameter {parameter:g}, outside of within={within}",
    )
    require(
        0 < smallest <= step <= largest, "steps need 0 < smallest <= step <= largest, got "
        f"{smallest:g}, {step:g}, {largest:g}",
    )  # fmt: skip
    problem = Problem(equation, args, unit, tolerance)
    walk = [_first(problem, np.asarray(state, dtype=float), parameter, tangent, direction, step)]
    while len(walk) < points:
        taken = _next(problem, walk[-1], step, smallest)
        if taken is None:
            return Curve(problem, tuple(walk), "lost")
        point, step = taken
        if not within[0] <= point.parameter <= within[1]:
            edge = within[0] if point.parameter < within[0] else within[1]
            return Curve(problem, (*walk, *_landed(problem, walk[-1], edge)), "left the range")
        if keep is not None and not keep(point):
            return Curve(problem, tuple(walk), "stopped")
        walk.append(point)
        step = _adapted(step, point.iterations, largest)
    return Curve(problem, tuple(walk), "enough points")


def _first(
    problem: Problem,
    state: np.ndarray,
    parameter: float,
    tangent: ArrayLike | None,
    direction: float,
    step: float,
) -> Point:
    start = np.append(state, parameter / problem.unit)
    normal = np.zeros_like(start)
    if tangent is None:
        normal[-1] = np.sign(direction)
    else:
        normal = np.asarray(tangent, dtype=float) / np.linalg.norm(tangent)
        start = start + step * normal
    point = problem.solve(start, normal)
    if point is None:
        raise InputError(
            f"Newton found no solution from the given start at parameter {parameter:g}; start closer "
            "to one, or at a branch point with its tangent"
        )
    return point


def _next(
    problem: Problem, last: Point, step: float, smallest: float
) -> tuple[Point, float] | None:
    """The next point and the step that reached it; None where even the smallest one fails."""
    while step >= smallest:
        guess = problem.joined(last) + step * last.tangent
        point = problem.solve(guess, last.tangent)
        if (
            point is not None
            and point.tangent @ last.tangent >= LEAST_COSINE
            and np.linalg.norm(problem.joined(point) - guess) <= step
        ):
            return point, step
        step /= 2
    return None


def _landed(problem: Problem, last: Point, edge: float) -> tuple[Point, ...]:
    """The curve's point on the edge of the range, which the last step went beyond."""
    part = last.tangent[-1]
    if part == 0 or last.parameter == edge:
        return ()
    length = (edge - last.parameter) / problem.unit / part
    normal = np.zeros_like(last.tangent)
    normal[-1] = np.sign(part)
    guess = problem.joined(last) + length * last.tangent
    guess[-1] = edge / problem.unit
    point = problem.solve(guess, normal)
    return () if point is None or point.tangent @ last.tangent < LEAST_COSINE else (point,)


def _adapted(step: float, iterations: int, largest: float) -> float:
    if iterations <= EASY:
        return min(1.5 * step, largest)
    return step if iterations <= 2 * EASY else step / 2


@eqx.filter_jit
def _corrected(
    equation: Equation,
    args: Any,
    guess: Array,
    normal: Array,
    unit: Array,
    tolerance: float,
    careful: bool,
) -> tuple[Array, ...]:
    """Newton in the plane <normal, y - guess> = 0; then the tangent, determinant and residual there.

    `careful` takes shortest steps by singular values, for matrices that are singular.
    """

    def values(y: Float[Array, " joined"]) -> Float[Array, " n"]:
        return equation(y[:-1], y[-1] * unit, args)

    def system(y: Array, _: None) -> Array:
        return jnp.append(values(y), normal @ (y - guess))

    linear = lx.SVD(rcond=SINGULAR) if careful else lx.LU()
    newton = optx.Newton(rtol=tolerance, atol=tolerance, linear_solver=linear)
    solution = optx.root_find(system, newton, guess, max_steps=NEWTON_STEPS, throw=False)
    y = solution.value
    slope = jax.jacfwd(values)(y)
    across = jnp.concatenate([slope, normal[None]])
    upwards = jnp.zeros_like(y).at[-1].set(1.0)
    if careful:
        tangent = jnp.linalg.lstsq(across, upwards, rcond=SINGULAR)[0]
    else:
        tangent = jnp.linalg.solve(across, upwards)
    tangent /= jnp.linalg.norm(tangent)
    sign, size = jnp.linalg.slogdet(jnp.concatenate([slope, tangent[None]]))
    residual = jnp.max(jnp.abs(values(y)))
    # Next to a branch point steps stay as large as rounding over a small singular value: there the
    # residual alone says that this is a solution.
    converged = (solution.result == optx.RESULTS.successful) | (residual <= tolerance)
    return y, tangent, sign, size, residual, solution.stats["num_steps"], converged


def null_vector(point: Point, problem: Problem) -> np.ndarray:
    """The direction, n + 1 numbers, in which another branch leaves a branch point.

    Of the two-dimensional null space of DF, the part across the tangent (equal to the direction of the
    other branch where the branches cross at a right angle, as in a pitchfork; else close enough to land
    on it).
    """
    slope = np.asarray(_slope(problem.equation, problem.args, problem.joined(point), problem.unit))
    _, _, rows = np.linalg.svd(np.concatenate([slope, point.tangent[None]]))
    return rows[-1] / np.linalg.norm(rows[-1])


@eqx.filter_jit
def _slope(equation: Equation, args: Any, joined: ArrayLike, unit: float) -> Array:
    return jax.jacfwd(lambda y: equation(y[:-1], y[-1] * unit, args))(jnp.asarray(joined))
