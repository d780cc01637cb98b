"""Seconds per pair, and per token and term, of every reduction this machine can run.

Usage: python benchmarks/crossovers.py [OUT]. The numbers of tokenflock/reduce/costs.py come from here:
two sizes give the fixed cost and the cost per pair, two dimensions its share per coordinate.
"""

import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from tokenflock.applications.benchmarks.machine import describe_machine
from tokenflock.kinds import Softmax
from tokenflock.masks import Full
from tokenflock.reduce import Dense, GpuKernel, Problem, Spectral, Tiled

BETA, REPEATS = 9.0, 7
ON_GPU = jax.default_backend() != "cpu"
SMALL, LARGE = (1024, 16_384) if ON_GPU else (256, 4096)


def problem(n, d):
    """Self-attention of spread tokens, own values dropped as in a solve."""
    x = np.random.default_rng(0).normal(size=(n, d))
    x = jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))
    mass = jnp.full(n, -np.log(n))
    return Problem(Softmax(), Full(), jnp.asarray(BETA), x, x, x, mass, True, True, True, True)


def seconds(reduction, n, d):
    """Median of warm evaluations."""
    task = problem(n, d)
    call = jax.jit(reduction.settle([task.task()]))
    call(task).block_until_ready()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call(task).block_until_ready()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def pair_cost(reduction):
    """Fixed, pair and coordinate cost."""
    small, large, wide = (
        seconds(reduction, SMALL, 3),
        seconds(reduction, LARGE, 3),
        seconds(reduction, LARGE, 64),
    )
    per_pair = (large - small) / (LARGE**2 - SMALL**2)
    coordinate = max(0.0, (wide - large) / LARGE**2 / 61)
    fixed = max(0.0, small - per_pair * SMALL**2)
    return {"fixed": fixed, "pair": max(0.0, per_pair - 3 * coordinate), "coordinate": coordinate}


def term_cost(d, tol):
    """Fixed cost and cost per token and term of the series on the circle or S^2."""
    reduction = Spectral(tol)
    small, large = seconds(reduction, 2_000, d), seconds(reduction, 200_000, d)
    terms = reduction.settle([problem(2_000, d).task()]).terms
    each = (large - small) / 198_000 / terms
    return {"fixed": max(0.0, small - each * 2_000 * terms), "term": each, "terms": terms}


def main():
    """Measure, print and store."""
    candidates = {"Dense": Dense(), "Tiled": Tiled(), "Tiled float32": Tiled(precision="float32")}
    if ON_GPU:
        candidates["GpuKernel"] = GpuKernel()
    result = {
        "name": "crossovers",
        "machine": describe_machine("gpu" if ON_GPU else "cpu"),
        "command": "python benchmarks/crossovers.py",
        "pairs": {name: pair_cost(reduction) for name, reduction in candidates.items()},
        "terms": {f"d={d}": term_cost(d, 1e-10) for d in (2, 3)},
    }
    text = json.dumps(result, indent=2)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as out:
            out.write(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
