"""What is asked of a cluster and of its workers: that they are there, busy, alike, and started in time."""

import itertools
import os
import time

import pytest

from tokenflock.errors import InputError, SolveError
from tokenflock.sweeps.cluster import _started, own_cluster
from tokenflock.sweeps.layout import Layout
from tokenflock.sweeps.lookout import Lookout
from tokenflock.sweeps.remote import Sender
from tokenflock.sweeps.silence import Silence
from tokenflock.sweeps.workers import Order, prepare_process, versions

ORDER = Order("", Layout((), {}))


@pytest.mark.parametrize("name", ["Python", "tokenflock", "jax", "jaxlib"])
def test_a_worker_with_another_version_is_named(name):
    found = {**versions(), name: "0.0.1"}
    answer = {"worker": "tcp://10.0.0.7:1", "found": found, "problem": None}
    sentence = rf"the worker at tcp://10.0.0.7:1 has .*{name} 0\.0\.1.*, and this process .*{name} "
    with pytest.raises(InputError, match=sentence):
        Sender(ORDER).accepted(answer)


def test_a_process_is_set_up_once_and_keeps_what_the_user_chose(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/nowhere")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    for name in ("NPROC", "OPENBLAS_NUM_THREADS", "EQX_ON_ERROR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    prepare_process()
    prepare_process()
    flags = os.environ["XLA_FLAGS"]
    assert flags == "--xla_dump_to=/nowhere --xla_cpu_multi_thread_eigen=false"
    assert (os.environ["NPROC"], os.environ["OMP_NUM_THREADS"]) == ("1", "3")


class Scheduler:
    """Answers in turn what it is asked by a lookout."""

    address = "tcp://10.0.0.5:8786"

    def __init__(self, workers, busy=(), heard=None):
        self.ncores, self.processing = iter(workers), iter(busy)
        self.identity = (
            {"workers": {name: {"last_seen": mark} for name, mark in marks.items()}}
            for marks in heard or itertools.repeat({})
        )


class Asking:
    """A client that reads its scheduler's answers."""

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def sync(self, answers, callback_timeout):
        assert callback_timeout < 1000
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def lookout(monkeypatch, workers, busy=()):
    monkeypatch.setattr("tokenflock.sweeps.lookout.LOOK_SECONDS", -1.0)
    return Lookout(Asking(Scheduler(workers, busy)), lambda _: None, None)


def test_workers_that_leave_again_and_again_are_given_up(monkeypatch):
    one, none = {"tcp://w:1": 1}, {}
    watch = lookout(monkeypatch, [one, none] * 20, [{"w": ("a",)}] * 20)
    for _ in range(4):
        watch.look()
        watch.look()
    watch.answered()
    for _ in range(9):
        watch.look()
    with pytest.raises(SolveError, match="have left 5 times before one of them had finished"):
        watch.look()


def test_a_scheduler_that_hands_nothing_out_is_given_up(monkeypatch):
    one = {"tcp://w:1": 1}
    watch = lookout(monkeypatch, [one] * 3, [{"w": ()}, {"w": ("a",)}, {"w": ()}])
    watch.look()
    monkeypatch.setattr("tokenflock.sweeps.lookout.IDLE_SECONDS", -1.0)
    watch.look()
    with pytest.raises(
        SolveError, match="has workers and blocks that wait, and has handed out none"
    ):
        watch.look()


def test_a_cluster_of_ours_without_processes_is_given_up(monkeypatch):
    watch = lookout(monkeypatch, [{}, {}])
    watch.patience = 60.0
    watch.look()
    watch.patience = -1.0
    with pytest.raises(SolveError, match="all worker processes are gone"):
        watch.look()


def test_a_scheduler_that_is_silent_is_given_up(monkeypatch):
    with pytest.raises(SolveError, match="does not answer any more"):
        lookout(monkeypatch, [TimeoutError()]).look()


def test_each_worker_process_has_its_share_of_memory(monkeypatch):
    given = {}
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "6")
    monkeypatch.setattr("distributed.LocalCluster", lambda **options: given.update(options))
    _started(4)
    assert given["env"] == {"TOKENFLOCK_MEMORY_GIB": "1.5"}


def test_processes_that_never_start_are_given_up(monkeypatch):
    monkeypatch.setattr("tokenflock.sweeps.cluster.START_SECONDS", 0.05)
    monkeypatch.setattr("tokenflock.sweeps.cluster.STARTS", 1)
    monkeypatch.setattr("distributed.LocalCluster", lambda **_: time.sleep(5))
    with pytest.raises(SolveError, match="2 worker processes did not start"):
        _started(2)


def test_processes_that_do_not_start_are_a_sentence(monkeypatch):
    starts = []

    def refuse(**options):
        starts.append(options["n_workers"])
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", refuse)
    sentence = r"2 worker processes did not start \(Nanny failed to start.\); use fewer"
    with pytest.raises(SolveError, match=sentence), own_cluster(ORDER, 2, print):
        pass
    assert starts == [2, 2, 2]


class TestSilence:
    """When a worker counts as silent, by times that are given: no test waits."""

    def look_every_second(self, silence, seconds, marks):
        """What was found, by the second it was found at."""
        begin = time.monotonic()
        looks = ((k, silence.fallen_silent(marks(k), begin + k)) for k in range(seconds))
        return {k: found for k, found in looks if found}

    def test_one_that_says_nothing_more_is_told_once(self):
        found = self.look_every_second(Silence(), 100, lambda k: {"a": 5.0, "b": 1000.0 + k})
        assert found == {21: {"a": pytest.approx(21.0)}}

    def test_longer_blocks_allow_longer_silence(self):
        silence = Silence()
        silence.took(10.0)
        silence.took(2.0)
        found = self.look_every_second(silence, 100, lambda k: {"a": 5.0})
        assert [*found] == [31]

    def test_one_that_wakes_and_falls_silent_again_is_told_again(self):
        found = self.look_every_second(Silence(), 100, lambda k: {"a": float(k >= 40)})
        assert [*found] == [21, 61]

    def test_who_was_stopped_himself_blames_nobody(self):
        """Ctrl-Z stops all processes of a terminal."""
        silence, begin = Silence(), time.monotonic()
        assert silence.fallen_silent({"a": 1.0}, begin) == {}
        assert silence.fallen_silent({"a": 1.0}, begin + 1000.0) == {}
        assert silence.fallen_silent({"a": 2.0}, begin + 1001.0) == {}

    @pytest.mark.parametrize("ours", [True, False])
    def test_it_is_said_and_only_our_own_is_ended(self, monkeypatch, ours):
        monkeypatch.setattr("tokenflock.sweeps.lookout.LOOK_SECONDS", -1.0)
        monkeypatch.setattr("tokenflock.sweeps.silence.SILENT_SECONDS", -1.0)
        said, ended = [], []
        busy, workers = itertools.repeat({"a": ("x",)}), itertools.repeat({"a": 1})
        scheduler = Scheduler(workers, busy, itertools.repeat({"tcp://w:1": 3.0}))
        watch = Lookout(Asking(scheduler), said.append, None, ended.append if ours else None)
        for _ in range(3):
            watch.look()
        (sentence,) = said
        assert "tcp://w:1 has given no sign of life for 0 s" in sentence
        assert ended == (["tcp://w:1"] if ours else [])
        assert ("others compute its blocks" in sentence) is ours
