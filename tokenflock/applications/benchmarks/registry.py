"""All benchmarks, and how a user names one."""

from __future__ import annotations

import functools
from importlib import import_module

from ...errors import InputError
from ...names import nearest
from .core import Benchmark

# One module per question, in the order of the page.
MODULES = (
    "dense_cpu",
    "spectral",
    "causal",
    "kinetic",
    "memory",
    "solve",
    "meanfield",
    "random_depth",
    "startup",
    "trace",
    "sentiment",
    "play",
    "sweep",
    "gpu_dense",
    "gpu_phase",
)


@functools.cache
def _benchmarks() -> tuple[Benchmark, ...]:
    modules = [import_module(f".{name}", __package__) for name in MODULES]
    found = [thing for module in modules for thing in vars(module).values()]
    return tuple(thing for thing in found if isinstance(thing, Benchmark))


def all_benchmarks() -> list[Benchmark]:
    """Every benchmark."""
    return list(_benchmarks())


def find_benchmark(name: str) -> Benchmark:
    """The benchmark with this name."""
    known = {benchmark.name: benchmark for benchmark in all_benchmarks()}
    if name in known:
        return known[name]
    advice = nearest(name, known, most=3) or "."
    raise InputError(f"no benchmark is called {name!r}{advice} See tokenflock bench --list")
