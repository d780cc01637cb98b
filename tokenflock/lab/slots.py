"""Specs of the slots of a model: weights, masks, normalisation, noise, perceptron.

Each is a pydantic model with one method, `build(d)`, that makes the value that goes into the slot.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, create_model, model_validator

from .. import masks, noise, normalisation, random_weights, weights
from ..errors import InputError, require
from ..memory import require_bytes
from ..schedule import Piecewise, Schedule
from ..terms import Attention
from ..terms.perceptron import ACTIVATIONS, Perceptron

Numbers = float | Annotated[list[float], Field(min_length=1)]
Matrix = list[list[float]]
Matrices = list[list[list[float]]]
# Keys of JAX's generator are made from 64-bit integers.
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]


class Strict(BaseModel):
    """No unknown keys, no conversions (a string or true is not a number), no NaN or infinity."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, validate_default=True
    )


def spec_of(name: str, base: type[Strict], fields: dict[str, Any]) -> Any:
    """A spec made from the signature of a function, so that the two cannot drift apart."""
    make: Any = create_model
    return make(name, __base__=base, **fields)


def rectangle(name: str, value: Any) -> np.ndarray:
    """Nested lists as an array; ragged rows are refused."""
    try:
        return np.asarray(value, dtype=float)
    except (ValueError, OverflowError) as error:
        raise InputError(f"the rows of {name} must have equal lengths") from error


class PiecewiseSpec(Strict):
    """A number that changes with depth: values[m] from times[m-1] to times[m], the last one for ever."""

    times: list[float] = Field(min_length=1)
    values: list[float] = Field(min_length=2)

    @model_validator(mode="after")
    def _is_a_schedule(self) -> PiecewiseSpec:
        """Refused here, the sentence names the key."""
        self.build(1)
        return self

    def build(self, d: int) -> Piecewise:
        """The schedule."""
        return Piecewise(self.times, self.values)


def _how_written(given: Any) -> str:
    """Which of the two a value is meant to be, so that a wrong table is told about its own keys."""
    return "table" if isinstance(given, (dict, PiecewiseSpec)) else "plain"


# Numbers of a model that may change with depth: one, one that is not negative, one or a batch of them.
OfDepth = Annotated[
    Annotated[float, Tag("plain")] | Annotated[PiecewiseSpec, Tag("table")],
    Discriminator(_how_written),
]
NotNegativeOfDepth = Annotated[
    Annotated[float, Field(ge=0), Tag("plain")] | Annotated[PiecewiseSpec, Tag("table")],
    Discriminator(_how_written),
]
NumbersOfDepth = Annotated[
    Annotated[Numbers, Tag("plain")] | Annotated[PiecewiseSpec, Tag("table")],
    Discriminator(_how_written),
]


def built(value: Any, d: int) -> Any:
    """What a value of a spec stands for: itself, or what its table builds."""
    return value.build(d) if hasattr(value, "build") else value


class LawSpec(Strict):
    """Law of a random matrix."""

    law: Literal["Ginibre", "Wigner", "GOE", "PositiveSemidefinite", "Product"]
    scale: float = 1.0

    def build(self) -> random_weights.Law:
        """The law."""
        return random_weights.MATRIX_LAWS[self.law](self.scale)


class WeightsSpec(Strict):
    """Constant matrices, or laws to draw them from, or pieces in time.

    Q, K, V, B -- a matrix (d, d), one per head (H, d, d), a number times the identity (V only), or a
    law such as {law = "Ginibre", scale = 0.5}. With laws: heads, seed, period (redraw), per ("run" or
    "sample"), tied (V = tied * Q^T K). Pieces: times = [...] and pieces = [{...}, {...}].
    """

    Q: Matrix | Matrices | LawSpec | None = None
    K: Matrix | Matrices | LawSpec | None = None
    V: float | Matrix | Matrices | LawSpec | None = None
    B: Matrix | Matrices | LawSpec | None = None
    heads: int = Field(1, ge=1, le=4096)
    seed: Seed = 0
    period: float | None = Field(None, gt=0)
    per: Literal["run", "sample"] = "run"
    tied: float | None = None
    times: list[float] | None = None
    pieces: list[WeightsSpec] | None = None

    def build(self, d: int) -> Schedule:
        """The schedule of weights on R^d."""
        given = {name: getattr(self, name) for name in "QKVB" if getattr(self, name) is not None}
        if self.pieces is not None:
            require(not given, "give either pieces or matrices, not both")
            parts = [piece.build(d) for piece in self.pieces]
            constant = [part for part in parts if isinstance(part, weights.Weights)]
            require(len(constant) == len(parts), "pieces must be constant matrices")
            return Piecewise(self.times or [], constant)
        require(self.times is None, "times are switching times: give pieces = [...] too")
        if any(isinstance(value, LawSpec) for value in given.values()) or self.tied is not None:
            return self._random(d, given)
        self._refuse_law_settings()
        return weights.Weights(**{name: rectangle(name, value) for name, value in given.items()})

    def _refuse_law_settings(self) -> None:
        """What belongs to drawn matrices would otherwise be ignored in silence."""
        for name in ("heads", "seed", "period", "per"):
            require(
                getattr(self, name) == type(self).model_fields[name].default,
                f"weights.{name} belongs to matrices drawn from a law, for example "
                "Q = {law = 'Ginibre', scale = 0.5}; here every matrix is given",
            )

    def _random(self, d: int, given: dict[str, object]) -> Schedule:
        laws: dict[str, random_weights.Law | float] = {}
        for name, value in given.items():
            if isinstance(value, LawSpec):
                laws[name] = value.build()
            elif name == "V" and isinstance(value, float):
                laws[name] = value
            else:
                raise InputError(f"{name} must be a law when another matrix is drawn from one")
        require_bytes(32.0 * self.heads * d * d, "these weights", "lower heads or d")
        return random_weights.RandomWeights(
            d=d,
            seed=self.seed,
            heads=self.heads,
            tied=self.tied,
            period=self.period,
            per=self.per,
            **laws,  # pyright: ignore[reportArgumentType]
        )


class MaskSpec(Strict):
    """full, causal (self_term), or alibi (slope, self_term)."""

    kind: Literal["full", "causal", "alibi"]
    self_term: bool = True
    slope: float | None = None

    def build(self, d: int) -> masks.Mask:
        """The mask."""
        if self.kind == "alibi":
            if self.slope is None:
                raise InputError("an alibi mask needs a slope, for example slope = 1.0")
            return masks.ALiBi(self.slope, self.self_term)
        require(self.slope is None, f"a {self.kind} mask has no slope; use kind = 'alibi'")
        return masks.Full() if self.kind == "full" else masks.Causal(self.self_term)


class NormalisationSpec(Strict):
    """post, pre, mix (tau), peri, ngpt (alpha) or sqrt; alpha may change with depth (`PiecewiseSpec`)."""

    scheme: Literal["post", "pre", "mix", "peri", "ngpt", "sqrt"]
    tau: float | None = None
    alpha: OfDepth | None = None

    def build(self, d: int) -> normalisation.Normalisation:
        """The scheme."""
        needs = {"mix": "tau", "ngpt": "alpha"}.get(self.scheme)
        given = {name: getattr(self, name) for name in ("tau", "alpha")}
        extra = [name for name, value in given.items() if value is not None and name != needs]
        require(not extra, f"{self.scheme} has no parameter {' or '.join(extra)}")
        if needs is None:
            return normalisation.SCHEMES[self.scheme]()
        require(given[needs] is not None, f"{self.scheme} needs {needs}, for example {needs} = 1.0")
        return normalisation.SCHEMES[self.scheme](built(given[needs], d))


class NoiseSpec(Strict):
    """brownian (temperature), or common (scale, beta): one random value matrix shared by the tokens.

    Each of the three numbers may change with depth (`PiecewiseSpec`).
    """

    kind: Literal["brownian", "common"]
    temperature: NotNegativeOfDepth | None = None
    scale: NotNegativeOfDepth | None = None
    beta: NotNegativeOfDepth = 1.0

    def build(self, d: int) -> noise.Noise:
        """The noise."""
        if self.kind == "brownian":
            if self.temperature is None:
                raise InputError(
                    "brownian noise needs a temperature, for example temperature = 0.1"
                )
            return noise.Brownian(built(self.temperature, d))
        if self.scale is None:
            raise InputError("common noise needs a scale, for example scale = 0.5")
        return noise.CommonNoise(Attention(beta=built(self.beta, d)), built(self.scale, d))


# What the law of a random perceptron says.
LAW_SETTINGS = ("width", "seed", "scale", "gradient", "period", "per")


class PerceptronSpec(Strict):
    """A random perceptron (width, seed, scale, gradient), or inner and outer matrices.

    bias -- the biases, or for a random perceptron the size of the drawn ones. period and per, of a random
    one: fresh weights in every layer, for the whole run or for every sample. Pieces: times = [...] and
    pieces = [{...}, {...}], perceptrons with constant weights of one size and activation.
    """

    width: int = Field(16, ge=1, le=1_000_000)
    seed: Seed = 0
    scale: float = 1.0
    gradient: bool = False
    activation: Literal["relu", "gelu"] = "relu"
    period: float | None = Field(None, gt=0)
    per: Literal["run", "sample"] = "run"
    inner: Matrix | None = None
    outer: Matrix | None = None
    bias: float | list[float] | None = None
    times: list[float] | None = None
    pieces: list[PerceptronSpec] | None = None

    def build(self, d: int) -> Perceptron:
        """The term."""
        if self.pieces is not None:
            return self._in_pieces(d, self.pieces)
        require(self.times is None, "times are switching times: give pieces = [...] too")
        if self.inner is None and self.outer is None:
            return self._random(d)
        require(self.inner is not None and self.outer is not None, "give both inner and outer")
        self._refuse(*LAW_SETTINGS, why="a random perceptron; here inner and outer are given")
        inner, outer = rectangle("inner", self.inner), rectangle("outer", self.outer)
        require(
            not isinstance(self.bias, float),
            f"bias = {self.bias} is the size of drawn biases; beside inner and outer give a list",
        )
        return Perceptron(inner, outer, self.bias, ACTIVATIONS[self.activation])

    def _random(self, d: int) -> Perceptron:
        require(
            not isinstance(self.bias, list),
            "a random perceptron draws its biases: bias is their size, one number; give inner and "
            "outer too to list them",
        )
        require_bytes(16.0 * self.width * d, "the weights of this perceptron", "lower its width")
        return Perceptron.random(
            d,
            self.width,
            self.seed,
            self.scale,
            self.gradient,
            ACTIVATIONS[self.activation],
            bias=self.bias or 0.0,  # pyright: ignore[reportArgumentType]
            period=self.period,
            per=self.per,
        )

    def _in_pieces(self, d: int, pieces: list[PerceptronSpec]) -> Perceptron:
        own = (*LAW_SETTINGS, "activation", "inner", "outer", "bias")
        self._refuse(*own, why="each piece by itself; here pieces are given")
        parts = [piece.build(d) for piece in pieces]
        constant = [part.weights.at(0.0) for part in parts if part.weights.is_fixed]
        require(len(constant) == len(parts), "pieces must be perceptrons with constant weights")
        schedule = Piecewise(self.times or [], constant)
        activations = {piece.activation for piece in pieces}
        require(
            len(activations) == 1,
            f"pieces of one perceptron need one activation, got {sorted(activations)}",
        )
        return Perceptron(weights=schedule, activation=parts[0].activation)

    def _refuse(self, *names: str, why: str) -> None:
        """What belongs elsewhere would otherwise be ignored in silence."""
        for name in names:
            require(
                getattr(self, name) == type(self).model_fields[name].default,
                f"plus.{name} belongs to {why}",
            )
