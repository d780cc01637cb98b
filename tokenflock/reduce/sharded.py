"""Sharded: one system over many devices and hosts, each device with its share of the rows."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int

from ..errors import InputError, require
from ..kinds import Carry, Fold, Kind
from ..masks import Mask
from .base import Problem, Reduction, Task, machine_epsilon
from .tiled import Tiled

AXIS = "tokens"
SPLIT, WHOLE = PartitionSpec(AXIS), PartitionSpec()


def _named(devices: Sequence[Any] | None) -> tuple[str, ...] | None:
    """Devices as plain text, which a stored run can hold."""
    if devices is None:
        return None
    return tuple(d if isinstance(d, str) else f"{d.platform}:{d.id}" for d in devices)


class Sharded(Reduction):
    """The rows of a sum split over p devices: n^2/p scores each, and n x n of them nowhere.

    | exchange | the keys of other devices are seen | tokens and result | inner reduction |
    |---|---|---|---|
    | gather | all at once | whole on every device | evaluates the n/p rows |
    | ring | in blocks of n/p, passed round p times | stay split through a solve | for one device only |

    Over several processes the result is whole everywhere with the ring too, so that every process can
    read, save and stop by it: a gather of n x m numbers, small beside n^2/p scores. `devices=None`
    means all of `jax.devices()`, those of other processes included. Kinds that are no single sum over
    tokens (Sinkhorn) are refused. docs/many_devices.md says how to start several processes.
    """

    spans_devices: ClassVar[bool] = True

    inner: Reduction = Tiled()
    exchange: str = eqx.field(static=True, default="gather")
    devices: tuple[str, ...] | None = eqx.field(static=True, default=None, converter=_named)

    def __check_init__(self) -> None:
        require(
            self.exchange in ("gather", "ring"),
            f"Sharded exchanges keys by 'gather' or 'ring', got exchange={self.exchange!r}",
        )
        require(
            self.devices is None or 0 < len(self.devices) == len(set(self.devices)),
            f"Sharded needs at least one device and each of them once, got {self.devices}; "
            "leave out devices to use all",
        )

    def __call__(self, problem: Problem) -> Float[Array, "rows m"]:
        _fold_of(problem.kind)
        mesh = self.mesh()
        return self.inner(problem) if mesh.size == 1 else _spread(self, problem, mesh)

    def mesh(self) -> Mesh:
        """The devices in a row, along which tokens are split."""
        return Mesh(np.array(_found(self.devices)), (AXIS,), axis_types=(AxisType.Auto,))

    def settle(self, tasks: Sequence[Task]) -> Sharded:
        for task in tasks:
            _fold_of(task.kind)
        found = _found(self.devices)
        require(
            any(device.process_index == jax.process_index() for device in found),
            f"Sharded was given {_named(found)}, none of which belongs to process "
            f"{jax.process_index()}; leave out devices to use all",
        )
        return Sharded(self.inner.settle(tasks), self.exchange, _named(found))

    def error_bound(self, problem_size: int) -> float:
        # Rows are summed in another order than Dense does, whatever the inner reduction adds to that.
        return self.inner.error_bound(problem_size) + machine_epsilon(float) * problem_size

    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        """On each device."""
        devices = self.mesh().size
        whole = self.inner.peak_bytes(n, heads, samples)
        if devices == 1:
            return whole
        rows, columns = self.sides()
        block = 3 * min(rows, n) * min(columns, n)
        own = whole // devices if self.exchange == "gather" else 8 * heads * samples * block
        return own + 8 * heads * samples * 2 * n * 16

    def sides(self) -> tuple[int, int]:
        """Rows and columns of a block of scores in the ring."""
        return (self.inner if isinstance(self.inner, Tiled) else Tiled()).sides()


def _fold_of(kind: Kind) -> Fold:
    fold = kind.fold()
    if fold is None:
        raise InputError(
            f"{kind.name} attention is not a single sum over tokens, so its rows cannot be "
            "split over devices; use reduction=Dense()"
        )
    return fold


def _found(names: tuple[str, ...] | None) -> list[jax.Device]:
    """The devices of these names, those of other processes included."""
    if names is None:
        return jax.devices()
    known = {f"{d.platform}:{d.id}": d for d in jax.devices(names[0].split(":")[0])}
    missing = [name for name in names if name not in known]
    require(
        not missing,
        f"Sharded was given the devices {missing}, this program has {list(known)}; leave out "
        "devices to use all",
    )
    return [known[name] for name in names]


@eqx.filter_jit
def _spread(reduction: Sharded, problem: Problem, mesh: Mesh) -> Float[Array, "rows m"]:
    """The sums of every row, each device evaluating its share of the rows."""
    rows = problem.queries.shape[0]
    if reduction.exchange == "ring" and not _several_processes(mesh):
        return _ring(reduction, problem, mesh)[:rows]
    # Told nothing, the compiler splits the caller's arrays as well, up to what a solve gives back,
    # of which a process could then read its own part alone.
    problem = _with_vectors(problem, *_everywhere(_vectors(problem), mesh))
    exchange = _ring if reduction.exchange == "ring" else _gather
    return _everywhere(exchange(reduction, problem, mesh), mesh)[:rows]


def _several_processes(mesh: Mesh) -> bool:
    return len({device.process_index for device in mesh.devices.flat}) > 1


def _everywhere(arrays: Any, mesh: Mesh) -> Any:
    """The arrays, whole on every device."""
    return jax.lax.with_sharding_constraint(arrays, NamedSharding(mesh, WHOLE))


def _vectors(problem: Problem) -> tuple[Any, Any, Any, Any]:
    """What has one entry per row or column."""
    return problem.queries, problem.keys, problem.values, problem.log_weights


def _with_vectors(problem: Problem, *vectors: Any) -> Problem:
    return eqx.tree_at(_vectors, problem, vectors)


def _on_each(
    part: Callable[[Problem], Array], problem: Problem, mesh: Mesh, keys: PartitionSpec
) -> Array:
    """Rows of `part` on every device, which sees its own queries and the keys split or whole."""
    arrays, rest = eqx.partition(problem, eqx.is_array)
    specs = _with_vectors(jax.tree.map(lambda _: WHOLE, arrays), SPLIT, keys, keys, keys)
    return jax.shard_map(
        lambda local: part(eqx.combine(local, rest)),
        mesh=mesh,
        in_specs=(specs,),
        out_specs=SPLIT,
        # Inner reductions start their loops from plain zeros, which the check takes for an error.
        check_vma=False,
    )(arrays)


def _padded(problem: Problem, rows: int, columns: int) -> Problem:
    """More rows, to be dropped, and more columns, of no mass; repeated tokens stay on the sphere."""
    more_rows, more_columns = rows - problem.queries.shape[0], columns - problem.keys.shape[0]
    return _with_vectors(
        problem,
        jnp.pad(problem.queries, ((0, more_rows), (0, 0)), mode="edge"),
        jnp.pad(problem.keys, ((0, more_columns), (0, 0)), mode="edge"),
        jnp.pad(problem.values, ((0, more_columns), (0, 0)), mode="edge"),
        jnp.pad(problem.log_weights, (0, more_columns), constant_values=-jnp.inf),
    )


class Turned(Mask):
    """The mask of a part whose row and column 0 are the position `first` of a circle of tokens."""

    mask: Mask
    first: Int[Array, ""]
    n: int = eqx.field(static=True)
    # Its rows and columns are not in reading order: nothing may be concluded from j > i.
    needs_order = False

    def log_factor(self, rows: Array, columns: Array, n: int) -> Array | None:
        return self.mask.log_factor(rows + self.first, (columns + self.first) % n, self.n)


def _gather(reduction: Sharded, problem: Problem, mesh: Mesh) -> Array:
    """The inner reduction on the rows of each device and all columns.

    A device sees the columns turned so that its own tokens come first: row and column 0 are then
    the same token, as a reduction that drops or knows a row's own value takes for granted.
    """
    rows, n = problem.queries.shape[0], problem.keys.shape[0]
    share = -(-rows // mesh.size)

    def part(local: Problem) -> Array:
        first = jax.lax.axis_index(AXIS) * share
        turned = (jnp.roll(array, -first, axis=0) for array in _vectors(local)[1:])
        mask = local.mask if local.mask.sees_all else Turned(local.mask, first, n)
        local = _with_vectors(local, local.queries, *turned)
        # Behind a turned mask a row may not see its own column, and own_keys would promise it.
        own = local.own_keys and mask.sees_all
        return reduction.inner(dataclasses.replace(local, mask=mask, own_keys=own))

    return _on_each(part, _padded(problem, share * mesh.size, max(rows, n)), mesh, keys=WHOLE)


class Cut(NamedTuple):
    """The share of one device: `tiles` blocks of `size` rows or columns."""

    tiles: int
    size: int

    @property
    def share(self) -> int:
        return self.tiles * self.size

    def starts(self, first: Array) -> Array:
        """Position of the first token of every tile."""
        return first + self.size * jnp.arange(self.tiles)


def _cut(count: int, devices: int, tile: int) -> Cut:
    """Equal tiles of at most `tile`, so that padding stays below one row per tile."""
    share = -(-count // devices)
    tiles = -(-share // tile)
    return Cut(tiles, -(-share // tiles))


def _ring(reduction: Sharded, problem: Problem, mesh: Mesh) -> Array:
    """The fold of the kind, while blocks of keys and values go round the devices."""
    n, devices, sides = problem.keys.shape[0], mesh.size, reduction.sides()
    rows = _cut(problem.queries.shape[0], devices, sides[0])
    columns = _cut(n, devices, sides[1])
    ring = [(index, (index + 1) % devices) for index in range(devices)]

    def part(local: Problem) -> Array:
        kind, width = _fold_of(local.kind), local.values.shape[-1]
        here = jax.lax.axis_index(AXIS)
        queries = local.queries.reshape(rows.tiles, rows.size, -1)
        # Recomputed in a gradient, which else would hold all n^2/p scores.
        absorb = jax.checkpoint(functools.partial(_absorb_block, local, n, columns))

        def visit(state: tuple[Carry, Any], passed: Array) -> tuple[tuple[Carry, Any], None]:
            carry, block = state
            # Sent before it is used: the transfer may run beside the sums.
            sent = jax.lax.ppermute(block, AXIS, ring)
            owner = (here - passed) % devices
            carry = jax.lax.map(
                lambda tile: absorb(block, owner * columns.share, *tile),
                (carry, queries, rows.starts(here * rows.share)),
            )
            return (carry, sent), None

        empty = kind.start(rows.size, width, local.values.dtype)
        empty = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (rows.tiles, *leaf.shape)), empty)
        state = (empty, _vectors(local)[1:])
        (carry, _), _ = jax.lax.scan(visit, state, jnp.arange(devices))
        out = jax.lax.map(lambda sums: kind.finish(sums, local.beta), carry)
        return out.reshape(rows.share, width)

    padded = _padded(problem, rows.share * devices, columns.share * devices)
    return _on_each(part, padded, mesh, keys=SPLIT)


def _absorb_block(
    problem: Problem,
    n: int,
    columns: Cut,
    block: tuple[Array, Array, Array],
    first_column: Array,
    carry: Carry,
    queries: Array,
    first_row: Array,
) -> Carry:
    """The sums of one tile of rows with the columns of one device, tile by tile."""
    kind = _fold_of(problem.kind)
    rows = first_row + jnp.arange(queries.shape[0])

    @jax.checkpoint
    def absorb(carry: Carry, tile: tuple[Array, ...]) -> tuple[Carry, None]:
        keys, values, log_weights, start = tile
        places = start + jnp.arange(columns.size)
        log_mass = problem.block_log_mass(rows, places, log_weights, n)
        scores = kind.scores(queries, keys, problem.beta)
        keep = problem.keep(rows, places)
        return kind.absorb(carry, scores, log_mass, values, problem.beta, keep), None

    tiles = [array.reshape(columns.tiles, columns.size, *array.shape[1:]) for array in block]
    return jax.lax.scan(absorb, carry, (*tiles, columns.starts(first_column)))[0]
