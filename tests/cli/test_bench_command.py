"""tokenflock bench, from the command line inwards: tables, files, bad input, Ctrl-C."""

import contextlib
import json
import signal

import pytest
from typer.testing import CliRunner

from tokenflock.applications.benchmarks import registry
from tokenflock.applications.benchmarks.core import Row, benchmark
from tokenflock.cli import app


@pytest.fixture
def benchmarks(monkeypatch, tmp_path):
    """Three benchmarks, of which one needs a GPU and one is interrupted."""
    ran = []

    @benchmark("tiny-sum", says="a sum", quick={"n": 3}, full={"n": 9})
    def tiny_sum(job):
        ran.append(job.n)
        job.report(0.5, "half")
        row = Row("n=3", 8.0, "pairs/s", 1e-7, peers={"abacus": 2.0}, spread=0.25)
        row.missing.append("fingers: not installed")
        return [row.bar_against("abacus", 3.0).bar_against("abacus", 5.0)]

    @benchmark("gpu-sum", says="a sum on a GPU", quick={}, device="gpu")
    def gpu_sum(job):
        raise AssertionError("there is no GPU")

    monkeypatch.setattr(registry, "_benchmarks", lambda: (tiny_sum, gpu_sum))
    monkeypatch.setattr("tokenflock.applications.benchmarks.core.has_gpu", lambda: False)
    monkeypatch.chdir(tmp_path)
    return ran


def call(*arguments):
    result = CliRunner().invoke(app, ["bench", *arguments])
    assert "Traceback" not in result.output
    return result


def test_one_benchmark_as_json_and_as_a_file(benchmarks, tmp_path):
    result = call("tiny-sum", "--json", "--out", "deep/sum.json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["name"] == "tiny-sum"
    assert answer["rows"][0]["ratio"] == 4.0
    assert json.loads((tmp_path / "deep" / "sum.json").read_text()) == answer
    assert [item.name for item in (tmp_path / "deep").iterdir()] == ["sum.json"]
    assert call("tiny-sum", "--scale", "full").exit_code == 0
    assert benchmarks == [3, 9]


def test_the_table_says_how_much_better_and_what_is_promised(benchmarks):
    words = " ".join(call("tiny-sum").stdout.split())
    assert "ours 8 pairs/s spread 25 % error 1.0e-07" in words
    assert "abacus 2 pairs/s 4 x" in words
    assert "at least 3 x abacus: met (4)" in words
    assert "at least 5 x abacus: NOT MET (4)" in words
    assert "without fingers: not installed" in words


def test_without_a_name_all_that_can_run_are_written_into_a_folder(benchmarks, tmp_path):
    result = call("--out", "results", "--json")
    assert result.exit_code == 0
    assert "left out: gpu-sum" in result.stderr
    assert [item.name for item in (tmp_path / "results").iterdir()] == ["tiny-sum.json"]
    assert [one["name"] for one in json.loads(result.stdout)["benchmarks"]] == ["tiny-sum"]


def test_the_list_runs_nothing(benchmarks):
    assert "gpu-sum   a sum on a GPU" in call("--list").stdout
    rows = json.loads(call("--list", "--json").stdout)["benchmarks"]
    assert rows[0] == {"name": "tiny-sum", "device": "cpu", "says": "a sum"}
    assert benchmarks == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tiny-some"], "no benchmark is called 'tiny-some'; did you mean tiny-sum?"),
        (["xyz"], "no benchmark is called 'xyz'. See tokenflock bench --list"),
        (["gpu-sum"], "gpu-sum measures an NVIDIA GPU and JAX sees none here"),
        (["tiny-sum", "--out", "."], ". is a folder; give the name of a file"),
        (["tiny-sum", "--scale", "paper"], "'paper' is not one of"),
    ],
)
def test_bad_input_is_a_sentence_and_writes_nothing(benchmarks, tmp_path, arguments, words):
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in " ".join(result.stderr.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []
    assert benchmarks == []


def test_without_a_name_out_must_be_a_folder(benchmarks, tmp_path):
    (tmp_path / "taken").write_text("")
    result = call("--out", "taken")
    assert result.exit_code == 2
    assert "taken is a file" in result.stderr
    assert benchmarks == []


@pytest.fixture
def hearing_interrupts():
    """A test run in the background of a shell ignores SIGINT; a user's terminal does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("benchmarks", "hearing_interrupts")
@pytest.mark.parametrize("lost", [False, True])
def test_an_interrupt_leaves_with_130_and_keeps_the_old_file(monkeypatch, tmp_path, lost):
    @benchmark("slow-sum", says="a long sum", quick={})
    def slow_sum(job):
        # A library that swallows the exception, as the garbage collector does, delays it only.
        with contextlib.suppress(KeyboardInterrupt if lost else ()):
            signal.raise_signal(signal.SIGINT)
        job.pulse()
        raise AssertionError("nobody heard the interrupt")

    monkeypatch.setattr(registry, "_benchmarks", lambda: (slow_sum,))
    old = tmp_path / "sum.json"
    old.write_text("old")
    result = call("slow-sum", "--out", "sum.json", "--json")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert "interrupted" in result.stderr
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]
