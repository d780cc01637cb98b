"""Kernel for larger d: one program integrates one system, tokens in registers, products on tensor cores.

The layer written here is that of `Dynamics.layer`, fused with its sums: a kernel cannot call it, and tests
hold the one to the other.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float

from ..reduce.kernel.instructions import LOG2E, exp2
from ..reduce.kernel.layout import compiled_with, whole
from ..reduce.kernel.wide import split_inside, split_product
from .launch import BOSH_ERROR, BOSH_STAGES, SLIVER, Launch, next_step


def integrate_tiles(
    launch: Launch, x: Float[Array, "systems n d"], beta: Float[Array, " systems"]
) -> tuple[Float[Array, "statistics times systems"], Float[Array, "systems n d"]]:
    """Fraction of pairs that have met and length of the mean of every system at every save; last tokens."""
    systems, n, d = x.shape
    rows, width = (max(16, pl.next_power_of_2(size)) for size in (n, d))
    points = jnp.pad(x.astype(jnp.float32), ((0, 0), (0, rows - n), (0, width - d)))
    shapes = [(2, launch.saves + 1, systems), points.shape]
    call = pl.pallas_call(
        lambda *refs: _Program(launch, n, rows, *refs).run(),
        out_shape=[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes],
        grid=(systems,),
        in_specs=[whole(systems), whole(*points.shape)],
        out_specs=[whole(*shape) for shape in shapes],
        # Two warps for 32 tokens (measured on an H200), more where the tile is larger.
        **compiled_with(launch.interpret, warps=max(2, rows // 16), stages=1),
    )
    statistics, last = call(beta.astype(jnp.float32), points)
    return statistics, last[:, :n, :d]


class _Program:
    """What one program does with one system of (rows, width) numbers, of which n rows are tokens."""

    def __init__(
        self, launch: Launch, n: int, rows: int, beta_ref: Any, x_ref: Any, out: Any, last: Any
    ):
        self.launch, self.n, self.x_ref, self.out, self.last = launch, n, x_ref, out, last
        self.system = pl.program_id(0)
        self.beta = beta_ref[self.system]
        positions = jnp.arange(rows, dtype=jnp.int32)
        self.real = jnp.where(positions < n, 1.0, 0.0).astype(jnp.float32)

    def run(self) -> None:
        """Advance from save to save."""
        x = self.x_ref[self.system, :, :]
        carry = (x, jnp.float32(min(0.01, self.launch.interval))) if self.launch.adaptive else x
        interval = self.flow if self.launch.adaptive else self.network
        carry = jax.lax.fori_loop(jnp.int32(0), jnp.int32(self.launch.saves), interval, carry)
        x = carry[0] if self.launch.adaptive else carry
        self.record(jnp.int32(self.launch.saves), x, self.gram(x))
        self.last[self.system, :, :] = x

    def network(self, k: Array, x: Array) -> Array:
        """The layers between two saves."""
        gram = self.gram(x)
        self.record(k, x, gram)
        x = self.layer(x, gram)
        more = jnp.int32(self.launch.per_save - 1)
        return jax.lax.fori_loop(jnp.int32(0), more, lambda i, x: self.layer(x, self.gram(x)), x)

    def layer(self, x: Array, gram: Array) -> Array:
        """x <- (x + h V m)/|x + h V m|."""
        return _unit(x + self.launch.step * self.force(x, gram))

    def flow(self, k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        """Adaptive steps from one save to the next."""
        x, step = carry
        self.record(k, x, self.gram(x))

        def unfinished(state: tuple[Array, ...]) -> Array:
            return (state[1] > 0.0) & (state[3] < self.launch.max_steps)

        state = (x, jnp.float32(self.launch.interval), step, jnp.int32(0))
        x, left, step, _ = jax.lax.while_loop(unfinished, self.step, state)
        # A system that did not get to the save has no statistics from here on.
        return x + jnp.where(left > 0.0, jnp.sqrt(-left), 0.0), step

    def step(self, state: tuple[Array, ...]) -> tuple[Array, ...]:
        """One step of Bogacki and Shampine's pair, taken or refused."""
        x, left, step, number = state
        taken = jnp.where(left - step < SLIVER * step, left, jnp.minimum(step, left))
        slopes, new = [self.slope(x)], x
        for weights in BOSH_STAGES:
            moves = [w * slope for w, slope in zip(weights, slopes, strict=True) if w]
            new = _unit(x + taken * sum(moves[1:], moves[0]))
            slopes.append(self.slope(new))
        parts = [w * slope for w, slope in zip(BOSH_ERROR, slopes, strict=True)]
        error = jnp.max(jnp.abs(taken * sum(parts[1:], parts[0]))) / self.launch.tolerance
        accepted = error <= 1.0
        x = jnp.where(accepted, new, x)
        left = jnp.where(accepted, left - taken, left)
        return x, left, next_step(step, taken, error), number + 1

    def slope(self, x: Array) -> Array:
        """P_x(V m)."""
        force = self.force(x, self.gram(x))
        return force - jnp.sum(x * force, axis=1)[:, None] * x

    def gram(self, x: Array) -> Array:
        """<x_i, x_j>."""
        halves = split_inside(x, self.launch.interpret)
        return split_product(halves, halves, transposed=True)

    def force(self, x: Array, gram: Array) -> Array:
        """V times the attention output; rows that are no tokens weigh nothing and stay zero."""
        steep = self.beta * LOG2E
        weight = exp2(gram * steep - steep, self.launch.interpret) * self.real[None, :]
        partition = jnp.sum(weight, axis=1)
        halves = split_inside(weight, self.launch.interpret)
        sums = split_product(halves, split_inside(x, self.launch.interpret), transposed=False)
        scale = self.launch.force_scale(partition, self.beta, self.n) * self.real
        return scale[:, None] * sums

    def record(self, k: Array, x: Array, gram: Array) -> None:
        """Statistics at save k."""
        pairs = self.real[:, None] * self.real[None, :]
        met = jnp.sum(jnp.where(gram >= 1.0 - self.launch.delta, pairs, 0.0))
        total = jnp.sum(x, axis=0)
        self.out[0, k, self.system] = (met - self.n) / (self.n * (self.n - 1.0))
        self.out[1, k, self.system] = jnp.sqrt(jnp.sum(total * total)) / self.n


def _unit(x: Array) -> Array:
    """Rows of length one; rows of zeros stay."""
    squares = jnp.sum(x * x, axis=1)
    return x * jax.lax.rsqrt(jnp.where(squares > 0.0, squares, 1.0))[:, None]
