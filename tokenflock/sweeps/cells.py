"""The cells of a sweep made ready to compute: what cells share is checked and built once.

A cell is a model, a start (tokens or a density), a seed of the noise, and a frame: everything about the
solve that is the same for all cells of its shape. Cells with equal frames go through one compiled program.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..density import Density
from ..dynamics import Dynamics
from ..errors import InputError, TokenflockError, require
from ..integrate.core import Plan
from ..integrate.save import filled_jumps
from ..lab.files import validated
from ..lab.job import build_start, planned
from ..lab.spec import RunSpec, build_model
from ..measure import Measure
from ..runtime import as_array
from ..states import as_state
from .grid import Axis, Index
from .plan import Sweep

# Built models and tokens kept at hand: a block rarely has more different ones, and large ones cost no
# time beside their solve.
MOST_KEPT, MOST_BYTES = 4096, 2**28
# Reductions whose choices depend on shapes alone; others look at beta and are settled cell by cell.
SETTLED_BY_SHAPE = ("dense", "kernel")
NOISE_SEED = "solve.seed"
# The tables a start is made of.
START: tuple[str, ...] = ("tokens.", "density.")


class Varying(eqx.Module):
    """What differs from cell to cell within one program."""

    model: Dynamics
    x0: Measure | Density
    jumps: Array
    seed: Array


@dataclasses.dataclass(frozen=True)
class Frame:
    """What cells of one program share: the plan with one of their models in it, and the save times."""

    plan: Plan
    times: np.ndarray


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell ready to compute; `shape` is equal for cells that one program can compute."""

    frame: Frame
    varying: Varying
    shape: Hashable


class Cells:
    """Makes the cells of one sweep."""

    def __init__(self, sweep: Sweep):
        self.sweep = sweep
        self.kept = _Kept()
        everywhere = tuple(range(len(sweep.axes)))
        self.axes_of: dict[str | tuple[str, ...], tuple[int, ...]] = {
            table: everywhere if _has_own_seed(sweep, table) else _axes_setting(sweep.axes, table)
            for table in ("model.", START, "save.", "stop.")
        }
        # The size of a model's matrices is that of the tokens, or of the density's space.
        size = _axes_setting(sweep.axes, ("tokens.d", "density."))
        self.axes_of["model."] = tuple(sorted({*self.axes_of["model."], *size}))
        self.solve_axes = _axes_setting(_without(sweep.axes, NOISE_SEED), "solve.")

    def cell(self, index: Index) -> Cell:
        """One cell; raises a sentence if it is no run."""
        model, x0 = self._model(index), self._start(index)
        shape = (structure(model), structure(x0))
        frame, jumps = self._frame(index, shape, model, x0)
        seed = self.sweep.settings(index).get(NOISE_SEED, self._spec(index).solve.seed)
        varying = Varying(model, x0, jumps, jnp.asarray(seed))
        return Cell(frame, varying, (id(frame), shape, jumps.shape))

    def _key(self, index: Index, *tables: str | tuple[str, ...]) -> Hashable:
        """The positions along the axes that set something in these tables."""
        return (tables, tuple(tuple(index[a] for a in self.axes_of[table]) for table in tables))

    def _spec(self, index: Index) -> RunSpec:
        """A spec with the right tables for this cell; seeds of noise may be another cell's."""
        apart = tuple(index[a] for a in self.solve_axes)
        key = ("spec", self._key(index, *self.axes_of), apart)
        return self.kept.get(key, lambda: self._validated(index))

    def _validated(self, index: Index) -> RunSpec:
        spec = validated(self.sweep.cell_table(index), "this cell")
        beta = getattr(spec.model, "beta", None)
        require(not isinstance(beta, list), "a cell has one beta, not a list of them")
        require(getattr(spec.tokens, "samples", None) is None, "a cell has no samples of its own")
        return spec

    def _start(self, index: Index) -> Measure | Density:
        key = self._key(index, START)
        return self.kept.get(key, lambda: _on_host(build_start(self._spec(index))))

    def _model(self, index: Index) -> Dynamics:
        def build() -> Dynamics:
            return _on_host(build_model(self._spec(index).model, self._start(index).space.d))

        return self.kept.get(self._key(index, "model."), build)

    def _frame(
        self, index: Index, shape: Hashable, model: Dynamics, x0: Measure | Density
    ) -> tuple[Frame, Array]:
        """The frame of a cell, and the times at which its own weights are redrawn."""
        spec = self._spec(index)
        apart = tuple(index[a] for a in self.solve_axes)
        settings = (apart, self._key(index, "save.", "stop."))
        own = () if spec.solve.reduction in SETTLED_BY_SHAPE else self._key(index, "model.")
        frame = self.kept.get(
            ("frame", settings, shape, own), lambda: _make_frame(spec, model, x0, self._save)
        )

        def checked_jumps() -> Array:
            as_state(x0).check(model, spec.solve.t1)
            return as_array(filled_jumps(model.jumps(spec.solve.t1), spec.solve.t1))

        key = ("jumps", self._key(index, "model."), shape, settings)
        return frame, self.kept.get(key, checked_jumps)

    def _save(self, spec: RunSpec) -> Any:
        """The save plan; one object for equal tables, so that programs are found again."""
        return self.kept.get(("save", repr(spec.save)), spec.save.build)


class _Kept:
    """Results by key, the oldest forgotten; an error is kept like a result."""

    def __init__(self) -> None:
        self.found: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.bytes = 0

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        if key in self.found:
            self.found.move_to_end(key)
        else:
            made = _tried(make)
            self.found[key] = made, _size(made)
            self.bytes += _size(made)
        kept = self.found[key][0]
        while len(self.found) > 1 and (len(self.found) > MOST_KEPT or self.bytes > MOST_BYTES):
            self.bytes -= self.found.popitem(last=False)[1][1]
        if isinstance(kept, Exception):
            raise kept
        return kept


def _size(made: Any) -> int:
    return sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree.leaves(made))


def _tried(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except TokenflockError as error:
        return error
    except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
        reason = str(error).strip().split("\n")[0][:300]
        return InputError(f"this cell does not make a run: {reason} ({type(error).__name__})")


def _make_frame(spec: RunSpec, model: Dynamics, x0: Measure | Density, save: Any) -> Frame:
    asked = save(spec)
    plan, _, times = planned(spec, model, x0, asked)
    # A watched energy is added where beta allows it; all cells of a sweep have the same arrays.
    return Frame(dataclasses.replace(plan, observe=asked.observe), times)


def _on_host(tree: Any) -> Any:
    """Plain numbers as arrays, so that cells which differ in them share a program."""

    def promote(leaf: Any) -> Any:
        return jnp.asarray(leaf) if isinstance(leaf, float) else leaf

    return jax.tree.map(promote, tree)


def structure(tree: Any) -> Hashable:
    """What a compiled program knows of a tree: everything but the numbers in its arrays."""
    arrays, static = eqx.partition(tree, eqx.is_array)
    leaves, shape = jax.tree.flatten(static)
    sizes = tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(arrays))
    return shape, tuple(leaves), sizes


def _axes_setting(axes: tuple[Axis, ...], prefix: str | tuple[str, ...]) -> tuple[int, ...]:
    return tuple(
        position
        for position, axis in enumerate(axes)
        if any(path.startswith(prefix) for path in axis.settings)
    )


def _without(axes: tuple[Axis, ...], path: str) -> tuple[Axis, ...]:
    """The axes without one of their settings."""
    return tuple(
        dataclasses.replace(axis, settings={p: v for p, v in axis.settings.items() if p != path})
        for axis in axes
    )


def _has_own_seed(sweep: Sweep, table: str | tuple[str, ...]) -> bool:
    return any(path.startswith(table) and path != NOISE_SEED for path in sweep.own_seeds)
