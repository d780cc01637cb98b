"""Kernel for small d: one lane integrates one system, so that a whole phase diagram is one launch.

Coordinates lie as (slot, coordinate, token, system): neighbouring lanes read neighbouring numbers, no
lane ever waits for another, and no step returns to the host. The layer written here is that of
`Dynamics.layer`, fused with its sums: a kernel cannot call it, and tests hold the one to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jaxtyping import Array, Float

from ..reduce.kernel.instructions import LOG2E, exp2, fma
from ..reduce.kernel.layout import compiled_with, whole
from .launch import BOSH_ERROR, BOSH_STAGES, SLIVER, Launch, next_step

# One warp to a program: measured fastest on an H200 (0.027 s for the panel against 0.030 with four).
LANES = 32
# Tokens whose sums a lane holds in registers at once.
TOKENS = 8
# Slots of the state: current, stage, and (adaptive) the four slopes of the embedded pair.
HERE, STAGE, SLOPES = 0, 1, 2
Vector = list[Array]


def integrate_lanes(
    launch: Launch, x: Float[Array, "systems n d"], beta: Float[Array, " systems"]
) -> tuple[Float[Array, "statistics times systems"], Float[Array, "systems n d"]]:
    """Fraction of pairs that have met and length of the mean of every system at every save; last tokens."""
    systems, n, d = x.shape
    missing = -systems % LANES
    lanes = ((0, 0), (0, 0), (0, missing))
    points = jnp.pad(x.astype(jnp.float32).transpose(2, 1, 0), lanes, mode="edge")
    betas = jnp.pad(beta.astype(jnp.float32), (0, missing), mode="edge")
    slots = SLOPES + 4 if launch.adaptive else 2
    shapes = [(slots, d, n, betas.size), (2, launch.saves + 1, betas.size)]
    call = pl.pallas_call(
        lambda *refs: _Program(launch, n, d, *refs).run(),
        out_shape=[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes],
        grid=(betas.size // LANES,),
        in_specs=[whole(betas.size), whole(d, n, betas.size)],
        out_specs=[whole(*shape) for shape in shapes],
        **compiled_with(launch.interpret, warps=1, stages=1),
    )
    state, statistics = call(betas, points)
    last = HERE if launch.adaptive else launch.layers % 2
    return statistics[:, :, :systems], state[last, :, :, :systems].transpose(2, 1, 0)


class _Program:
    """What one block of lanes does."""

    def __init__(
        self, launch: Launch, n: int, d: int, beta_ref: Any, x_ref: Any, state: Any, out: Any
    ):
        self.launch, self.n, self.d, self.x_ref, self.state, self.out = (
            launch,
            n,
            d,
            x_ref,
            state,
            out,
        )
        self.lane = pl.ds(pl.program_id(0) * LANES, LANES)
        self.beta = beta_ref[self.lane]
        self.zero = jnp.zeros((LANES,), jnp.float32)

    def run(self) -> None:
        """Copy the start, then advance from save to save."""
        self.each(lambda i: self.write(HERE, i, [self.x_ref[c, i, self.lane] for c in self.axes]))
        if self.launch.adaptive:
            self.flow()
        else:
            self.network()

    @property
    def axes(self) -> range:
        """Coordinates of a token."""
        return range(self.d)

    def network(self) -> None:
        """Layers x <- (x + h V m)/|x + h V m|; the first after a save also counts the pairs of that save."""
        per_save = self.launch.per_save

        def interval(k: Array, done: int) -> int:
            here = jnp.bitwise_and(k * per_save, 1)
            self.record(k, self.layer(here, counting=True), here)
            rest = jnp.int32(k * per_save)
            return jax.lax.fori_loop(rest + 1, rest + per_save, quiet, done)

        def quiet(number: Array, done: int) -> int:
            self.layer(jnp.bitwise_and(number, 1), counting=False)
            return done

        self.loop(self.launch.saves, interval, 0)
        last = self.launch.layers % 2
        self.record(jnp.int32(self.launch.saves), self.count(last), last)

    def layer(self, here: Any, counting: bool) -> Array:
        """One layer from one slot to the other."""

        def update(i: Any, x: Vector, force: Vector) -> None:
            moved = [self.fma(force[c], self.launch.step, x[c]) for c in self.axes]
            self.write(1 - here, i, _unit(moved))

        return self.forces(here, update, counting)

    def flow(self) -> None:
        """The flow in steps of an embedded pair, each lane at its own pace between common saves."""
        self.slope(HERE, SLOPES)
        first = jnp.full((LANES,), min(0.01, self.launch.interval), jnp.float32)

        def unfinished(carry: tuple[Array, Array, Array]) -> Array:
            return (jnp.max(carry[0]) > 0.0) & (carry[2] < self.launch.max_steps)

        def interval(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            step, lost = state
            self.record(k, self.count(HERE), HERE, lost)
            left = jnp.full((LANES,), self.launch.interval, jnp.float32)
            left, step, _ = jax.lax.while_loop(unfinished, self.step, (left, step, jnp.int32(0)))
            return step, lost + jnp.where(left > 0.0, jnp.sqrt(-left), 0.0)

        _, lost = self.loop(self.launch.saves, interval, (first, self.zero))
        self.record(jnp.int32(self.launch.saves), self.count(HERE), HERE, lost)

    def step(self, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        """One step of every lane that has time left."""
        left, step, number = carry
        taken = jnp.where(left - step < SLIVER * step, left, jnp.minimum(step, left))
        for stage, weights in enumerate(BOSH_STAGES):
            self.stage(taken, weights)
            self.slope(STAGE, SLOPES + stage + 1)
        error = self.error(taken) / self.launch.tolerance
        accepted = (error <= 1.0) & (left > 0.0)
        self.accept(accepted)
        left = jnp.where(accepted, left - taken, left)
        return left, jnp.where(taken > 0.0, next_step(step, taken, error), step), number + 1

    def stage(self, step: Array, weights: tuple[float, ...]) -> None:
        """The retracted point x + step sum_s weights_s k_s of every token."""

        def move(i: Array) -> None:
            x = self.read(HERE, i)
            for number, weight in enumerate(weights):
                slope = self.read(SLOPES + number, i)
                x = [self.fma(slope[c], step * weight, x[c]) for c in self.axes]
            self.write(STAGE, i, _unit(x))

        self.each(move)

    def slope(self, slot: int, target: int) -> None:
        """The tangent force P_x(V m) at every token of a slot."""

        def project(i: Any, x: Vector, force: Vector) -> None:
            along = _dot(x, force)
            self.write(target, i, [force[c] - along * x[c] for c in self.axes])

        self.forces(slot, project, counting=False)

    def error(self, step: Array) -> Array:
        """Largest coordinate of the difference of the two orders."""

        def largest(i: Array, worst: Array) -> Array:
            parts = [self.read(SLOPES + number, i) for number in range(4)]
            for c in self.axes:
                total = sum((w * p[c] for w, p in zip(BOSH_ERROR, parts, strict=True)), self.zero)
                worst = jnp.maximum(worst, jnp.abs(step * total))
            return worst

        return self.loop(self.n, largest, self.zero)

    def accept(self, accepted: Array) -> None:
        """Take the new point, and its slope as the first of the next step, where the error allows."""

        def choose(i: Array) -> None:
            for old, new in ((HERE, STAGE), (SLOPES, SLOPES + 3)):
                pairs = zip(self.read(new, i), self.read(old, i), strict=True)
                self.write(old, i, [jnp.where(accepted, a, b) for a, b in pairs])

        self.each(choose)

    def forces(self, slot: Any, use: Callable[..., None], counting: bool) -> Array:
        """Call use(token, position, V m) for every token; returns how many ordered pairs have met."""

        def some(first: Any, size: int, met: Array) -> Array:
            tokens = [self.read(slot, first + a) for a in range(size)]
            outputs, met = self.attend(slot, tokens, met, counting)
            for a in range(size):
                use(first + a, tokens[a], outputs[a])
            return met

        blocks, met = self.n // TOKENS, self.zero
        if blocks:
            met = self.loop(blocks, lambda b, met: some(b * TOKENS, TOKENS, met), met)
        for token in range(blocks * TOKENS, self.n):
            met = some(token, 1, met)
        return met

    def attend(
        self, slot: Any, tokens: list[Vector], met: Array, counting: bool
    ) -> tuple[list[Vector], Array]:
        """V times the attention output of some tokens, and the count of pairs that have met."""
        width, steep = self.d + 1, self.beta * LOG2E

        def column(j: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
            sums, met = list(carry[:-1]), carry[-1]
            other = self.read(slot, j)
            for a, mine in enumerate(tokens):
                product = mine[0] * other[0]
                for c in range(1, self.d):
                    product = self.fma(mine[c], other[c], product)
                if counting:
                    met = met + jnp.where(product >= 1.0 - self.launch.delta, 1.0, 0.0)
                weight = exp2(self.fma(product, steep, -steep), self.launch.interpret)
                for c in self.axes:
                    sums[a * width + c] = self.fma(weight, other[c], sums[a * width + c])
                sums[a * width + self.d] = sums[a * width + self.d] + weight
            return (*sums, met)

        out = self.loop(self.n, column, (self.zero,) * (width * len(tokens)) + (met,))
        parts = [out[a * width : (a + 1) * width] for a in range(len(tokens))]
        scales = [self.launch.force_scale(part[-1], self.beta, self.n) for part in parts]
        forces = [[s * v for v in part[:-1]] for s, part in zip(scales, parts, strict=True)]
        return forces, out[-1]

    def count(self, slot: Any) -> Array:
        """How many ordered pairs have met, each token with itself included."""
        return self.forces(slot, lambda i, x, force: None, counting=True)

    def record(self, k: Array, met: Array, slot: Any, lost: Any = 0.0) -> None:
        """Statistics of the systems at save k; `lost` is NaN where a system did not get there."""

        def add(i: Array, total: tuple[Array, ...]) -> tuple[Array, ...]:
            return tuple(t + v for t, v in zip(total, self.read(slot, i), strict=True))

        total = list(self.loop(self.n, add, (self.zero,) * self.d))
        self.out[0, k, self.lane] = (met - self.n) / (self.n * (self.n - 1.0)) + lost
        self.out[1, k, self.lane] = jnp.sqrt(_dot(total, total)) / self.n + lost

    def each(self, act: Callable[[Array], None]) -> None:
        """Do something with every token."""

        def body(i: Array, done: int) -> int:
            act(i)
            return done

        self.loop(self.n, body, 0)

    def loop(self, count: int, body: Any, carry: Any) -> Any:
        """A loop whose index is 32 bits wide."""
        return jax.lax.fori_loop(jnp.int32(0), jnp.int32(count), body, carry)

    def read(self, slot: Any, token: Any) -> Vector:
        """The coordinates of one token, in every lane's system."""
        return [self.state[slot, c, token, self.lane] for c in self.axes]

    def write(self, slot: Any, token: Any, values: Vector) -> None:
        """Store them."""
        for c in self.axes:
            self.state[slot, c, token, self.lane] = values[c]

    def fma(self, a: Any, b: Any, c: Any) -> Array:
        """a b + c."""
        return fma(a, b, c, self.launch.interpret)


def _dot(x: Vector, y: Vector) -> Array:
    return sum((a * b for a, b in zip(x[1:], y[1:], strict=True)), x[0] * y[0])


def _unit(x: Vector) -> Vector:
    scale = jax.lax.rsqrt(_dot(x, x))
    return [scale * value for value in x]
