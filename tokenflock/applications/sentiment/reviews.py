"""Labelled reviews: read from a CSV file, without duplicates, split by a seed, in numbers."""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import InputError, require
from .settings import Settings
from .texts import numbered, vocabulary_of, words_of

TEXT, LABEL = "text", "label"
PARTS = ("train", "validation", "test")
# A review may be longer than the limit of Python's reader, 128 KiB.
LONGEST_FIELD = 2**24


@dataclass(frozen=True)
class Reviews:
    """Words of different texts, with one of two labels each; True is the second name, the positive one."""

    words: tuple[list[str], ...]
    labels: np.ndarray
    names: tuple[str, str]
    dropped: Mapping[str, int]

    def fingerprint(self) -> str:
        """A short name of exactly these words and labels."""
        digest = hashlib.blake2b(digest_size=8)
        for words, label in zip(self.words, self.labels, strict=True):
            digest.update(f"{label:d} {' '.join(words)}\n".encode())
        return digest.hexdigest()


def read_reviews(path: Path, only: str | None = None) -> Reviews:
    """Reviews of a CSV file with the columns text and label; `only` is COLUMN=VALUE, rows to keep."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return _from_rows(path, csv.DictReader(file, strict=True), only)
    except FileNotFoundError:
        raise InputError(
            f"there is no file {path}; give a CSV file with the columns text and label, or try "
            "--example synthetic"
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {path} as a CSV file: {error}") from error


def _from_rows(path: Path, rows: csv.DictReader[str], only: str | None) -> Reviews:
    csv.field_size_limit(LONGEST_FIELD)
    columns = list(rows.fieldnames or [])
    missing = [name for name in (TEXT, LABEL) if name not in columns]
    require(
        not missing,
        f"{path} has no column {' and no column '.join(missing)} (its columns: "
        f"{', '.join(columns) or 'none'}); name them so in its first line",
    )
    kept = _kept(path, rows, columns, only)
    return make_reviews([(row[TEXT] or "", (row[LABEL] or "").strip()) for row in kept], str(path))


def _kept(
    path: Path, rows: csv.DictReader[str], columns: Sequence[str], only: str | None
) -> list[dict[str, str]]:
    if only is None:
        return list(rows)
    column, equals, value = only.partition("=")
    require(
        bool(equals) and column in columns,
        f"--only needs COLUMN=VALUE with a column of {path} ({', '.join(columns)}); got {only!r}",
    )
    kept = [row for row in rows if row[column] == value]
    require(bool(kept), f"no row of {path} has {column} = {value!r}; look at its values")
    return kept


def make_reviews(pairs: Iterable[tuple[str, str]], source: str) -> Reviews:
    """Reviews from pairs (text, label): those without a word and repeated ones left out."""
    seen: set[str] = set()
    kept: list[tuple[list[str], str]] = []
    dropped = {"repeated": 0, "without a word": 0}
    for text, label in pairs:
        words = words_of(text)
        if not words:
            dropped["without a word"] += 1
        elif text in seen:
            dropped["repeated"] += 1
        else:
            seen.add(text)
            kept.append((words, label))
    require(bool(kept), f"{source} has no text with a word in it; fill its column text")
    names = _two_names(source, (label for _, label in kept))
    labels = np.array([label == names[1] for _, label in kept])
    return Reviews(tuple(words for words, _ in kept), labels, names, dropped)


def _two_names(source: str, labels: Iterable[str]) -> tuple[str, str]:
    """The two labels, negative first: in the order of numbers, or of the alphabet (neg, pos)."""
    found = sorted(set(labels), key=_in_order)
    shown = ", ".join(repr(label) for label in found[:5]) + (" ..." if len(found) > 5 else "")
    require(
        len(found) == 2,
        f"{source} has {len(found)} kind{'s' if len(found) != 1 else ''} of label ({shown}); a sentiment "
        "needs exactly two, such as 0 and 1",
    )
    return found[0], found[1]


def _in_order(label: str) -> tuple[float, str]:
    try:
        number = float(label)
    except ValueError:
        return math.inf, label
    return (math.inf, label) if math.isnan(number) else (number, label)


class Part(NamedTuple):
    """Word numbers (reviews, length) and labels (reviews,) of one part of the data."""

    tokens: np.ndarray
    labels: np.ndarray


class Data(NamedTuple):
    """The parts in numbers, and the words behind the numbers 1, 2, ..."""

    train: Part
    validation: Part
    test: Part
    vocabulary: tuple[str, ...]


def prepare(reviews: Reviews, settings: Settings) -> Data:
    """Split by the seed, then count words in the training part alone and number all parts."""
    rows = _split(len(reviews.words), settings)
    _check_parts(rows, reviews, settings)
    words = {name: [reviews.words[i] for i in chosen] for name, chosen in rows.items()}
    vocabulary = vocabulary_of(words["train"], settings.vocabulary)
    parts = {
        name: Part(
            numbered(words[name], vocabulary, settings.length),
            reviews.labels[chosen].astype(np.float32),
        )
        for name, chosen in rows.items()
    }
    return Data(**parts, vocabulary=vocabulary)


def _split(count: int, settings: Settings) -> dict[str, np.ndarray]:
    """Which reviews belong to which part, by a permutation of the seed's."""
    order = np.random.default_rng(settings.seed).permutation(count)
    test, validation = round(settings.test * count), round(settings.validation * count)
    return {
        "train": order[test + validation :],
        "validation": order[test : test + validation],
        "test": order[:test],
    }


def _check_parts(chosen: Mapping[str, np.ndarray], reviews: Reviews, settings: Settings) -> None:
    """Every part needs both labels, and training at least one batch."""
    for name, rows in chosen.items():
        kinds = np.unique(reviews.labels[rows]).size
        require(
            kinds == 2,
            f"the {name} part ({rows.size} of {len(reviews.words)} reviews) does not hold both labels; give "
            "more reviews, or a larger share to it",
        )
    count = chosen["train"].size
    require(
        count >= settings.batch,
        f"{count} training reviews do not fill a batch of {settings.batch}; lower --batch",
    )
