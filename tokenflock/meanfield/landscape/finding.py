"""Find critical points: follow the flow, finish it implicitly, merge coincident atoms, Newton.

1. the engine's flow, ascent or descent, until the field is small or the time is up;
2. the end of the flow by linearly implicit Euler steps that grow as the field falls (near a degenerate state
   the flow itself takes times like 1/field): an unstable direction bounds the step, so a saddle is left;
3. atoms closer than `merge` become one, their masses add;
4. Newton (optimistix) in tangent coordinates; directions in which the field does not change (rotations) are
   left alone by the least-squares solution of the linear systems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from ...dynamics import Dynamics
from ...errors import require
from ...integrate import Save, solve
from ...integrate.stops import when
from ...measure import Measure
from ...observables.base import Snapshot
from ...observables.reading import velocity
from ...runtime import ArrayLike
from ...space import Sphere
from .points import DIRECTIONS, CriticalPoint, Direction, merged
from .structure import Landscape, moved, reversed_model, tangent_frames

# The flow is left when no atom is faster than this (times the forces at the atom).
SLOW = 1e-6
# Field at which the implicit end of the flow hands over to Newton, its most steps, and their bounds.
NEARLY_ZERO = 1e-11
IMPLICIT_STEPS = 400
NEWTON_STEPS = 20
# Singular values below this part of the largest are taken as zero: rotations, and what rounding hides.
SMALLEST_SINGULAR = 1e-12
# No atom may move farther than this in one implicit step, nor in all Newton steps together.
LONGEST_STEP = 0.3
# Padded sizes, so that states of similar numbers of atoms share one compiled program.
SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512)


def find_critical(
    model: Dynamics,
    start: Measure,
    direction: Direction = "descent",
    *,
    flow_time: float = 500.0,
    merge: float = 1e-6,
) -> CriticalPoint:
    """The critical point that ascent (+field) or descent (-field) of the model reaches from `start`.

    `model` is SA or USA (either convention) plus any gradient-structured perceptron or potential, written
    for ascent; `direction="descent"` follows its opposite. `flow_time` is in units of the attention (for
    form A the time is `flow_time` e^{-beta}); `merge` is the angle below which atoms are one. The result may
    not have converged (`point.converged`): a state whose slowest mode lies below rounding has no better one.
    Costs the flow plus some 50 dense solves of size n (d - 1): a second at n = 64 once compiled.
    """
    landscape = _checked(model, start, direction)
    require(merge >= 0, f"merge is an angle, got {merge:g}; 0 keeps all atoms apart")
    require(flow_time > 0, f"flow_time must be positive, got {flow_time:g}")
    strength = float(landscape.strength())
    flow = model if direction == "ascent" else reversed_model(model)
    run = solve(
        flow,
        start,
        flow_time / strength,
        rtol=1e-6,
        atol=1e-9,
        save=Save(at=[0.0, flow_time / strength], states=True),
        stop=when(_slow),
        throw=False,
    )
    final = np.asarray(run.final.points)
    require(bool(np.all(np.isfinite(final))), f"the flow broke off: {run.advice}")
    sign = 1.0 if direction == "ascent" else -1.0
    ended = np.asarray(_implicit_end(landscape, jnp.asarray(final), start.weights, sign))
    points, masses = merged(ended, np.asarray(start.weights), merge)
    point = _polished(model, landscape, points, masses, direction, run.reached)
    if point.converged or point.count == start.n:
        return point
    # Strong attention between atoms that are one now hid the weak forces on them: finish again without it.
    again = np.asarray(_implicit_end(landscape, *padded(points, masses), sign))[: len(masses)]
    points, masses = merged(again, masses, merge)
    return _polished(model, landscape, points, masses, direction, run.reached)


def critical_near(
    model: Dynamics, points: ArrayLike, masses: ArrayLike, direction: Direction = "descent"
) -> CriticalPoint:
    """The critical point next to given atoms (k, d) of masses (k,), whatever its stability: without a flow.

    Levenberg and Marquardt's method brings the field near zero, Newton's to rounding. It may fail
    (`point.converged`): then start closer, or from the flow with `find_critical`.
    """
    atoms, weights = np.asarray(points, dtype=float), np.asarray(masses, dtype=float)
    require(
        atoms.ndim == 2 and weights.shape == atoms.shape[:1],
        f"give atoms (k, d) and one mass each, got {atoms.shape} and {weights.shape}",
    )
    _check_direction(direction)
    require(
        bool(np.all(np.isfinite(weights) & (weights > 0))),
        "masses must be positive numbers; drop the atoms that have none",
    )
    lengths = np.linalg.norm(atoms, axis=-1, keepdims=True)
    require(
        bool(np.all(np.isfinite(lengths) & (lengths > 0))),
        "atoms are directions: one of those given is zero or not a number; give vectors of any other length",
    )
    landscape, weights = Landscape.of(model), weights / weights.sum()
    landscape.check_dimension(atoms.shape[1])
    atoms = atoms / lengths
    near = np.asarray(_damped(landscape, *padded(atoms, weights)))[: len(weights)]
    return _polished(model, landscape, near, weights, direction, 0.0)


def explore(
    model: Dynamics,
    starts: Iterable[Measure],
    direction: Direction = "descent",
    *,
    flow_time: float = 500.0,
    merge: float = 1e-6,
) -> list[CriticalPoint]:
    """The critical points reached from many starts; equal sizes share one compiled program."""
    return [
        find_critical(model, start, direction, flow_time=flow_time, merge=merge) for start in starts
    ]


def _checked(model: Dynamics, start: Measure, direction: str) -> Landscape:
    _check_direction(direction)
    require(
        isinstance(start.space, Sphere) and not start.batch_shape,
        "find_critical starts from one sample of tokens on a sphere; use explore for many",
    )
    landscape = Landscape.of(model)
    landscape.check_dimension(start.points.shape[-1])
    return landscape


def _check_direction(direction: str) -> None:
    require(direction in DIRECTIONS, f"direction is 'descent' or 'ascent', got {direction!r}")


def _slow(snapshot: Snapshot) -> Array:
    tokens, landscape = snapshot.measure, Landscape.unchecked(snapshot.model)
    scales = landscape.force_scales(tokens.points, tokens.weights)
    return jnp.max(jnp.abs(velocity(snapshot)) / scales[:, None]) - SLOW


@eqx.filter_jit
def _implicit_end(
    landscape: Landscape, x: Float[Array, "n d"], masses: Float[Array, " n"], sign: float
) -> Float[Array, "n d"]:
    """Steps (I/h - sign J) xi = sign F with h growing as F falls, until F is nearly zero."""
    n, width = x.shape[0], x.shape[1] - 1
    present = jnp.repeat(masses > 0, width)
    root = jnp.where(present, jnp.repeat(jnp.sqrt(masses), width), 1.0)
    # The slowest forces may be e^{-beta} of the attention's: steps must grow that much longer.
    longest_time = 1e14 * jnp.maximum(1.0, landscape.strength())

    def size_of(x: Array) -> Array:
        return _largest(landscape.relative_field(x, masses), masses)

    def linear(x: Array) -> tuple[Array, Array]:
        frames = tangent_frames(x)
        force, slope = force_and_slope(landscape, x, masses, frames)
        # In the metric of the masses the slope of a gradient is symmetric.
        slope = jnp.where(present[:, None], root[:, None] * slope / root, 0.0)
        return sign * jnp.where(present, force.ravel() * root, 0.0), -sign * slope

    def step(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        x, h, size, count = carry
        force, slope = linear(x)
        matrix = slope + jnp.eye(n * width) / h
        definite = jnp.all(jnp.isfinite(jnp.linalg.cholesky((matrix + matrix.T) / 2.0)))
        change = (jnp.linalg.solve(matrix, force) / root).reshape(n, width)
        longest = jnp.max(jnp.linalg.norm(change, axis=-1))
        there = moved(x, tangent_frames(x), change)
        new_size = size_of(there)
        good = definite & (longest < LONGEST_STEP) & (new_size < 2.0 * size)
        growth = jnp.clip(2.0 * size / new_size, 1.5, 10.0)
        return (
            jnp.where(good, there, x),
            jnp.clip(jnp.where(good, h * growth, h / 4.0), 1e-6, longest_time),
            jnp.where(good, new_size, size),
            count + 1,
        )

    def unfinished(carry: tuple[Array, Array, Array, Array]) -> Array:
        _, _, size, count = carry
        return (size > NEARLY_ZERO) & (count < IMPLICIT_STEPS)

    start = (x, jnp.asarray(1.0), size_of(x), jnp.asarray(0))
    return jax.lax.while_loop(unfinished, step, start)[0]


def _largest(vectors: Float[Array, "n d"], masses: Float[Array, " n"]) -> Float[Array, ""]:
    """The largest entry, of atoms that have mass."""
    return jnp.max(jnp.where((masses > 0)[:, None], jnp.abs(vectors), 0.0))


def force_and_slope(
    landscape: Landscape, x: Array, masses: Array, frames: Array
) -> tuple[Float[Array, "n t"], Float[Array, "all all"]]:
    """The field in tangent coordinates over the attention's strength, and its derivative at x."""

    def force(flat: Array) -> Array:
        there = moved(x, frames, flat.reshape(frames.shape[0], -1))
        field = landscape.field(there, masses) / landscape.strength()
        return jnp.einsum("ndt,nd->nt", frames, field)

    origin = jnp.zeros(frames.shape[0] * frames.shape[2])
    slope = jax.jacfwd(lambda flat: force(flat).ravel())(origin)
    return force(origin), slope


def _polished(
    model: Dynamics,
    landscape: Landscape,
    points: np.ndarray,
    masses: np.ndarray,
    direction: Direction,
    reached: float,
) -> CriticalPoint:
    values = _newton(landscape, *padded(points, masses))
    atoms, residual, step, energy, rounding = (np.asarray(value) for value in values)
    return CriticalPoint(
        model,
        atoms[: len(masses)],
        masses,
        float(residual),
        float(step),
        float(energy) if landscape.has_energy else float("nan"),
        direction,
        float(reached),
        float(rounding),
    )


def padded(points: np.ndarray, masses: np.ndarray) -> tuple[Array, Array]:
    """The atoms with copies of the first, without mass, up to a standard number: programs are shared."""
    count = len(masses)
    extra = next((size for size in SIZES if size >= count), count) - count
    atoms = np.concatenate([points, np.repeat(points[:1], extra, axis=0)])
    return jnp.asarray(atoms), jnp.asarray(np.append(masses, np.zeros(extra)))


def _equation(landscape: Landscape, x: Array, masses: Array) -> Callable[[Array, None], Array]:
    """The field as a function of tangent coordinates at x; atoms without mass stay where they are."""
    frames, present = tangent_frames(x), (masses > 0)[:, None]

    def equation(coordinates: Array, _: None) -> Array:
        field = landscape.relative_field(moved(x, frames, coordinates), masses)
        return jnp.where(present, jnp.einsum("ndt,nd->nt", frames, field), coordinates)

    return equation


@eqx.filter_jit
def _damped(landscape: Landscape, x: Array, masses: Array) -> Float[Array, "n d"]:
    equation = _equation(landscape, x, masses)
    method = optx.LevenbergMarquardt(rtol=1e-10, atol=1e-10)
    origin = jnp.zeros((x.shape[0], x.shape[1] - 1))
    found = optx.least_squares(equation, method, origin, max_steps=256, throw=False).value
    return moved(x, tangent_frames(x), found)


@eqx.filter_jit
def _newton(
    landscape: Landscape, x: Float[Array, "n d"], masses: Float[Array, " n"]
) -> tuple[Array, Array, Array, Array, Array]:
    """Newton from x; atoms without mass stay where they are.

    Positions, residual, next step, energy, and the rounding of the residual.

    The start is kept where Newton does not lower the residual, or goes elsewhere.
    """
    frames, equation = tangent_frames(x), _equation(landscape, x, masses)
    linear = lx.SVD(rcond=SMALLEST_SINGULAR)

    def residual(coordinates: Array) -> Array:
        return _largest(landscape.relative_field(moved(x, frames, coordinates), masses), masses)

    origin = jnp.zeros(frames.shape[::2])
    newton = optx.Newton(rtol=1e-14, atol=1e-14, linear_solver=linear)
    found = optx.root_find(equation, newton, origin, max_steps=NEWTON_STEPS, throw=False).value
    near = jnp.max(jnp.linalg.norm(found, axis=-1)) < LONGEST_STEP
    better = near & (residual(found) <= residual(origin))
    chosen = jnp.where(better, found, origin)
    slope = jax.jacfwd(equation)(chosen, None).reshape(origin.size, origin.size)
    operator = lx.MatrixLinearOperator(slope)
    step = lx.linear_solve(operator, equation(chosen, None).ravel(), linear, throw=False).value
    there = moved(x, frames, chosen)
    largest, energy = jnp.max(jnp.abs(step)), landscape.energy(there, masses)
    return there, residual(chosen), largest, energy, landscape.rounding(there, masses)
