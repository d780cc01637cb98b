"""The README and the docs run as they are written."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent


def blocks(name, language):
    text = (ROOT / name).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.S)


@pytest.mark.parametrize(
    "name",
    [
        *("README.md", "docs/model.md", "docs/jax.md", "docs/trace.md", "docs/construct.md"),
        pytest.param("docs/meanfield.md", marks=pytest.mark.slow),
        pytest.param("docs/kinetic.md", marks=pytest.mark.slow),
        pytest.param("docs/reductions.md", marks=pytest.mark.slow),
        pytest.param("docs/random-depth.md", marks=pytest.mark.slow),
    ],
)
def test_python_examples_run_in_order(name, capsys, forgotten_after):
    if name == "docs/trace.md":
        pytest.importorskip("transformers")
    found = blocks(name, "python")
    assert len(found) >= (4 if name == "README.md" else 2)
    namespace: dict = {}
    for block in found:
        exec(compile(block, name, "exec"), namespace)
    printed = capsys.readouterr().out
    if name == "README.md":
        clusters, violation = printed.split("\n")[0].split()
        assert 2 <= int(clusters) <= 8
        assert float(violation) < 1e-9
        measured, exact = (float(word) for word in printed.split("\n")[1].split())
        assert measured == pytest.approx(exact, rel=1e-6)


# The others of the README take many seconds each; tests/cli runs them on smaller cases.
QUICK = ("list", "run", "doctor", "page")


@pytest.mark.parametrize("some", ["quick", pytest.param("long", marks=pytest.mark.slow)])
def test_console_examples_run(some, tmp_path, monkeypatch):
    from tokenflock.cli import app

    monkeypatch.chdir(tmp_path)
    commands = [
        shlex.split(line[2:])
        for block in blocks("README.md", "console")
        for line in block.splitlines()
    ]
    assert all(words[0] == "tokenflock" for words in commands)
    assert {words[1] for words in commands} >= {*QUICK, "check", "figure"}
    for words in commands:
        if (words[1] in QUICK) == (some == "quick"):
            result = CliRunner().invoke(app, words[1:], catch_exceptions=False)
            assert result.exit_code == 0, result.output
    made = {"quick": ("runs/circle/figure.png", "site/index.html"), "long": ("kuramoto.svg",)}
    assert all((tmp_path / name).exists() for name in made[some])


def test_links_point_at_files():
    for name in (
        "README.md",
        "docs/model.md",
        "docs/jax.md",
        "docs/notation.md",
        "docs/gallery.md",
        "docs/reductions.md",
        "docs/many_devices.md",
        "docs/trace.md",
        "docs/play.md",
        "docs/sweeps.md",
        "docs/install.md",
    ):
        for target in re.findall(r"\]\(([\w./-]+)\)", (ROOT / name).read_text()):
            assert (ROOT / name).parent.joinpath(target).exists(), target
