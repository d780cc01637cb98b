"""Small specs of every sort of run, and ways to break them off."""

import numpy as np
import pytest

from tokenflock.lab.catalogue import example_text
from tokenflock.lab.files import parse
from tokenflock.lab.run import run_spec
from tokenflock.lab.segments import Log

ADD = Log.add
SMALL = ["every=1.0", "n=8", "t1=8.0", "rtol=1e-6", "atol=1e-8"]
SPECS = {
    "plain": ("circle", SMALL),
    "noise": ("noise", ["n=6", "t1=0.5", "dt=0.01", "every=0.05"]),
    "merge": ("metastable", ["per_cluster=3", "count=60"]),
    "stop": ("circle", [*SMALL, "t1=40.0", "stop.clusters={count=2, angle=0.1}"]),
    "batch": (
        "circle",
        [*SMALL, "beta=[1.0, 9.0]", "samples=2", "stop.clusters={count=2, angle=0.1}"],
    ),
}


class Killed(BaseException):
    """Stands for a kill: nothing in the code under test may catch it."""


def killer(after):
    calls = iter(range(1, 10_000))

    def report(done, t, values):
        if next(calls) == after:
            raise Killed

    return report


def silent(done, t, values):
    pass


def start(name):
    example, settings = SPECS[name]
    return parse(example_text(example), settings)


def kill_after(parts, spec, folder, resume=False):
    """A run that writes every part as soon as it is finished, and is killed after some."""
    with pytest.MonkeyPatch.context() as patch:
        write_every_part(patch)
        with pytest.raises(Killed):
            run_spec(spec, folder, resume, False, killer(parts))


def same(first, second):
    assert set(first.arrays) == set(second.arrays)
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)
    np.testing.assert_array_equal(first.time, second.time)
    assert first.health == second.health
    assert first.outcome == second.outcome


def write_every_part(patch):
    """Every part is written as soon as it is finished."""
    patch.setattr(Log, "add", lambda log, segment: (ADD(log, segment), log.flush()))
