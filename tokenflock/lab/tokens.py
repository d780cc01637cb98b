"""The [tokens] table: a named law or explicit points, and the measure they make."""

from __future__ import annotations

import inspect
import typing
from typing import Annotated, Any, Literal

from pydantic import Field

from .. import starts
from ..errors import require
from ..measure import Measure, from_array
from ..memory import require_bytes
from ..runtime import Number
from ..space import Euclidean, Space, Sphere
from .slots import Numbers, Seed, Strict, rectangle, spec_of

Nested = Numbers | list[list[float]]
Count = Annotated[int, Field(ge=2, le=100_000_000)]
Samples = Annotated[int | None, Field(ge=1, le=10_000_000)]
LAWS: dict[str, Any] = starts.STARTS


class TokensBase(Strict):
    """What every start has."""

    d: int = Field(ge=1, le=16_384)
    # Leave a symmetric start explicitly, from a seed.
    perturb: float | None = Field(None, gt=0)
    perturb_seed: Seed = 0
    weights: list[float] | None = None
    ordered: bool = True


SPACES: dict[str, type[Space]] = {"sphere": Sphere, "euclidean": Euclidean}
# Parameters of laws that need more than their Python type in a file.
PARAMETERS: dict[str, Any] = {
    "n": (Count, ...),
    "seed": (Seed, ...),
    "samples": (Samples, None),
    "per_cluster": (Annotated[int, Field(ge=1, le=100_000_000)], ...),
    "centres": (Nested, ...),
    "centre": (list[float] | None, None),
}


def _tokens_spec(law: str) -> Any:
    hints = typing.get_type_hints(LAWS[law])
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(LAWS[law]).parameters.items():
        if name == "space":
            allowed = tuple(key for key, kind in SPACES.items() if issubclass(kind, hints[name]))
            fields["space"] = (Literal[allowed], allowed[0])
        elif name in PARAMETERS:
            fields[name] = PARAMETERS[name]
        else:
            missing = parameter.default is inspect.Parameter.empty
            # A number that may be traced in Python is a plain one in a file.
            kind = float if hints[name] == Number else hints[name]
            fields[name] = (kind, ... if missing else parameter.default)
    fields["law"] = (Literal[law], ...)
    return spec_of(f"{law.capitalize()}Tokens", TokensBase, fields)


class PointTokens(TokensBase):
    """Tokens given one by one."""

    law: Literal["points"]
    space: Literal["sphere", "euclidean"] = "sphere"
    points: list[list[float]]
    normalise: bool = False


TOKEN_SPECS = {**{law: _tokens_spec(law) for law in LAWS}, "points": PointTokens}
TokensSpec = Annotated[
    typing.Union[tuple(TOKEN_SPECS.values())],  # noqa: UP007
    Field(discriminator="law"),
]


def build_tokens(spec: Any) -> Measure:
    """The initial measure of a [tokens] table."""
    space = SPACES[spec.space](spec.d)  # pyright: ignore[reportCallIssue]
    tokens = _points(spec, space) if isinstance(spec, PointTokens) else _drawn(spec, space)
    if spec.weights is not None or not spec.ordered:
        tokens = Measure(space, tokens.points, spec.weights, tokens.radii, spec.ordered)
    if spec.perturb is not None:
        tokens = starts.perturbed(tokens, spec.perturb, spec.perturb_seed)
    return tokens


def _points(spec: PointTokens, space: Space) -> Measure:
    points = rectangle("tokens.points", spec.points)
    require(points.ndim == 2, "tokens.points must be a list of points, one row each")
    return from_array(space, points, normalise=spec.normalise)


def _drawn(spec: Any, space: Space) -> Measure:
    given = {
        name: getattr(spec, name)
        for name in inspect.signature(LAWS[spec.law]).parameters
        if name != "space"
    }
    for name in ("centres", "centre"):
        if given.get(name) is not None:
            given[name] = rectangle(f"tokens.{name}", given[name])
    check_size(spec)
    return LAWS[spec.law](space, **given)


def size_of(spec: Any) -> tuple[int, int]:
    """Number of tokens, and of their coordinates."""
    if getattr(spec, "n", None) is not None:
        return spec.n, spec.d
    if getattr(spec, "points", None) is not None:
        return len(spec.points), spec.d
    centres = spec.centres if isinstance(spec.centres, list) else [spec.centres]
    return spec.per_cluster * len(centres), spec.d


def check_size(spec: Any) -> None:
    """Refuse tokens that would not fit before they are drawn."""
    n, d = size_of(spec)
    size = 8.0 * n * d * (getattr(spec, "samples", None) or 1)
    require_bytes(size, "these tokens", "lower n, d or samples")
