"""What the figure of 2407.01602 must show."""

import functools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tokenflock.papers.hardmax.figures.leaders import CASES, figure_2


@functools.cache
def computed():
    return figure_2.compute()


def leaders(case, layer):
    return np.flatnonzero(computed().leader.sel(case=case, layer=layer)).tolist()


@pytest.mark.slow
def test_H4_a_leader_emerges_after_one_layer():
    case = computed().sel(case="emerging leader")
    assert leaders("emerging leader", 0) == [0, 2]
    assert all(leaders("emerging leader", layer) == [0, 1, 2] for layer in range(1, 31))
    last = case.z.values[-1]
    assert np.allclose(last[1], [-0.0556, 0.1389], atol=1e-4)
    assert np.allclose(last[[0, 3, 6, 7]], [1, 1 / 3], atol=1e-4)
    assert np.allclose(last[[2, 4, 5]], [-1, -1], atol=1e-4)


@pytest.mark.slow
def test_the_corners_lead():
    assert leaders("triangle", 30) == [0, 1, 2]
    assert leaders("square", 30) == [0, 1, 2, 3]
    assert not np.any(computed().rests.sel(case=["emerging leader", "triangle", "square"]))


def test_H5_two_tokens_rest_on_the_edges_without_leading():
    case = computed().sel(case="non-leader clusters")
    assert np.allclose(case.z.values[-1, [4, 5]], [[-1, 0], [1, 0]], atol=1e-5)
    assert np.flatnonzero(case.rests).tolist() == [4, 5]
    assert leaders("non-leader clusters", 30) == [0, 1, 2, 3]


def test_leaders_stay_and_followers_approach_at_the_rate_of_alpha():
    data = computed()
    z, leads = data.z.values, data.leader.values
    moved = np.linalg.norm(np.diff(z, axis=1), axis=-1)
    assert np.all(moved[leads[:, :-1]] == 0)
    following = moved[..., 10:, :] > 1e-9
    ratio = moved[:, 11:][following[:, 1:]] / moved[:, 10:-1][following[:, 1:]]
    assert np.allclose(ratio, 1 / 1.5, atol=1e-6)


def test_drawing():
    picture = figure_2.draw(computed())
    assert len(picture.axes) == 4 * 5
    assert [axes.get_title() for axes in picture.axes[:5]] == [
        f"layer {k}" for k in (0, 1, 2, 5, 30)
    ]
    rows = [picture.axes[5 * k].get_ylabel() for k in range(4)]
    assert all(case in label for case, label in zip(CASES, rows, strict=True))
    plt.close(picture)
