"""One evaluation of attention by a reduction, and its error: what most benchmarks have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .timing import Contestant

if TYPE_CHECKING:
    from ...masks import Mask
    from ...reduce import Problem, Reduction

# Entries of a block of direct sums: 128 MB of float64.
BLOCK = 2**24


def sphere_tokens(n: int, d: int, dtype: str, seed: int = 0) -> np.ndarray:
    """Independent uniform tokens on the unit sphere of R^d."""
    x = np.random.default_rng(seed).standard_normal((n, d))
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(dtype)


def attention_problem(x: np.ndarray, beta: float, mask: Mask | None = None) -> Problem:
    """sum_j softmax_j(beta <x_i, x_j>) x_j at every token, as `Attention` states it on a sphere."""
    import jax.numpy as jnp

    from ...kinds import Softmax
    from ...masks import Full
    from ...reduce import Problem

    tokens = jnp.asarray(x)
    return Problem(
        Softmax(),
        Full() if mask is None else mask,
        jnp.asarray(beta, tokens.dtype),
        queries=tokens,
        keys=tokens,
        values=tokens,
        log_weights=jnp.full(len(x), -np.log(len(x)), tokens.dtype),
        unit_keys=True,
        own_keys=True,
        own_values=True,
    )


def evaluation(
    reduction: Reduction, x: np.ndarray, beta: float, mask: Mask | None = None
) -> Contestant:
    """The compiled attention of a reduction, ready to be called."""
    import equinox as eqx
    import jax

    problem = attention_problem(x, beta, mask)
    settled = reduction.settle([problem.task()])
    evaluate = eqx.filter_jit(lambda given: settled(given)).lower(problem).compile()
    return lambda: jax.block_until_ready(evaluate(problem))


def direct_rows(x: np.ndarray, beta: float, rows: np.ndarray, causal: bool = False) -> np.ndarray:
    """The sums of some rows by NumPy in float64, straight from the definition: the reference."""
    keys = x.astype(np.float64)
    size = max(1, BLOCK // len(x))
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    return np.concatenate([_block(keys, beta, block, causal) for block in blocks])


def _block(keys: np.ndarray, beta: float, rows: np.ndarray, causal: bool) -> np.ndarray:
    kernel = np.exp(beta * (keys[rows] @ keys.T - 1.0))
    if causal:
        kernel = np.where(np.arange(len(keys)) <= rows[:, None], kernel, 0.0)
    return kernel @ keys / np.sum(kernel, axis=1, keepdims=True)


def relative_error(found: Any, reference: np.ndarray) -> float:
    """max_i |found_i - reference_i| / |reference_i|, over rows."""
    difference = np.asarray(found, dtype=np.float64) - reference
    sizes = np.linalg.norm(reference, axis=-1)
    return float(np.max(np.linalg.norm(difference, axis=-1) / sizes))


def chosen_rows(n: int, count: int, seed: int = 1) -> np.ndarray:
    """Some rows at random, the last one among them, which sees every token under a causal mask."""
    rows = np.random.default_rng(seed).choice(n, min(count, n), replace=False)
    return np.sort(np.append(rows[rows != n - 1][: count - 1], n - 1))


def errors_of(
    outputs: Mapping[str, np.ndarray], rows: np.ndarray, reference: np.ndarray
) -> dict[str, float]:
    """The error of everyone on the given rows."""
    return {name: relative_error(out[rows], reference) for name, out in outputs.items()}
