"""The [density] table: infinitely many tokens, by a law on a discretisation."""

from __future__ import annotations

import inspect
import typing
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from .. import kinetic, meanfield
from ..density import Density, Discretisation, Law
from ..kinetic.layered_density import MOST_POSITIONS
from ..meanfield import laws
from ..meanfield.moments import gaussian_density
from ..memory import require_bytes
from .slots import Seed, Strict, rectangle, spec_of

# How numbers of discretisations are bounded in a file; other whole numbers are positive.
SIZES: dict[str, Any] = {
    "modes": Annotated[int, Field(ge=1, le=1 << 20)],
    "positions": Annotated[int, Field(ge=1, le=MOST_POSITIONS)],
    "n": Annotated[int, Field(ge=2, le=1_000_000)],
    "d": Annotated[int, Field(ge=2, le=16_384)],
    "degree": Annotated[int, Field(ge=1, le=4096)],
}


def _listed() -> dict[str, type[Discretisation]]:
    """The public discretisations that say a name for files, from the lists of meanfield and kinetic."""
    public = [
        getattr(package, name) for package in (meanfield, kinetic) for name in package.__all__
    ]
    kinds = [each for each in public if isinstance(each, type) and issubclass(each, Discretisation)]
    return {kind.spec_name: kind for kind in kinds if kind.spec_name}


SPECTRAL = _listed()
Whole = Annotated[int, Field(ge=1, le=100_000)]
WHOLE_NUMBERS: dict[str, Any] = {"seed": Seed, "mode": Whole, "modes": Whole, "degree": Whole}


def _law_spec(name: str) -> Any:
    """The table of a law, from the signature of its function."""
    function = laws.LAWS[name]
    hints = typing.get_type_hints(function)
    fields: dict[str, Any] = {"name": (Literal[name], ...)}
    for parameter, about in inspect.signature(function).parameters.items():
        missing = about.default is inspect.Parameter.empty
        kind = WHOLE_NUMBERS.get(parameter, hints[parameter])
        fields[parameter] = (kind, ... if missing else about.default)
    return spec_of(f"{name.title().replace('_', '')}Law", Strict, fields)


LAW_SPECS = {name: _law_spec(name) for name in laws.LAWS}
LawSpec = Annotated[
    typing.Union[tuple(LAW_SPECS.values())],  # noqa: UP007
    Field(discriminator="name"),
]


def _on_spec(name: str) -> Any:
    """The table of a discretisation, from its fields, with the law it holds at t = 0."""
    fields: dict[str, Any] = {"on": (Literal[name], ...), "law": (LawSpec, ...)}
    for parameter, about in inspect.signature(SPECTRAL[name]).parameters.items():
        missing = about.default is inspect.Parameter.empty
        other = Annotated[int if about.annotation in (int, "int") else float, Field(gt=0)]
        fields[parameter] = (SIZES.get(parameter, other), ... if missing else about.default)
    return spec_of(f"{name.title()}Density", Strict, fields)


class MomentsDensity(Strict):
    """A Gaussian measure on R^d, by its mean and covariance."""

    on: Literal["moments"]
    mean: list[float] = Field(min_length=1)
    covariance: list[list[float]]


DENSITY_SPECS = {**{name: _on_spec(name) for name in SPECTRAL}, "moments": MomentsDensity}
DensitySpec = Annotated[
    typing.Union[tuple(DENSITY_SPECS.values())],  # noqa: UP007
    Field(discriminator="on"),
]


def build_density(spec: Any) -> Density:
    """The density of a [density] table."""
    if isinstance(spec, MomentsDensity):
        return gaussian_density(spec.mean, rectangle("density.covariance", spec.covariance))
    return Density.from_law(_on(spec), build_law(spec.law))


def _on(spec: Any) -> Discretisation:
    kind = SPECTRAL[spec.on]
    return kind(**{name: getattr(spec, name) for name in inspect.signature(kind).parameters})


def build_law(spec: Any) -> Law:
    """The law of a [density.law] table."""
    function = laws.LAWS[spec.name]
    return function(
        **{name: getattr(spec, name) for name in inspect.signature(function).parameters}
    )


def check_size(spec: Any, rows: int) -> None:
    """Refuse a density, and so many saved states of it, that would not fit before its tables are made."""
    numbers, tables = sizes(spec)
    require_bytes(
        8.0 * (rows * numbers + tables),
        "this density and its saved states",
        "use fewer modes or degrees, or save less often",
    )


def sizes(spec: Any) -> tuple[float, float]:
    """Numbers in a state, and in the tables that move it."""
    if isinstance(spec, MomentsDensity):
        return len(spec.mean) ** 2, 0.0
    on = _on(spec)
    return float(np.prod(on.shape)), on.table_size
