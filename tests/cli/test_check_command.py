"""tokenflock check, from the command line inwards: verdicts, JSON, exit codes, bad input, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from interrupts import HEARING_SIGINT
from typer.testing import CliRunner

from tokenflock.cli import app
from tokenflock.errors import SolveError
from tokenflock.ledger import finding as registry
from tokenflock.ledger.claim import broken, equals
from tokenflock.ledger.paper import Paper

COMMAND = str(Path(sys.executable).with_name("tokenflock"))
PER_CLAIM = {
    "id", "verdict", "measured", "predicted", "tolerance", "numerical_error", "control_failed",
    "seconds",
}  # fmt: skip


@pytest.fixture
def ledger(monkeypatch):
    """A ledger of three invented claims: one true, one false, one that cannot be told."""
    paper = Paper("", "0000.00000", "Invented", "Nobody", seen="never", version="v1")

    def add(name, measure):
        paper.claim(
            name,
            where="Lemma 1",
            says="x is two.",
            given={"x": 2.0, "n": 4},
            needs={"x is at most three": lambda c: c.x <= 3.0},
            control=broken("nine is not two", x=9.0),
        )(measure)

    def broken_off(case):
        raise SolveError("too many steps; loosen rtol")

    add("true", lambda case: [equals("x", case.x, 2.0, 0.1)])
    add("false", lambda case: [equals("x", case.x + 1.0, 2.0, 0.1)])
    add("unsure", lambda case: [equals("x", case.x + 0.1 / case.refine, 2.0, 0.1)])
    add("stopped", broken_off)
    monkeypatch.setattr(registry, "papers", lambda: (paper,))


def call(*arguments):
    result = CliRunner().invoke(app, ["check", *arguments])
    assert "Traceback" not in result.output
    return result


@pytest.mark.parametrize(
    ("name", "code", "verdict"),
    [
        ("true", 0, "holds"),
        ("false", 1, "fails"),
        ("unsure", 3, "inconclusive"),
        ("stopped", 1, "inconclusive"),
    ],
)
def test_exit_codes(ledger, name, code, verdict):
    result = call(name)
    assert result.exit_code == code
    assert result.stdout.startswith(verdict)
    assert f"0000.00000v1/{name}" in result.stdout


def test_one_claim_tells_its_story(ledger):
    out = call("0000.00000/true", "--set", "n=7").stdout
    for words in ("x is two.", "Lemma 1", "n=7", "control", "nine is not two", "as it must"):
        assert words in out


def test_json_is_one_object(ledger):
    result = call("--json", "--jobs", "1")
    answer = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [claim["verdict"] for claim in answer["claims"]] == [
        "holds", "fails", "inconclusive", "inconclusive",
    ]  # fmt: skip
    assert all(claim.keys() >= PER_CLAIM for claim in answer["claims"])
    totals = answer["summary"]
    assert (totals["claims"], totals["holds"], totals["fails"], totals["broke_off"]) == (4, 1, 1, 1)


def test_a_paper_at_once(ledger):
    result = call("--paper", "0000.00000", "--jobs", "1")
    assert result.stdout.count("\n") == 5
    assert "4 claims: 1 hold, 1 fail, 2 inconclusive" in result.stdout


def test_moving_a_hypothesis_changes_the_verdict(ledger):
    inside = call("true", "--set", "x=2.5")
    assert inside.exit_code == 1
    assert "outside" not in inside.stdout
    outside = json.loads(call("true", "--set", "x=4", "--json").stdout)["claims"][0]
    assert outside["verdict"] == "fails"
    assert outside["outside"] == ["x is at most three"]
    assert "outside: x is at most three" in call("true", "--set", "x=4").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing-like-it"], "no claim is called 'nothing-like-it'"),
        (["0000.00000v1/tru"], "did you mean 0000.00000v1/true"),
        (["--paper", "1234.56789"], "the ledger has no paper '1234.56789'; it has 0000.00000v1"),
        (["true", "--paper", "0000.00000"], "give a claim's ID or --paper, not both"),
        (["--set", "n=4"], "--set moves the parameters of one claim"),
        (["true", "--set", "n"], "--set takes NAME=VALUE, got 'n'"),
        (["true", "--set", "m=4"], "has no parameter 'm'; it has x, n"),
        (["true", "--set", "n=many"], "n must be a number, got 'many'"),
        (["true", "--set", "n=3", "--set", "n=5"], "--set n is given twice"),
    ],
)
def test_bad_input_is_a_sentence(ledger, arguments, words):
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in " ".join(result.stderr.split())


def gone(group: int, within: float) -> bool:
    """Whether no process of the group is left after a while (init needs a moment to reap them)."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_ctrl_c_ends_at_once_and_leaves_no_process_behind():
    process = subprocess.Popen(
        [*HEARING_SIGINT, COMMAND, "check", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(children.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "interrupted after" in stderr
    assert gone(process.pid, within=20.0)
