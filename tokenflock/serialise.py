"""Models as plain data: what a stored run says about the model that made it, and back again.

A module becomes {"class": name, field: value, ...}; arrays become nested lists. Functions (a user's
kernel or potential) are named only, so a model with one can be described but not rebuilt.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .errors import StoreError

# What may appear in a description: classes of these files and packages; nothing else is ever instantiated.
# They are found by their statement in a file, so that a class needs no entry here, and a run of tokens loads
# nothing of densities.
HOMES = (
    *("masks", "kinds", "schedule", "weights", "random_weights", "terms", "noise", "normalisation"),
    *("dynamics", "frame", "space", "measure", "density", "observables", "integrate", "methods"),
    *("meanfield", "random_depth", "kinetic", "construct", "reduce"),
)
PACKAGE = Path(__file__).parent
STATEMENT = re.compile(r"^class (\w+)\b", re.MULTILINE)

# Classes that stores of release 0.1 know by another name.
RENAMED = {"Lab": "Original", "Layered": "LayeredDensity"}


def describe(value: Any) -> Any:
    """JSON-able description of a module, array, container or plain value."""
    if _is_ours(type(value)):
        fields = {
            field.name: describe(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
        return {"class": type(value).__name__, **fields}
    if isinstance(value, dict):
        return {str(name): describe(entry) for name, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [describe(entry) for entry in value]
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return {"key": np.asarray(jax.random.key_data(value)).tolist()}
    if isinstance(value, (jax.Array, np.ndarray)):
        return {"array": np.asarray(value).tolist()}
    if callable(value):
        return {"function": getattr(value, "__qualname__", repr(value))}
    return value


def _is_ours(kind: type) -> bool:
    """Modules, and plain dataclasses of this package such as the polynomial of a kernel."""
    local = dataclasses.is_dataclass(kind) and kind.__module__.startswith("tokenflock.")
    return issubclass(kind, eqx.Module) or local


@functools.cache
def _homes() -> dict[str, str]:
    """The module that states each class, by the class's name; of two the first in the order of HOMES."""
    found: dict[str, str] = {}
    for home in HOMES:
        place = PACKAGE / home
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [PACKAGE / f"{home}.py"]:
            parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
            for name in STATEMENT.findall(file.read_text(encoding="utf-8")):
                found.setdefault(name, ".".join(parts).removesuffix(".__init__"))
    return found


def _class(name: str) -> type | None:
    """The class of this name, if it is one of ours whose values may be stored."""
    home = _homes().get(name)
    found = None if home is None else getattr(importlib.import_module(home), name)
    return found if isinstance(found, type) and _is_ours(found) else None


def rebuild(description: Any) -> Any:
    """The value a description came from."""
    if isinstance(description, list):
        return tuple(rebuild(entry) for entry in description)
    if not isinstance(description, dict):
        return description
    if "class" in description:
        return _rebuild_module(description)
    if "array" in description:
        return jnp.asarray(np.asarray(description["array"]))
    if "key" in description:
        return jax.random.wrap_key_data(jnp.asarray(description["key"], dtype=jnp.uint32))
    if "function" in description:
        raise StoreError(
            f"this run's model uses the function {description['function']}, which a store cannot "
            "hold; pass the model again: run.observe(observable, model=...)"
        )
    return {name: rebuild(entry) for name, entry in description.items()}


def _rebuild_module(description: dict[str, Any]) -> Any:
    name = description["class"]
    if name == "Activation":
        from .terms.perceptron import ACTIVATIONS

        return ACTIVATIONS[description["name"]]
    if name == "Perceptron" and "inner" in description:
        description = _scheduled(description)
    if name == "Measure" and "weights" in description:
        # Release 0.1 stored equal weights, too.
        description = {**description, "own_weights": description["weights"]}
    known = _class(RENAMED.get(name, name))
    if known is None:
        raise StoreError(
            f"this run's model uses the class {name!r}, which is not part of tokenflock; pass the model "
            "again: run.observe(observable, model=...)"
        )
    blank = object.__new__(known)
    for field in dataclasses.fields(blank):
        object.__setattr__(blank, field.name, rebuild(description.get(field.name)))
    return blank


def _scheduled(description: dict[str, Any]) -> dict[str, Any]:
    """A perceptron as stores of release 0.1 describe it: its weights stood beside the activation."""
    matrices = {name: description[name] for name in ("inner", "outer", "bias", "omega")}
    return {
        "class": "Perceptron",
        "weights": {"class": "Neurons", **matrices},
        "activation": description["activation"],
    }
