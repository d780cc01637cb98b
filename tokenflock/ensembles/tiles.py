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
from .plan import BOSH_ERROR, BOSH_STAGES, SLIVER, Plan, next_step


def integrate_tiles(
    plan: Plan, x: Float[Array, "systems n d"], beta: Float[Array, " systems"]
) -> Float[Array, "statistics times systems"]:
    """Fraction of pairs that have met and length of the mean, of every system at every save."""
    systems, n, d = x.shape
    rows, width = (max(16, pl.next_power_of_2(size)) for size in (n, d))
    points = jnp.pad(x.astype(jnp.float32), ((0, 0), (0, rows - n), (0, width - d)))
    shape = (2, plan.saves + 1, systems)
    call = pl.pallas_call(
        lambda *refs: _Program(plan, n, rows, *refs).run(),
        out_shape=jax.ShapeDtypeStruct(shape, jnp.float32),
        grid=(systems,),
        in_specs=[whole(systems), whole(*points.shape)],
        out_specs=whole(*shape),
        # Two warps for 32 tokens (measured on an H200), more where the tile is larger.
        **compiled_with(plan.interpret, warps=max(2, rows // 16), stages=1),
    )
    return call(beta.astype(jnp.float32), points)


class _Program:
    """What one program does with one system of (rows, width) numbers, of which n rows are tokens."""

    def __init__(self, plan: Plan, n: int, rows: int, beta_ref: Any, x_ref: Any, out: Any):
        self.plan, self.n, self.x_ref, self.out = plan, n, x_ref, out
        self.system = pl.program_id(0)
        self.beta = beta_ref[self.system]
        positions = jnp.arange(rows, dtype=jnp.int32)
        self.real = jnp.where(positions < n, 1.0, 0.0).astype(jnp.float32)

    def run(self) -> None:
        """Advance from save to save."""
        x = self.x_ref[self.system, :, :]
        carry = (x, jnp.float32(min(0.01, self.plan.interval))) if self.plan.adaptive else x
        interval = self.flow if self.plan.adaptive else self.network
        carry = jax.lax.fori_loop(jnp.int32(0), jnp.int32(self.plan.saves), interval, carry)
        x = carry[0] if self.plan.adaptive else carry
        self.record(jnp.int32(self.plan.saves), x, self.gram(x))

    def network(self, k: Array, x: Array) -> Array:
        """The layers between two saves."""
        gram = self.gram(x)
        self.record(k, x, gram)
        x = self.layer(x, gram)
        more = jnp.int32(self.plan.per_save - 1)
        return jax.lax.fori_loop(jnp.int32(0), more, lambda i, x: self.layer(x, self.gram(x)), x)

    def layer(self, x: Array, gram: Array) -> Array:
        """x <- (x + h V m)/|x + h V m|."""
        return _unit(x + self.plan.step * self.force(x, gram))

    def flow(self, k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        """Adaptive steps from one save to the next."""
        x, step = carry
        self.record(k, x, self.gram(x))

        def unfinished(state: tuple[Array, ...]) -> Array:
            return (state[1] > 0.0) & (state[3] < self.plan.max_steps)

        state = (x, jnp.float32(self.plan.interval), step, jnp.int32(0))
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
        error = jnp.max(jnp.abs(taken * sum(parts[1:], parts[0]))) / self.plan.tolerance
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
        halves = split_inside(x, self.plan.interpret)
        return split_product(halves, halves, transposed=True)

    def force(self, x: Array, gram: Array) -> Array:
        """V times the attention output; rows that are no tokens weigh nothing and stay zero."""
        steep = self.beta * LOG2E
        weight = exp2(gram * steep - steep, self.plan.interpret) * self.real[None, :]
        partition = jnp.sum(weight, axis=1)
        halves = split_inside(weight, self.plan.interpret)
        sums = split_product(halves, split_inside(x, self.plan.interpret), transposed=False)
        scale = self.plan.force_scale(partition, self.beta, self.n) * self.real
        return scale[:, None] * sums

    def record(self, k: Array, x: Array, gram: Array) -> None:
        """Statistics at save k."""
        pairs = self.real[:, None] * self.real[None, :]
        met = jnp.sum(jnp.where(gram >= 1.0 - self.plan.delta, pairs, 0.0))
        total = jnp.sum(x, axis=0)
        self.out[0, k, self.system] = (met - self.n) / (self.n * (self.n - 1.0))
        self.out[1, k, self.system] = jnp.sqrt(jnp.sum(total * total)) / self.n


def _unit(x: Array) -> Array:
    """Rows of length one; rows of zeros stay."""
    squares = jnp.sum(x * x, axis=1)
    return x * jax.lax.rsqrt(jnp.where(squares > 0.0, squares, 1.0))[:, None]
