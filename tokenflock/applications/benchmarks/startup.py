"""startup: how long until a user sees something, in fresh processes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from .core import OURS, BenchJob, Row, benchmark
from .timing import Contestant

IMPORT = "import tokenflock"


@benchmark(
    "startup",
    says="seconds of import, --help and a second run, each a fresh process",
    # The others are what the scripts of the papers import before anything happens.
    quick={"others": ("torch", "jax"), "run": True, "repeats": 7, "budget": 18.0},
    full={"repeats": 15, "budget": 120.0},
)
def startup(job: BenchJob) -> list[Row]:
    """One row per thing a user starts; the first start, which fills the disk cache, is dropped."""
    command = str(Path(sys.executable).with_name("tokenflock"))
    imports, missing = _imports(job.others)
    rows = [_row(job, IMPORT, imports), _row(job, "python -c pass", _alone(_python("pass")))]
    rows[0].missing = missing
    rows[0].bar_below(0.5)
    job.report(0.5, "tokenflock --help")
    rows.append(_row(job, "tokenflock --help", _alone([command, "--help"])).bar_below(0.8))
    if job.run:
        job.report(0.7, "tokenflock run")
        with tempfile.TemporaryDirectory() as folder:
            out = str(Path(folder) / "run")
            demo = [command, "run", "--example", "sphere", "--out", out, "--overwrite", "--json"]
            rows.append(_row(job, "tokenflock run --example sphere, warm", _alone(demo)))
    return rows


def _imports(others: Sequence[str]) -> tuple[dict[str, Contestant], list[str]]:
    """Our import beside the others that are installed."""
    from importlib.util import find_spec

    here = [name for name in others if find_spec(name) is not None]
    missing = [f"import {name}: not installed" for name in others if name not in here]
    peers = {f"import {name}": _process(_python(f"import {name}")) for name in here}
    return {OURS: _process(_python(IMPORT)), **peers}, missing


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _alone(command: list[str]) -> dict[str, Contestant]:
    return {OURS: _process(command)}


def _process(command: list[str]) -> Contestant:
    return lambda: subprocess.run(command, check=True, capture_output=True)


def _row(job: BenchJob, case: str, contestants: Mapping[str, Contestant]) -> Row:
    for call in contestants.values():
        call()
    samples = job.race(contestants)
    peers = {name: taken.median for name, taken in samples.items() if name != OURS}
    return Row(case, samples[OURS].median, "s", peers=peers, spread=samples[OURS].spread)
