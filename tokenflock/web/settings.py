"""What a page may ask the engine to run: web/src/spec/types.ts, bounded.

The engine's own spec (tokenflock/lab/spec.py) allows much more: batches, laws of any size, other
reductions. A page gets what it can simulate itself, and everything is bounded before the engine sees
it. No module here needs JAX, so the server answers a wrong request at once.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .page_limits import Limits

MOST = Limits()

Seed = Annotated[int, Field(ge=0, le=2**53 - 1)]
Size = Annotated[float, Field(ge=-1e6, le=1e6)]
Positive = Annotated[float, Field(gt=0, le=1e6)]
Vector = Annotated[list[Size], Field(min_length=2, max_length=MOST.dimension)]
Matrix = Annotated[list[Vector], Field(min_length=2, max_length=MOST.dimension)]
Count = Annotated[int, Field(ge=2, le=MOST.tokens)]
PerCluster = Annotated[int, Field(ge=1, le=MOST.tokens)]


class Strict(BaseModel):
    """No unknown keys, no conversions, no NaN or infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Law(Strict):
    """A law of random matrices."""

    law: Literal["Ginibre", "GOE", "Wigner"]
    scale: Size


class Weights(Strict):
    """V and B = Q^T K."""

    V: Size | Matrix | Law | None = None
    B: Matrix | Law | None = None
    seed: Seed | None = None


class Perceptron(Strict):
    """A random perceptron beside the attention."""

    width: int = Field(ge=1, le=MOST.width)
    seed: Seed
    scale: Size
    gradient: bool
    activation: Literal["relu", "gelu"]


class Normalisation(Strict):
    """Where the layer normalises."""

    scheme: Literal["post", "pre", "mix", "peri", "ngpt", "sqrt"]
    tau: Size | None = None
    alpha: Size | None = None


class Noise(Strict):
    """Brownian noise on every token."""

    kind: Literal["brownian"]
    temperature: float = Field(ge=0, le=1e6)


class Model(Strict):
    """The equation."""

    name: Literal["SA", "USA", "CausalSA", "HardmaxFlow", "RescaledSA"]
    beta: float | None = Field(default=None, ge=-1e6, le=1e6)
    convention: Literal["perspective", "metastability"] | None = None
    weights: Weights | None = None
    self_term: bool | None = None
    slope: Size | None = None
    normalisation: Normalisation | None = None
    noise: Noise | None = None
    plus: Perceptron | None = None


class Start(Strict):
    """What every start has."""

    space: Literal["sphere", "euclidean"] | None = None
    d: int = Field(ge=2, le=MOST.dimension)
    perturb: Positive | None = None
    perturb_seed: Seed | None = None


class Uniform(Start):
    """Uniform on the sphere, or on a hemisphere."""

    law: Literal["uniform", "hemisphere"]
    n: Count
    seed: Seed


class Cap(Start):
    """Uniform in a cap."""

    law: Literal["cap"]
    n: Count
    seed: Seed
    radius: Positive
    centre: Vector | None = None


class Gaussian(Start):
    """Normal in R^d."""

    law: Literal["gaussian"]
    n: Count
    seed: Seed
    scale: Positive


class Box(Start):
    """Uniform in a cube."""

    law: Literal["box"]
    n: Count
    seed: Seed
    half_width: Positive


class Groups(Start):
    """Tokens in groups around centres."""

    per_cluster: PerCluster
    seed: Seed
    centres: Any

    @model_validator(mode="after")
    def _count(self) -> Groups:
        n = self.per_cluster * len(self.centres)
        if n > MOST.tokens:
            raise ValueError(f"{n} tokens; a page may have at most {MOST.tokens}")
        return self


class Arcs(Groups):
    """Arcs of the circle."""

    law: Literal["arcs"]
    centres: list[Size] = Field(min_length=1, max_length=MOST.tokens)
    width: Positive


class Mixture(Groups):
    """Caps around centres."""

    law: Literal["mixture"]
    centres: list[Vector] = Field(min_length=1, max_length=MOST.tokens)
    radius: Positive


class Equiangular(Start):
    """All pairs at one angle."""

    law: Literal["equiangular"]
    n: Count
    correlation: float = Field(ge=-1, le=1)


class Points(Start):
    """Tokens given one by one."""

    law: Literal["points"]
    points: list[Vector] = Field(min_length=2, max_length=MOST.tokens)
    normalise: bool | None = None


Tokens = Annotated[
    Uniform | Cap | Gaussian | Box | Arcs | Mixture | Equiangular | Points,
    Field(discriminator="law"),
]
Time = Annotated[float, Field(gt=0, le=MOST.time)]


class FixedSteps(Strict):
    """Fixed steps of the flow."""

    t1: Time
    method: Literal["fixed"]
    dt: Positive
    seed: Seed

    @property
    def step(self) -> float:
        """The step, by the name it has for layers."""
        return self.dt


class LayerSteps(Strict):
    """A network of layers."""

    t1: Time
    method: Literal["layers"]
    step: Positive
    seed: Seed


class Settings(Strict):
    """The settings of a page."""

    title: str = Field(max_length=80)
    says: str = Field(max_length=2_000)
    model: Model
    tokens: Tokens
    solve: Annotated[FixedSteps | LayerSteps, Field(discriminator="method")]

    @property
    def keeps_its_steps(self) -> bool:
        """Layers, and noise, are what they are by their step; a flow has a limit of small steps."""
        return self.solve.method == "layers" or self.model.noise is not None
