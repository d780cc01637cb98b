"""What each test file costs: seconds, compiled programs, memory; printed at the end of every run.

Programs are counted by JAX's own events, in the process that runs the file; `-p xdist` workers hand their
counts to the process that prints with the report of each test. A file whose default tests compile more
than compile_budget.json allows fails the run: compiling is most of what tests cost, and unlike seconds it
is the same on every machine.
"""

import gc
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from compiled_programs import forget_programs, make_room, programs_made
from process_memory import begin_anew, peak_megabytes

SHOWN = 25
PROPERTY = "cost"
BUDGET = Path(__file__).with_name("compile_budget.json")
# Of a file that the budget does not name: what a test file may compile without asking.
UNNAMED = 60
# A budget leaves room for another version of JAX, which may split its programs in another way, and for
# programs that are forgotten for their memory and made again.
ROOM = 2.0


@dataclass
class Cost:
    """Of one file: seconds of its tests with their fixtures, programs compiled, peak memory meanwhile.

    programs -- of all tests; budgeted -- of those that are not slow.
    """

    seconds: float = 0.0
    programs: int = 0
    budgeted: int = 0
    megabytes: int = 0


COSTS: dict[str, Cost] = defaultdict(Cost)
BEFORE = pytest.StashKey[int]()


def pytest_addoption(parser):
    """How the budget is written anew, after a look at what has grown."""
    parser.addoption(
        "--write-compile-budget",
        action="store_true",
        help="write what the default tests compile, with some room, into compile_budget.json",
    )


def pytest_pycollect_makemodule(module_path, parent):
    """Files make models while they are collected, and what these compiled is of no use to the next."""
    make_room()


def pytest_collection_finish(session):
    """Tests begin with no programs, in whatever process."""
    forget_programs()
    # What was collected stays to the end: nobody needs to look through it for garbage again.
    gc.freeze()
    begin_anew()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Count from before the fixtures of a test to after them."""
    item.stash[BEFORE] = programs_made()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """After the last test of a file its programs are of no use."""
    result = yield
    if nextitem is None or nextitem.path != item.path:
        forget_programs()
        begin_anew()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Send with the last report of a test what it compiled and how large its process has been."""
    report = yield
    if report.when == "teardown":
        made = programs_made() - item.stash[BEFORE]
        slow = item.get_closest_marker("slow") is not None
        report.user_properties.append((PROPERTY, [made, peak_megabytes(), slow]))
    return report


def pytest_runtest_logreport(report):
    """Add up, in the process that prints."""
    cost = COSTS[report.nodeid.partition("::")[0]]
    cost.seconds += report.duration
    for name, value in report.user_properties:
        if name == PROPERTY and report.when == "teardown":
            made, peak, slow = value
            cost.programs += made
            cost.budgeted += 0 if slow else made
            cost.megabytes = max(cost.megabytes, peak)


def over_budget():
    """Files whose default tests compile more than they may: what they compiled, and the budget."""
    budget = json.loads(BUDGET.read_text())
    limits = {file: budget.get(file, UNNAMED) for file in COSTS}
    return {
        file: (cost.budgeted, limits[file])
        for file, cost in sorted(COSTS.items())
        if cost.budgeted > limits[file]
    }


def write_budget():
    """What the default tests of the files of this run compiled, where they need more than any file may."""
    needed = json.loads(BUDGET.read_text())
    needed |= {file: round(ROOM * cost.budgeted) for file, cost in COSTS.items()}
    kept = {file: count for file, count in sorted(needed.items()) if count > UNNAMED}
    BUDGET.write_text(json.dumps(kept, indent=2) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """A file over its budget fails a run that is green otherwise."""
    if hasattr(session.config, "workerinput"):
        return
    if session.config.option.write_compile_budget:
        write_budget()
    elif over_budget() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """The slowest files first, then those over their budget."""
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
    for file, (made, limit) in over_budget().items():
        terminalreporter.write_line(
            f"ERROR: the default tests of {file} compile {made} programs, and may compile {limit}: share "
            f"shapes and models between tests, or raise {BUDGET.name} with a reason"
        )
