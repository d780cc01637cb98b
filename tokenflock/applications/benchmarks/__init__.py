"""Benchmarks: one per speed statement, with the peers beside us in the same run."""

from .core import Benchmark as Benchmark
from .core import Row as Row
from .registry import all_benchmarks as all_benchmarks
from .registry import find_benchmark as find_benchmark
