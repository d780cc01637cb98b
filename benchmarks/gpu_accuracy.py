"""GpuKernel and the fused ensembles on a real GPU against float64: every kind, mask and width.

Usage: python benchmarks/gpu_accuracy.py [OUT]. The tests run the same programs interpreted on a CPU;
this runs them compiled. Prints one JSON object, writes it to OUT if given, exits with 1 if a case is
worse than its limit.
"""

import itertools
import json
import math
import platform
import sys

import jax
import jax.numpy as jnp
import numpy as np

import tokenflock as flock
from tokenflock.ensembles import mean_and_error
from tokenflock.kinds import L2, Softmax, Unnormalised
from tokenflock.masks import ALiBi, Causal, Full
from tokenflock.reduce import Dense, GpuKernel, Problem

N = 1500
LIMIT = 5e-6
RNG = np.random.default_rng(0)


def tokens(n, d):
    """Asymmetric unit vectors."""
    x = RNG.normal(size=(n, d)) * np.linspace(0.4, 2.0, d) + 0.3
    return jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def problem(d, beta, kind, mask, drop, own):
    """SA of tokens with themselves, or general queries and values."""
    x, mass = tokens(N, d), RNG.uniform(0.2, 2.0, N)
    logs = jnp.log(jnp.asarray(mass / mass.sum()))
    if own:
        return Problem(kind, mask, jnp.asarray(beta), x, x, x, logs, drop, True, True, True)
    queries = x @ jnp.asarray(RNG.normal(size=(d, d))) / np.sqrt(d)
    values = x @ jnp.asarray(RNG.normal(size=(d, d + 1)))
    return Problem(kind, mask, jnp.asarray(beta), queries, x, values, logs, drop, True)


def error(task):
    """Largest error of a row over its largest entry."""
    exact = np.asarray(jax.jit(Dense())(task))
    found = np.asarray(jax.jit(GpuKernel())(task))
    scale = np.max(np.abs(exact), axis=1, keepdims=True) + np.max(np.abs(task.values)) * 1e-3
    return float(np.max(np.abs(found - exact) / scale))


def kernel_rows():
    """One row per case of the kernel."""
    masks = [Full(), Causal(), Causal(self_term=False), ALiBi(3.0)]
    cases = [(Softmax(), mask, drop) for mask, drop in itertools.product(masks, [False, True])]
    cases += [(L2(), Full(), False), (L2(), ALiBi(3.0), True), (Unnormalised(), Full(), True)]
    for d, own, (kind, mask, drop) in itertools.product([3, 64], [True, False], cases):
        label = "L2" if kind == L2() else type(kind).__name__
        name = f"{label} {type(mask).__name__} d={d} own={own} drop={drop}"
        yield name, error(problem(d, 4.0, kind, mask, drop, own)), LIMIT
    for d, kind, mask in itertools.product([3, 64], [Softmax(), L2()], [Causal(), ALiBi(3.0)]):
        name = f"{'L2' if kind == L2() else 'SA'} {type(mask).__name__} d={d} beta=100"
        yield name, error(problem(d, 100.0, kind, mask, False, True)), 1e-4
    for d, beta in itertools.product([2, 8, 16, 32, 128, 256], [0.0, 1.0, 9.0, 100.0]):
        task = problem(d, beta, Softmax(), Full(), False, True)
        yield f"SA d={d} beta={beta:g}", error(task), max(LIMIT, 1e-6 * beta)


def ensemble_rows():
    """One row per case of the ensembles: largest difference of the mean statistics."""
    layers = {"method": flock.Layers(0.1), "every": 0.5}
    flow = {"rtol": 1e-4, "atol": 1e-5, "every": 1.0}
    for (name, options), d in itertools.product(
        [("layers", layers), ("flow", flow)], [2, 3, 20, 128]
    ):
        x0 = flock.uniform(flock.Sphere(d), 30, seed=1, samples=40)
        model = flock.SA([0.0, 1.0, 4.0])
        means = [
            mean_and_error(
                flock.ensemble(model, x0, 5.0, engine=e, delta=0.05, **options), "order_parameter"
            )[0]
            for e in ("solve", "fused")
        ]
        gap = float(np.max(np.abs(means[0] - means[1])))
        yield f"ensemble {name} d={d}", gap, 1e-4 if name == "layers" else 1e-3


def main():
    """Run all cases, print and store."""
    cases = [
        {"case": name, "error": value if math.isfinite(value) else None, "limit": limit}
        for name, value, limit in itertools.chain(kernel_rows(), ensemble_rows())
    ]
    bad = [case for case in cases if case["error"] is None or case["error"] > case["limit"]]
    result = {
        "name": "gpu-accuracy",
        "machine": f"{jax.devices()[0].device_kind}, {platform.system()}, jax {jax.__version__}",
        "command": "python benchmarks/gpu_accuracy.py",
        "failed": len(bad),
        "rows": cases,
    }
    text = json.dumps(result, indent=2)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as out:
            out.write(text + "\n")
    print(text)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
