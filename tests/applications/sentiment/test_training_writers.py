"""Trainings that meet in one folder: one writes, and every part is of the training it says."""

import dataclasses
import json
import shutil

import pytest
from small_trainings import SMALL, few_reviews

from tokenflock.applications.sentiment import open_training, train
from tokenflock.applications.sentiment.folder import CHECKPOINT, MODEL, OLD_FORMAT, REPORT, TRAINING
from tokenflock.errors import StoreError, WriteError
from tokenflock.results.locking import only_writer

OTHER = dataclasses.replace(SMALL, seed=1)


class Stop(Exception):
    """Stands for a kill."""


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def begun(out, settings=SMALL):
    """A training that is broken off in its last epoch, with a checkpoint of those before."""

    def stop(done, note):
        if done > 0.8:
            raise Stop

    with pytest.raises(Stop):
        train(few_reviews(), settings, out, source="small", report=stop)
    return out


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    return begun(tmp_path_factory.mktemp("training") / "broken")


@pytest.fixture
def folder(broken, tmp_path):
    return shutil.copytree(broken, tmp_path / "a")


def resumed(out, settings=SMALL):
    return train(few_reviews(), settings, out, source="small", resume=True)


def test_a_checkpoint_of_another_training_is_not_continued(folder, tmp_path):
    begun(tmp_path / "b", OTHER)
    shutil.copy(tmp_path / "b" / CHECKPOINT, folder / CHECKPOINT)
    before = contents(folder)
    told = rf"{CHECKPOINT} belongs to something else: it has training \w+, where training \w+ is needed"
    with pytest.raises(StoreError, match=told):
        resumed(folder)
    assert contents(folder) == before


def test_a_model_and_a_report_of_another_training_are_not_shown(folder, tmp_path):
    resumed(folder)
    known = open_training(folder)
    assert known.names
    facts = json.loads((folder / TRAINING).read_text())
    facts["vocabulary"] = facts["vocabulary"][::-1]
    (folder / TRAINING).write_text(json.dumps(facts))
    with pytest.raises(StoreError, match=f"{MODEL} belongs to something else"):
        open_training(folder)
    with pytest.raises(StoreError, match=f"{REPORT} belongs to something else"):
        resumed(folder)


def test_an_unfinished_training_of_release_0_1_is_not_continued(folder):
    facts = json.loads((folder / TRAINING).read_text())
    (folder / TRAINING).write_text(json.dumps({**facts, "format": OLD_FORMAT}))
    before = contents(folder)
    with pytest.raises(StoreError, match=r"begun by release 0\.1 and is not finished.*--overwrite"):
        resumed(folder)
    assert contents(folder) == before


def test_while_one_trains_another_neither_resumes_nor_replaces(folder):
    with only_writer(folder):
        before = contents(folder)
        with pytest.raises(StoreError, match="is being written by process"):
            resumed(folder)
        with pytest.raises(StoreError, match="is being written by process"):
            train(few_reviews(), OTHER, folder, source="small", overwrite=True)
        assert contents(folder) == before


def test_a_training_whose_folder_is_moved_writes_nothing_into_the_one_in_its_place(
    folder, tmp_path
):
    place, moved = tmp_path / "place", tmp_path / "moved"
    theirs = contents(folder)

    def move(done, note):
        if done > 0.5 and not moved.exists():
            place.rename(moved)
            folder.rename(place)

    with pytest.raises(WriteError, match="no longer what this process was writing"):
        train(few_reviews(), SMALL, place, source="small", report=move)
    assert contents(place) == theirs
    assert (moved / CHECKPOINT).exists()
