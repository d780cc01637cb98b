"""Running a sweep in this process: what is computed, written, refused, continued and repaired."""

import json
import shutil

import numpy as np
import pytest
from tiny_sweeps import TINY, dataset_hash, journal_lines, tree_hash

import tokenflock as flock
from tokenflock.errors import InputError, SolveError, StoreError
from tokenflock.sweeps import conduct as conducting
from tokenflock.sweeps.conduct import Wishes, conduct
from tokenflock.sweeps.grid import Block
from tokenflock.sweeps.isolation import cell_by_cell, computed
from tokenflock.sweeps.layout import ERROR, BlockResult, Layout, Variable
from tokenflock.sweeps.plan import parse_sweep
from tokenflock.sweeps.store import SweepStore
from tokenflock.sweeps.watching import Bar, Lines, Standing

ALONE = Wishes(workers=1)
# A cap wider than the sphere is no law of tokens: the last third of the cells raises when it is built.
BAD_THIRD = TINY.replace('law = "uniform"', 'law = "cap"\nradius = 1.0').replace(
    "beta = [1.0, 4.0, 9.0]", "radius = [1.0, 2.0, 9.0]"
)
# e^beta overflows: every cell of USA goes non-finite.
ALL_BAD = TINY.replace('name = "SA"', 'name = "USA"').replace("[1.0, 4.0, 9.0]", "[800.0, 900.0]")


class Notes:
    """Remembers what a sweep said."""

    def __init__(self):
        self.standings, self.said = [], []

    def standing(self, now):
        self.standings.append(now)

    def say(self, sentence):
        self.said.append(sentence)

    def stop(self, failed=False): ...


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A sweep that ran without interruption; tests copy it."""
    folder = tmp_path_factory.mktemp("whole") / "sweep"
    conduct(parse_sweep(TINY), folder, ALONE)
    return folder


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "copy")


def forget(folder, blocks):
    store = SweepStore.open(folder)
    with store.lock():
        store.forget(blocks)


def test_the_summary_is_the_answer_and_lies_in_the_folder(finished):
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["cells"] == summary["computed"] == 12
    assert (summary["failed"], summary["ok"]) == (0, True)
    assert summary["axes"] == {"beta": 3, "seed": 4}


@pytest.mark.slow
def test_batches_change_no_number(finished, tmp_path):
    other = parse_sweep(TINY, ["sweep.batch=5"])
    conduct(other, tmp_path / "batch", ALONE)
    one, two = flock.open(finished), flock.open(tmp_path / "batch")
    for name in one:
        assert np.array_equal(one[name].values, two[name].values, equal_nan=True), name


def test_progress_counts_cells(tmp_path):
    notes = Notes()
    conduct(parse_sweep(TINY), tmp_path / "a", ALONE, notes)
    assert [now.done for now in notes.standings] == [0, 2, 4, 6, 8, 10, 12]
    assert notes.standings[-1] == Standing(12, 12, 0, 12)


def test_resume_computes_only_what_is_missing(finished, copy):
    (copy / "summary.json").unlink()
    forget(copy, [1, 4])
    before = journal_lines(copy)
    notes = Notes()
    summary = conduct(None, copy, Wishes(resume=True, workers=1), notes)
    assert summary["computed"] == 4
    assert journal_lines(copy)[: len(before)] == before
    assert dataset_hash(copy) == dataset_hash(finished)
    assert notes.standings[0] == Standing(12, 8, 0)


def test_a_journal_that_lost_its_end_is_told_and_computed_again(copy, finished):
    path = copy / "journal.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    notes = Notes()
    summary = conduct(None, copy, Wishes(resume=True, workers=1), notes)
    assert any("it lists 4 of 12 cells" in said for said in notes.said)
    assert summary["computed"] == 8
    assert dataset_hash(copy) == dataset_hash(finished)
    flock.open(copy)


def test_a_summary_that_counts_otherwise_is_written_again(copy):
    stored = json.loads((copy / "summary.json").read_text())
    (copy / "summary.json").write_text(json.dumps({**stored, "failed": 3}))
    notes = Notes()
    summary = conduct(None, copy, Wishes(resume=True, workers=1), notes)
    assert any("3 failed cells" in said and "written again" in said for said in notes.said)
    assert (summary["failed"], summary["computed"]) == (0, 0)
    flock.open(copy)


def test_a_finished_sweep_returns_its_stored_summary(copy):
    stored = json.loads((copy / "summary.json").read_text())
    # The folder was moved: this is where its dataset is now.
    stored["store"] = str(copy / "sweep.zarr")
    notes = Notes()
    assert conduct(parse_sweep(TINY), copy, Wishes(resume=True, workers=1), notes) == stored
    assert notes.said == [f"{copy} is finished; this is its stored result"]


def test_damage_is_named_and_computed_again(finished, copy):
    chunk = sorted((copy / "sweep.zarr" / "order_parameter").glob("c*"))[2]
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 4
    chunk.write_bytes(content)
    (copy / "sweep.zarr" / "steps" / "zarr.json").unlink()
    notes = Notes()
    summary = conduct(None, copy, Wishes(resume=True, workers=1), notes)
    assert summary["computed"] == 2
    assert any("order_parameter" in said and "changed" in said for said in notes.said)
    assert any("steps/zarr.json" in said for said in notes.said)
    assert dataset_hash(copy) == dataset_hash(finished)


def test_failed_cells_are_recorded_and_the_rest_goes_on(tmp_path):
    sweep = parse_sweep(BAD_THIRD)
    summary = conduct(sweep, tmp_path / "a", ALONE)
    assert (summary["failed"], summary["ok"]) == (4, True)
    assert summary["failures"][0]["coordinates"] == {"radius": 9.0, "seed": 0}
    assert "radius must lie in (0, pi], got 9.0" in summary["failures"][0]["error"]
    data = flock.open(tmp_path / "a")
    assert (data["outcome"].values == ERROR).sum(axis=1).tolist() == [0, 0, 4]
    # Failed cells are done: they are computed again only if that is asked for.
    (tmp_path / "a" / "summary.json").unlink()
    assert conduct(None, tmp_path / "a", Wishes(resume=True, workers=1))["computed"] == 0
    again = Wishes(resume=True, workers=1, retry_failed=True)
    assert conduct(None, tmp_path / "a", again)["computed"] == 4


def test_strict_stops_at_the_first_failed_cell_and_keeps_the_rest(tmp_path):
    folder = tmp_path / "a"
    with pytest.raises(SolveError, match=r"radius = 9.0, seed = 0 failed: .*--resume --out"):
        conduct(parse_sweep(BAD_THIRD), folder, Wishes(workers=1, strict=True))
    assert len(journal_lines(folder)) == 5
    assert not (folder / "summary.json").exists()
    with pytest.raises(SolveError, match="strict"):
        conduct(None, folder, Wishes(resume=True, workers=1, strict=True))
    assert len(journal_lines(folder)) == 5
    assert conduct(None, folder, Wishes(resume=True, workers=1))["failed"] == 4


@pytest.mark.slow
def test_a_sweep_in_which_everything_fails_is_not_ok(tmp_path):
    summary = conduct(parse_sweep(ALL_BAD), tmp_path / "a", ALONE)
    assert (summary["failed"], summary["ok"]) == (8, False)
    assert summary["failures"][0]["error"].startswith("non-finite at t = ")


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (Wishes(workers="2", overwrite=True), "at least one worker, got '2'"),
        (Wishes(workers=1), "exists; choose another --out, continue it with --resume"),
        (Wishes(workers=0, overwrite=True), "at least one worker, got 0"),
        (Wishes(resume=True, workers=1), "no sweep to resume"),
        (Wishes(overwrite=True, workers=1), "is not a sweep folder"),
    ],
)
def test_a_folder_of_something_else_is_left_alone(tmp_path, wishes, words):
    folder = tmp_path / "mine"
    folder.mkdir()
    if "at least" not in words:
        (folder / "thesis.txt").write_text("years of work")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=words):
        conduct(parse_sweep(TINY), folder, wishes)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_sweep_of_another_program_is_not_overwritten(tmp_path):
    folder = tmp_path / "mine"
    (folder / "sweep.zarr").mkdir(parents=True)
    (folder / "sweep.toml").write_text("mine")
    (folder / "journal.jsonl").write_text('{"date": "today"}\n')
    (folder / "sweep.zarr" / "zarr.json").write_text('{"attributes": {}}')
    before = tree_hash(folder)
    with pytest.raises(InputError, match="is not a sweep folder"):
        conduct(parse_sweep(TINY), folder, Wishes(overwrite=True, workers=1))
    assert tree_hash(folder) == before


def test_of_two_new_sweeps_in_one_folder_the_second_is_told(tmp_path, monkeypatch):
    sweep, folder = parse_sweep(TINY), tmp_path / "a"

    def meanwhile(fresh, *_):
        fresh.mkdir()
        folder.mkdir()
        (folder / "sweep.toml").write_text("another")

    monkeypatch.setattr("tokenflock.sweeps.store.fill", meanwhile)
    with pytest.raises(InputError, match=r"another process has just made .*--resume --out"):
        SweepStore.create(folder, sweep, conducting.layout_of(sweep))
    assert [item.name for item in tmp_path.iterdir()] == ["a"]


def test_another_sweep_is_not_continued(copy):
    before = dataset_hash(copy)
    with pytest.raises(InputError, match="holds another sweep"):
        conduct(parse_sweep(TINY, ["t1=3"]), copy, Wishes(resume=True, workers=1))
    assert dataset_hash(copy) == before


def test_overwrite_replaces_the_sweep_and_nothing_else(copy):
    (copy / "notes.txt").write_text("mine")
    other = parse_sweep(TINY, ["sweep.seed=7"])
    summary = conduct(other, copy, Wishes(overwrite=True, workers=1))
    assert summary["computed"] == 12
    assert flock.open(copy).attrs["id"] == other.id
    assert (copy / "notes.txt").read_text() == "mine"
    assert not (copy / "figure.png").exists()


def test_a_sweep_that_is_being_written_is_refused(copy):
    with SweepStore.open(copy).lock(), pytest.raises(StoreError, match="is being written by"):
        conduct(None, copy, Wishes(resume=True, workers=1))
    with SweepStore.open(copy).lock(), pytest.raises(StoreError, match="is being written by"):
        conduct(parse_sweep(TINY), copy, Wishes(overwrite=True, workers=1))


def test_more_than_there_is_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("tokenflock.sweeps.estimate.free_bytes", lambda folder: 100.0)
    with pytest.raises(StoreError, match=r"12 cells need up to .* MiB of disk"):
        conduct(parse_sweep(TINY), tmp_path / "a", ALONE)
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "1e-7")
    with pytest.raises(InputError, match="need about"):
        conduct(parse_sweep(TINY), tmp_path / "a", ALONE)
    with pytest.raises(InputError, match="cells"):
        parse_sweep(TINY, ["sweep.axes.seed.seeds=9000000"])
    assert list(tmp_path.iterdir()) == []


def test_without_dask_one_process_computes_and_says_how_to_get_more(
    tmp_path, monkeypatch, finished
):
    monkeypatch.setattr(conducting, "is_installed", lambda: False)
    notes = Notes()
    conduct(parse_sweep(TINY), tmp_path / "a", Wishes(workers=2), notes)
    assert notes.said == ['one process computes; for 2 workers pip install "tokenflock[cluster]"']
    assert dataset_hash(tmp_path / "a") == dataset_hash(finished)
    with pytest.raises(InputError, match="--scheduler needs dask"):
        conduct(parse_sweep(TINY), tmp_path / "b", Wishes(scheduler="tcp://127.0.0.1:1"))
    assert not (tmp_path / "b").exists()


LAYOUT = Layout(
    (Variable("x", (), (), "float64", np.nan), Variable("outcome", (), (), "int8", -2)), {}
)


class Breaking:
    """A crew in which some cells end their worker, and some blocks stand beside one."""

    def __init__(self, guilty, beside=()):
        self.guilty, self.beside = guilty, beside

    def stream(self, blocks):
        for block in blocks:
            lost = block.index in self.beside
            yield block, MemoryError("beside") if lost else self.attempt(block, None)

    def attempt(self, block, only):
        places = range(block.size) if only is None else only
        if any((block.index, place) in self.guilty for place in places):
            return MemoryError("too large")
        numbers = np.full(block.size, np.nan)
        outcome = np.full(block.size, -2, np.int8)
        for place in places:
            numbers[place], outcome[place] = 10 * block.index + place, 0
        return BlockResult({"x": numbers, "outcome": outcome}, {})


def test_only_the_guilty_cells_of_a_block_are_lost():
    found = cell_by_cell(Breaking({(3, 1)}), Block(3, (6,), (3,)), LAYOUT)
    assert found.failures == {1: "MemoryError: too large"}
    np.testing.assert_array_equal(found.arrays["x"], [30.0, np.nan, 32.0])
    assert found.arrays["outcome"].tolist() == [0, ERROR, 0]


def test_blocks_that_stood_beside_a_death_are_computed_whole():
    blocks = [Block(index, (2 * index,), (2,)) for index in range(4)]
    crew = Breaking({(2, 0), (2, 1)}, beside={0})
    found = dict((block.index, result) for block, result in computed(crew, blocks, LAYOUT))
    assert sorted(found) == [0, 1, 2, 3]
    assert found[0].failures == {}
    assert found[0].arrays["x"].tolist() == [0.0, 1.0]
    assert sorted(found[2].failures) == [0, 1]


def test_a_title_cannot_steer_a_terminal(capsys):
    Lines("\x1b]0;mine\x07").standing(Standing(2, 1, 0))
    Bar("\x1b[2J").say("a \x1b[31mcell")
    told = capsys.readouterr().err
    assert r"\x1b]0;mine\x07: 50%" in told
    assert r"a \x1b[31mcell" in told
    assert "\x1b]0" not in told


def test_lines_for_a_log_come_now_and_then(capsys):
    lines = Lines("tiny")
    for done in range(0, 1001):
        lines.standing(Standing(1000, done, done // 500, done))
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "tiny: 0%, 0/1000 cells"
    assert len(told) == 2
    assert told[1].startswith("tiny: 100%, 1000/1000 cells,")
    assert "cells/s, 2 failed" in told[1]
