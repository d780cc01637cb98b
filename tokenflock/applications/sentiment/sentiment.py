"""A training from its first step to its report, in a folder, resumable after any epoch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError
from ...memory import require_bytes
from ...progress import NotedReport
from ...provenance import provenance
from ...results.atomic import complete_file
from ...results.identity import PART_OF, Identity
from ...results.locking import Writer, only_writer, only_writer_in
from ...results.strict_json import plain
from .fit import NETWORK, TOGETHER, Trainee, depths, start, train_epoch
from .folder import (
    CHECKPOINT,
    MODEL,
    PICTURE,
    REPORT,
    begin,
    check_training_place,
    identity_of,
    read_facts,
    read_report,
    read_tree,
    require_continuable,
    write_json,
    write_tree,
)
from .picture import draw
from .report import measure
from .reviews import PARTS, Data, Reviews, prepare
from .settings import Settings

# Arrays of (batch, length, length) that a layer keeps for its derivative, in float32; measured, rounded up.
KEPT_PER_LAYER = 5
# The same arrays where nothing is differentiated: scores, weights, and one on the way.
KEPT_IN_EVALUATION = 3
# Arrays of (words, d) in float32: two networks with their best epochs and Adam's two memories (8), a
# checkpoint of them as bytes, once more beside its checksum (16), a gradient and the step from it (4).
COPIES_OF_WORDS = 28


class Spent(NamedTuple):
    """Seconds of this training so far: on the clock and of the processor."""

    wall: np.ndarray
    processor: np.ndarray


class Progress(NamedTuple):
    """What a checkpoint holds: the state between two epochs."""

    trainees: dict[str, Trainee]
    spent: Spent


class Clock:
    """Adds the seconds of this process to those of earlier ones (`before`)."""

    def __init__(self):
        self.before = Spent(np.zeros(()), np.zeros(()))
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def spent(self) -> Spent:
        """Seconds up to now."""
        now = time.perf_counter() - self._wall, time.process_time() - self._processor
        return Spent(
            *(old + new for old, new in zip(self.before, map(np.asarray, now), strict=True))
        )


def train(
    reviews: Reviews,
    settings: Settings,
    out: Path,
    *,
    source: str,
    only: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: NotedReport = lambda done, note: None,
) -> dict[str, Any]:
    """Train both networks on the reviews, write the folder `out`, and return its report.

    With `resume` the training in `out`, of these very reviews and settings, goes on after its last finished
    epoch, and ends with the same numbers, bit for bit, as if it had never been interrupted; one that has
    ended gives its report. O(epochs * reviews * depth * length^2 * d).
    """
    if resume:
        _check_same(reviews, settings, out)
    else:
        check_training_place(out, overwrite)
    with only_writer(out) if resume else only_writer_in(out) as writer:
        if resume:
            _check_same(reviews, settings, out)
            finished = read_report(out)
            if finished is not None:
                return finished
            require_continuable(out)
        else:
            # Once more: another process may have trained there before it was ours.
            check_training_place(out, overwrite)
        return _trained(reviews, settings, writer, source, only, resume, report)


def _trained(
    reviews: Reviews,
    settings: Settings,
    writer: Writer,
    source: str,
    only: str | None,
    resume: bool,
    report: NotedReport,
) -> dict[str, Any]:
    """The training in a folder that is this process's alone."""
    clock = Clock()
    check_memory(settings)
    report(0.0, "numbering words")
    data = prepare(reviews, settings)
    check_memory(settings, len(data.vocabulary))
    facts = _facts(reviews, settings, data, source, only)
    if not resume:
        begin(writer.place, facts)
    trainees = _train(data, settings, writer, identity_of(facts), clock, report)
    return _finish(facts, trainees, data, settings, writer, clock, report)


def check_memory(settings: Settings, words: int = 1) -> None:
    """Refuse attention matrices or word vectors that do not fit; `words` may be a lower bound."""
    pairs = 4.0 * settings.length**2
    require_bytes(
        pairs * settings.batch * KEPT_PER_LAYER * settings.depth,
        f"batches of {settings.batch} reviews of {settings.length} words in {settings.depth} layers",
        "lower --batch or --length",
    )
    require_bytes(
        pairs * TOGETHER * KEPT_IN_EVALUATION,
        f"the {TOGETHER} reviews of {settings.length} words that are evaluated together",
        "lower --length",
    )
    require_bytes(
        4.0 * COPIES_OF_WORDS * (words + 1) * settings.d,
        f"vectors of {settings.d} numbers for {words} known words or more, with Adam's memory of them,",
        "lower --d or --vocabulary",
    )


def _facts(
    reviews: Reviews, settings: Settings, data: Data, source: str, only: str | None
) -> dict[str, Any]:
    """All that defines the training, as plain data."""
    return {
        "settings": settings.as_json(),
        "source": source,
        "only": only,
        "fingerprint": reviews.fingerprint(),
        "labels": list(reviews.names),
        "dropped": dict(reviews.dropped),
        "parts": {name: len(getattr(data, name).labels) for name in PARTS},
        "vocabulary": list(data.vocabulary),
    }


def _check_same(reviews: Reviews, settings: Settings, out: Path) -> None:
    """Refuse to go on with, or to report, a training of something else."""
    stored = read_facts(out)
    now = {"settings": settings.as_json(), "fingerprint": reviews.fingerprint()}
    for name, meaning in (("settings", "other settings"), ("fingerprint", "other reviews")):
        if stored[name] != now[name]:
            raise InputError(
                f"the training in {out} was started with {meaning}; resume it with those it began with, or "
                "start another one in a new --out"
            )


def _train(
    data: Data,
    settings: Settings,
    writer: Writer,
    identity: Identity,
    clock: Clock,
    report: NotedReport,
) -> dict[str, Trainee]:
    """All epochs that are left, with a checkpoint after each."""
    checkpoint = writer.place / CHECKPOINT
    progress = Progress(start(settings, len(data.vocabulary)), clock.before)
    if checkpoint.exists():
        progress = read_tree(checkpoint, progress, identity)
    clock.before, trainees = progress.spent, progress.trainees
    for epoch in range(trainees[NETWORK].epochs, settings.epochs):
        trainees = {
            name: train_epoch(
                trainees[name], depth, data, settings, _share(report, settings, epoch, name)
            )
            for name, depth in depths(settings).items()
        }
        writer.require_place()
        write_tree(checkpoint, Progress(trainees, clock.spent()), identity)
    return trainees


def _share(report: NotedReport, settings: Settings, epoch: int, name: str) -> NotedReport:
    """Progress of the whole training from that of one epoch; the bag of words takes next to no time."""

    def tell(done: float, note: str) -> None:
        whole = (
            (epoch + done) / settings.epochs if name == NETWORK else (epoch + 1) / settings.epochs
        )
        report(whole, f"epoch {epoch + 1} of {settings.epochs}, {name}: {note}")

    return tell


def _finish(
    facts: Mapping[str, Any],
    trainees: Mapping[str, Trainee],
    data: Data,
    settings: Settings,
    writer: Writer,
    clock: Clock,
    report: NotedReport,
) -> dict[str, Any]:
    """Model, picture and report; the checkpoint goes when they are there."""
    found = measure(trainees, data, settings, lambda note: report(1.0, note))
    about = ("source", "only", "fingerprint", "labels", "dropped", "parts")
    result = {
        "task": "sentiment",
        "data": {**{name: facts[name] for name in about}, "words_known": len(data.vocabulary)},
        "settings": facts["settings"],
        PART_OF: dict(identity_of(facts)),
        **found,
    }
    out = writer.place
    writer.require_place()
    best_of_each = {name: trainee.best for name, trainee in trainees.items()}
    write_tree(out / MODEL, best_of_each, identity_of(facts))
    best = trainees[NETWORK].best
    with complete_file(out / PICTURE) as scratch:
        draw(result, best, data.vocabulary, scratch)
    seconds = {name: float(value) for name, value in clock.spent()._asdict().items()}
    result = plain({**result, "seconds": seconds, "provenance": provenance()})
    writer.require_place()
    write_json(out / REPORT, result)
    writer.require_place()
    (out / CHECKPOINT).unlink(missing_ok=True)
    return result
