"""solve: a whole adaptive solve, warm, at equal error: ours, torchdiffeq and plain diffrax.

Each solver runs at several tolerances; its time at a given error is read off the line through
(log error, log time), within the range it has reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .core import OURS, BenchJob, Row, benchmark
from .timing import Contestant

PROMISED = 3.0
TORCHDIFFEQ = "torchdiffeq dopri5"
# The tolerance of the reference, far below every error that is compared.
TIGHT = 1e-13
Solver = Callable[[float], Any]
Curve = Sequence[tuple[float, float]]


@benchmark(
    "solve",
    says="a whole adaptive solve of self-attention, warm, seconds at equal error of the last state",
    quick={
        "n": 64,
        "d": 3,
        "beta": 9.0,
        "t1": 30.0,
        "seed": 0,
        "tolerances": (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10),
        "errors": (1e-4, 1e-6, 1e-8),
        "diffrax": ("Dopri5", "Tsit5", "Dopri8"),
        "repeats": 5,
        "budget": 3.0,
    },
    full={"repeats": 15, "budget": 10.0},
)
def solve(job: BenchJob) -> list[Row]:
    """One row per error, all solvers at that error."""
    from ... import Sphere, uniform

    x0 = uniform(Sphere(job.d), n=job.n, seed=job.seed)
    points = np.asarray(x0.points)
    exact = _last(_ours(x0, job)(TIGHT))
    makers: Mapping[str, Callable[[], Solver]] = {
        TORCHDIFFEQ: lambda: _torchdiffeq(points, job),
        **{f"diffrax {name}": _diffrax(name, points, job) for name in job.diffrax},
    }
    peers, missing = _installed(makers)
    curves, spread = _curves(job, {OURS: _ours(x0, job), **peers}, exact)
    return [_row(job, error, curves, spread, missing) for error in job.errors]


def _installed(
    makers: Mapping[str, Callable[[], Solver]],
) -> tuple[dict[str, Solver], list[str]]:
    solvers, missing = {}, []
    for name, make in makers.items():
        try:
            solvers[name] = make()
        except ImportError:
            missing.append(f"{name}: not installed")
    return solvers, missing


def _curves(
    job: BenchJob, solvers: Mapping[str, Solver], exact: np.ndarray
) -> tuple[dict[str, Curve], float]:
    """(error, seconds) of every solver at every tolerance, and the median spread of ours."""
    curves: dict[str, list[tuple[float, float]]] = {name: [] for name in solvers}
    spreads = []
    for index, tolerance in enumerate(job.tolerances):
        job.report(index / len(job.tolerances), f"rtol = atol = {tolerance:g}")
        contestants = {name: _at(solver, tolerance) for name, solver in solvers.items()}
        errors = {
            name: float(np.max(np.abs(_last(call()) - exact))) for name, call in contestants.items()
        }
        samples = job.race(contestants)
        spreads.append(samples[OURS].spread)
        for name, curve in curves.items():
            curve.append((errors[name], samples[name].median))
    return dict(curves), float(np.median(spreads))


def _row(
    job: BenchJob, error: float, curves: Mapping[str, Curve], spread: float, missing: list[str]
) -> Row:
    seconds = {name: seconds_at(error, curve) for name, curve in curves.items()}
    reached = {name: value for name, value in seconds.items() if value is not None}
    out_of_reach = [
        f"{name}: error {error:g} is outside what its tolerances gave"
        for name in seconds
        if name not in reached
    ]
    row = Row(
        f"n={job.n}, d={job.d}, beta={job.beta:g}, T={job.t1:g}, error {error:g}, float64",
        reached.pop(OURS),
        "s",
        error,
        peers=reached,
        missing=missing + out_of_reach,
        spread=spread,
    )
    return row.bar_against(TORCHDIFFEQ, PROMISED)


def seconds_at(error: float, curve: Curve) -> float | None:
    """Least time to reach an error: on the lower envelope of the curve, log-log between its points.

    A point with a larger time and a larger error than another says nothing. None outside the range.
    """
    best: list[tuple[float, float]] = []
    for reached, seconds in sorted(curve):
        if not best or seconds < best[-1][1]:
            best.append((reached, seconds))
    if not best or best[0][0] > error:
        return None
    # A solver that is already better at its least effort needs no more than that.
    if best[-1][0] <= error:
        return best[-1][1]
    logs = np.log(np.asarray(best))
    return math.exp(float(np.interp(math.log(error), logs[:, 0], logs[:, 1])))


def _at(solver: Solver, tolerance: float) -> Contestant:
    return lambda: solver(tolerance)


def _last(outcome: Any) -> np.ndarray:
    """The last state of whatever a solver returns."""
    return np.asarray(outcome.states[-1] if hasattr(outcome, "states") else outcome)


def _ours(x0: Any, job: BenchJob) -> Solver:
    """flock.solve as a user calls it, with its checks, observables and health report."""
    from ... import SA
    from ... import solve as flock_solve

    model = SA(job.beta)
    return lambda tolerance: flock_solve(model, x0, job.t1, rtol=tolerance, atol=tolerance)


def _torchdiffeq(points: np.ndarray, job: BenchJob) -> Solver:
    """torchdiffeq's dopri5 with the field of the papers; one thread, since small operations wait for more."""
    import torch
    from torchdiffeq import odeint

    start = torch.from_numpy(points.copy())
    span = torch.tensor([0.0, job.t1], dtype=start.dtype)

    def field(t: Any, x: Any) -> Any:
        mean = torch.softmax(job.beta * (x @ x.T), dim=-1) @ x
        return mean - torch.sum(mean * x, dim=-1, keepdim=True) * x

    def integrate(tolerance: float) -> Any:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.no_grad():
                path: Any = odeint(
                    field, start, span, rtol=tolerance, atol=tolerance, method="dopri5"
                )
        finally:
            torch.set_num_threads(threads)
        return path[-1].numpy()

    return integrate


def _diffrax(name: str, points: np.ndarray, job: BenchJob) -> Callable[[], Solver]:
    """diffrax with the same field in three lines, jitted."""

    def make() -> Solver:
        import diffrax
        import jax
        import jax.numpy as jnp

        def field(t: Any, x: Any, args: Any) -> Any:
            mean = jax.nn.softmax(job.beta * (x @ x.T), axis=-1) @ x
            return mean - jnp.sum(mean * x, axis=-1, keepdims=True) * x

        @jax.jit
        def integrate(x: Any, tolerance: Any) -> Any:
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(field),
                getattr(diffrax, name)(),
                t0=0.0,
                t1=job.t1,
                dt0=None,
                y0=x,
                stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
                max_steps=100_000,
            )
            assert solution.ys is not None
            return solution.ys[-1]

        start = jnp.asarray(points)
        return lambda tolerance: jax.block_until_ready(integrate(start, tolerance))

    return make
