"""What the figures of exact interpolation must show."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tokenflock.papers.interpolation.figures import carried, error_figure


@pytest.fixture(scope="module")
def carried_points():
    return carried.compute()


def test_points_end_at_their_targets(carried_points):
    data = carried_points
    count = data.sizes["sequence"]
    assert data.sizes["block"] == 1 + 2 * count
    assert np.allclose(data.path.values[:, -1], data.target, atol=1e-10)
    assert float(data.error) < 1e-10


def test_the_first_half_moves_across_p_and_the_second_along_it(carried_points):
    steps = np.diff(carried_points.path.values, axis=1)
    p, count = carried_points.p.values, carried_points.sizes["sequence"]
    across, along = steps[:, :count], steps[:, count:]
    assert np.max(np.abs(across @ p)) < 1e-12
    assert np.max(np.abs(along @ np.array([-p[1], p[0]]))) < 1e-12


def test_the_collapsed_point_is_one_of_the_tokens(carried_points):
    for one in (carried_points.isel(sequence=k) for k in range(carried_points.sizes["sequence"])):
        apart = np.linalg.norm(one.moved.values - one.path.values[0], axis=1)
        assert np.nanmin(apart) < 1e-12


def test_H11_the_table_of_errors():
    data = error_figure.compute(counts=(2, 5), dimensions=(2, 3), seeds=2)
    assert float(data.error.max()) < 1e-11
    assert np.all(data.blocks == 2 * data.N + 2)
    picture = error_figure.draw(data)
    assert len(picture.axes) == 2
    plt.close(picture)


def test_drawing(carried_points):
    picture = carried.draw(carried_points)
    assert len(picture.axes) == 4
    assert picture.axes[-1].get_title().startswith("along $p$: error")
    plt.close(picture)
