"""docs/sweeps.md: its specs parse, its options are the command's, its Python is Python and opens a sweep."""

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

import tokenflock as flock
from tokenflock.sweeps.plan import parse_sweep

TEXT = (Path(__file__).parent.parent / "docs" / "sweeps.md").read_text()
TOML = re.findall(r"```toml\n(.*?)```", TEXT, flags=re.S)
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)


def table(heading):
    """Rows of the first table below a heading, as lists of cells."""
    lines = TEXT.split(f"| {heading} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_specs_are_sweeps():
    first, every_kind = (parse_sweep(text) for text in TOML)
    assert first.grid.shape == (90, 256)
    assert [axis.name for axis in every_kind.axes] == ["n", "dimension", "pair", "trial", "seed"]
    assert parse_sweep(every_kind.text).id == every_kind.id


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
