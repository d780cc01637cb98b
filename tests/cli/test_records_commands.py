"""list runs, show, compare and export as commands: output, exit codes, one sentence per error."""

import json
import os
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from tokenflock.cli import app, records
from tokenflock.lab.files import parse

sys.path.append(str(Path(__file__).parent.parent / "records"))
from made_results import made_label, made_run, made_sweep


@pytest.fixture(autouse=True)
def own_index(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    made_run(folder / "a")
    made_run(folder / "b", model__beta=9.0)
    made_run(folder / "other", draw=1)
    made_sweep(
        folder / "phase", failures={3: {1: "it \x1b[31mbroke"}}, blocks=range(9), summary=False
    )
    return folder


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def one_sentence(result, code=2):
    assert result.exit_code == code
    assert result.stdout == ""
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("tokenflock: ")
    return line


class TestList:
    def test_a_table_for_people(self, place):
        text = run("list", "runs", place).stdout
        lines = text.splitlines()
        assert lines[0].split()[:4] == ["path", "kind", "title", "model"]
        assert [line.split()[1] for line in lines[1:]] == ["run", "run", "run", "sweep"]
        assert "1..5 (5)" in text
        assert "27/30, 1 failed" in text

    def test_a_search(self, place):
        result = run(
            *("list", "runs", place, "--where", "beta > 4 and model == 'SA'"),
            *("--sort", "-beta", "--json"),
        )
        rows = json.loads(result.stdout)["runs"]
        assert [(Path(row["path"]).name, row["matching"]) for row in rows] == [
            ("b", None),
            ("phase", 6),
        ]
        assert rows[0]["settings"]["model.beta"] == 9.0
        assert rows[1]["axes"]["model.beta"] == {"count": 5, "first": 1.0, "last": 5.0}
        assert "6 match" in run("list", "runs", place, "--where", "beta == 5").stdout

    def test_a_noise_of_its_own_beta_does_not_stand_in_the_way(self, tmp_path):
        noise = {"kind": "brownian", "temperature": 0.1, "beta": 1.0}
        made_label(tmp_path / "noisy", model__beta=6.0, model__noise=noise)
        made_label(tmp_path / "plain", model__beta=5.0)
        made_label(tmp_path / "cold", model__beta=3.0)
        result = run("list", "runs", tmp_path, "--where", "beta>4 and model=='SA'")
        header, *rows = (line.split() for line in result.stdout.splitlines())
        place = header.index("beta")
        assert [row[place] for row in rows] == ["6", "5"]
        assert "model.noise.beta" not in header
        asked = run("list", "runs", tmp_path, "--where", "model.noise.beta == 1").stdout
        assert {"beta", "model.noise.beta"} <= set(asked.splitlines()[0].split())

    def test_columns_asked_for_are_shown(self, place):
        header = run("list", "runs", place, "--where", "t1 > 1", "--sort", "rtol").stdout.split(
            "\n"
        )[0]
        assert {"t1", "rtol"} <= set(header.split())

    def test_relative_to_here(self, place, monkeypatch):
        monkeypatch.chdir(place)
        assert run("list", "runs").stdout.splitlines()[1].split()[0] == "a"

    def test_nothing(self, tmp_path):
        result = run("list", "runs", tmp_path)
        assert (result.exit_code, result.stdout) == (0, "")
        assert "no results here" in result.stderr
        assert json.loads(run("list", "runs", tmp_path, "--json").stdout)["runs"] == []

    def test_names_cannot_steer_the_terminal(self, tmp_path):
        odd = [b"new\nline", b"caf\xe9", b"\x1b[31mred", b"[bold]x"]
        for name in odd:
            made_label(tmp_path / os.fsdecode(name), title="\x1b]0;title\x07")
        text = run("list", "runs", tmp_path).stdout
        assert "\x1b" not in text
        assert "\x07" not in text
        assert len(text.splitlines()) == 1 + len(odd)
        assert "[bold]x" in text
        rows = json.loads(run("list", "runs", tmp_path, "--json").stdout)["runs"]
        assert sorted(os.fsencode(Path(row["path"]).name) for row in rows) == sorted(odd)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--where", "bta > 4"], "did you mean 'beta'"),
            (["--where", "1; drop table results"], "cannot use '; drop table'"),
            (["--where", "beta >"], "is not a condition"),
            (["--sort", "x"], "--sort: no result here has a column 'x'"),
        ],
    )
    def test_bad_questions(self, place, arguments, words):
        assert words in one_sentence(run("list", "runs", place, *arguments))

    def test_bad_places(self, tmp_path):
        assert "there is no folder" in one_sentence(run("list", "runs", tmp_path / "none"))
        assert "belong to tokenflock list runs" in one_sentence(run("list", "models", tmp_path))


class TestShow:
    def test_a_sweep(self, place):
        text = run("show", place / "phase").stdout
        assert "outcome: interrupted, 27 of 30 cells done, 1 failed" in text
        assert "energy (5 beta x 2 pair x 3 seed x 5 time) float64" in text
        assert "beta = 2.0, pair = 1, seed = 1: it \\x1b[31mbroke" in text
        assert tomllib.loads(text.split("spec:\n\n")[1])["sweep"]["batch"] == 4

    def test_a_run(self, place):
        text = run("show", place / "a").stdout
        assert "outcome: finished: reached t1" in text
        assert "norm_drift: 1e-16" in text
        content = json.loads(run("show", place / "a", "--json").stdout)
        assert (content["kind"], content["seconds"]) == ("run", 1.5)
        assert parse(content["toml"]).tokens.n == 8

    def test_a_cell_as_a_run(self, place):
        asked = ("show", place / "phase", "--cell", "beta=4,pair=1,seed=2")
        spec = parse(run(*asked).stdout)
        assert (spec.model.beta, spec.tokens.n) == (4.0, 16)
        content = json.loads(run(*asked, "--json").stdout)
        assert content["index"] == [3, 1, 2]
        assert content["spec"]["tokens"]["seed"] == spec.tokens.seed

    def test_the_numbers_of_a_cell(self, place):
        asked = ("show", place / "phase", "--cell", "beta=4,pair=1,seed=2", "--values")
        text = run(*asked).stdout
        assert "steps = 6\n" in text
        assert "outcome = 0 (finished)\n" in text
        assert text.splitlines()[-1].split() == ["4", "5624"]
        arrays = json.loads(run(*asked, "--json").stdout)["arrays"]
        assert arrays["energy"] == {"dims": ["time"], "values": [5620 + t for t in range(5)]}

    def test_what_a_number_stands_for(self, place):
        unfinished = ("show", place / "phase", "--cell", "beta=5,pair=1,seed=2", "--values")
        assert "outcome = -2 (missing)\n" in run(*unfinished).stdout

    @pytest.mark.parametrize(
        "about",
        [
            {},
            {"flag_values": [1], "flag_meanings": "stopped"},
            {"flag_values": 0, "flag_meanings": "finished"},
            {"flag_values": [0], "flag_meanings": 3},
            {"flag_values": [5, 0], "flag_meanings": "one"},
            {"flag_values": [[0]], "flag_meanings": "nested"},
        ],
    )
    def test_numbers_that_stand_for_no_word(self, about):
        assert records.meaning(0, about) == ""

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["phase", "--cell", "beta=4.1,pair=0,seed=0"], "the nearest beta are 4.0 and 5.0"),
            (["phase", "--values"], "--values needs --cell"),
            (["a", "--cell", "beta=4"], "only a sweep has cells"),
            (["none"], "there is no folder"),
            ([""], "is not a run, a trace or a sweep"),
        ],
    )
    def test_bad_questions(self, place, arguments, words):
        assert words in one_sentence(run("show", place / arguments[0], *arguments[1:]))


class TestCompare:
    def test_exit_codes(self, place):
        same = run("compare", place / "a", place / "b")
        assert same.exit_code == 0
        assert "model.beta: 4.0 | 9.0" in same.stdout
        assert "energy: equal to the last bit (5 numbers)" in same.stdout
        assert same.stdout.splitlines()[-1] == "equal to the last bit"
        different = run("compare", place / "a", place / "other")
        assert different.exit_code == 1
        assert "5 of 5 differ, by at most" in different.stdout
        assert different.stdout.splitlines()[-1] == "different"
        assert run("compare", place / "a", place / "other", "--tol", "100").exit_code == 0
        assert "compare like with like" in one_sentence(
            run("compare", place / "a", place / "phase")
        )

    def test_json(self, place):
        result = run("compare", place / "phase", place / "phase", "--json")
        assert result.exit_code == 0
        content = json.loads(result.stdout)
        assert content["equal"]
        assert {array["name"]: array["different"] for array in content["arrays"]} == {
            "energy": 0,
            "outcome": 0,
            "steps": 0,
        }


class TestExport:
    def test_files_are_named_and_read_back(self, place, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        result = run("export", place / "phase", "--to", "csv", "--arrays", "energy, steps")
        assert result.stdout.splitlines() == [
            "phase-beta-pair-seed.csv",
            "phase-beta-pair-seed-time.csv",
        ]
        assert "27 of 30 cells are done" in result.stderr
        assert len(pd.read_csv("phase-beta-pair-seed-time.csv")) == 150
        again = run("export", place / "phase", "--to", "csv", "--arrays", "energy,steps")
        assert "exists; choose another --out" in one_sentence(again)

    def test_json(self, place, tmp_path):
        out = tmp_path / "new" / "a.npz"
        content = json.loads(
            run("export", place / "a", "--to", "npz", "--out", out, "--json").stdout
        )
        assert content["files"] == [str(out)]
        assert content["bytes"] == out.stat().st_size

    def test_bad_questions(self, place, tmp_path):
        out = tmp_path / "x"
        sentence = one_sentence(run("export", place / "a", "--to", "cvs", "--out", out))
        assert "did you mean 'csv'" in sentence
        assert run("export", place / "a").exit_code == 2
        for folder in ("", "/"):
            sentence = one_sentence(run("export", place / "a", "--to", "csv", "--out", folder))
            assert "is a folder; give the name of a file" in sentence
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["show", "compare", "export"])
def test_help_teaches(command):
    text = run(command, "--help").stdout
    assert "Examples" in text
    assert f"tokenflock {command}" in text
