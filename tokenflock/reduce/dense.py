"""Dense: the whole n x n score matrix at once. The reference every other reduction is held to."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from .base import Problem, Reduction


class Dense(Reduction):
    """Exact up to rounding; memory O(n^2) per head and sample."""

    def __call__(self, problem: Problem) -> Array:
        rows = jnp.arange(problem.queries.shape[0])
        columns = jnp.arange(problem.keys.shape[0])
        scores = problem.kind.scores(problem.queries, problem.keys, problem.beta)
        log_mass = problem.log_mass(rows, columns)
        keep = problem.keep(rows, columns)
        return problem.kind.dense(scores, log_mass, problem.values, problem.beta, keep)

    def error_bound(self, problem_size: int) -> float:
        return 0.0

    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        # Scores, masses and the exponential live at the same time.
        return 3 * 8 * n * n * heads * samples
