"""Kernel for d = 4 to 256: tensor cores on numbers split into two halves of eleven bits.

x = h + l/2048 with h, l in float16, so that h h' + (h l' + l h')/2048 has float32's accuracy at the
speed of float16. Tensor cores round towards zero while they accumulate: every product of a chunk
starts from zero and is added to the total in float32, where rounding is to nearest.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float

from .instructions import exp2
from .layout import Layout, compiled_with, padded, whole

LOW = 2048.0
# Weights are at most 1; float16 keeps their low halves out of its subnormal range at this scale.
WEIGHT_BITS = 14.0


@dataclasses.dataclass(frozen=True)
class Tile:
    """Shape of the work of one program."""

    rows: int
    chunk: int
    warps: int
    stages: int


def tile(d: int) -> Tile:
    """The fastest shape for tokens of dimension d (measured on an H200 at n = 131072)."""
    if d <= 16:
        return Tile(128, 64, 4, 3)
    if d <= 64:
        return Tile(64, 64, 4, 3)
    return Tile(64, 64, 4, 2) if d <= 128 else Tile(128, 32, 8, 2)


def wide_sums(
    layout: Layout,
    queries: Float[Array, "rows d"],
    keys: Float[Array, "columns d"],
    values: Float[Array, "columns m"] | None,
    bias: Float[Array, " columns"],
    peaks: Float[Array, " rows"] | None,
    scale: Float[Array, " rows"],
) -> Float[Array, "rows w"]:
    """sum_j 2^{scale_i <q_i, k_j> + bias_j - peak_i} [v_j, 1] for |q_i|, |k_j|, |v_j| of order one.

    v = k where `values` is None.
    """
    shift = jnp.zeros_like(scale) if peaks is None else peaks
    q = _halves(padded(queries, layout.padded_rows))
    k = _halves(padded(keys, layout.padded_columns))
    v = () if values is None else _halves(padded(values, layout.padded_columns))
    rows = [padded(scale, layout.padded_rows), padded(shift, layout.padded_rows)]
    biases = padded(bias, layout.padded_columns).at[bias.shape[0] :].set(-jnp.inf)
    inputs = [*q, *k, *rows, biases, *v]
    width = (v or k)[0].shape[1]
    shape = tile(max(width, k[0].shape[1]))
    shapes = [(layout.splits, layout.padded_rows, width), (layout.splits, layout.padded_rows)]
    call = pl.pallas_call(
        lambda *refs: _program(layout, width, *refs),
        out_shape=[jax.ShapeDtypeStruct(sizes, jnp.float32) for sizes in shapes],
        grid=(layout.row_blocks, layout.splits),
        in_specs=[whole(*array.shape) for array in inputs],
        out_specs=[whole(*sizes) for sizes in shapes],
        **compiled_with(layout.interpret, shape.warps, shape.stages),
    )
    sums, partition = call(*inputs)
    count, m = queries.shape[0], keys.shape[1] if values is None else values.shape[1]
    both = jnp.concatenate([jnp.sum(sums, 0)[:, :m], jnp.sum(partition, 0)[:, None]], axis=1)
    return both[:count] * 2.0**-WEIGHT_BITS


def _halves(x: Float[Array, "n d"]) -> tuple[Array, Array]:
    """High and low part, columns filled up to a power of two with zeros.

    reduce_precision, since a conversion to float16 and back is removed by XLA as needless.
    """
    x = jnp.pad(x, ((0, 0), (0, max(16, pl.next_power_of_2(x.shape[1])) - x.shape[1])))
    high = jax.lax.reduce_precision(x, 5, 10)
    return high.astype(jnp.float16), ((x - high) * LOW).astype(jnp.float16)


def split_inside(weight: Array, interpret: bool) -> tuple[Array, Array]:
    """The same split inside a kernel, where conversions stay and reduce_precision is unknown."""
    if interpret:
        high = jax.lax.reduce_precision(weight, 5, 10)
    else:
        high = weight.astype(jnp.float16).astype(jnp.float32)
    return high.astype(jnp.float16), ((weight - high) * LOW).astype(jnp.float16)


def split_product(a: tuple[Array, Array], b: tuple[Array, Array], transposed: bool) -> Array:
    """a b, or a b^T, of two split matrices."""
    high, low = (b[0].T, b[1].T) if transposed else b

    def dot(left: Array, right: Array) -> Array:
        return jnp.dot(left, right, preferred_element_type=jnp.float32)

    return dot(a[0], high) + (dot(a[0], low) + dot(a[1], high)) * (1.0 / LOW)


def _program(layout: Layout, width: int, *refs: Any) -> None:
    qh, ql, kh, kl, scales, shifts, biases, *values, sums_ref, partition_ref = refs
    block, split = pl.program_id(0), pl.program_id(1)
    here = pl.ds(block * layout.rows, layout.rows)
    q = (qh[here, :], ql[here, :])
    scale = scales[here][:, None]
    shift = (WEIGHT_BITS - shifts[here])[:, None]
    positions = (block * layout.rows + jnp.arange(layout.rows, dtype=jnp.int32))[:, None]

    def chunk(index: Array, carry: tuple[Array, Array], masked: bool) -> tuple[Array, Array]:
        there = pl.ds(index * layout.chunk, layout.chunk)
        keys = (kh[there, :], kl[there, :])
        scores = split_product(q, keys, transposed=True)
        exponent = scores * scale + (biases[there][None, :] + shift)
        weight = exp2(exponent, layout.interpret)
        if masked:
            columns = (index * layout.chunk + jnp.arange(layout.chunk, dtype=jnp.int32))[None, :]
            weight = jnp.where(layout.counts(positions, columns), weight, 0.0)
        halves = split_inside(weight, layout.interpret)
        carried = tuple(half[there, :] for half in values) or keys
        part = split_product(halves, carried, transposed=False)
        return carry[0] + part, carry[1] + jnp.sum(weight, axis=1)

    empty = (
        jnp.zeros((layout.rows, width), jnp.float32),
        jnp.zeros((layout.rows,), jnp.float32),
    )
    sums_ref[split, here, :], partition_ref[split, here] = layout.visit(block, split, chunk, empty)
