"""Argument checks, shared by every oracle of this package."""

from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Convention = Literal["perspective", "metastability"]


def real(name: str, value: ArrayLike) -> Array:
    """`value` as a float64 array without NaN (infinities pass: they are legal limits)."""
    array = np.asarray(value, dtype=np.float64)
    if np.isnan(array).any():
        raise ValueError(f"{name} contains NaN; it needs real numbers, remove the missing entries")
    return array


def bounded(
    name: str,
    value: ArrayLike,
    low: ArrayLike = -np.inf,
    high: ArrayLike = np.inf,
    *,
    closed: Literal["both", "low", "high", "neither"] = "both",
    advice: str = "check the argument",
) -> Array:
    """`value` as float64, refused unless it lies between `low` and `high` (ends as `closed`)."""
    array = real(name, value)
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    above = array >= low if closed in ("both", "low") else array > low
    below = array <= high if closed in ("both", "high") else array < high
    inside = np.asarray(above & below)
    if not inside.all():
        worst = np.broadcast_to(array, inside.shape)[~inside].flat[0]
        left = "[" if closed in ("both", "low") else "("
        right = "]" if closed in ("both", "high") else ")"
        interval = f"{left}{_show(low)}, {_show(high)}{right}"
        raise ValueError(f"{name} must lie in {interval}, got {worst:.17g}; {advice}")
    return array


def whole(name: str, value: ArrayLike, least: int, *, advice: str = "check the argument") -> Array:
    """`value` as float64, refused unless it holds whole numbers >= `least`."""
    array = bounded(name, value, least, closed="low", advice=advice)
    if not (np.floor(array) == array).all():
        worst = array[np.floor(array) != array].flat[0]
        raise ValueError(f"{name} must be a whole number >= {least}, got {worst:.17g}; {advice}")
    return array


def sphere_dimension(d: ArrayLike) -> Array:
    """A whole number d >= 2, of a sphere S^{d-1}."""
    return whole("d", d, 2, advice="the sphere S^{d-1} needs d >= 2")


def value_variance(variance: ArrayLike | None, d: Array) -> Array:
    """The variance of an entry of a random V, 1/d unless given."""
    if variance is None:
        return 1 / d
    return bounded("variance", variance, 0, np.inf, advice="the variance of an entry of V")


def chosen(name: str, value: str, allowed: object) -> str:
    """`value`, refused unless it is one of the strings of the Literal type `allowed`."""
    options = get_args(allowed)
    if value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}; pass one of these names")
    return cast(str, value)


def inverse_temperature(beta: ArrayLike, *, positive: bool = False) -> Array:
    """`beta` >= 0 (or > 0), the range in which the formulas of this package are proved."""
    if positive:
        return bounded("beta", beta, 0, np.inf, closed="neither", advice="use a small beta > 0")
    return bounded("beta", beta, 0, np.inf, closed="low", advice="use beta=0 for flat attention")


def _show(bound: Array) -> str:
    return f"{bound.flat[0]:.6g}" if bound.size == 1 else "array of bounds"
