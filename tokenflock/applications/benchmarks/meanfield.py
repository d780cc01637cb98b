"""meanfield: the continuity equation on the circle by Fourier series, against Lax-Friedrichs on a grid.

The scheme in public code for this equation (2410.23228) is Lax-Friedrichs with 10^4 points and
dt = 0.02 dx. Here it is written as fast as we can, with convolutions by FFT, in NumPy and compiled by
JAX; the faster counts. Beside it stands the same scheme at the largest step its stability allows, which
is both faster and less viscous.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ive

from .core import OURS, BenchJob, Row, benchmark
from .timing import Contestant

PROMISED = 50.0
PUBLISHED = "Lax-Friedrichs, dt = 0.02 dx"
LARGEST = "Lax-Friedrichs, largest stable dt"
PUBLISHED_RATIO = 0.02
# dt = COURANT dx / max|v|: Lax-Friedrichs is stable up to 1.
COURANT = 0.9
# Steps by which the way of stepping is chosen.
TRIAL = 50
# Advances a density on a grid by a number of steps.
Stepper = Callable[[np.ndarray, int], np.ndarray]


@benchmark(
    "meanfield",
    says="the infinite-token limit of self-attention on the circle, seconds to the end",
    quick={
        "modes": 512,
        "points": 10_000,
        "beta": 9.0,
        "t1": 5.0,
        "rtol": 1e-8,
        "atol": 1e-10,
        "stretch": 2_000,
        "repeats": 3,
        "budget": 20.0,
    },
    full={"stretch": None, "repeats": 5, "budget": 120.0},
)
def meanfield(job: BenchJob) -> list[Row]:
    """One row: our solve, and the grid at the published and at the largest stable step."""
    solve = _ours(job)
    exact = _reference(job)
    grid = 2 * np.pi * np.arange(job.points) / job.points
    error = float(np.max(np.abs(_at(solve(), grid) - exact(grid))))
    speed = _largest_speed(job, exact(grid))
    job.report(0.1, "Lax-Friedrichs, largest stable step")
    steps = _count(job, COURANT / speed)
    runs: dict[str, Contestant] = {OURS: solve, LARGEST: _whole(job, grid, steps)}
    coarse = float(np.max(np.abs(_whole(job, grid, steps)() - exact(grid))))
    times = job.race(runs)
    job.report(0.5, "Lax-Friedrichs, published step")
    name, seconds, errors = _published(job, grid, exact)
    row = Row(
        f"SA, beta={job.beta:g}, {job.modes} modes, T={job.t1:g}, float64",
        times[OURS].median,
        "s",
        error,
        peers={name: seconds, LARGEST: times[LARGEST].median},
        peer_errors={LARGEST: coarse, **errors},
        spread=times[OURS].spread,
    )
    row.bar_against(name, PROMISED)
    return [row.bar_error(coarse, "an error at most that of Lax-Friedrichs")]


def start(theta: np.ndarray) -> np.ndarray:
    """1 + 0.01 cos 4 theta + 0.01 cos(3 theta + 1): four clusters compete with three."""
    return 1 + 0.01 * np.cos(4 * theta) + 0.01 * np.cos(3 * theta + 1)


# --- Ours -----------------------------------------------------------------------------------------


def _ours(job: BenchJob, **changes: Any) -> Callable[[], Any]:
    """flock.solve as a user calls it, with its checks and its health report."""
    import jax.numpy as jnp

    from ... import SA
    from ... import solve as flock_solve
    from ...density import Density
    from ...meanfield.circle import Fourier

    settings = {"modes": job.modes, "rtol": job.rtol, "atol": job.atol, **changes}
    modes = settings.pop("modes")

    def law(x: Any) -> Any:
        theta = jnp.arctan2(x[:, 1], x[:, 0])
        return 1 + 0.01 * jnp.cos(4 * theta) + 0.01 * jnp.cos(3 * theta + 1)

    begin, model = Density.from_law(Fourier(modes), law), SA(job.beta)
    return lambda: flock_solve(model, begin, job.t1, **settings)


def _reference(job: BenchJob) -> Callable[[np.ndarray], np.ndarray]:
    """The density at any angles, by half as many modes again and tolerances at rounding."""
    run = _ours(job, modes=3 * job.modes // 2, rtol=1e-13, atol=1e-15)()
    return lambda theta: _at(run, theta)


def _at(run: Any, theta: np.ndarray) -> np.ndarray:
    """The last density of a run at equally spaced angles, by FFT."""
    state = np.asarray(run.array("final_state"))
    modes = state.size // 2
    spectrum = np.zeros(theta.size // 2 + 1, complex)
    kept = min(modes, spectrum.size - 1)
    high = (state[1 : modes + 1] - 1j * state[modes + 1 :]) / np.sqrt(2.0)
    spectrum[0], spectrum[1 : kept + 1] = state[0], high[:kept]
    return np.fft.irfft(spectrum, theta.size) * theta.size


# --- Lax-Friedrichs -------------------------------------------------------------------------------


def _published(
    job: BenchJob, grid: np.ndarray, exact: Callable[[np.ndarray], np.ndarray]
) -> tuple[str, float, dict[str, float]]:
    """Seconds at dt = 0.02 dx: the whole run, or a stretch of it scaled by the number of steps."""
    steps = _count(job, PUBLISHED_RATIO)
    taken = steps if job.stretch is None else min(job.stretch, steps)
    dt = job.t1 / steps
    advance = _fastest(job, dt)
    advance(start(grid), 1)
    begin = time.perf_counter()
    density = advance(start(grid), taken)
    seconds = (time.perf_counter() - begin) * steps / taken
    if taken < steps:
        return f"{PUBLISHED} (scaled from {taken} of {steps} steps)", seconds, {}
    return PUBLISHED, seconds, {PUBLISHED: float(np.max(np.abs(density - exact(grid))))}


def _count(job: BenchJob, ratio: float) -> int:
    """Steps of dt = ratio dx to the end."""
    return int(np.ceil(job.t1 / (ratio * 2 * np.pi / job.points)))


def _whole(job: BenchJob, grid: np.ndarray, steps: int) -> Callable[[], np.ndarray]:
    advance = _fastest(job, job.t1 / steps)
    advance(start(grid), steps)
    return lambda: advance(start(grid), steps)


def _fastest(job: BenchJob, dt: float) -> Stepper:
    """NumPy or JAX: the one that takes less time for a few steps, both warm."""
    ways = [numpy_stepper(job.points, job.beta, dt), jax_stepper(job.points, job.beta, dt)]
    taken = []
    for way in ways:
        density = start(2 * np.pi * np.arange(job.points) / job.points)
        way(density, TRIAL)
        begin = time.perf_counter()
        way(density, TRIAL)
        taken.append(time.perf_counter() - begin)
    return ways[int(np.argmin(taken))]


def kernels(points: int, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Fourier multipliers of (1/beta) d/dtheta of the partition function, and of the function itself.

    e^{beta(cos - 1)} has the coefficients I_k(beta) e^{-beta}.
    """
    k = np.arange(points // 2 + 1)
    partition = ive(k, beta)
    return 1j * k * partition / beta, partition


def field(density: Any, multipliers: tuple[Any, Any], fft: Any) -> Any:
    """v = (1/beta) (log Z)', Z = e^{beta cos} * rho."""
    spectrum, n = fft.rfft(density), density.shape[-1]
    pull, partition = (fft.irfft(spectrum * numbers, n) for numbers in multipliers)
    return pull / partition


def _largest_speed(job: BenchJob, density: np.ndarray) -> float:
    return float(np.max(np.abs(field(density, kernels(job.points, job.beta), np.fft))))


def numpy_stepper(points: int, beta: float, dt: float) -> Stepper:
    """rho_j <- (rho_{j+1} + rho_{j-1})/2 - dt/(2 dx) (f_{j+1} - f_{j-1}), f = rho v."""
    multipliers, ratio = kernels(points, beta), dt * points / (4 * np.pi)

    def advance(density: np.ndarray, steps: int) -> np.ndarray:
        for _ in range(steps):
            flux = ratio * density * field(density, multipliers, np.fft)
            density = np.roll(0.5 * density - flux, -1) + np.roll(0.5 * density + flux, 1)
        return density

    return advance


def jax_stepper(points: int, beta: float, dt: float) -> Stepper:
    """The same as one compiled loop."""
    import jax
    import jax.numpy as jnp

    pull, partition = (jnp.asarray(numbers) for numbers in kernels(points, beta))
    ratio = dt * points / (4 * np.pi)

    @jax.jit
    def loop(density: Any, steps: Any) -> Any:
        def step(_: Any, rho: Any) -> Any:
            flux = ratio * rho * field(rho, (pull, partition), jnp.fft)
            return jnp.roll(0.5 * rho - flux, -1) + jnp.roll(0.5 * rho + flux, 1)

        return jax.lax.fori_loop(0, steps, step, density)

    return lambda density, steps: np.asarray(loop(jnp.asarray(density), steps))
