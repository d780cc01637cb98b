"""Rebuild docs/images/meanfield-accuracy.png: how exact the infinite-token limit is solved on the circle.

Usage: python docs/build_accuracy.py
"""

from pathlib import Path
from typing import Any

import diffrax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np

import tokenflock as flock
from tokenflock.density import Density
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.quantiles import Quantiles
from tokenflock.meanfield.solving import DiagonalSolve
from tokenflock.plot.style import REST, styled

mpl.use("Agg")

IMAGE = Path(__file__).parent / "images" / "meanfield-accuracy.png"
MODES = (4, 8, 12, 16, 24, 32, 48)
COUNTS = (16, 32, 64, 128)
# Fixed steps per method, few enough that their error is seen above rounding.
STEPS = (4, 8, 16, 32, 64, 128)
FEW_STEPS = (2, 3, 4, 6, 8, 12)
MOMENTS = 4
T1 = 1.0
TIGHT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-15}


def law(x: jnp.ndarray) -> jnp.ndarray:
    """A smooth start with all phases."""
    theta = jnp.arctan2(x[:, 1], x[:, 0])
    return jnp.exp(0.6 * jnp.cos(theta) + 0.4 * jnp.sin(2 * theta) - 0.3 * jnp.cos(3 * theta + 1))


def moments(run: flock.Trajectory) -> np.ndarray:
    """The first Fourier moments at the end."""
    return np.asarray(run.array("fourier_moments"))[-1]


def end(model: flock.Dynamics, on: Fourier | Quantiles, **numerics: Any) -> np.ndarray:
    """Where a start on a discretisation ends."""
    watch = flock.Save(every=T1, observe=[flock.observables.fourier_moments(MOMENTS)])
    return moments(flock.solve(model, Density.from_law(on, law), T1, save=watch, **numerics))


def in_space() -> dict[str, tuple[tuple[int, ...], list[float]]]:
    """Errors against the number of modes or quantiles, for SA at beta = 2."""
    model = flock.SA(2.0)
    exact = end(model, Fourier(96), **TIGHT)
    series = [np.abs(end(model, Fourier(M, tail=10.0), **TIGHT) - exact).max() for M in MODES]
    quantiles = [np.abs(end(model, Quantiles(n), **TIGHT) - exact).max() for n in COUNTS]
    return {"Fourier(modes)": (MODES, series), "Quantiles(n)": (COUNTS, quantiles)}


def in_time() -> dict[str, tuple[tuple[int, ...], list[float]]]:
    """Errors against the number of fixed steps: both defaults, and the fifth order for comparison."""
    found = {}
    implicit = diffrax.KenCarp4(root_finder=DiagonalSolve())
    for name, model, method, counts in (
        ("Dopri8 (default), SA", flock.SA(2.0), diffrax.Dopri8(), FEW_STEPS),
        ("Dopri5, SA", flock.SA(2.0), diffrax.Dopri5(), STEPS),
        ("KenCarp4 (default), noisy USA", flock.NoisyUSA(1.0, 0.4), implicit, STEPS),
    ):
        on = Fourier(48)
        exact = end(model, on, dt=T1 / (8 * counts[-1]), method=method)
        errors = [np.abs(end(model, on, dt=T1 / n, method=method) - exact).max() for n in counts]
        found[name] = (counts, errors)
    return found


def draw() -> None:
    """Both panels."""
    with styled() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.0), layout="constrained")
        for name, (sizes, errors) in in_space().items():
            left.loglog(sizes, np.maximum(errors, 1e-17), "o-", ms=4, lw=1.2, label=name)
        left.set(xlabel="modes or quantiles", ylabel="error of the Fourier moments 1..4")
        for name, (counts, errors) in in_time().items():
            right.loglog(T1 / np.array(counts), errors, "o-", ms=4, lw=1.2, label=name)
        for order, level, counts in ((8, 2e-11, FEW_STEPS), (5, 1e-9, STEPS), (4, 1e-4, STEPS)):
            steps = T1 / np.array(counts)
            guide = level * (steps / steps[0]) ** order
            right.loglog(steps, guide, ":", color=REST, lw=1.0)
            right.annotate(
                f"order {order}",
                (steps[-1], guide[-1]),
                xytext=(6, 8),
                textcoords="offset points",
                fontsize=7,
                color=REST,
            )
        right.set(xlabel="step dt")
        for axes in (left, right):
            axes.legend(fontsize=7)
        figure.savefig(IMAGE, dpi=130)


if __name__ == "__main__":
    draw()
