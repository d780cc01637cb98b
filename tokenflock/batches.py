"""Batches of models: a number of a model given as a vector stands for one model per entry.

A slot says in `ranks` how many axes each of its numbers has: `Attention.ranks = {"beta": (0,)}`. An array
with one axis more is a batch, and `solve` returns that axis in front, named after the number. Several
numbers of one model may be vectors of the same length: they change together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from .dynamics import Dynamics
from .errors import require
from .runtime import is_traced
from .schedule import Piecewise


class BatchAxis(NamedTuple):
    """The axis of a batch of models: its name, and the value of every member."""

    name: str
    values: Any

    @property
    def size(self) -> int:
        """Number of members."""
        return len(self.values)


# The name of an axis along which different numbers change together.
SEVERAL = "model"


def batch_axis(model: Dynamics) -> BatchAxis | None:
    """The axis of a batch of models; None for a single one."""
    found = [(name, leaf) for name, leaf, batched in _leaves(model) if batched]
    if not found:
        return None
    sizes = {name: leaf.shape[0] for name, leaf in found}
    require(
        len({leaf.shape[0] for _, leaf in found}) == 1,
        f"numbers of a model that are vectors change together, so they need one length; got {sizes}",
    )
    names = list(dict.fromkeys(name for name, _ in found))
    first = found[0][1]
    if len(names) > 1 or first.ndim > 1:
        return BatchAxis(SEVERAL if len(names) > 1 else names[0], np.arange(first.shape[0]))
    return BatchAxis(names[0], first if is_traced(first) else np.asarray(first))


def batch_count(model: Dynamics) -> int:
    """Number of models in a batch; 1 for a single one."""
    axis = batch_axis(model)
    return 1 if axis is None else axis.size


def batch_in_axes(model: Dynamics) -> Any:
    """in_axes of a vmap over a batch: 0 at the vectors, None elsewhere."""
    flags = [0 if batched else None for _, _, batched in _leaves(model)]
    return jax.tree.structure(model).unflatten(flags)


def first_member(model: Dynamics) -> Dynamics:
    """The first model of a batch (the model itself if it is a single one)."""
    leaves = [leaf[0] if batched else leaf for _, leaf, batched in _leaves(model)]
    return jax.tree.structure(model).unflatten(leaves)


def _leaves(model: Dynamics) -> list[tuple[str, Any, bool]]:
    """Name, value and whether it is a batch, of every number of a model."""
    paths, _ = jax.tree_util.tree_flatten_with_path(model)
    return [_told(model, path, leaf) for path, leaf in paths]


def _told(model: Dynamics, path: tuple[Any, ...], leaf: Any) -> tuple[str, Any, bool]:
    owner: Any = model
    in_pieces = False
    for key in path[:-1]:
        owner = _step(owner, key)
        # The pieces of a schedule are stacked along an axis of their own.
        in_pieces = in_pieces or isinstance(owner, Piecewise)
    name = getattr(path[-1], "name", "") if path else ""
    ranks = getattr(type(owner), "ranks", {}).get(name)
    axes = np.ndim(leaf) if ranks else 0
    batched = bool(ranks) and axes not in ranks and axes - 1 in ranks
    return name, leaf, batched and not in_pieces


def _step(owner: Any, key: Any) -> Any:
    """One step along a path of JAX's."""
    if hasattr(key, "name"):
        return getattr(owner, key.name)
    return owner[key.idx if hasattr(key, "idx") else key.key]
