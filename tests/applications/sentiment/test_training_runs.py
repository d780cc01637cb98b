"""Whole trainings: folders, checkpoints, interruptions, reports."""

import dataclasses
import functools
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from small_trainings import SMALL, few_reviews

import tokenflock as flock
from tokenflock.applications.sentiment import make_reviews, open_training, synthetic_reviews, train
from tokenflock.applications.sentiment.classifier import hard
from tokenflock.applications.sentiment.fit import BASELINE, NETWORK, score, start, train_epoch
from tokenflock.applications.sentiment.folder import CHECKPOINT, MODEL, OWN, REPORT, TRAINING
from tokenflock.applications.sentiment.picture import draw
from tokenflock.applications.sentiment.report import interval
from tokenflock.applications.sentiment.reviews import prepare
from tokenflock.applications.sentiment.sentiment import check_memory
from tokenflock.errors import InputError, SolveError, StoreError, TooLargeError

pytestmark = pytest.mark.xdist_group("training")
FILES = sorted({*OWN} - {CHECKPOINT})


def trained(out, report=lambda done, note: None, **options):
    return train(few_reviews(), SMALL, out, source="small", report=report, **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("training") / "deep" / "whole"
    return out, trained(out)


def without_clock(report):
    return {name: value for name, value in report.items() if name != "seconds"}


def test_the_folder_holds_the_report_and_nothing_else(finished):
    out, result = finished
    assert sorted(item.name for item in out.iterdir()) == FILES
    assert json.loads((out / REPORT).read_text()) == result
    assert (out / "report.png").read_bytes()[:4] == b"\x89PNG"


def test_the_bag_of_words_is_always_there(finished):
    """Beside the network, on the same reviews, with Wilson's intervals; each with its best epoch."""
    _, result = finished
    parts = {"train": 240, "validation": 80, "test": 80}
    for name, depth in ((NETWORK, 2), (BASELINE, 0)):
        assert result[name]["depth"] == depth
        accuracy = result[name]["accuracy"]
        assert {part: entry["reviews"] for part, entry in accuracy.items()} == parts
        assert all(entry["low"] <= entry["share"] <= entry["high"] for entry in accuracy.values())
        history = result[name]["history"]["validation_accuracy"]
        assert result[name]["best_epoch"] == 1 + history.index(max(history))
        assert accuracy["validation"]["share"] == max(history)
    assert result["data"]["parts"] == parts


def test_wilsons_interval():
    """Against the formula (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2))/(1 + z^2/n), z = 1.959964."""
    z, n, p = 1.959963984540054, 50, 0.9
    middle, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    found = interval(45, 50)
    assert found["low"] == pytest.approx((middle - half) / (1 + z**2 / n), abs=1e-12)
    assert found["high"] == pytest.approx((middle + half) / (1 + z**2 / n), abs=1e-12)


class Stop(Exception):
    """What stands for Ctrl-C, a full disk or a lost connection."""


@pytest.mark.parametrize(
    "moment",
    [pytest.param(0.2, marks=pytest.mark.slow), 0.5, pytest.param(0.99, marks=pytest.mark.slow)],
)
def test_an_interrupted_training_ends_with_the_same_bits(finished, tmp_path, moment):
    whole, result = finished

    def stop(done, note):
        if done >= moment:
            raise Stop

    with pytest.raises(Stop):
        trained(tmp_path / "broken", stop)
    assert not (tmp_path / "broken" / REPORT).exists()
    assert (tmp_path / "broken" / CHECKPOINT).exists() == (moment > 1 / 3)
    again = trained(tmp_path / "broken", resume=True)
    assert without_clock(again) == without_clock(result)
    assert (tmp_path / "broken" / MODEL).read_bytes() == (whole / MODEL).read_bytes()
    assert sorted(item.name for item in (tmp_path / "broken").iterdir()) == FILES


def test_a_finished_training_is_not_trained_again(finished):
    out, result = finished
    before = (out / MODEL).stat().st_mtime_ns
    assert trained(out, resume=True) == result
    assert (out / MODEL).stat().st_mtime_ns == before


def test_a_finished_training_is_not_the_report_of_another(finished):
    out, _ = finished
    with pytest.raises(InputError, match="other settings"):
        train(few_reviews(), dataclasses.replace(SMALL, seed=1), out, source="small", resume=True)
    with pytest.raises(InputError, match="other reviews"):
        train(synthetic_reviews(400, seed=9), SMALL, out, source="x", resume=True)


def test_other_settings_or_reviews_do_not_resume(tmp_path):
    def stop(done, note):
        if done > 0:
            raise Stop

    with pytest.raises(Stop):
        trained(tmp_path / "a", stop)
    other = dataclasses.replace(SMALL, tau=0.01)
    with pytest.raises(InputError, match="other settings"):
        train(few_reviews(), other, tmp_path / "a", source="small", resume=True)
    with pytest.raises(InputError, match="other reviews"):
        train(synthetic_reviews(400, seed=9), SMALL, tmp_path / "a", source="x", resume=True)
    with pytest.raises(InputError, match="no training"):
        trained(tmp_path / "nowhere", resume=True)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a"]


def test_a_damaged_checkpoint_is_told_and_not_used(tmp_path):
    def stop(done, note):
        if done > 0.4:
            raise Stop

    with pytest.raises(Stop):
        trained(tmp_path / "a", stop)
    path = tmp_path / "a" / CHECKPOINT
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    for damaged in (bytes(content), bytes(content[:1000]), b""):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="cannot be read"):
            trained(tmp_path / "a", resume=True)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        (TRAINING, ["vocabulary"]),
        (TRAINING, ["settings"]),
        (TRAINING, ["settings", "d"]),
        (TRAINING, ["format"]),
        (REPORT, ["seconds"]),
        (REPORT, [BASELINE, "accuracy", "test", "share"]),
        (REPORT, ["leaders", "words", 0, "norm"]),
    ],
)
def test_a_file_that_lost_an_entry_is_named(finished, tmp_path, name, where):
    whole, _ = finished
    copy = tmp_path / "a"
    shutil.copytree(whole, copy)
    content = json.loads((copy / name).read_text())
    *inside, last = where
    del functools.reduce(lambda part, key: part[key], inside, content)[last]
    (copy / name).write_text(json.dumps(content))
    with pytest.raises(StoreError, match=rf"{name} cannot be read .*; start the training again"):
        trained(copy, resume=True)
    for other in ("[]", "7", '"text"'):
        (copy / name).write_text(other)
        with pytest.raises(StoreError, match="cannot be read"):
            trained(copy, resume=True)


def test_a_damaged_training_cannot_explain(finished, tmp_path):
    whole, _ = finished
    shutil.copytree(whole, tmp_path / "a")
    facts = json.loads((whole / TRAINING).read_text())
    wrong = {**facts, "settings": {**facts["settings"], "d": -2}}
    (tmp_path / "a" / TRAINING).write_text(json.dumps(wrong))
    with pytest.raises(StoreError, match="must be at least 1; got -2"):
        open_training(tmp_path / "a")


def test_places_that_must_not_be_touched(finished, tmp_path):
    out, _ = finished
    with pytest.raises(InputError, match="exists"):
        trained(out)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        trained(tmp_path / "file")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="refusing"):
        trained(tmp_path / "notes", overwrite=True)
    assert (tmp_path / "notes" / "mine.txt").read_text() == "mine"


def test_overwriting_leaves_what_is_not_ours(tmp_path):
    def stop(done, note):
        if done > 0:
            raise Stop

    for _ in range(2):
        with pytest.raises(Stop):
            trained(tmp_path / "a", stop, overwrite=True)
        (tmp_path / "a" / "mine.txt").write_text("mine")
    assert sorted(item.name for item in (tmp_path / "a").iterdir()) == ["mine.txt", TRAINING]


def test_bad_data_write_nothing(tmp_path):
    one = make_reviews([(f"film {i * 'x'}", "ab"[i == 0]) for i in range(90)], "x")
    with pytest.raises(InputError, match="both labels"):
        train(one, SMALL, tmp_path / "a" / "b", source="x")
    assert not any(tmp_path.iterdir())


def test_more_than_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "0.0005")
    with pytest.raises(TooLargeError, match="lower --batch or --length"):
        trained(tmp_path / "a")
    assert not any(tmp_path.iterdir())


def test_vectors_that_do_not_fit_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    """200 words of 400 numbers, 28 times in float32, take 8.6 MiB; their attention fits."""
    with pytest.raises(TooLargeError, match="lower --d or --vocabulary"):
        check_memory(dataclasses.replace(SMALL, d=10**9))
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "0.008")
    wide = dataclasses.replace(SMALL, d=400)
    check_memory(wide)
    with pytest.raises(TooLargeError, match="vectors of 400 numbers for 200 known words"):
        train(few_reviews(), wide, tmp_path / "a", source="small")
    assert not any(tmp_path.iterdir())
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "0.001")
    with pytest.raises(TooLargeError, match="evaluated together"):
        check_memory(dataclasses.replace(SMALL, batch=1))


def test_test_reviews_without_a_known_word_leave_a_picture_without_leaders(finished, tmp_path):
    out, result = finished
    model = flock.open(out)
    nobody = {**result, "leaders": {**result["leaders"], "words": []}}
    draw(nobody, model.classifier, model.vocabulary, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_a_training_whose_test_reviews_hold_no_known_word_ends(tmp_path):
    """Every review is one word of its own; the bias decides what was never seen."""
    letters = "abcdefghij"
    words = [f"q{a}x{b}" for a in letters for b in letters]
    reviews = make_reviews([(word, str(i % 2)) for i, word in enumerate(words)], "unique")
    settings = dataclasses.replace(SMALL, epochs=1)
    result = train(reviews, settings, tmp_path / "a", source="unique")
    assert result["leaders"]["words"] == []
    assert result["leaders"]["max"] == 0
    assert sorted(item.name for item in (tmp_path / "a").iterdir()) == FILES


def test_a_diverging_training_says_so():
    wild = dataclasses.replace(SMALL, rate=1e30)
    data = prepare(few_reviews(), wild)
    trainee = start(wild, len(data.vocabulary))[BASELINE]

    def all_epochs(now=trainee):
        for _ in range(wild.epochs):
            now = train_epoch(now, 0, data, wild, lambda done, note: None)

    with pytest.raises(SolveError, match="lower --rate"):
        all_epochs()


def test_a_text_through_a_trained_classifier_is_a_run(finished):
    """Its last mean is the network's answer, its leaders are those that explain it."""
    model = open_training(finished[0])
    text = "Wonderful, SUPERB barafo; awful kirafo lonego <br/> and a quetzal"
    run, found = model.run(text), model.explain(text)
    assert run.attributes["words"] == ["wonderful", "superb", "barafo", "awful", "kirafo", "lonego"]
    assert run.states.shape == (SMALL.depth + 1, 6, SMALL.d)
    logit = model.classifier.exact().sentiment(run.states[-1].mean(axis=0))
    assert float(logit) == pytest.approx(found["logit"], abs=1e-12)
    assert int(run["leaders"][-1]) == len(found["leaders"])
    leading = {run.attributes["words"][i] for i in np.flatnonzero(run["leader_mask"][-1])}
    assert {leader["word"] for leader in found["leaders"]} <= leading
    with pytest.raises(InputError, match="no word that the classifier knows"):
        model.run("quetzal 17")


def test_a_trained_classifier_explains_itself(finished):
    """Shares of leaders add up to one, their weighted sentiment is the vote; texts give what data gave."""
    out, result = finished
    model = open_training(out)
    text = "Wonderful, SUPERB barafo; awful kirafo lonego <br/> and a quetzal"
    found = model.explain(text)
    leaders = found["leaders"]
    assert found["words_read"] == 6
    assert found["words_unknown"] == ["quetzal"]
    assert sum(leader["share"] for leader in leaders) == pytest.approx(1.0, abs=1e-12)
    vote = sum(leader["share"] * leader["sentiment"] for leader in leaders)
    assert vote == pytest.approx(found["vote"], abs=1e-12)
    assert found["probability"] == pytest.approx(model.probabilities([text])[0], abs=1e-5)
    assert found["label"] == ("positive" if found["logit"] > 0 else "negative")
    with pytest.raises(InputError, match="no word that the classifier knows"):
        model.explain("quetzal 17")
    tests = prepare(few_reviews(), SMALL).test

    assert (
        score(model.classifier, tests, 2, hard())[0] == result[NETWORK]["accuracy"]["test"]["share"]
    )
