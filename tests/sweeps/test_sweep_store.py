"""The store of a sweep: what is written is whole or not there, whatever happens to the process."""

import itertools

import numpy as np
import pytest
from made_faults import DAMAGES, damage
from made_sweeps import contents, made_layout, made_result, made_sweep, write_blocks

from tokenflock.errors import InputError, StoreError
from tokenflock.sweeps import arrays
from tokenflock.sweeps.arrays import BlockEncoder, chunk_names
from tokenflock.sweeps.checked_reading import open_sweep
from tokenflock.sweeps.journal import Entry, Journal, Mark, from_line, to_line
from tokenflock.sweeps.layout import BlockResult, Layout, Variable
from tokenflock.sweeps.store import SweepStore

SWEEP = made_sweep()
LAYOUT = made_layout()
GRID = SWEEP.grid


@pytest.fixture
def store(tmp_path):
    return SweepStore.create(tmp_path / "sweep", SWEEP, LAYOUT)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a dataset that was written without any trouble."""
    made = SweepStore.create(tmp_path_factory.mktemp("whole") / "sweep", SWEEP, LAYOUT)
    write_blocks(made)
    return contents(made.folder / "sweep.zarr")


def reopened(store):
    return SweepStore.open(store.folder, SWEEP, LAYOUT)


def repair(store):
    """What --resume does; gives the sentences about what was damaged."""
    with store.lock() as repaired:
        found = store.verify()
        store.forget({one.block for one in found if one.block is not None})
    write_blocks(store, np.flatnonzero(~store.done()))
    return [*repaired, *map(str, found)]


# --- creating -------------------------------------------------------------------------------------


def test_a_sweep_appears_whole_and_alike_each_time(tmp_path):
    one = SweepStore.create(tmp_path / "a" / "b" / "one", SWEEP, LAYOUT)
    other = SweepStore.create(tmp_path / "other", SWEEP, LAYOUT)
    assert contents(one.folder) == contents(other.folder)
    assert not one.done().any()
    assert one.done().shape == (GRID.block_count,)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "other"]


def test_what_exists_is_refused_and_left_alone(store, tmp_path):
    before = contents(tmp_path)
    with pytest.raises(InputError, match="--resume"):
        SweepStore.create(store.folder, SWEEP, LAYOUT)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="exists; choose another --out"):
        SweepStore.create(tmp_path / "file", SWEEP, LAYOUT)
    with pytest.raises(StoreError, match="is a file"):
        SweepStore.create(tmp_path / "file" / "sweep", SWEEP, LAYOUT)
    with pytest.raises(InputError, match="null"):
        SweepStore.create("a\0b", SWEEP, LAYOUT)
    assert contents(tmp_path) == before | {"file": b"mine"}


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a b", "zarr.json", "", "a/b"])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    layout = Layout((Variable(name, (), (), "float64", np.nan),), {})
    with pytest.raises(InputError, match="cannot name an array"):
        SweepStore.create(tmp_path / "sweep", SWEEP, layout)
    assert not any(tmp_path.iterdir())


def test_two_things_of_one_name_are_refused(tmp_path):
    layout = Layout((Variable("beta", (), (), "float64", np.nan),), {})
    with pytest.raises(InputError, match="two things under the name 'beta'"):
        SweepStore.create(tmp_path / "sweep", SWEEP, layout)


# --- writing --------------------------------------------------------------------------------------


def test_the_order_of_blocks_and_interruptions_leave_no_trace(store, whole):
    order = np.random.default_rng(0).permutation(GRID.block_count)
    for part in np.array_split(order, 4):
        write_blocks(reopened(store), part)
    assert contents(store.folder / "sweep.zarr") == whole
    assert reopened(store).done().all()
    left = {path.name for path in store.folder.iterdir()}
    assert left == {"sweep.toml", "sweep.zarr", "journal.jsonl"}


def test_a_chunk_of_fill_values_is_written_too(store):
    block = GRID.block(1)
    empty = {v.name: np.full((block.size, *v.shape), v.fill, v.dtype) for v in LAYOUT.variables}
    with store.lock():
        store.write(block, BlockResult(empty, {}))
    for name in chunk_names(SWEEP, LAYOUT, block):
        assert (store.folder / "sweep.zarr" / name).is_file()


def test_a_large_chunk_is_cut_along_its_first_inner_dimension(monkeypatch):
    monkeypatch.setattr(arrays, "LARGEST_CHUNK", 3 * 2 * 7 * 8)
    field = Variable("field", ("time", "token"), (5, 7), "float64", np.nan)
    layout = Layout((field, *LAYOUT.variables), LAYOUT.coordinates)
    assert GRID.block_shape == (1, 1, 3)
    assert arrays.inner_chunk(field, 3) == (2, 7)
    encoder = BlockEncoder(SWEEP, layout)
    for index in range(GRID.block_count):
        block = GRID.block(index)
        files = encoder.encode(block, made_result(block, layout))
        assert sorted(files) == sorted(chunk_names(SWEEP, layout, block))
        assert sum(name.startswith("field/") for name in files) == 3


def test_results_of_another_shape_are_refused(store):
    block = GRID.block(0)
    good = made_result(block, LAYOUT).arrays
    wrong = [
        {**good, "energy": good["energy"][:, :-1]},
        {**good, "energy": good["energy"].astype("float32")},
        {name: values for name, values in good.items() if name != "energy"},
    ]
    with store.lock():
        for arrays_given in wrong:
            with pytest.raises(StoreError, match="energy of block 0"):
                store.write(block, BlockResult(arrays_given, {}))
    assert not store.done().any()


def test_writing_needs_the_lock(store):
    block = GRID.block(0)
    with pytest.raises(RuntimeError, match="lock"):
        store.write(block, made_result(block, LAYOUT))
    with pytest.raises(RuntimeError, match="lock"):
        store.forget([0])


def test_failures_are_told_with_their_coordinates(store):
    with store.lock():
        for index, failures in ((5, {0: "later"}), (1, {1: 'it "broke"\nhere'}), (2, {})):
            store.write(GRID.block(index), made_result(GRID.block(index), LAYOUT, failures))
    told = reopened(store).failures()
    cells = [list(GRID.block(1).cells())[1], next(GRID.block(5).cells())]
    assert [cell for cell, _, _ in told] == cells
    assert [sentence for _, _, sentence in told] == ['it "broke"\nhere', "later"]
    assert told[0][1] == SWEEP.coordinates(cells[0])
    assert reopened(store).journal.failed == 2


# --- damage ---------------------------------------------------------------------------------------

CHUNKS = ["energy/c.0.0.0.0", "steps/c.1.1.1", "outcome/c.2.0.1"]
FIXED = ["zarr.json", "energy/zarr.json", "beta/zarr.json", "law/c.0", "time/c.0"]


def each_once(names):
    """All damages of all files, of which the default tests try each file and each damage once."""
    for (row, name), (column, how) in itertools.product(enumerate(names), enumerate(DAMAGES)):
        twice = row % len(DAMAGES) != column and not (row == 0 and column >= len(names))
        yield pytest.param(name, how, marks=pytest.mark.slow if twice else ())


@pytest.mark.parametrize(("name", "how"), [*each_once(CHUNKS)])
def test_a_damaged_chunk_is_named_and_computed_again(store, whole, name, how):
    draw = np.random.default_rng(list(f"{name} {how}".encode()))
    write_blocks(store)
    damage(store.folder / "sweep.zarr" / name, how, draw)
    found = reopened(store).verify()
    assert [(one.file, one.array) for one in found] == [(f"sweep.zarr/{name}", name.split("/")[0])]
    kind = {"flip": "changed", "delete": "missing"}.get(how, "truncated")
    assert found[0].kind == kind
    place = tuple(map(int, name.split(".")[1:4]))
    assert found[0].block == np.ravel_multi_index(place, GRID.blocks_along)
    assert f"beta = {SWEEP.axes[0].values[place[0]]:g}" in str(found[0])
    with pytest.raises(StoreError, match=name):
        open_sweep(store.folder)
    again = reopened(store)
    assert len(repair(again)) == 1
    assert contents(store.folder / "sweep.zarr") == whole
    assert reopened(store).verify() == []


@pytest.mark.parametrize(("name", "how"), [*each_once(FIXED)])
def test_what_follows_from_the_spec_is_written_again(store, whole, name, how):
    draw = np.random.default_rng(list(f"{name} {how}".encode()))
    write_blocks(store)
    damage(store.folder / "sweep.zarr" / name, how, draw)
    assert [one.file for one in reopened(store).verify()] == [f"sweep.zarr/{name}"]
    with pytest.raises(StoreError, match=name):
        open_sweep(store.folder, verify=False)
    again = reopened(store)
    with again.lock() as repaired:
        assert repaired == [f"sweep.zarr/{name}"]
    assert again.done().all()
    assert contents(store.folder / "sweep.zarr") == whole
    assert again.verify() == []


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_spec_needs_the_one_it_was_started_with(store, whole, how):
    write_blocks(store)
    damage(store.folder / "sweep.toml", how, np.random.default_rng(3))
    with pytest.raises(StoreError, match=r"sweep SPEC\.toml --resume --out"):
        SweepStore.open(store.folder)
    with pytest.raises(InputError, match="holds another sweep"):
        SweepStore.open(store.folder, made_sweep(betas=4), LAYOUT)
    again = reopened(store)
    assert repair(again) == ["sweep.toml"]
    assert (store.folder / "sweep.toml").read_text() == SWEEP.text
    assert contents(store.folder / "sweep.zarr") == whole


@pytest.mark.parametrize(
    ("line", "how"),
    [*itertools.product([0, 4, -1], ["flip", "cut"]), (None, "empty"), (None, "delete")],
)
def test_a_damaged_journal_loses_no_numbers(store, whole, line, how):
    draw = np.random.default_rng(5)
    write_blocks(store)
    path = store.folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    if line is None:
        damage(path, how, draw)
    else:
        hurt = bytearray(lines[line])
        if how == "flip":
            hurt[draw.integers(len(hurt) - 1)] ^= 1
        else:
            del hurt[20:-1]
        lines[line] = bytes(hurt)
        path.write_bytes(b"".join(lines))
    assert [one.file for one in reopened(store).verify()] == ["journal.jsonl"]
    with pytest.raises(StoreError, match=r"journal\.jsonl"):
        open_sweep(store.folder)
    again = reopened(store)
    assert len(repair(again)) == 1
    assert contents(store.folder / "sweep.zarr") == whole
    assert reopened(store).verify() == []
    assert reopened(store).done().all()
    assert len(path.read_bytes().splitlines()) == 1 + GRID.block_count


def test_spec_and_journal_gone_is_a_sentence(store):
    write_blocks(store)
    (store.folder / "journal.jsonl").unlink()
    (store.folder / "sweep.toml").write_text("batch = 1")
    with pytest.raises(StoreError, match="from a copy"):
        reopened(store)
    (store.folder / "sweep.toml").unlink()
    with pytest.raises(InputError, match="no sweep to resume"):
        reopened(store)


def test_no_flipped_bit_of_a_line_is_believed():
    entry = Entry(3, {"energy/c.0": Mark(7, "ab" * 16)}, {0: "é broke"})
    line = to_line(entry)
    assert from_line(line) == entry
    for place, bit in itertools.product(range(len(line)), range(8)):
        hurt = bytearray(line)
        hurt[place] ^= 1 << bit
        assert from_line(bytes(hurt)) is None


@pytest.mark.parametrize(
    "line", [b"", b"{}\n", b"[]\n", b'"x"\n', b"\xff\n", b"[" * 100_000 + b"\n"]
)
def test_what_is_no_line_is_not_believed(line):
    assert from_line(line) is None


def test_a_journal_leads_nowhere_else(store):
    outside = store.folder.parent / "mine"
    outside.write_text("mine")
    for name in ("../../mine", str(outside)):
        assert from_line(to_line(Entry(0, {name: Mark(4, "00" * 16)}))) is None
    with store.lock():
        store.forget(range(GRID.block_count))
    assert outside.read_text() == "mine"


def test_a_torn_last_line_never_counts_and_is_no_damage(store, whole):
    write_blocks(store)
    path = store.folder / "journal.jsonl"
    sound = path.read_bytes()
    last = sound.rindex(b"\n", 0, -1) + 1
    for end in np.unique(np.linspace(last + 1, len(sound) - 1, 12).astype(int)):
        path.write_bytes(sound[:end])
        torn = reopened(store)
        assert torn.verify() == []
        assert not torn.done()[-1]
        assert torn.done()[:-1].all()
        write_blocks(torn, [GRID.block_count - 1])
        assert path.read_bytes() == sound
    assert contents(store.folder / "sweep.zarr") == whole


def test_a_reader_follows_a_journal_that_is_rewritten(store):
    write_blocks(store)
    reader = Journal(store.folder / "journal.jsonl")
    with store.lock():
        store.forget([0, 3])
    assert reader.entry(5).block == 5
    assert reader.entry(0) is None


def test_forgotten_blocks_are_gone_for_good(store, whole):
    write_blocks(store)
    with store.lock():
        store.forget([2, 7])
    again = reopened(store)
    assert np.flatnonzero(~again.done()).tolist() == [2, 7]
    for index in (2, 7):
        for name in chunk_names(SWEEP, LAYOUT, GRID.block(index)):
            assert not (store.folder / "sweep.zarr" / name).exists()
    write_blocks(again, [7, 2])
    assert contents(store.folder / "sweep.zarr") == whole


def test_reading_back_needs_no_memory_of_its_own(tmp_path):
    import tracemalloc

    sweep, layout = made_sweep(betas=8, seeds=4, batch=4), made_layout(times=20_000)
    large = SweepStore.create(tmp_path / "sweep", sweep, layout)
    write_blocks(large)
    seen = []
    tracemalloc.start()
    assert large.verify(lambda *counts: seen.append(counts)) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    stored = sum(map(len, contents(large.folder).values()))
    assert stored > 15e6
    assert peak < 3e6
    assert seen == [(number, 16) for number in range(1, 17)]


def test_the_layout_of_many_cells_takes_no_more_files_than_that_of_few(tmp_path):
    few = SweepStore.create(tmp_path / "few", SWEEP, LAYOUT)
    sweep = made_sweep(betas=391, seeds=128, batch=256)
    assert sweep.grid.size > 100_000
    many = SweepStore.create(tmp_path / "sweep", sweep, LAYOUT)
    assert contents(many.folder).keys() == contents(few.folder).keys()
