"""Merge events from saved cluster counts."""

import numpy as np
import pytest

from tokenflock.errors import InputError
from tokenflock.observables import merge_events
from tokenflock.observables.events import MergeEvent


def test_drops_are_events_and_rises_are_not():
    time = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
    found = merge_events(time, np.array([5, 5, 4, 4, 2, 3, 1]))
    assert found == [MergeEvent(1.0, 5, 4), MergeEvent(4.0, 4, 2), MergeEvent(16.0, 3, 1)]
    assert found[0] == (1.0, 5, 4)
    assert isinstance(found[0].from_count, int)


def test_nothing_happens():
    assert merge_events(np.arange(3.0), np.array([2, 2, 2])) == []
    assert merge_events(np.array([0.0]), np.array([2])) == []


def test_unsigned_counts_do_not_wrap():
    counts = np.array([3, 2, 2, 1], dtype=np.uint8)
    assert [event.to_count for event in merge_events(np.arange(4.0), counts)] == [2, 1]


def test_batches_and_unsorted_times_are_refused():
    with pytest.raises(InputError, match="one run"):
        merge_events(np.arange(3.0), np.ones((2, 3), dtype=int))
    with pytest.raises(InputError, match="one run"):
        merge_events(np.arange(4.0), np.ones(3, dtype=int))
    with pytest.raises(InputError, match="increasing"):
        merge_events(np.array([0.0, 2.0, 1.0]), np.ones(3, dtype=int))
