"""What was asked for, as observables that fit the run: axes known before it starts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..errors import InputError, require
from .base import Observable
from .naming import check_names


def settle(
    things: Sequence[Observable],
    look: Callable[[Observable], Any],
    sizes: dict[str, int],
    grown: Callable[[Observable], tuple[int, ...] | None] = lambda thing: None,
) -> tuple[Observable, ...]:
    """Observables whose axes fit their values and each other, or a sentence.

    look -- shape and type of a value; sizes -- of the axes the run has;
    grown -- the shape of the value with one token more, if it can be had.
    """
    known, settled = dict(sizes), []
    for thing in things:
        value = look(thing)
        axes = thing.axes or _inferred(thing.name, value.shape, lambda: grown(thing))  # noqa: B023
        found = _counting_heads(dataclasses.replace(thing, axes=axes), value.shape)
        _check_axes(found, value.shape, known)
        known.update(zip(axes, value.shape, strict=True))
        settled.append(found)
    check_names(settled)
    return tuple(settled)


def _counting_heads(thing: Observable, shape: tuple[int, ...]) -> Observable:
    """Heads are labelled from 1 on, as in traces: .sel(head=1) is the first."""
    if "head" not in thing.axes or "head" in thing.coords or len(shape) != len(thing.axes):
        return thing
    heads = tuple(range(1, shape[thing.axes.index("head")] + 1))
    return dataclasses.replace(thing, labels=(*thing.labels, ("head", heads)))


def shape_of(thing: Observable, value: Callable[[], Any], given: Any) -> Any:
    """Shape and type of a value, without computing it; it must be real numbers.

    `given` is all that it may depend on: for the same shapes the answer of the last time holds.
    """
    key = _shapes(given)
    try:
        found = _KNOWN.get(key)
    except TypeError:  # A setting that cannot be looked up by.
        return _traced_shape(thing, value)
    if found is None:
        found = _traced_shape(thing, value)
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = found
    return found


# To trace an observable takes milliseconds, as long as a small solve.
MOST_KNOWN = 256
_KNOWN: dict[Any, Any] = {}


def _shapes(given: Any) -> Any:
    leaves, structure = jax.tree.flatten(given)
    return structure, tuple(
        (leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else leaf for leaf in leaves
    )


def _traced_shape(thing: Observable, value: Callable[[], Any]) -> Any:
    try:
        found = jax.eval_shape(value)
    except InputError:
        raise
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        raise InputError(
            f"the observable {thing.name!r} is compiled with the run, and turns its values into plain "
            "numbers (by numpy, float() or an if); write it with jax.numpy, or compute it from saved states"
        ) from error
    except Exception as error:
        error.add_note(
            f"in the observable {thing.name!r}, tried before the run: it gets one snapshot (t, measure, "
            "model, reduction) and is compiled, so it must use jax.numpy and return one array"
        )
        raise
    require(
        not jnp.issubdtype(found.dtype, jax.dtypes.extended),
        f"the observable {thing.name!r} must give numbers, and gave {found.dtype}",
    )
    require(
        not jnp.issubdtype(found.dtype, jnp.complexfloating),
        f"the observable {thing.name!r} has complex values, which are not kept; observe its real and "
        "its imaginary part",
    )
    return found


def _inferred(
    name: str, shape: tuple[int, ...], grown: Callable[[], tuple[int, ...] | None]
) -> tuple[str, ...]:
    """A dimension that grows with the number of tokens is `token`; others get names of their own."""
    own = [f"{name}_dim_{index}" for index in range(len(shape))]
    larger = grown() if shape else None
    if larger is not None and len(larger) == len(shape):
        growing = [index for index, size in enumerate(shape) if larger[index] == size + 1]
        if growing:
            own[growing[0]] = "token"
    return tuple(own)


def _check_axes(thing: Observable, shape: tuple[int, ...], known: dict[str, int]) -> None:
    name, axes = thing.name, thing.axes
    require(
        len(axes) == len(shape) and len(set(axes)) == len(axes),
        f"the observable {name!r} has a value of shape {shape}, which axes={axes} does not name: give "
        "one name for each dimension, all different, or leave axes out",
    )
    for axis, size in zip(axes, shape, strict=True):
        require(
            known.get(axis, size) == size,
            f"the observable {name!r} has size {size} along {axis!r}, which has size "
            f"{known.get(axis)} elsewhere in this run; call the axis otherwise",
        )
        values = thing.coords.get(axis)
        require(
            values is None or len(values) == size,
            f"the observable {name!r} has {0 if values is None else len(values)} labels for the "
            f"{size} entries along {axis!r}; give one each",
        )
