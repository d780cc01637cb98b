"""Batches of models: a number of a model given as a vector stands for one model per entry.

A slot, or a value of one's own in it, says in `ranks` how many axes each of its numbers has:
`Attention.ranks = {"beta": (0,)}`. An array with one axis more is a batch, and `solve` returns that axis in
front, named after the number. Several numbers of one model may be vectors of the same length: they change
together.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from .dynamics import Dynamics
from .errors import InputError, require
from .runtime import is_traced
from .schedule import Piecewise

# A model, or a part of one.
Model = TypeVar("Model", bound=Any)


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


def batch_axis(model: Any) -> BatchAxis | None:
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


def batch_count(model: Any) -> int:
    """Number of models in a batch; 1 for a single one."""
    axis = batch_axis(model)
    return 1 if axis is None else axis.size


def batch_in_axes(model: Dynamics) -> Any:
    """in_axes of a vmap over a batch: 0 at the vectors, None elsewhere."""
    flags = [0 if batched else None for _, _, batched in _leaves(model)]
    return jax.tree.structure(model).unflatten(flags)


def first_member(model: Dynamics) -> Dynamics:
    """The first model of a batch (the model itself if it is a single one)."""
    return member(model, 0)


def members(model: Model) -> list[Model]:
    """All models of a batch, or terms of one, one by one (itself if it is a single one)."""
    return [member(model, index) for index in range(batch_count(model))]


def member(model: Model, index: int) -> Model:
    """One model of a batch, or one term of it."""
    leaves = [leaf[index] if batched else leaf for _, leaf, batched in _leaves(model)]
    return jax.tree.structure(model).unflatten(leaves)


def check_axes(model: Any) -> None:
    """Refuse numbers with more axes than a batch has, and batches among the pieces of a schedule."""
    for place in places_of(model):
        if place.ranks is None:
            continue
        single, shape = place.ranks, np.shape(place.leaf)[place.in_pieces :]
        what = f"{place.name} of {place.owner} has shape {shape}, and for one model {_axes(single)}"
        if place.in_pieces:
            require(
                len(shape) in single,
                f"{what}: the pieces of a Piecewise are no batches; for several schedules use jax.vmap "
                "over a function that makes the model and solves it",
            )
        require(
            len(shape) in single or len(shape) - 1 in single,
            f"{what}; a batch of models has one axis more in front",
        )


@contextlib.contextmanager
def explaining(model: Any) -> Iterator[None]:
    """Tell of numbers with axes that nobody has declared where a model cannot be evaluated."""
    try:
        yield
    except (TypeError, ValueError) as error:
        found = undeclared(model)
        if isinstance(error, InputError) or not found:
            raise
        place, *_ = found
        raise InputError(
            f"this model cannot be evaluated: {_first_line(error)}. {place.name} of {place.owner} has shape "
            f"{np.shape(place.leaf)}, and {place.owner} does not say how many axes it has for one model. If "
            f'it is a batch of models, write ranks = {{"{place.name}": ({np.ndim(place.leaf) - 1},)}} in the '
            "class; if it is not, its field does not fit the tokens"
        ) from error


def undeclared(model: Any) -> list[Place]:
    """The arrays of a model of which no slot says how many axes they have."""
    return [
        place
        for place in places_of(model)
        if place.ranks is None
        and place.name
        and not place.in_pieces
        and place.name not in place.switching
        and np.ndim(place.leaf)
        and jnp.issubdtype(place.leaf.dtype, jnp.floating)
    ]


class Place(NamedTuple):
    """Where a number of a model stands: its name, the class that holds it, and what that says of it.

    A number in the pieces of a schedule has an axis for those in front; the rest is said by its slot.
    """

    name: str
    owner: str
    leaf: Any
    ranks: tuple[int, ...] | None
    switching: tuple[str, ...]
    in_pieces: bool

    @property
    def is_batch(self) -> bool:
        """Whether it has one axis more than a single model's."""
        axes = np.ndim(self.leaf)
        declared = self.ranks is not None and axes not in self.ranks and axes - 1 in self.ranks
        return declared and not self.in_pieces


def places_of(model: Any) -> list[Place]:
    """The places of all numbers of a model, or of a part of one, in JAX's order."""
    paths, _ = jax.tree_util.tree_flatten_with_path(model)
    return [_place(model, path, leaf) for path, leaf in paths]


def _leaves(model: Any) -> list[tuple[str, Any, bool]]:
    """Name, value and whether it is a batch, of every number of a model."""
    return [(place.name, place.leaf, place.is_batch) for place in places_of(model)]


def _place(model: Any, path: tuple[Any, ...], leaf: Any) -> Place:
    holder, name, in_pieces = model, "", False
    owner: Any = model
    for key in path:
        # The pieces of a schedule are stacked along an axis of their own, under the name of its slot.
        stacked = isinstance(owner, Piecewise) and getattr(key, "name", "") == "stacked"
        in_pieces = in_pieces or stacked
        if not stacked:
            holder, name = owner, getattr(key, "name", "")
        owner = _step(owner, key)
    kind = type(holder)
    return Place(
        name,
        kind.__name__,
        leaf,
        getattr(kind, "ranks", {}).get(name),
        getattr(kind, "switching", ()),
        in_pieces,
    )


def _axes(ranks: tuple[int, ...]) -> str:
    return " or ".join("is a number" if rank == 0 else _counted(rank) for rank in ranks)


def _counted(rank: int) -> str:
    return f"has {rank} {'axis' if rank == 1 else 'axes'}"


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")


def _step(owner: Any, key: Any) -> Any:
    """One step along a path of JAX's."""
    if hasattr(key, "name"):
        return getattr(owner, key.name)
    return owner[key.idx if hasattr(key, "idx") else key.key]
