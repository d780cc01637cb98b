"""Where Spectral is faster than Tiled: the number of tokens n from which it wins, by d, beta and tol.

Usage: python benchmarks/spectral_region.py [--draw]. Measures fixed cost and cost per token of the
series at a few degrees, and fixed cost and cost per pair of Tiled, all in turn on this machine (softmax
of evenly spread tokens, float64: no row falls back). Degrees between are interpolated. Writes
benchmarks/results/spectral-region.json and docs/images/spectral-region.png; --draw only draws again.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import tokenflock as flock
from tokenflock.applications.benchmarks.machine import describe_machine
from tokenflock.applications.benchmarks.timing import race
from tokenflock.plot.style import FAINT, INK, PALETTE, styled
from tokenflock.reduce import Problem
from tokenflock.reduce.spectral import series
from tokenflock.reduce.spectral.choose import LARGEST_COUNT, LARGEST_DEGREE
from tokenflock.reduce.spectral.plan import choose_basis, series_dimension

ROOT = Path(__file__).parent.parent
DATA = ROOT / "benchmarks" / "results" / "spectral-region.json"
IMAGE = ROOT / "docs" / "images" / "spectral-region.png"
NAMES = {2: "circle", 3: "sphere S²", 4: "S³ (products)"}
DEGREES = {2: (4, 12, 28, 60, 120, 300), 3: (4, 8, 16, 32, 64), 4: (2, 4, 8, 12)}
SIZES = {2: (1_000, 8_000), 3: (1_000, 8_000), 4: (8_000, 24_000)}
PAIRS = (256, 4096)
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)
BETAS = np.geomspace(0.1, 1000.0, 41)
REPEATS, BUDGET = 25, 150.0
# The tolerance at which a measured degree is run; the cost depends on the degree alone.
RUN_TOL = 1e-8


def problem(n, d, beta):
    """Self-attention of evenly spread tokens, the row's own value dropped as in a solve."""
    points = flock.uniform(flock.Sphere(d), n, seed=0).points
    mass = jnp.full(n, -np.log(n))
    return Problem(
        flock.kinds.Softmax(), flock.masks.Full(), jnp.asarray(beta), points, points, points, mass,
        drop_self=True, unit_keys=True, own_keys=True, own_values=True,
    )  # fmt: skip


def contestant(reduction, task):
    """A warm call."""
    call = jax.jit(reduction.settle([task.task()]))
    call(task).block_until_ready()
    return lambda: call(task).block_until_ready()


def measure():
    """Costs {"fixed", "each"} of the series by (d, degree), and of Tiled by d."""
    contestants = {}
    for d, degrees in DEGREES.items():
        for n in PAIRS:
            contestants["Tiled", d, n] = contestant(flock.Tiled(), problem(n, d, 9.0))
        for degree in degrees:
            beta = 0.99 * series.largest_argument(degree, series_dimension(d), RUN_TOL)
            for n in SIZES[d]:
                # Crossovers lie below the n from which transforms are worth it.
                spectral = flock.Spectral(RUN_TOL, degree=degree, evaluate="recurrence")
                contestants[degree, d, n] = contestant(spectral, problem(n, d, beta))
    samples = race(contestants, REPEATS, BUDGET)
    # The fastest of the repeats: what neighbours on the machine did not disturb.
    seconds = {name: min(sample.seconds) for name, sample in samples.items()}
    terms = {
        (d, degree): line(seconds, (degree, d), SIZES[d], 1)
        for d, degrees in DEGREES.items()
        for degree in degrees
    }
    return terms, {d: line(seconds, ("Tiled", d), PAIRS, 2) for d in DEGREES}


def line(seconds, name, sizes, power):
    """fixed + each * n^power through two sizes."""
    small, large = (seconds[(*name, n)] for n in sizes)
    each = (large - small) / (sizes[1] ** power - sizes[0] ** power)
    return {"fixed": max(0.0, small - each * sizes[0] ** power), "each": each}


def per_token(terms, d, degree):
    """The cost per token at any degree: a power law between measured ones, and on from the last two."""
    degrees = np.log(DEGREES[d])
    costs = np.log([terms[d, k]["each"] for k in DEGREES[d]])
    last = int(np.clip(np.searchsorted(degrees, np.log(degree)), 1, len(degrees) - 1))
    slope = (costs[last] - costs[last - 1]) / (degrees[last] - degrees[last - 1])
    return float(np.exp(costs[last] + slope * (np.log(degree) - degrees[last])))


def row(d, beta, tol, terms, pairs):
    """One point of the map; no crossover where the series is refused."""
    degree = series.needed_degree(float(beta), series_dimension(d), tol)
    size = choose_basis(d, degree, flock.kinds.Softmax(), own=True).size
    out = {"d": d, "beta": float(beta), "tol": tol, "degree": degree, "terms": size}
    if degree > min(LARGEST_DEGREE.get(d, degree), 2 * max(DEGREES[d])):
        return {**out, "crossover": None}
    if d > 3 and size > LARGEST_COUNT:
        return {**out, "crossover": None}
    fixed = np.interp(degree, DEGREES[d], [terms[d, k]["fixed"] for k in DEGREES[d]])
    each = per_token(terms, d, degree)
    # fixed + each n = fixed' + pair n^2.
    pair, gap = pairs[d]["each"], fixed - pairs[d]["fixed"]
    wins = (each + np.sqrt(each**2 + 4 * pair * max(gap, 0.0))) / (2 * pair)
    # Products are taken for n >= 4 terms only; below the smallest n measured Tiled takes half a millisecond.
    least = max(PAIRS[0], 4 * size if d > 3 else 1)
    return {**out, "per_token_s": each, "crossover": max(float(wins), float(least))}


def draw(result):
    """One panel per sphere: above a line, Spectral wins."""
    with styled() as plt:
        figure, panels = plt.subplots(1, len(NAMES), figsize=(8.2, 3.1), sharey=True)
        for panel, (d, name) in zip(panels, NAMES.items(), strict=True):
            for tol, colour in zip(TOLERANCES, PALETTE, strict=False):
                rows = [r for r in result["rows"] if r["d"] == d and r["tol"] == tol]
                rows = [r for r in rows if r["crossover"] is not None]
                betas, crossings = [r["beta"] for r in rows], [r["crossover"] for r in rows]
                panel.loglog(betas, crossings, color=colour, label=f"tol = {tol:.0e}", lw=1.6)
                if betas[-1] < 0.99 * BETAS[-1]:
                    panel.plot(betas[-1:], crossings[-1:], marker="|", color=colour, ms=8, mew=1.6)
            panel.set_title(name, color=INK)
            panel.set_xlabel("beta")
            panel.set_xlim(BETAS[0], BETAS[-1])
            panel.set_ylim(50, 1e5)
            panel.axhspan(50, PAIRS[0], color=FAINT, alpha=0.35, lw=0)
            panel.grid(True, which="major", lw=0.3, alpha=0.5)
        panels[0].set_ylabel("tokens n")
        panels[0].text(0.15, 3e4, "Spectral is faster", color=INK)
        panels[0].text(0.15, 100, "not resolved: Tiled < 0.5 ms", color=INK, fontsize=8)
        panels[1].text(20.0, 330, "Tiled is faster", color=INK)
        panels[2].text(8.0, 8e3, "| : Spectral\nrefuses beyond", color=INK, fontsize=8)
        panels[0].legend(loc="center left", bbox_to_anchor=(0.0, 0.62), fontsize=8)
        figure.tight_layout()
        figure.savefig(IMAGE)


def main():
    """Measure unless told not to, store, draw."""
    if "--draw" not in sys.argv:
        terms, pairs = measure()
        result = {
            "name": "spectral-region",
            "machine": describe_machine("cpu"),
            "command": "python benchmarks/spectral_region.py",
            "tiled": {f"d={d}": cost for d, cost in pairs.items()},
            "series": {f"d={d}, degree={k}": cost for (d, k), cost in terms.items()},
            "rows": [
                row(d, beta, tol, terms, pairs)
                for d in DEGREES
                for tol in TOLERANCES
                for beta in BETAS
            ],
        }
        DATA.write_text(json.dumps(result, indent=1) + "\n")
    draw(json.loads(DATA.read_text()))


if __name__ == "__main__":
    main()
