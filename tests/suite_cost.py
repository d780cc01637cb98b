"""What each test file costs: seconds, compiled programs, memory; printed at the end of every run.

Programs are counted by JAX's own events, in the process that runs the file; `-p xdist` workers hand their
counts to the process that prints with the report of each test.
"""

import resource
from collections import defaultdict
from dataclasses import dataclass

import pytest
from compiled_programs import programs_made

SHOWN = 25
PROPERTY = "cost"


@dataclass
class Cost:
    """Of one file: seconds of its tests with their fixtures, programs compiled, peak of its process."""

    seconds: float = 0.0
    programs: int = 0
    megabytes: int = 0


COSTS: dict[str, Cost] = defaultdict(Cost)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Count from before the fixtures of a test to after them."""
    item.stash[BEFORE] = programs_made()
    return (yield)


BEFORE = pytest.StashKey[int]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Send with the last report of a test what it compiled and how large its process has been."""
    report = yield
    if report.when == "teardown":
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        made = programs_made() - item.stash[BEFORE]
        report.user_properties.append((PROPERTY, [made, peak]))
    return report


def pytest_runtest_logreport(report):
    """Add up, in the process that prints."""
    cost = COSTS[report.nodeid.partition("::")[0]]
    cost.seconds += report.duration
    for name, value in report.user_properties:
        if name == PROPERTY and report.when == "teardown":
            cost.programs += value[0]
            cost.megabytes = max(cost.megabytes, value[1])


def pytest_terminal_summary(terminalreporter):
    """The slowest files first."""
    terminalreporter.section("cost of test files")
    rows = sorted(COSTS.items(), key=lambda row: -row[1].seconds)
    terminalreporter.write_line("   seconds  programs  peak MB  file")
    for name, cost in rows[:SHOWN]:
        terminalreporter.write_line(
            f"{cost.seconds:10.1f}{cost.programs:10}{cost.megabytes:9}  {name}"
        )
    seconds = sum(cost.seconds for cost in COSTS.values())
    programs = sum(cost.programs for cost in COSTS.values())
    peak = max((cost.megabytes for cost in COSTS.values()), default=0)
    terminalreporter.write_line(f"{seconds:10.1f}{programs:10}{peak:9}  all {len(rows)} files")
