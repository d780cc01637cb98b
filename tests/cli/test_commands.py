"""The commands in this process: help, lists, printed specs, exit codes, one sentence per error."""

import contextlib
import functools
import io
import json
import sys
import tomllib

import pytest
from typer.testing import CliRunner

import tokenflock as flock
from tokenflock.cli import app
from tokenflock.cli.show import show
from tokenflock.lab.catalogue import example_names, example_text
from tokenflock.models import MODELS
from tokenflock.observables import OBSERVABLES

TINY = ["--set", "n=6", "--set", "t1=2.0", "--set", "every=0.5", "--set", "rtol=1e-6"]


@pytest.fixture
def run():
    def invoke(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), (
            result.exception
        )
        return result

    return invoke


def one_sentence(result, code=2):
    assert result.exit_code == code
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("tokenflock: ")
    return lines[0]


class TestHelp:
    @pytest.mark.parametrize("command", [[], ["run"], ["check"], ["figure"], ["list"], ["doctor"]])
    def test_help_is_fine(self, run, command):
        result = run(*command, "--help")
        assert result.exit_code == 0
        assert "Usage" in result.stdout

    def test_run_teaches_by_examples(self, run):
        text = " ".join(run("run", "--help").stdout.split())
        for words in (
            "--example sphere",
            "--set beta=9",
            "--print-spec >",
            "--resume --out",
            "Exit codes",
        ):
            assert words in text

    def test_version(self, run):
        assert run("--version").stdout.strip() == f"tokenflock {flock.__version__}"

    def test_unknown_options_are_bad_usage(self, run):
        assert run("run", "--exmple", "sphere").exit_code == 2
        assert run("list", "things").exit_code == 2


class TestLists:
    @pytest.mark.parametrize(
        ("what", "names"),
        [
            ("models", list(MODELS)),
            ("observables", list(OBSERVABLES)),
            ("examples", example_names()),
        ],
    )
    def test_every_entry_with_a_sentence(self, run, what, names):
        rows = json.loads(run("list", what, "--json").stdout)[what]
        assert sorted(row["name"] for row in rows) == sorted(names)
        assert all(row["says"] for row in rows)

    def test_a_table_for_people(self, run):
        text = run("list", "models").stdout
        assert "SA" in text
        assert "beta, [weights]" in " ".join(text.split())


class TestDoctor:
    def test_facts_and_a_closed_form(self, run):
        report = json.loads(run("doctor", "--json").stdout)
        assert report["self_test"]["passed"]
        assert report["self_test"]["error"] < 1e-8
        assert {"tokenflock", "python", "jax", "diffrax"} <= set(report["versions"])
        assert report["devices"]
        assert report["precision"] == {"float64": True, "matrix_products": "highest"}
        assert {"folder", "enabled", "writable", "programs"} <= set(report["compilation_cache"])

    def test_it_knows_whether_the_solver_was_read_from_the_cache(self, monkeypatch):
        """A program that calls back to Python is never stored, and counts as no miss either."""
        doctor = sys.modules["tokenflock.cli.doctor"]
        doctor.self_test()
        assert doctor.cache_test()["hit"]
        with_a_bar = functools.partial(flock.solve, progress=True)
        monkeypatch.setattr("tokenflock.integrate.solve", with_a_bar)
        assert not doctor.cache_test()["hit"]

    def test_a_wrong_answer_is_a_failure(self, run, monkeypatch):
        wrong = {"error": 1.0, "tolerance": 1e-8, "passed": False, "seconds": 0.0}
        monkeypatch.setattr(sys.modules["tokenflock.cli.doctor"], "self_test", lambda: wrong)
        result = run("doctor")
        assert result.exit_code == 1
        assert "passed False" in result.stdout


class TestPrintSpec:
    def test_it_shows_everything_and_makes_no_folder(self, run, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        result = run("run", "--example", "sphere", "--set", "n=128", "--print-spec")
        table = tomllib.loads(result.stdout)
        assert table["tokens"]["n"] == 128
        assert table["solve"]["max_steps"] == 100_000
        assert table["solve"]["method"] == "adaptive"
        assert list(tmp_path.iterdir()) == []

    def test_it_gives_itself_back(self, run, tmp_path):
        first = run("run", "--example", "noise", "--print-spec").stdout
        (tmp_path / "noise.toml").write_text(first)
        assert run("run", tmp_path / "noise.toml", "--print-spec").stdout == first


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], "give a spec file or --example"),
            (["--example", "spere"], "did you mean 'sphere'?"),
            (["--example", "sphere", "--set", "n=1"], "tokens.n must be at least 2"),
            (["--example", "sphere", "--set", "n"], "--set takes path=value"),
            (["--example", "sphere", "--set", "beta=-3"], "beta must be finite"),
            (["--example", "sphere", "--set", "d=1"], "d >= 2"),
            (["--example", "sphere", "--set", "n=3000000"], "use reduction=Auto() or Tiled()"),
            (["--example", "sphere", "--resume"], "--resume needs --out"),
            (["nothing.toml"], "there is no file nothing.toml"),
            (["."], "is a folder"),
            (["nothing.toml", "--example", "sphere"], "not both"),
        ],
    )
    def test_exit_code_two_and_nothing_behind(self, run, tmp_path, monkeypatch, arguments, words):
        monkeypatch.chdir(tmp_path)
        assert words in one_sentence(run("run", *arguments))
        assert list(tmp_path.iterdir()) == []

    def test_with_an_output_folder_too(self, run, tmp_path):
        out = tmp_path / "deep" / "out"
        one_sentence(run("run", "--example", "sphere", "--set", "rtol=0", "--out", out, "--json"))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            ([], "exists; choose another --out"),
            (["--overwrite"], "not a run folder"),
            (["--resume"], "no run to resume"),
            (["--resume", "--overwrite"], "choose one"),
        ],
    )
    def test_a_folder_of_the_user(self, run, tmp_path, flags, words):
        (tmp_path / "letter.txt").write_text("dear")
        result = run("run", "--example", "sphere", "--out", tmp_path, *flags)
        assert words in one_sentence(result)
        assert [item.name for item in tmp_path.iterdir()] == ["letter.txt"]

    @pytest.mark.parametrize(
        "place", ["file/run", "file", "/dev/full", "/dev/full/run", "/proc/run"]
    )
    def test_places_that_cannot_be_written(self, run, tmp_path, monkeypatch, place):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "file").write_text("")
        one_sentence(run("run", "--example", "circle", *TINY, "--out", place))
        assert [item.name for item in tmp_path.iterdir()] == ["file"]

    def test_files_of_every_wrong_kind(self, run, tmp_path):
        cases = {
            "empty.toml": b"",
            "latin.toml": "title = 'é'".encode("latin-1"),
            "binary.toml": bytes(range(256)),
            "deep.toml": b"x = " + b"[" * 5000,
            "digits.toml": b"x = " + b"9" * 5000,
            "list.toml": b"model = [1, 2]\ntokens = 'a'\nsolve = 3\n",
        }
        for name, content in cases.items():
            (tmp_path / name).write_bytes(content)
            one_sentence(run("run", tmp_path / name, "--out", tmp_path / "out"))
        assert sorted(item.name for item in tmp_path.iterdir()) == sorted(cases)

    def test_an_unexpected_error_is_a_sentence_too(self, run, monkeypatch):
        from tokenflock.lab import files

        def broken(*arguments):
            raise RuntimeError("something odd\nwith details")

        monkeypatch.setattr(files, "parse", broken)
        sentence = one_sentence(run("run", "--example", "sphere"), code=1)
        assert "unexpected RuntimeError: something odd (set TOKENFLOCK_DEBUG=1" in sentence


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One small run with a figure and an animation, on a machine without ffmpeg."""
    out = tmp_path_factory.mktemp("runs") / "mine"
    arguments = ["run", "--example", "circle", *TINY, "--out", str(out), "--json"]
    arguments += ["--set", "title=a [/b] title", "--set", "animation=mp4", "--set", "frames=3"]
    with pytest.MonkeyPatch.context() as machine:
        machine.setitem(sys.modules, "imageio_ffmpeg", None)
        return out, CliRunner().invoke(app, arguments)


class TestRun:
    def test_one_json_object_on_stdout(self, finished):
        out, result = finished
        assert result.exit_code == 0
        report = json.loads(result.stdout)
        assert report["ok"]
        assert {"id", "clusters", "energy", "health", "store", "seconds"} <= set(report)
        assert isinstance(report["clusters"], int)
        assert report["store"] == str(out / "trajectory.zarr")
        assert report["health"]["finite"]

    def test_the_folder_is_complete(self, finished):
        out, result = finished
        names = sorted(item.name for item in out.iterdir())
        assert names == [
            "animation.gif",
            "figure.png",
            "spec.toml",
            "summary.json",
            "trajectory.zarr",
        ]
        assert json.loads((out / "summary.json").read_text()) == json.loads(result.stdout)
        assert (out / "figure.png").read_bytes().startswith(b"\x89PNG")

    def test_without_ffmpeg_the_animation_is_a_gif_and_it_is_told(self, finished):
        out, result = finished
        assert (out / "animation.gif").read_bytes().startswith(b"GIF8")
        told = " ".join(result.stderr.split())
        assert "a GIF is written in its place" in told
        assert "pip install 'tokenflock[video]'" in told

    def test_the_store_opens_with_the_reported_numbers(self, finished):
        out, result = finished
        stored, report = flock.open(out), json.loads(result.stdout)
        assert float(stored["energy"][-1]) == report["energy"]
        assert int(stored["clusters"][-1]) == report["clusters"]
        assert stored.attributes["id"] == report["id"]

    def test_resuming_a_finished_run_returns_its_result(self, run, finished):
        out, result = finished
        again = run("run", "--resume", "--out", out, "--json")
        assert again.exit_code == 0
        assert json.loads(again.stdout) == json.loads(result.stdout)
        assert "is finished" in again.stderr

    def test_resuming_with_another_spec_is_refused(self, run, finished):
        out, _ = finished
        sentence = one_sentence(run("run", "--resume", "--out", out, "--set", "beta=5"))
        assert "holds another run" in sentence

    def test_a_failed_run_exits_with_one_and_keeps_what_it_reached(self, run, tmp_path):
        out = tmp_path / "short"
        result = run(
            "run", "--example", "circle", *TINY, "--set", "max_steps=8", "--out", out, "--json"
        )
        assert result.exit_code == 1
        report = json.loads(result.stdout)
        assert not report["ok"]
        assert report["outcome"] == "step-limit"
        assert "raise max_steps" in result.stderr
        assert 0 < flock.open(out).reached < 2.0

    def test_a_table_for_people(self, finished):
        out, result = finished
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            show(flock.open(out), out, json.loads(result.stdout))
        assert "clusters (spacing, angle 0.1)" in text.getvalue()
        assert "norm drift" in text.getvalue()
        assert "figure.png" in text.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", example_names())
def test_every_example_at_full_size(run, tmp_path, name):
    result = run("run", "--example", name, "--out", tmp_path / name, "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["health"]["finite"]
    assert "says" in example_text(name)


class TestNamesThatAreNoText:
    """The names of files are bytes: what is no letter comes as a surrogate, and goes into a sentence."""

    ODD = "caf\udce9"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["run", ODD],
            ["run", "--example", ODD],
            ["run", "--example", "circle", "--set", ODD],
            ["run", "--example", "circle", "--set", f"title={ODD}"],
            ["run", "--example", "circle", "--set", f"{ODD}=1"],
            ["run", "--resume", "--out", ODD],
            ["sweep", ODD],
            ["sweep", "--example", "phase-small", "--set", f"{ODD}=1"],
            ["list", "runs", ODD],
            ["list", "runs", "--where", ODD],
            ["list", "runs", "--where", f"title == '{ODD}'"],
            ["show", ODD],
            ["compare", ODD, ODD],
            ["export", ODD, "--to", "csv"],
            ["figure", ODD],
            ["check", ODD],
            ["play", ODD, "--no-open"],
        ],
        ids=lambda arguments: " ".join(arguments).encode("ascii", "replace").decode(),
    )
    def test_are_refused_in_a_sentence(self, run, arguments, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert "unexpected" not in one_sentence(run(*arguments))

    def test_a_page_is_written_there(self, run, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        result = run("page", "--out", self.ODD)
        assert result.exit_code == 0
        assert result.stdout.startswith("caf?/index.html")
