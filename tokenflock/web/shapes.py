"""What the server answers, as types: web/src/replay/types.ts in Python."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class Pong(BaseModel):
    """The server is there."""

    ok: Literal[True] = True
    version: str
    pages: int
    workers: int
    idle: int
    waiting: int


class Problem(BaseModel):
    """What was wrong: a sentence, or a list of places with one each."""

    detail: Any


class LibraryEntry(BaseModel):
    """One line of the library."""

    id: str
    kind: Literal["run", "trace", "sweep"]
    title: str
    detail: str


class PackedArray(BaseModel):
    """Little-endian numbers in base64, row-major."""

    dtype: Literal["float32", "float64", "int32"]
    shape: list[int]
    data: str


class Series(BaseModel):
    """One number per frame."""

    name: str
    values: list[float | None]


class RunReplay(BaseModel):
    """Tokens along a clock."""

    kind: Literal["run", "trace"]
    title: str
    says: str
    clock: Literal["time", "layer"]
    times: list[float]
    space: Literal["sphere", "euclidean"]
    points: PackedArray
    dimension: int
    projection: str | None
    clusters: PackedArray | None
    series: list[Series]
    labels: list[str] | None
    spec: Any
    notes: list[str]


class Axis(BaseModel):
    """One swept setting, or several at once: what is at each position, and what it sets in the spec."""

    name: str
    values: list[float]
    labels: list[str] | None = None
    sets: dict[str, list[Any]] | None = None


class Statistic(BaseModel):
    """A number per cell."""

    name: str
    values: PackedArray


class OwnSeeds(BaseModel):
    """A seed per cell: (rows, columns), or (rows, 1) where all columns share it; NaN: not known."""

    path: str
    values: PackedArray


class SweepReplay(BaseModel):
    """Statistics over a grid of settings."""

    kind: Literal["sweep"]
    title: str
    says: str
    rows: Axis
    columns: Axis
    statistics: list[Statistic] = Field(min_length=1)
    seeds: list[OwnSeeds]
    spec: Any
    notes: list[str]


Replay = RunReplay | SweepReplay
