"""Kernel for d = 2 and 3: a lane owns whole rows and walks over the columns, one scalar load per coordinate.

Per pair: d multiply-adds for the score, one ex2, and m + 1 multiply-adds for numerator and partition
function. Sums run over a chunk of 64 columns and enter the total with Kahan's correction, so that
float32 errors do not grow with n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float

from .instructions import exp2, fma
from .layout import Layout, compiled_with, padded, whole

# Rows of a program (four to a lane), columns of a partial sum, and of an unrolled loop.
ROWS, CHUNK, UNROLL = 512, 64, 8
Sums = tuple[Array, ...]


def narrow_sums(
    layout: Layout,
    queries: Float[Array, "rows d"],
    keys: Float[Array, "columns d"],
    values: Float[Array, "columns m"] | None,
    bias: Float[Array, " columns"],
    peaks: Float[Array, " rows"] | None,
) -> Float[Array, "rows w"]:
    """sum_j 2^{<q_i, k_j> + bias_j - peak_i} [v_j, 1]; v = k where `values` is None."""
    d = keys.shape[1]
    width = d if values is None else values.shape[1]
    table = _table(layout, keys, bias, values)
    rows = [queries] if peaks is None else [queries, -peaks[:, None]]
    points = padded(jnp.concatenate(rows, axis=1), layout.padded_rows).T
    shape = (layout.splits, width + 1, layout.padded_rows)

    def program(*refs: Any) -> None:
        _program(layout, d, width, values is None, peaks is not None, *refs)

    sums = _launch(layout, program, points, table, shape)
    return jnp.sum(sums, axis=0)[:, : queries.shape[0]].T


def narrow_peaks(
    layout: Layout,
    queries: Float[Array, "rows d"],
    keys: Float[Array, "columns d"],
    bias: Float[Array, " columns"],
) -> Float[Array, " rows"]:
    """max_j <q_i, k_j> + bias_j over the columns that count."""
    d = keys.shape[1]
    table = _table(layout, keys, bias, None)
    points = padded(queries, layout.padded_rows).T
    shape = (layout.splits, layout.padded_rows)

    def program(*refs: Any) -> None:
        _peak_program(layout, d, *refs)

    peaks = _launch(layout, program, points, table, shape)
    return jnp.max(peaks, axis=0)[: queries.shape[0]]


def _table(layout: Layout, keys: Array, bias: Array, values: Array | None) -> Float[Array, "p w"]:
    """What a program reads of a column: its key, its bias, and its value where that is another."""
    columns = [keys, bias[:, None]] if values is None else [keys, bias[:, None], values]
    table = padded(jnp.concatenate(columns, axis=1), layout.padded_columns)
    # A column of no mass: its weight is 2^-inf whatever its score.
    return table.at[bias.shape[0] :, keys.shape[1]].set(-jnp.inf)


def _launch(
    layout: Layout,
    program: Callable[..., None],
    points: Array,
    table: Array,
    shape: tuple[int, ...],
) -> Array:
    call = pl.pallas_call(
        program,
        out_shape=jax.ShapeDtypeStruct(shape, jnp.float32),
        grid=(layout.row_blocks, layout.splits),
        in_specs=[whole(*points.shape), whole(*table.shape)],
        out_specs=whole(*shape),
        **compiled_with(layout.interpret, warps=4, stages=1),
    )
    return call(points, table)


def _program(
    layout: Layout,
    d: int,
    width: int,
    shared: bool,
    shifted: bool,
    q_ref: Any,
    k_ref: Any,
    out_ref: Any,
) -> None:
    block, split = pl.program_id(0), pl.program_id(1)
    here = pl.ds(block * layout.rows, layout.rows)
    q = [q_ref[c, here] for c in range(d)]
    shift = q_ref[d, here] if shifted else None
    positions = block * layout.rows + jnp.arange(layout.rows, dtype=jnp.int32)
    zero = jnp.zeros((layout.rows,), jnp.float32)

    def pair(j: Array, sums: Sums, masked: bool) -> Sums:
        k = [k_ref[j, c] for c in range(d)]
        v = k if shared else [k_ref[j, d + 1 + c] for c in range(width)]
        weight = exp2(_exponent(layout, q, k, k_ref[j, d], shift), layout.interpret)
        if masked:
            weight = jnp.where(layout.counts(positions, j), weight, 0.0)
        parts = [fma(weight, v[c], sums[c], layout.interpret) for c in range(width)]
        return (*parts, sums[width] + weight)

    def chunk(index: Array, carry: tuple[Sums, Sums], masked: bool) -> tuple[Sums, Sums]:
        def some(step: Array, sums: Sums) -> Sums:
            for u in range(UNROLL):
                sums = pair(index * layout.chunk + step * UNROLL + u, sums, masked)
            return sums

        part = jax.lax.fori_loop(
            jnp.int32(0), jnp.int32(layout.chunk // UNROLL), some, (zero,) * (width + 1)
        )
        return _kahan(carry, part)

    empty = ((zero,) * (width + 1), (zero,) * (width + 1))
    totals, _ = layout.visit(block, split, chunk, empty)
    for c in range(width + 1):
        out_ref[split, c, here] = totals[c]


def _peak_program(layout: Layout, d: int, q_ref: Any, k_ref: Any, out_ref: Any) -> None:
    block, split = pl.program_id(0), pl.program_id(1)
    here = pl.ds(block * layout.rows, layout.rows)
    q = [q_ref[c, here] for c in range(d)]
    positions = block * layout.rows + jnp.arange(layout.rows, dtype=jnp.int32)

    def chunk(index: Array, peak: Array, masked: bool) -> Array:
        def one(step: Array, peak: Array) -> Array:
            j = index * layout.chunk + step
            k = [k_ref[j, c] for c in range(d)]
            exponent = _exponent(layout, q, k, k_ref[j, d], None)
            if masked:
                exponent = jnp.where(layout.counts(positions, j), exponent, -jnp.inf)
            return jnp.maximum(peak, exponent)

        return jax.lax.fori_loop(jnp.int32(0), jnp.int32(layout.chunk), one, peak)

    empty = jnp.full((layout.rows,), -jnp.inf, jnp.float32)
    out_ref[split, here] = layout.visit(block, split, chunk, empty)


def _exponent(
    layout: Layout, q: list[Array], k: list[Array], bias: Array, shift: Array | None
) -> Array:
    exponent = bias if shift is None else bias + shift
    for mine, theirs in zip(q, k, strict=True):
        exponent = fma(mine, theirs, exponent, layout.interpret)
    return exponent


def _kahan(carry: tuple[Sums, Sums], parts: Sums) -> tuple[Sums, Sums]:
    """Totals and their lost low parts, with one more partial sum each."""
    totals, lost = [], []
    for total, low, part in zip(*carry, parts, strict=True):
        corrected = part - low
        following = total + corrected
        lost.append((following - total) - corrected)
        totals.append(following)
    return tuple(totals), tuple(lost)
