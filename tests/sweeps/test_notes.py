"""What a sweep says of an observable whose meaning changes from cell to cell."""

import numpy as np

from tokenflock.sweeps.probe import Variable, _larger

LINKED = {"units": "clusters", "link": "spacing"}
NOTE = "the count means nothing: 1000 uniform tokens ..."


def variable(**attributes):
    return Variable("clusters", ("time",), (3,), "float64", np.nan, attributes)


def test_an_angle_that_changes_with_n_is_left_to_its_rule():
    few = variable(**LINKED, angle=0.1, uniform_clusters=9.8, meaningful=True)
    many = variable(**LINKED, angle=0.002, uniform_clusters=780.0, meaningful=True)
    assert _larger(few, many).attributes == {**LINKED, "meaningful": True}


def test_a_count_that_means_nothing_in_one_cell_is_said_of_all():
    few = variable(angle=0.1, uniform_clusters=9.8, meaningful=True)
    many = variable(angle=0.1, uniform_clusters=1.0, meaningful=False, note=NOTE)
    for found in (_larger(few, many).attributes, _larger(many, few).attributes):
        assert found["angle"] == 0.1
        assert not found["meaningful"]
        assert found["note"] == f"in some cells {NOTE}"
