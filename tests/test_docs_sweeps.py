"""docs/sweeps.md: its specs parse, its options are the command's, its Python is Python and opens a sweep."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

import tokenflock as flock
from tokenflock.records.cells import find_cell
from tokenflock.sweeps.plan import parse_sweep

TEXT = (Path(__file__).parent.parent / "docs" / "sweeps.md").read_text()
TOML = re.findall(r"```toml\n(.*?)```", TEXT, flags=re.S)
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)


def table(heading):
    """Rows of the first table below a heading, as lists of cells."""
    lines = TEXT.split(f"| {heading} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_specs_are_sweeps():
    first, every_kind, annealed = (parse_sweep(text) for text in TOML)
    assert first.grid.shape == (90, 256)
    assert [axis.name for axis in every_kind.axes] == ["n", "dimension", "pair", "trial", "seed"]
    assert [axis.name for axis in annealed.axes] == ["values_1", "switch"]
    for sweep in (every_kind, annealed):
        assert parse_sweep(sweep.text).id == sweep.id


def test_a_sweep_of_schedules_is_that_of_python(tmp_path):
    data = flock.sweep(TOML[2], tmp_path / "annealed", workers=1, progress=False)
    start = flock.uniform(flock.Sphere(3), n=6, seed=1)
    for second, switch in ((2.0, 1.5), (4.0, 0.5)):
        model = flock.SA(flock.Piecewise([switch, 2.0], [1.0, second, 9.0]))
        save = flock.Save(every=1.0, observe=[flock.order_parameter])
        run = flock.solve(model, start, 3.0, rtol=1e-8, atol=1e-10, save=save)
        cell = data["order_parameter"].sel(values_1=second, switch=switch)
        np.testing.assert_allclose(cell, run.array("order_parameter"), rtol=1e-7)
    assert np.ptp(data["order_parameter"].isel(time=-1).values) > 1e-2


def test_the_zipped_values_of_a_schedule_are_an_axis():
    (written,) = re.findall(r"`(pair = \{ zip = \{ \"beta.values.*?)`", TEXT, flags=re.S)
    spec = TOML[2].split("[sweep.axes]")[0]
    sweep = parse_sweep(f"{spec}[sweep.axes]\n{' '.join(written.split())}")
    assert find_cell(sweep, "values_0=2") == find_cell(sweep, "model.beta.values.2=4") == (1,)
    (axis,) = sweep.axes
    assert [*axis.settings] == ["model.beta.values.0", "model.beta.values.2"]
    assert [*axis.beside] == ["values_0", "values_2"]


def test_every_axis_of_the_table_is_one():
    spec = TOML[0].split("[sweep]")[0]
    rows = table("axis")
    assert len(rows) == 8
    for _, written, _ in rows:
        for axis in re.findall(r"`(.*?)`", written):
            (found,) = parse_sweep(f"{spec}[sweep.axes]\n{axis}").axes
            assert found.name == axis.split(" = ")[0]


def test_the_options_are_those_of_the_command():
    from tokenflock.cli import app

    command = get_command(app).commands["sweep"]
    options = {name for option in command.params for name in option.opts if name.startswith("--")}
    listed = {row[0].strip("`").split()[0] for row in table("option")}
    assert listed == options - {"--example", "--help"}


def test_the_python_is_python():
    assert len(PYTHON) == 4
    for block in PYTHON:
        ast.parse(block)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The data type")
def test_the_lines_that_read_a_sweep_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = TOML[0].replace("count = 90", "count = 2").replace("seeds = 256", "seeds = 2")
    flock.sweep(small, "runs/phase", workers=1, progress=False)
    exec(compile(PYTHON[0], "docs/sweeps.md", "exec"), {})
