"""The [sweep] table of a spec: kinds of axes, and the values they take.

    [sweep.axes]
    beta = { from = 0.1, to = 9.0, count = 90 }
    n = [16, 32, 64]
    pair = { zip = { "model.beta" = [1.0, 4.0], "solve.t1" = [10.0, 40.0] } }
    trial = { random = 1000, over = { beta = { from = 0.1, to = 10.0, scale = "log" } } }
    seed = { seeds = 256 }

Names are paths of the run spec or their unique last keys, as for `--set`. Nothing here is executed:
values are numbers, texts and truth values.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag, ValidationError

from ..errors import InputError, require
from ..lab.files import complete
from ..lab.sentences import explain
from ..lab.setting_paths import last_name
from ..lab.slots import Seed, Strict
from ..lab.spec import RunSpec
from .grid import Axis

Scalar = bool | int | float | str
MOST_VALUES = 10_000_000
# Seeds of 53 bits: numbers that JSON and a browser keep.
SEED_BITS = 53
# Whole numbers that are exact as floats.
LARGEST_WHOLE = 2.0**53
# Settings of these tables decide no number.
NOT_SWEPT = ("title", "says", "output", "sweep")
NOISY_MODELS = ("NoisyUSA", "StochasticSA")
SWEPT_TABLES = tuple(name for name in RunSpec.model_fields if name not in NOT_SWEPT)


class Span(Strict):
    """count values from `from` to `to`, evenly or logarithmically spaced; whole = true rounds them."""

    start: float = Field(alias="from")
    to: float
    scale: Literal["linear", "log"] = "linear"
    whole: bool = False

    def check(self, where: str) -> None:
        require(
            self.scale == "linear" or (self.start > 0 and self.to > 0),
            f"{where}: a log scale needs positive ends, got from = {self.start:g} and to = {self.to:g}",
        )
        require(
            not self.whole or max(abs(self.start), abs(self.to)) < LARGEST_WHOLE,
            f"{where}: whole numbers go up to {LARGEST_WHOLE:g}, got from = {self.start:g} and to = "
            f"{self.to:g}",
        )

    def at(self, fractions: np.ndarray) -> list[float] | list[int]:
        """Values at fractions between 0 and 1 of the way, to twelve digits: 0.3 and no tail behind it."""
        low, high = self.start, self.to
        if self.scale == "linear":
            found = low * (1.0 - fractions) + high * fractions
        else:
            found = np.exp(np.log(low) * (1.0 - fractions) + np.log(high) * fractions)
        if self.whole:
            return [round(float(value)) for value in found]
        return [float(f"{value:.12g}") for value in found]


class SpanAxis(Span):
    """A grid or a log range."""

    count: int = Field(ge=1, le=MOST_VALUES)
    set: str | None = None

    @property
    def length(self) -> int:
        return self.count

    def values(self) -> list[Any]:
        found = self.at(np.linspace(0.0, 1.0, self.count))
        return list(dict.fromkeys(found))


class ListAxis(Strict):
    """The values one by one."""

    values_: list[Scalar] = Field(alias="values", min_length=1)
    set: str | None = None

    @property
    def length(self) -> int:
        return len(self.values_)

    def check(self, where: str) -> None:
        pass

    def values(self) -> list[Any]:
        return list(self.values_)


class ZipAxis(Strict):
    """Several settings that change together."""

    zip: dict[str, list[Scalar]] = Field(min_length=1)

    @property
    def length(self) -> int:
        return len(next(iter(self.zip.values())))

    def check(self, where: str) -> None:
        lengths = {name: len(values) for name, values in self.zip.items()}
        require(
            len(set(lengths.values())) == 1 and min(lengths.values()) > 0,
            f"{where}: zipped settings need equally many values, at least one; got {lengths}",
        )


class Choices(Strict):
    """One of these, each equally likely."""

    choices: list[Scalar] = Field(min_length=1)

    def at(self, fractions: np.ndarray) -> list[Any]:
        """The choice at fractions in [0, 1)."""
        count = len(self.choices)
        return [self.choices[min(int(u * count), count - 1)] for u in fractions]


def _law(given: Any) -> str:
    """Which of the two a table is meant to be."""
    names = given if isinstance(given, dict) else dict(given) if isinstance(given, Choices) else {}
    return "choices" if "choices" in names else "span"


RandomLaw = Annotated[
    Annotated[Span, Tag("span")] | Annotated[Choices, Tag("choices")], Discriminator(_law)
]


class RandomAxis(Strict):
    """Random search: every trial draws its settings anew."""

    random: int = Field(ge=1, le=MOST_VALUES)
    over: dict[str, RandomLaw] = Field(min_length=1)

    @property
    def length(self) -> int:
        return self.random

    def check(self, where: str) -> None:
        for name, law in self.over.items():
            if isinstance(law, Span):
                law.check(f"{where}.over.{name}")


class SeedAxis(Strict):
    """Repetitions. The seed of a cell follows from its coordinates, never from the order of work.

    of -- the seeds to set (default: tokens.seed, and solve.seed where there is noise);
    per -- "seed": all cells with the same position share it, so that settings are compared on the same
    tokens; "cell": every cell has its own.
    """

    seeds: int = Field(ge=1, le=MOST_VALUES)
    of: list[str] | None = Field(default=None, min_length=1)
    per: Literal["seed", "cell"] = "seed"

    @property
    def length(self) -> int:
        return self.seeds

    def check(self, where: str) -> None:
        pass


KINDS: dict[str, type[Any]] = {
    "from": SpanAxis,
    "values": ListAxis,
    "zip": ZipAxis,
    "random": RandomAxis,
    "seeds": SeedAxis,
}


class SweepTable(Strict):
    """The table as it is written; each axis is checked by its own kind."""

    batch: int | None = Field(default=None, ge=1, le=1_000_000)
    seed: Seed = 0
    axes: dict[str, Any] = Field(min_length=1)


def read_table(given: Any, source: str) -> SweepTable:
    """The checked [sweep] table."""
    if not isinstance(given, dict):
        raise InputError(
            f"{source} has no [sweep] table; add for example [sweep.axes] with "
            "beta = { from = 0.1, to = 9.0, count = 90 }, or use tokenflock run"
        )
    try:
        return SweepTable.model_validate(given)
    except ValidationError as error:
        raise InputError(explain(error, given, f"{source}: sweep", SweepTable)) from error


def read_axis(name: str, given: Any, source: str) -> Any:
    """One axis by the key that tells its kind; a bare list is a list of values."""
    table = {"values": given} if isinstance(given, list) else given
    where = f"{source}: sweep.axes.{name}"
    kinds = [key for key in KINDS if isinstance(table, dict) and key in table]
    if len(kinds) != 1:
        raise InputError(
            f"{where} must be a list of values, or a table with one of {', '.join(KINDS)}; for example "
            f"{name} = {{ from = 1.0, to = 9.0, count = 17 }}"
        )
    kind = KINDS[kinds[0]]
    try:
        axis = kind.model_validate(table)
    except ValidationError as error:
        raise InputError(explain(error, table, where, kind)) from error
    axis.check(where)
    return axis


def full_path(table: dict[str, Any], name: str, source: str) -> str:
    """The path of the run spec that a name stands for."""
    keys = [key.strip() for key in name.split(".")]
    if keys[0] not in RunSpec.model_fields:
        keys = complete(table, keys, f"{source}: sweep axis")
    require(
        keys[0] in SWEPT_TABLES and len(keys) > 1 and all(keys),
        f"{source}: {name} cannot be swept; sweep a setting inside {', '.join(SWEPT_TABLES)}, for "
        "example model.beta",
    )
    return ".".join(keys)


def dimension_name(key: str) -> str:
    """The dataset's dimension: the last part of a path."""
    name = last_name(key)
    require(
        re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,63}", name) is not None,
        f"{key!r} cannot name an axis; use letters, digits and _, for example beta",
    )
    return name


def make_axes(
    read: dict[str, Any], table: dict[str, Any], root: int, source: str
) -> tuple[tuple[Axis, ...], tuple[str, ...]]:
    """The axes, and the seeds of which every cell has its own."""
    plain = {
        key: make_axis(key, axis, table, root, source)
        for key, axis in read.items()
        if not isinstance(axis, SeedAxis)
    }
    axes: list[Axis] = []
    own: list[str] = []
    for key, axis in read.items():
        if key in plain:
            axes.append(plain[key])
            continue
        paths = seeded_paths(axis, table, list(plain.values()), source)
        axes.append(_seed_axis(dimension_name(key), axis, paths, root))
        own += paths if axis.per == "cell" else []
    return tuple(axes), tuple(own)


def make_axis(key: str, axis: Any, table: dict[str, Any], root: int, source: str) -> Axis:
    """The axis with the values it gives to every path."""
    name = dimension_name(key)
    if isinstance(axis, (ZipAxis, RandomAxis)):
        given = axis.zip if isinstance(axis, ZipAxis) else drawn(name, axis, root)
        settings = {full_path(table, path, source): values for path, values in given.items()}
        require(len(settings) == len(given), f"{source}: {key} sets one setting twice")
        count = len(next(iter(settings.values())))
        beside = {last_name(path): coordinate(values) for path, values in settings.items()}
        require(
            len(beside) == len(settings) and name not in beside,
            f"{source}: the settings of {key} need different last names, other than {name}",
        )
        return Axis(name, np.arange(count), settings, beside)
    values = axis.values()
    require(
        len(set(values)) == len(values),
        f"{source}: the values of {key} must differ from one another",
    )
    path = full_path(table, axis.set or key, source)
    return Axis(name, coordinate(values), {path: values})


def _seed_axis(name: str, axis: SeedAxis, paths: list[str], root: int) -> Axis:
    """Shared seeds are settings; those of single cells are derived when a cell is made."""
    numbers = np.arange(axis.seeds)
    if axis.per == "cell":
        return Axis(name, numbers, is_seed=True)
    settings: dict[str, list[Any]] = {
        path: [derived_seed(root, path, {name: k}) for k in range(axis.seeds)] for path in paths
    }
    beside = {seed_name(path): np.asarray(values) for path, values in settings.items()}
    return Axis(name, numbers, settings, beside, is_seed=True)


def seed_name(path: str) -> str:
    """What the derived seeds of a setting are called in the dataset."""
    return path.replace(".", "_")


def seeded_paths(
    axis: SeedAxis, table: dict[str, Any], others: list[Axis], source: str
) -> list[str]:
    """The seeds an axis sets."""
    if axis.of is None:
        noisy = _is_noisy(table) or any(_brings_noise(other) for other in others)
        return ["tokens.seed", "solve.seed"] if noisy else ["tokens.seed"]
    paths = [full_path(table, name, source) for name in axis.of]
    for path in paths:
        require(
            path.endswith("seed"),
            f"{source}: {path} is no seed; of = [...] names seeds, for example tokens.seed",
        )
    return paths


def _is_noisy(table: dict[str, Any]) -> bool:
    model = table.get("model")
    return isinstance(model, dict) and ("noise" in model or model.get("name") in NOISY_MODELS)


def _brings_noise(axis: Axis) -> bool:
    return any(
        path.startswith("model.noise")
        or (path == "model.name" and not {*NOISY_MODELS}.isdisjoint(values))
        for path, values in axis.settings.items()
    )


def derived_seed(root: int, path: str, coordinates: dict[str, Any]) -> int:
    """A seed that depends on the sweep's seed, the setting and the coordinates, and on nothing else."""
    return _hashed([root, path, coordinates])


def drawn(name: str, axis: RandomAxis, root: int) -> dict[str, list[Any]]:
    """The settings of every trial; more trials leave the earlier ones as they are."""
    found: dict[str, list[Any]] = {}
    for path, law in axis.over.items():
        numbers = [_hashed([root, name, path, k]) for k in range(axis.random)]
        found[path] = law.at(np.asarray(numbers) / 2.0**SEED_BITS)
    return found


def _hashed(key: list[Any]) -> int:
    text = json.dumps(key, sort_keys=True).encode()
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - SEED_BITS)


def coordinate(values: list[Any]) -> np.ndarray:
    """Values as one array: numbers, truth values, or texts if they are mixed."""
    if all(isinstance(value, bool) for value in values):
        return np.asarray(values)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        require(
            all(-(2**63) <= value < 2**63 for value in values if isinstance(value, int)),
            "whole numbers of a sweep must lie between -2^63 and 2^63",
        )
        return np.asarray(values)
    return np.asarray([value if isinstance(value, str) else json.dumps(value) for value in values])
