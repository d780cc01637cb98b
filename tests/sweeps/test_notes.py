"""What a sweep says of an observable whose meaning changes from cell to cell."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tokenflock.cli import app
from tokenflock.sweeps.api import open_sweep
from tokenflock.sweeps.probe import Variable, _larger
from tokenflock.theory import spacing_angle

LINKED = {"units": "clusters", "link": "spacing"}
NOTE = "the count means nothing: 1000 uniform tokens ..."


def variable(**attributes):
    return Variable("clusters", ("time",), (3,), "float64", np.nan, attributes)


def test_an_angle_that_changes_with_n_is_not_said_of_all():
    few = variable(**LINKED, angle=0.1, uniform_clusters=9.8, meaningful=True)
    many = variable(**LINKED, angle=0.002, uniform_clusters=780.0, meaningful=True)
    assert _larger(few, many).attributes == {**LINKED, "meaningful": True}


def test_a_count_that_means_nothing_in_one_cell_is_said_of_all():
    few = variable(angle=0.1, uniform_clusters=9.8, meaningful=True)
    many = variable(angle=0.1, uniform_clusters=1.0, meaningful=False, note=NOTE)
    for found in (_larger(few, many).attributes, _larger(many, few).attributes):
        assert found["angle"] == 0.1
        assert not found["meaningful"]
        assert found["note"] == f"in some cells {NOTE}"


COUNTED = """
[model]
name = "SA"
beta = 1.0
[tokens]
law = "uniform"
d = 2
[solve]
t1 = 0.2
step = 0.1
[save]
every = 0.2
observe = [{ name = "clusters", link = "spacing" }, { name = "clusters", angle = 0.1, as = "wide" }]
[stop]
clusters = { count = 1, angle = 0.1 }
[sweep.axes]
n = [5, 40, 400]
seed = { seeds = 2 }
[output]
figure = false
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A sweep over n, as the command line makes it: its folder and what was printed."""
    home = tmp_path_factory.mktemp("counted")
    (home / "spec.toml").write_text(COUNTED)
    command = ["sweep", str(home / "spec.toml"), "--out", str(home / "out"), "--workers", "1"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return home / "out", done.output


def test_the_angle_of_every_cell_is_stored_where_the_rule_finds_another(counted):
    folder, _ = counted
    found = open_sweep(folder)
    for n in (5, 40, 400):
        angles = found["clusters_angle"].sel(n=n)
        np.testing.assert_allclose(angles, spacing_angle(n, 2), rtol=1e-12)
    assert found["wide"].attrs["angle"] == 0.1
    assert "wide_angle" not in found


def test_a_count_that_means_nothing_is_said_at_the_end_and_by_show(counted):
    folder, printed = counted
    shown = CliRunner().invoke(app, ["show", str(folder)]).output
    for text in (" ".join(printed.split()), shown):
        assert "wide: in some cells the count means nothing: 400 uniform tokens on S^1" in text
        assert "final time: in some cells stop at 1 cluster left: the count means nothing" in text
    notes = json.loads(CliRunner().invoke(app, ["show", str(folder), "--json"]).stdout)["notes"]
    assert set(notes) == {"wide", "final_wide", "final_time"}
