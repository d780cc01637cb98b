"""Small specs, and one compilation per spec: the jobs of one test process share programs."""

import pytest

from tokenflock.lab import parts as parts_module
from tokenflock.lab.job import Job

PROGRAMS: dict[str, object] = {}


@pytest.fixture
def shared_programs(monkeypatch):
    """Jobs of the same id use the program that the first of them compiled."""
    compile_it = Job.compile

    def compile_once(job: Job) -> None:
        if job.id not in PROGRAMS:
            compile_it(job)
            PROGRAMS[job.id] = job._program
        job._program = PROGRAMS[job.id]

    monkeypatch.setattr(Job, "compile", compile_once)


@pytest.fixture
def few_parts(monkeypatch):
    """Fewer parts to compute and write."""
    monkeypatch.setattr(parts_module, "PARTS", 8)
