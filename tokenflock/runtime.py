"""Values that are known and values that are traced, and the types of both (JAX is set up in startup.py)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.typing
from jax.core import Tracer
from jaxtyping import Array

# What a user may write for numbers: an array, a number, or nested lists of them.
ArrayLike = jax.typing.ArrayLike | Sequence[Any]
# What a time, a step or another single number may be inside compiled code.
Scalar = jax.typing.ArrayLike
# One real number, plain or traced.
Number = float | Array


@contextlib.contextmanager
def known() -> Iterator[None]:
    """Compute now whatever depends on no traced value: a context, or with `@known()` a decorator.

    Inside jax.jit every operation is staged, those on plain numbers too. Models and tokens made there of
    plain numbers must stay numbers, so that they can be checked and reductions can choose by them.
    """
    with jax.ensure_compile_time_eval():
        yield


def as_array(value: ArrayLike) -> Array:
    """Real numbers as an array, known at once unless they are traced."""
    with known():
        return jnp.asarray(value, dtype=float)


def is_traced(*arrays: object) -> bool:
    """True inside jit, grad or vmap, where values cannot be inspected."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arrays))
