"""tokenflock figure, from the command line inwards: files, reuse, bad input."""

import json

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from tokenflock.cli import app
from tokenflock.ledger import finding
from tokenflock.ledger.paper import Paper


@pytest.fixture
def gallery(monkeypatch, tmp_path):
    """A gallery of one figure, which counts how often it is computed."""
    paper = Paper("", "0000.00000", "Invented", "Nobody", seen="never", version="v1")
    computed = []

    @paper.figure("line", title="A line", shows="a line", quick={"n": 3}, paper={"n": 9})
    def line(job):
        computed.append(job.n)
        return xr.Dataset({"y": ("x", np.arange(job.n) + float(job.seed))})

    @line.drawing
    def _(plt, data):
        figure, axes = plt.subplots()
        axes.plot(data.y)
        return figure

    monkeypatch.setattr(finding, "papers", lambda: (paper,))
    monkeypatch.chdir(tmp_path)
    return computed


def call(*arguments):
    result = CliRunner().invoke(app, ["figure", *arguments])
    assert "Traceback" not in result.output
    return result


def test_it_is_computed_once_and_redrawn_from_its_data(gallery, tmp_path):
    first = call("line", "--json")
    assert first.exit_code == 0
    answer = json.loads(first.stdout)
    assert answer["figure"] == "figures/0000.00000v1-line-quick.pdf"
    assert not answer["reused_data"]
    assert (tmp_path / answer["figure"]).exists()
    assert (tmp_path / answer["data"]).is_dir()
    again = call("0000.00000/line")
    assert "reused" in again.stdout
    assert "look for: a line" in again.stdout
    assert gallery == [3]
    call("line", "--fresh")
    call("line", "--scale", "paper")
    call("line", "--seed", "4")
    assert gallery == [3, 3, 9, 3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["circle"], "no figure is called 'circle'"),
        (["0000.00000v1/lines"], "did you mean 0000.00000v1/line?"),
        (["line", "--out", "a.txt"], "--out must end in one of .pdf, .svg, .png"),
        (["line", "--out", "a.mp4"], "does not move"),
    ],
)
def test_bad_input_is_a_sentence_and_writes_nothing(gallery, tmp_path, arguments, words):
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []
    assert gallery == []
