"""The two instructions the kernels live on, as GPU assembly and as plain JAX for interpret mode."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

LOG2E = 1.4426950408889634


def exp2(x: Array, interpret: bool) -> Array:
    """2^x to two units in the last place; flushes below 2^-126 to zero, which `jnp.exp2` does not."""
    if interpret:
        return jnp.exp2(x)
    return _assembly("ex2.approx.ftz.f32 $0, $1;", "=f,f", x)


def fma(a: ArrayLike, b: ArrayLike, c: ArrayLike, interpret: bool) -> Array:
    """a b + c in one instruction; the compiler leaves a product and a sum, which costs a third."""
    # Assembly takes the bits it is given: a Python number would arrive as float64.
    a, b, c = (jnp.asarray(value, jnp.float32) for value in (a, b, c))
    if interpret:
        return a * b + c
    shape = jnp.broadcast_shapes(a.shape, b.shape, c.shape)
    parts = [jnp.broadcast_to(value, shape) for value in (a, b, c)]
    return _assembly("fma.rn.f32 $0, $1, $2, $3;", "=f,f,f,f", *parts)


def _assembly(code: str, constraints: str, *arguments: Array) -> Array:
    from jax.experimental.pallas import triton

    shape = jax.ShapeDtypeStruct(arguments[0].shape, jnp.float32)
    assert all(argument.dtype == jnp.float32 for argument in arguments)
    (result,) = triton.elementwise_inline_asm(
        code,
        args=list(arguments),
        constraints=constraints,
        pack=1,
        result_shape_dtypes=[shape],
    )
    return result
