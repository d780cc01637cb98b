"""The [density] table: a run of infinitely many tokens, as a spec and as a job in parts."""

from __future__ import annotations

import inspect
import typing
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from pydantic import Field

from ..density import Density, Discretisation, Law
from ..dynamics import has_beta_batch
from ..integrate import LogTime, Stiff
from ..integrate.assemble import join_stored
from ..integrate.core import Segment
from ..kinetic.layered import MOST_POSITIONS, Layered
from ..meanfield import laws
from ..meanfield.api import density_plan
from ..meanfield.assemble import density_attributes, from_density_segment
from ..meanfield.circle import Fourier
from ..meanfield.moments import normal
from ..meanfield.quantiles import Quantiles
from ..meanfield.solving import DensityPlan, Flowing, integrate_density
from ..meanfield.sphere import Harmonics
from ..meanfield.zonal import Zonal
from ..memory import require_bytes
from ..trajectory import Trajectory
from .parts import Integration, Part, cut, on_host
from .slots import Seed, Strict, rectangle, spec_of
from .spec import ModelSpec, Parameter, SaveSpec, StopSpec, build_model

# How numbers of discretisations are bounded in a file.
SIZES: dict[str, Any] = {
    "modes": Annotated[int, Field(ge=1, le=1 << 20)],
    "positions": Annotated[int, Field(ge=1, le=MOST_POSITIONS)],
    "n": Annotated[int, Field(ge=2, le=1_000_000)],
    "d": Annotated[int, Field(ge=2, le=16_384)],
    "degree": Annotated[int, Field(ge=1, le=4096)],
}
SPECTRAL: dict[str, type[Discretisation]] = {
    "fourier": Fourier,
    "quantiles": Quantiles,
    "zonal": Zonal,
    "harmonics": Harmonics,
    "layered": Layered,
}


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
        kind = SIZES.get(parameter, Annotated[float, Field(gt=0)])
        fields[parameter] = (kind, ... if missing else about.default)
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


class DensitySolve(Strict):
    """How the equation is integrated: adaptive steps, or fixed ones of size dt."""

    t1: float = Field(gt=0)
    method: Literal["stiff"] | None = None
    rtol: float | None = Field(default=None, gt=0)
    atol: float | None = Field(default=None, gt=0)
    dt: float | None = Field(default=None, gt=0)
    max_steps: int = Field(default=100_000, ge=1, le=1_000_000_000)
    log_clock: float | None = Field(default=None, gt=0)

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `density_plan`."""
        return {
            "t1": self.t1,
            "rtol": self.rtol,
            "atol": self.atol,
            "dt": self.dt,
            "method": Stiff() if self.method == "stiff" else None,
            "clock": None if self.log_clock is None else LogTime(self.log_clock),
            "max_steps": self.max_steps,
        }


class DensitySave(SaveSpec):
    """When to look and what to keep; the health of a run is always kept."""

    observe: list[str | dict[str, Parameter]] = []


class DensityOutput(Strict):
    """What is drawn at the end."""

    figure: bool = True


class DensityRunSpec(Strict):
    """A whole run of a density."""

    title: str = Field(default="density", max_length=80)
    says: str = ""
    model: ModelSpec
    density: DensitySpec
    solve: DensitySolve
    save: DensitySave = DensitySave()
    stop: StopSpec = StopSpec()
    output: DensityOutput = DensityOutput()


def build_density(spec: Any) -> Density:
    """The density of a [density] table."""
    if isinstance(spec, MomentsDensity):
        return normal(spec.mean, rectangle("density.covariance", spec.covariance))
    kind = SPECTRAL[spec.on]
    on = kind(**{name: getattr(spec, name) for name in inspect.signature(kind).parameters})
    return Density.from_law(on, build_law(spec.law))


def build_law(spec: Any) -> Law:
    """The law of a [density.law] table."""
    function = laws.LAWS[spec.name]
    return function(
        **{name: getattr(spec, name) for name in inspect.signature(function).parameters}
    )


def check_size(spec: DensityRunSpec) -> None:
    """Refuse a density that would not fit before its tables are made."""
    rows = len(spec.save.build().times(spec.solve.t1)) if spec.save.states else 2
    numbers, tables = _sizes(spec.density)
    require_bytes(
        8.0 * (rows * numbers + tables),
        "this density and its saved states",
        "use fewer modes or degrees, or save less often",
    )


def _sizes(spec: Any) -> tuple[float, float]:
    """Numbers in a state, and in the tables that move it."""
    if spec.on == "moments":
        return len(spec.mean) ** 2, 0.0
    if spec.on == "harmonics":
        return spec.degree**2, 3.0 * spec.degree**3
    if spec.on == "zonal":
        return spec.degree, 6.0 * spec.degree**2
    if spec.on == "layered":
        size = 2.0 * spec.modes * (spec.positions + 1)
        return size, 20.0 * size + spec.positions**2
    size = 2.0 * spec.modes if spec.on == "fourier" else spec.n
    return size, 20.0 * size


class DensityJob(Integration):
    """A checked spec of a density, ready to be compiled and integrated."""

    def __init__(self, spec: DensityRunSpec):
        from .files import identity

        self.spec = spec
        self.id = identity(spec)
        check_size(spec)
        self.density = build_density(spec.density)
        self.model = build_model(spec.model, self.density.space.d)
        self.plan: DensityPlan
        self.plan, self.times = density_plan(
            self.model,
            self.density,
            save=spec.save.build(),
            stop=spec.stop.build(),
            progress=False,
            **spec.solve.arguments(),
        )
        self.parts = cut(self.times, self.plan.clock, spec.solve.dt)

    def start(self) -> Flowing:
        first = Flowing(self.density.state, jnp.zeros(()))
        if not has_beta_batch(self.model):
            return first
        betas = max(part.beta.size for part in self.model.attentions())
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (betas, *leaf.shape)), first)

    def first_rows(self, start: Flowing) -> dict[str, Any]:
        return {"states": start.state} if self.plan.states else {}

    def lead_shape(self, start: Flowing) -> tuple[int, ...]:
        return start.work.shape

    def finite(self, final: Flowing) -> np.ndarray:
        inner = tuple(range(-self.density.state.ndim, 0))
        return np.all(np.isfinite(final.state), axis=inner)

    def label(self, segment: Segment) -> Trajectory:
        return from_density_segment(self.plan, self.density, segment, self.spec.solve.t1)

    def joined(self, pieces: list[Trajectory]) -> Trajectory:
        whole = join_stored(pieces)
        whole.attributes = density_attributes(
            self.plan, self.density, whole.arrays, self.spec.solve.t1
        )
        return whole

    def end_of(self, arrays: dict[str, Any]) -> Flowing:
        return Flowing(jnp.asarray(arrays["final_state"]), jnp.asarray(arrays["final_work"]))

    def _function(self) -> Any:
        return integrate_density

    def _arguments(self, state: Flowing, part: Part) -> tuple[Any, ...]:
        return self.plan, on_host(state), jnp.asarray(part.times)
