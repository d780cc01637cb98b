"""Every Python the project names: a plain install with today's packages runs the README's first example."""

import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSIONS = [
    found[1]
    for line in PROJECT["classifiers"]
    if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
]
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"


def interpreter(version):
    """A Python of this version on this machine, from pyenv or the path; None without one."""
    installed = [*PYENV.glob(f"{version}.*/bin/python"), shutil.which(f"python{version}")]
    for candidate in filter(None, installed):
        asked = subprocess.run(
            [candidate, "--version"], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0 and asked.stdout.startswith(f"Python {version}."):
            return str(candidate)
    return None


def run(*words, **options):
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, **options
    )


def test_the_readme_names_the_same_pythons():
    assert PROJECT["requires-python"] == f">={VERSIONS[0]}"
    named = f"Python {', '.join(VERSIONS[:-1])} or {VERSIONS[-1]}"
    assert len(VERSIONS) == 3
    assert all(named in (ROOT / page).read_text() for page in ("README.md", "docs/install.md"))


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_plain_install_runs_the_first_example(version):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "venv" / "bin" / "python"
        made = run(python, "-m", "venv", fresh.parent.parent)
        assert made.returncode == 0, made.stderr
        reached = run(fresh, "-m", "pip", "download", "--no-deps", "-d", folder, "tomli-w")
        if reached.returncode != 0:
            pytest.skip("no package index can be reached")
        installed = run(fresh, "-m", "pip", "install", "--quiet", "-e", ROOT)
        assert installed.returncode == 0, installed.stderr[-2000:]
        example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)[1]
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = run(fresh, "-c", example, cwd=folder, env=alone)
        assert done.returncode == 0, done.stderr[-2000:]
        clusters, violation = done.stdout.split()
        assert 2 <= int(clusters) <= 8
        assert float(violation) < 1e-9
        healthy = run(fresh.with_name("tokenflock"), "doctor", "--json", cwd=folder, env=alone)
        assert healthy.returncode == 0, healthy.stderr[-2000:]
