"""docs/papers.md is true: its folder alone makes a paper, and the paper is gone with the folder."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tokenflock.papers

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
FOLDER = Path(tokenflock.papers.__file__).parent
# The papers of this process come from another folder, too: the package itself stays as it is.
SCRIPT = """
import sys
import tokenflock.papers
tokenflock.papers.__path__.append(sys.argv.pop(1))
from tokenflock.cli import main
main()
"""


@pytest.fixture
def elsewhere(tmp_path):
    """A folder of papers with the one of the page."""
    place = tmp_path / "papers" / "toy"
    place.mkdir(parents=True)
    files = re.findall(r"```python file=(\S+)\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert [name for name, _ in files] == ["__init__.py", "claims.py", "figures.py"]
    for name, text in files:
        (place / name).write_text(text)
    return place.parent


def call(papers, *words):
    command = [sys.executable, "-c", SCRIPT, str(papers), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=papers.parent)


def test_a_folder_is_a_paper(elsewhere):
    listed = call(elsewhere, "list", "claims")
    assert "0001.00001v1/flat-pair" in listed.stdout
    commands = re.findall(r"^\$ (tokenflock .*)$", PAGE.read_text(), flags=re.M)
    for command in commands:
        done = call(elsewhere, *shlex.split(command)[1:])
        assert done.returncode == 0, done.stderr
    assert (elsewhere.parent / "fall.svg").exists()
    shutil.rmtree(elsewhere / "toy")
    gone = call(elsewhere, "check", "0001.00001/flat-pair")
    assert gone.returncode == 2
    assert "no claim is called" in gone.stderr


def test_one_claim_loads_its_own_paper_alone():
    script = (
        "import sys\n"
        "from tokenflock.ledger import find_claim\n"
        "find_claim('2110.11773/iterations')\n"
        "print(*sorted({name.split('.')[2] for name in sys.modules\n"
        "    if name.startswith('tokenflock.papers.') and name.endswith('.claims')}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["sinkformers"]
