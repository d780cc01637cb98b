"""GpuKernel: the sums of exponential attention in one fused float32 GPU program, written in Pallas."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...errors import require
from ...kinds import safe_divide
from ..base import Problem, Reduction, Task, largest_score, machine_epsilon
from ..peak import KnownPeak
from ..tiled import Tiled
from . import narrow, wide
from .instructions import LOG2E
from .layout import Layout

# Up to here lanes beat tensor cores (d = 4: 1.15e12 against 1.40e12 pairs/s on an H200).
NARROW = 3
WIDEST = 256


class GpuKernel(Reduction):
    """sum_j e^{s_ij} [v_j, 1] with scores, exponential and both sums in registers; memory O(n).

    For softmax (dot product and L2) and USA, d up to 256, full, causal and ALiBi masks, weighted tokens.
    Works in float32 whatever the tokens are stored in. Scores are rounded once per coordinate, sums run
    over chunks of at most 64 columns and are then compensated (d <= 3) or added to nearest (above), so
    errors do not grow with n: near 5e-7 of the largest value at beta = 9. Derivatives come from Tiled.
    Tokens lighter than 1e-30 of the heaviest are below float32: their own rows lose their digits.
    `interpret=True` runs the same program in plain JAX on any machine, slowly: for tests.
    """

    interpret: bool = eqx.field(static=True, default=False)
    # beta times the longest score, once known: what rounding is measured against.
    steepness: float | None = eqx.field(static=True, default=None)

    def __call__(self, problem: Problem) -> Array:
        refuse(problem.task(), self.interpret)
        return _attend(self.interpret, problem)

    def settle(self, tasks: Sequence[Task]) -> GpuKernel:
        for task in tasks:
            refuse(task, self.interpret)
        return GpuKernel(self.interpret, largest_score(tasks))

    def error_bound(self, problem_size: int) -> float:
        # A score beta <q, k> carries d + 2 roundings of its size, a chunk 64 of a partial sum; ex2 and
        # the quotient a few more. Taken as if all pointed the same way.
        steepness = 10.0 if self.steepness is None else self.steepness
        return machine_epsilon(jnp.float32) / 2 * (4 * steepness + narrow.CHUNK + 8)

    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        return 4 * heads * samples * n * (16 * 8 + 4 * 16)


def refuse(task: Task, interpret: bool) -> None:
    """Say what this kernel cannot do, before it is compiled."""
    require(
        interpret or task.platform in ("gpu", "cuda"),
        f"GpuKernel needs an NVIDIA GPU, this machine computes on {task.platform}; use reduction=Tiled()",
    )
    require(
        task.kind.exponent is not None,
        f"GpuKernel sums exponentials (softmax and USA), not {task.kind.name} attention; use "
        "reduction=Tiled()",
    )
    require(
        task.d <= WIDEST,
        f"GpuKernel needs d <= {WIDEST}, got d={task.d}; use reduction=Tiled()",
    )
    known = task.mask.sees_all or (task.mask.causal and task.kind.averages)
    require(
        known,
        f"GpuKernel does not know {type(task.mask).__name__} masks with {type(task.kind).__name__} "
        "attention; use reduction=Tiled()",
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(interpret: bool, problem: Problem) -> Float[Array, "rows m"]:
    """The sums in float32, given back in the precision of the values."""
    out = _sums(interpret, problem.cast("float32"))
    return out.astype(problem.values.dtype)


def _forward(interpret: bool, problem: Problem) -> tuple[Array, Problem]:
    return _attend(interpret, problem), problem


def _backward(interpret: bool, problem: Problem, cotangent: Array) -> tuple[Problem]:
    _, pull_back = jax.vjp(Tiled(precision="float32"), problem)
    return pull_back(cotangent)


_attend.defvjp(_forward, _backward)


def _sums(interpret: bool, problem: Problem) -> Array:
    form = _Exponents.of(problem)
    facts = {
        "ordered": problem.mask.needs_order,
        "skips_own": problem.drop_self or not problem.mask.sees_itself,
        "interpret": interpret,
    }
    if max(problem.keys.shape[1], problem.values.shape[1]) <= NARROW:
        return _narrow(problem, form, facts)
    return _wide(problem, form, facts)


class _Exponents(eqx.Module):
    """Weights as powers of two: 2^{<q_i, k_j> + bias_j - peak_i}, times a factor common to all."""

    queries: Float[Array, "rows d"]
    bias: Float[Array, " columns"]
    peaks: Float[Array, " rows"] | None
    largest_mass: Float[Array, ""]

    @staticmethod
    def of(problem: Problem) -> _Exponents:
        """The exponents of a problem, with a peak that keeps them at most zero."""
        kind, beta = problem.kind, problem.beta * LOG2E
        top = jnp.max(problem.log_weights)
        bias = (problem.log_weights - top) * LOG2E
        of_keys = kind.key_bias(problem.keys, beta)
        bias = bias if of_keys is None else bias + of_keys
        if problem.mask.decay is not None:
            bias = bias + problem.mask.decay * LOG2E * jnp.arange(bias.size) / bias.size
        assert kind.exponent is not None
        queries = (problem.queries * (kind.exponent * beta)).astype(jnp.float32)
        form = _Exponents(queries, bias.astype(jnp.float32), None, top)
        return form._with_peak(problem)

    def _with_peak(self, problem: Problem) -> _Exponents:
        if not problem.kind.averages:
            return self._shifted(problem.kind.shift(problem.beta) * LOG2E)
        if KnownPeak.of(problem) is None:
            return self
        # The row's own exponent, less what of it depends on the row alone.
        own = _own_exponent(problem)
        form = self._shifted(own)
        if problem.mask.decay is None:
            return form
        # Of the columns it can see, its own has the largest bias, or the first if the slope falls.
        positions = jnp.arange(self.queries.shape[0])
        slope = jnp.maximum(problem.mask.decay, 0.0)
        return form.peaked(slope * LOG2E * positions / self.bias.size)

    def _shifted(self, constant: Array) -> _Exponents:
        return _Exponents(self.queries, self.bias - constant, self.peaks, self.largest_mass)

    def peaked(self, peaks: Array) -> _Exponents:
        """With a shift per row."""
        finite = jnp.where(jnp.isfinite(peaks), peaks, 0.0).astype(jnp.float32)
        return _Exponents(self.queries, self.bias, finite, self.largest_mass)

    def finish(self, problem: Problem, sums: Float[Array, "rows w"]) -> Array:
        """The kind's normalisation of numerator and partition function."""
        numerator, partition = sums[:, :-1], sums[:, -1:]
        if not problem.kind.averages:
            mass = jnp.sum(jnp.exp(problem.log_weights - self.largest_mass))
            if self.peaks is not None:
                # Nothing times a peak beyond float32 is still nothing.
                scaled = numerator * jnp.exp2(self.peaks)[:, None]
                numerator = jnp.where(numerator == 0, 0.0, scaled)
            return problem.kind.speed(problem.beta) * numerator / mass
        if problem.drop_self and problem.mask.sees_itself:
            rows = self.queries.shape[0]
            own = jnp.sum(self.queries * problem.keys[:rows], axis=-1) + self.bias[:rows]
            own = own if self.peaks is None else own - self.peaks
            partition = partition + jnp.exp2(own)[:, None]
        return safe_divide(numerator, partition)


def _own_exponent(problem: Problem) -> Array:
    """a beta <x, x> + b of a unit token with itself, in powers of two: 2 beta - beta of an L2 score."""
    kind, beta = problem.kind, problem.beta * LOG2E
    assert kind.exponent is not None
    bias = kind.key_bias(jnp.eye(1, problem.keys.shape[1]), beta)
    return kind.exponent * beta + (0.0 if bias is None else bias[0])


def _narrow(problem: Problem, form: _Exponents, facts: dict) -> Array:
    rows, columns = problem.queries.shape[0], problem.keys.shape[0]
    layout = Layout.of(rows, columns, narrow.ROWS, narrow.CHUNK, **facts)
    if _seeks_peak(problem):
        form = form.peaked(narrow.narrow_peaks(layout, form.queries, problem.keys, form.bias))
    values = None if problem.own_values else problem.values
    sums = narrow.narrow_sums(layout, form.queries, problem.keys, values, form.bias, form.peaks)
    return form.finish(problem, sums)


def _wide(problem: Problem, form: _Exponents, facts: dict) -> Array:
    rows, columns = problem.queries.shape[0], problem.keys.shape[0]
    shape = wide.tile(max(problem.keys.shape[1], problem.values.shape[1]))
    layout = Layout.of(rows, columns, shape.rows, shape.chunk, **facts)
    if _seeks_peak(problem):
        form = form.peaked(_rough_peaks(problem, form))
    # Halves of eleven bits want numbers of order one: lengths go into the scale of each row.
    lengths = jnp.linalg.norm(form.queries, axis=-1)
    directions = form.queries / jnp.where(lengths > 0, lengths, 1.0)[:, None]
    key_size, value_size = _size(problem.keys), _size(problem.values)
    keys = problem.keys / key_size
    values = None if problem.own_values else problem.values / value_size
    scale = lengths * key_size
    sums = wide.wide_sums(layout, directions, keys, values, form.bias, form.peaks, scale)
    sums = sums.at[:, :-1].multiply(key_size if values is None else value_size)
    return form.finish(problem, sums)


def _seeks_peak(problem: Problem) -> bool:
    """Whether exponents could rise above zero, or stay far below it in a whole row."""
    if not problem.kind.averages:
        return not (problem.own_keys and problem.unit_keys)
    return KnownPeak.of(problem) is None


def _rough_peaks(problem: Problem, form: _Exponents) -> Float[Array, " rows"]:
    """Largest exponent of each row, a block of rows at a time; rough, since any shift near it will do."""
    columns = jnp.arange(form.bias.size)

    def row(query: Array, position: Array) -> Array:
        exponents = problem.keys @ query + form.bias
        visible = problem.mask.log_factor(position[None], columns, columns.size)
        if visible is not None:
            exponents = jnp.where(visible[0] > -jnp.inf, exponents, -jnp.inf)
        return jnp.max(exponents)

    rows = jnp.arange(form.queries.shape[0])
    with jax.default_matmul_precision("default"):
        return jax.lax.map(lambda one: row(*one), (form.queries, rows), batch_size=1024)


def _size(vectors: Float[Array, "n d"]) -> Array:
    largest = jnp.max(jnp.abs(vectors))
    return jnp.where(largest > 0, largest, 1.0)
