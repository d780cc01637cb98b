"""The spec of a run: TOML in, validated, resolved, and the same numbers back from what it prints."""

from __future__ import annotations

import inspect
import typing
from typing import Annotated, Any, Literal

import numpy as np
from jax.typing import ArrayLike
from pydantic import Field, create_model

from .. import masks, measure, models, noise, normalisation, terms, weights
from ..dynamics import Dynamics
from ..errors import InputError, require
from ..integrate import Layers, LogTime, Merge, Save, Stiff, Stop, at_clusters, at_diameter
from ..kinds import Convention, Interaction
from ..memory import available_bytes
from ..observables import Observable, make
from ..reduce import Dense, Reduction, Tiled
from ..space import Euclidean, Space, Sphere
from .slots import (
    MaskSpec,
    NoiseSpec,
    NormalisationSpec,
    PerceptronSpec,
    Strict,
    WeightsSpec,
)

Numbers = float | list[float]
Nested = float | list[float] | list[list[float]]

# How the types of a model's or law's parameters are written in a file.
IN_A_FILE: dict[Any, Any] = {
    ArrayLike: Numbers,
    weights.Schedule: WeightsSpec,
    masks.Mask: MaskSpec,
    normalisation.Normalisation: NormalisationSpec,
    noise.Noise: NoiseSpec,
    terms.Term: PerceptronSpec,
    Convention: Convention,
    Interaction: list[float],
    float: float,
    int: int,
    bool: bool,
    list[float]: list[float],
}


def _field(annotation: Any, default: Any) -> tuple[Any, Any]:
    """A pydantic field for one parameter of a Python function."""
    options = typing.get_args(annotation)
    optional = type(None) in options
    bare = typing.Union[tuple(o for o in options if o is not type(None))] if optional else annotation  # noqa: UP007
    written = IN_A_FILE[bare]
    missing = default is inspect.Parameter.empty
    return (written | None if optional else written), ... if missing else default


def _signature(function: Any) -> dict[str, tuple[Any, Any]]:
    hints = typing.get_type_hints(function)
    return {
        name: (hints[name], parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
    }


def _model_spec(name: str) -> Any:
    fields = {
        parameter: _field(annotation, default)
        for parameter, (annotation, default) in _signature(models.MODELS[name]).items()
    }
    return create_model(
        f"{name}Spec",
        __base__=Strict,
        name=(Literal[name], ...),  # pyright: ignore[reportInvalidTypeForm]
        **fields,
    )


MODEL_SPECS = {name: _model_spec(name) for name in models.MODELS}
ModelSpec = Annotated[
    typing.Union[tuple(MODEL_SPECS.values())],  # noqa: UP007
    Field(discriminator="name"),
]


def build_model(spec: Any, d: int) -> Dynamics:
    """The model of a [model] table."""
    given = {name: getattr(spec, name) for name in type(spec).model_fields if name != "name"}
    built = {name: v.build(d) if hasattr(v, "build") else v for name, v in given.items()}
    return models.MODELS[spec.name](**built)


class _Tokens(Strict):
    d: int = Field(ge=1, le=65_536)
    # Leave a symmetric start explicitly, from a seed.
    perturb: float | None = Field(None, gt=0)
    perturb_seed: int = Field(0, ge=0)
    weights: list[float] | None = None
    ordered: bool = True


SPACES: dict[str, type[Space]] = {"sphere": Sphere, "euclidean": Euclidean}
LAW_TYPES: dict[str, Any] = {
    "n": (int, Field(ge=2, le=100_000_000)),
    "seed": (int, Field(ge=0)),
    "samples": (int | None, Field(None, ge=1, le=10_000_000)),
    "per_cluster": (int, Field(ge=1, le=100_000_000)),
    "centres": (Nested, ...),
    "centre": (list[float] | None, None),
}


def _tokens_spec(law: str) -> Any:
    fields: dict[str, Any] = {}
    for name, (annotation, default) in _signature(measure.LAWS[law]).items():
        if name == "space":
            allowed = tuple(label for label, kind in SPACES.items() if issubclass(kind, annotation))
            fields["space"] = (Literal[allowed], allowed[0])
        else:
            fields[name] = LAW_TYPES.get(name) or _field(annotation, default)
    return create_model(
        f"{law.capitalize()}Tokens",
        __base__=_Tokens,
        law=(Literal[law], ...),  # pyright: ignore[reportInvalidTypeForm]
        **fields,
    )


class PointTokens(_Tokens):
    """Tokens given one by one."""

    law: Literal["points"]
    space: Literal["sphere", "euclidean"] = "sphere"
    points: list[list[float]]
    normalise: bool = False


TOKEN_SPECS = {**{law: _tokens_spec(law) for law in measure.LAWS}, "points": PointTokens}
TokensSpec = Annotated[
    typing.Union[tuple(TOKEN_SPECS.values())],  # noqa: UP007
    Field(discriminator="law"),
]


def build_tokens(spec: Any) -> measure.Measure:
    """The initial measure of a [tokens] table."""
    space = SPACES[spec.space](spec.d)  # pyright: ignore[reportCallIssue]
    if isinstance(spec, PointTokens):
        tokens = measure.from_array(space, _rectangular(spec.points), normalise=spec.normalise)
    else:
        _check_size(spec)
        own = set(_signature(measure.LAWS[spec.law])) - {"space"}
        tokens = measure.LAWS[spec.law](space, **{name: getattr(spec, name) for name in own})
    if spec.weights is not None or not spec.ordered:
        tokens = measure.Measure(space, tokens.points, spec.weights, tokens.radii, spec.ordered)
    if spec.perturb is not None:
        tokens = measure.perturbed(tokens, spec.perturb, spec.perturb_seed)
    return tokens


def _rectangular(rows: list[list[float]]) -> np.ndarray:
    if len({len(row) for row in rows}) > 1:
        raise InputError("the rows of points must have equal lengths")
    return np.asarray(rows, dtype=float)


def _check_size(spec: Any) -> None:
    n = getattr(spec, "n", None) or spec.per_cluster * np.size(spec.centres)
    size = 8.0 * n * spec.d * (getattr(spec, "samples", None) or 1)
    limit = available_bytes()
    require(
        size < limit,
        f"these tokens need {size / 2**30:.3g} GiB, the limit is {limit / 2**30:.3g} GiB; lower n, d "
        "or samples",
    )


class SolveSpec(Strict):
    """How the equation is integrated."""

    t1: float = Field(gt=0)
    method: Literal["adaptive", "stiff", "fixed", "layers"] = "adaptive"
    rtol: float | None = Field(None, gt=0)
    atol: float | None = Field(None, gt=0)
    dt: float | None = Field(None, gt=0)
    step: float | None = Field(None, gt=0)
    seed: int = Field(0, ge=0)
    max_steps: int = Field(100_000, ge=1, le=1_000_000_000)
    merge_radius: float | None = Field(None, gt=0)
    log_clock: float | None = Field(None, gt=0)
    reduction: Literal["dense", "tiled"] = "dense"
    tile: int = Field(256, ge=1, le=65_536)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `prepare`."""
        if self.method == "layers":
            require(self.step is not None, "method = 'layers' needs a step, for example step = 0.1")
        else:
            require(self.step is None, "step belongs to method = 'layers'; use dt for fixed steps")
        if self.method == "fixed":
            require(self.dt is not None, "method = 'fixed' needs dt, for example dt = 0.01")
        chosen = {"stiff": Stiff(), "layers": Layers(self.step) if self.step else None}
        return {
            "t1": self.t1,
            "rtol": self.rtol,
            "atol": self.atol,
            "dt": self.dt,
            "method": chosen.get(self.method),
            "merge": None if self.merge_radius is None else Merge(self.merge_radius),
            "clock": None if self.log_clock is None else LogTime(self.log_clock),
            "reduction": self.build_reduction(),
            "seed": self.seed,
            "max_steps": self.max_steps,
        }

    def build_reduction(self) -> Reduction:
        """The reduction."""
        return Dense() if self.reduction == "dense" else Tiled(self.tile)


class LogTimes(Strict):
    """count times, logarithmically spaced from first to t1."""

    first: float = Field(gt=0)
    count: int = Field(ge=2, le=1_000_000)


class SaveSpec(Strict):
    """When to look and what to keep."""

    every: float | None = Field(None, gt=0)
    at: list[float] | None = None
    log: LogTimes | None = None
    states: bool = True
    observe: list[str | dict[str, Any]] = ["energy", {"name": "clusters", "angle": 0.1}]

    def build(self) -> Save:
        """The save plan."""
        log = None if self.log is None else (self.log.first, self.log.count)
        return Save(self.every, self.at, log, [_observable(o) for o in self.observe], self.states)


def _observable(entry: str | dict[str, Any]) -> Observable:
    if isinstance(entry, str):
        return make(entry)
    parameters = dict(entry)
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise InputError(f"an observable needs a name, got {entry}")
    return make(name, **parameters)


class ClusterStop(Strict):
    """Stop at this many clusters."""

    count: int = Field(ge=1)
    angle: float = Field(gt=0)


class StopSpec(Strict):
    """When to stop before t1."""

    clusters: ClusterStop | None = None
    diameter: float | None = Field(None, gt=0)

    def build(self) -> list[Stop]:
        """The stops."""
        stops: list[Stop] = []
        if self.clusters is not None:
            stops.append(at_clusters(self.clusters.count, self.clusters.angle))
        if self.diameter is not None:
            stops.append(at_diameter(self.diameter))
        return stops


class OutputSpec(Strict):
    """What is drawn at the end."""

    figure: bool = True
    animation: Literal["none", "mp4", "gif"] = "none"
    frames: int = Field(120, ge=2, le=10_000)


class RunSpec(Strict):
    """A whole run."""

    title: str = Field("run", max_length=80)
    says: str = ""
    model: ModelSpec
    tokens: TokensSpec
    solve: SolveSpec
    save: SaveSpec = SaveSpec()
    stop: StopSpec = StopSpec()
    output: OutputSpec = OutputSpec()
