"""The spec of a run: TOML in, validated, resolved, and the same numbers back from what it prints."""

from __future__ import annotations

import inspect
import re
import typing
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from .. import masks, models, noise, normalisation, terms
from ..dynamics import Dynamics
from ..errors import InputError, require
from ..integrate import Layers, LogTime, Merge, Save, Stiff, Stop, at_clusters, at_diameter
from ..integrate.numerics import Accuracy
from ..kinds import Convention, Interaction
from ..observables import Observable, make
from ..reduce import Auto, GpuKernel, Reduction, Sharded, Spectral, Tiled
from ..runtime import ArrayLike
from ..schedule import Schedule
from .density import DensitySpec
from .slots import (
    MaskSpec,
    NoiseSpec,
    NormalisationSpec,
    Numbers,
    NumbersOfDepth,
    OfDepth,
    PerceptronSpec,
    Seed,
    Strict,
    WeightsSpec,
    built,
    spec_of,
)
from .tokens import TokensSpec

# How the types of a model's or law's parameters are written in a file.
IN_A_FILE: dict[Any, Any] = {
    ArrayLike: Numbers,
    ArrayLike | Schedule: NumbersOfDepth,
    float | Schedule: OfDepth,
    Schedule: WeightsSpec,
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
    kept = tuple(option for option in options if option is not type(None))
    bare = typing.Union[kept] if optional else annotation  # noqa: UP007
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
    fields: dict[str, Any] = {
        parameter: _field(annotation, default)
        for parameter, (annotation, default) in _signature(models.MODELS[name]).items()
    }
    return spec_of(f"{name}Spec", Strict, {"name": (Literal[name], ...), **fields})


MODEL_SPECS = {name: _model_spec(name) for name in models.MODELS}
ModelSpec = Annotated[
    typing.Union[tuple(MODEL_SPECS.values())],  # noqa: UP007
    Field(discriminator="name"),
]


def build_model(spec: Any, d: int) -> Dynamics:
    """The model of a [model] table."""
    given = {name: getattr(spec, name) for name in type(spec).model_fields if name != "name"}
    return models.MODELS[spec.name](**{name: built(value, d) for name, value in given.items()})


class SolveSpec(Strict):
    """How the equation is integrated.

    Without `method`, a `step` means layers, a `dt` fixed steps, and neither adaptive steps. `reduction`
    is how sums over tokens are evaluated: `tol` belongs to spectral and auto, `tile` and `precision` to
    tiled and sharded.
    """

    t1: float = Field(gt=0)
    method: Literal["adaptive", "stiff", "fixed", "layers"] | None = None
    rtol: float | None = Field(default=None, gt=0)
    atol: float | None = Field(default=None, gt=0)
    dt: float | None = Field(default=None, gt=0)
    step: float | None = Field(default=None, gt=0)
    seed: Seed = 0
    max_steps: int = Field(default=100_000, ge=1, le=1_000_000_000)
    merge_radius: float | None = Field(default=None, gt=0)
    log_clock: float | None = Field(default=None, gt=0)
    reduction: Literal["dense", "tiled", "spectral", "kernel", "sharded", "auto"] = "dense"
    tile: int | None = Field(default=None, ge=1, le=65_536)
    tol: float | None = Field(default=None, gt=0, lt=1)
    precision: Literal["float32", "float64"] | None = None

    @model_validator(mode="after")
    def _resolve_method(self) -> SolveSpec:
        """Write down the method that the steps imply, so that a printed spec says it."""
        if self.method is None:
            fixed = "fixed" if self.dt is not None else "adaptive"
            self.method = "layers" if self.step is not None else fixed
        return self

    def accuracy(self) -> Accuracy:
        """Tolerances or steps."""
        self._check_steps()
        chosen = {"stiff": Stiff(), "layers": Layers(self.step) if self.step else None}
        method = chosen.get(str(self.method))
        return Accuracy(self.rtol, self.atol, self.dt, method, self.max_steps)

    def clock(self) -> LogTime | None:
        """The clock in which steps are made."""
        return None if self.log_clock is None else LogTime(self.log_clock)

    def merge(self) -> Merge | None:
        """How near tokens become one."""
        return None if self.merge_radius is None else Merge(self.merge_radius)

    @property
    def fixed_step(self) -> float | None:
        """The step of a method with fixed steps."""
        return {"layers": self.step, "fixed": self.dt}.get(str(self.method))

    def _check_steps(self) -> None:
        for owner, key in (("layers", "step"), ("fixed", "dt")):
            given = getattr(self, key) is not None
            if self.method == owner:
                require(given, f"method = {owner!r} needs {key}, for example {key} = 0.1")
            else:
                require(not given, f"{key} belongs to method = {owner!r}, not {self.method!r}")
        if self.fixed_step is not None:
            steps = self.t1 / self.fixed_step
            require(
                steps <= self.max_steps,
                f"t1 = {self.t1:g} in steps of {self.fixed_step:g} is {steps:.4g} steps, more than "
                f"max_steps = {self.max_steps}; raise max_steps or take larger steps",
            )

    def build_reduction(self) -> Reduction | None:
        """The reduction; None for the one that needs no choice."""
        self._check_reduction()
        tiled = Tiled(self.tile, self.precision)
        if self.reduction == "auto":
            return Auto() if self.tol is None else Auto(self.tol)
        if self.reduction == "spectral":
            assert self.tol is not None
            return Spectral(self.tol)
        chosen = {"tiled": tiled, "sharded": Sharded(tiled), "kernel": GpuKernel()}
        return chosen.get(self.reduction)

    def _check_reduction(self) -> None:
        """What belongs to another reduction would otherwise be ignored in silence."""
        for key, owners in (("tol", ("spectral", "auto")), ("precision", ("tiled", "sharded"))):
            require(
                getattr(self, key) is None or self.reduction in owners,
                f"{key} belongs to reduction = {' or '.join(map(repr, owners))}, not {self.reduction!r}",
            )
        require(
            self.tol is not None or self.reduction != "spectral",
            "reduction = 'spectral' needs a tol, for example tol = 1e-10",
        )


class LogTimes(Strict):
    """count times, logarithmically spaced from first to t1."""

    first: float = Field(gt=0)
    count: int = Field(ge=2, le=1_000_000)


# What is looked at of tokens if nothing is said.
OBSERVED: list[str | dict[str, Any]] = ["energy", {"name": "clusters", "link": "spacing"}]
# Whole numbers of observables are sizes of arrays.
Size = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
Parameter = bool | Size | float | str | list[float]


class SaveSpec(Strict):
    """When to look and what to keep.

    observe -- names, or tables with a name, its parameters and, to keep two of one sort, `as`. Left out, it
    is `OBSERVED` for tokens and nothing for a density, which keeps its health in any case.
    """

    every: float | None = Field(default=None, gt=0)
    at: list[float] | None = None
    log: LogTimes | None = None
    states: bool = True
    observe: list[str | dict[str, Parameter]] | None = None

    def build(self) -> Save:
        """The save plan."""
        log = None if self.log is None else (self.log.first, self.log.count)
        observe = [_observable(entry) for entry in self.observe or []]
        return Save(self.every, self.at, log, observe, self.states)


def _observable(entry: str | dict[str, Parameter]) -> Observable:
    parameters: dict[str, Any] = {"name": entry} if isinstance(entry, str) else dict(entry)
    name, label = parameters.pop("name", None), parameters.pop("as", None)
    if not isinstance(name, str):
        raise InputError(f"an observable needs a name, got {entry}")
    for key, value in parameters.items():
        word = key == "link"
        require(
            isinstance(value, str) if word else not isinstance(value, (str, bool)),
            f"{name}: {key} must be {'a word' if word else 'a number or a list of numbers'}, got {value!r}",
        )
    try:
        found = make(name, **parameters)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).split("\n")[0]
        raise InputError(f"the parameters of observable {name} do not fit: {reason}") from error
    return found if label is None else found.named(_checked_label(label))


def _checked_label(label: object) -> str:
    """A name for a stored array; whether it collides with another is checked by `Save`."""
    good = isinstance(label, str) and re.fullmatch(r"[a-z][a-z0-9_]*", label) is not None
    require(
        good,
        f"as = {label!r} cannot name an observable; use small letters, digits and _, for example "
        "as = 'wide_clusters'",
    )
    return str(label)


class ClusterStop(Strict):
    """Stop at this many clusters, linked at an angle or by a rule on a sphere, at a distance in R^d."""

    count: int = Field(ge=1)
    angle: float | None = Field(default=None, gt=0)
    distance: float | None = Field(default=None, gt=0)
    link: Literal["spacing"] | None = None


class StopSpec(Strict):
    """When to stop before t1."""

    clusters: ClusterStop | None = None
    diameter: float | None = Field(default=None, gt=0)

    def build(self) -> list[Stop]:
        """The stops."""
        stops: list[Stop] = []
        if self.clusters is not None:
            chosen = self.clusters
            stops.append(at_clusters(chosen.count, chosen.angle, chosen.distance, chosen.link))
        if self.diameter is not None:
            stops.append(at_diameter(self.diameter))
        return stops


class OutputSpec(Strict):
    """What is drawn at the end."""

    figure: bool = True
    animation: Literal["none", "mp4", "gif"] = "none"
    frames: int = Field(default=120, ge=2, le=10_000)


class RunSpec(Strict):
    """A whole run, of [tokens] or of a [density]."""

    title: str = Field(default="run", max_length=80)
    says: str = ""
    model: ModelSpec
    tokens: TokensSpec | None = None
    density: DensitySpec | None = None
    solve: SolveSpec
    save: SaveSpec = SaveSpec()
    stop: StopSpec = StopSpec()
    output: OutputSpec = OutputSpec()

    @model_validator(mode="after")
    def _resolve_observables(self) -> RunSpec:
        """Write down what is looked at, so that a printed spec says it."""
        if self.save.observe is None:
            observe = [] if self.tokens is None else OBSERVED
            self.save = self.save.model_copy(update={"observe": observe})
        return self
