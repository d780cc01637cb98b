"""What the figures of 2305.05465 must show."""

import functools

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from tokenflock.papers.emergence import PAPER
from tokenflock.papers.emergence.figures.attention import leaders, low_rank
from tokenflock.papers.emergence.figures.flow import leading_form
from tokenflock.papers.emergence.figures.high_dimension import high_dimensional
from tokenflock.papers.emergence.figures.hyperplanes import CASES, codimension, hyperplanes
from tokenflock.papers.emergence.figures.picture import cut, distinct
from tokenflock.papers.emergence.figures.polytopes import mixed, polytope

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow

SMALL = {
    polytope.id: {"n": 10, "limit": 12.0, "times": 25},
    mixed.id: {"n": 10, "times": 25},
    hyperplanes.id: {"n": 10, "times": 25},
    codimension.id: {"n": 10, "times": 25},
    leaders.id: {"n": 10, "times": 33},
    low_rank.id: {"n": 12, "d": 12, "times": 26},
    high_dimensional.id: {"n": 16, "d": 16, "times": 29},
}


@functools.cache
def small(figure_id):
    figure = next(figure for figure in PAPER.figures if figure.id == figure_id)
    return figure.compute(**SMALL[figure_id])


def test_K2_1_K2_2_K2_3_hulls_shrink_to_polytopes():
    data = small(polytope.id)
    for d in (2, 3):
        volume = data[f"volume{d}"].values
        assert np.max(np.diff(volume)) < 1e-9 * volume[0]
        assert float(data[f"distance{d}"].sel(time=5.0)) < 30 * np.exp(-5.0)
        z = data[f"z{d}"].values[-1]
        best = np.max(z @ z[ConvexHull(z).vertices].T, axis=1)
        assert np.allclose(np.sum(z**2, axis=1), best, rtol=1e-4)


def test_K2_5_mixed_tokens_sit_over_the_corners_and_spread():
    data = small(mixed.id)
    for d in (2, 3):
        z = data[f"z{d}"].values
        base = z[-1, :, : d - 1]
        best = np.max(base @ base.T, axis=1)
        assert np.allclose(np.sum(base**2, axis=1), best, rtol=1e-4)
        assert np.ptp(z[-1, :, -1]) > 5 * np.ptp(z[0, :, -1])


@pytest.mark.parametrize("name", CASES)
def test_K2_4_two_levels_of_the_left_eigenform(name):
    data = small(hyperplanes.id)
    form, value = data[f"form_{name}"].values, CASES[name]
    eigenvalue = np.max(np.linalg.eigvals(value).real)
    assert np.allclose(form @ value, eigenvalue * form, atol=1e-12)
    heights, levels = data[f"height_{name}"].values, data[f"level_{name}"].values
    assert levels[1] - levels[0] > 1.0
    assert np.max(np.min(np.abs(heights[-1][:, None] - levels), axis=1)) < 1e-2
    assert np.all(np.diff(heights.max(axis=1)) < 1e-9)
    assert np.all(np.diff(heights.min(axis=1)) > -1e-9)


def test_codimension_rates_are_the_eigenvalues():
    data = small(codimension.id)
    half = data.sizes["time"] // 2
    span = float(data.time[-1] - data.time[half])
    rate = np.log(data.spread.values[-1] / data.spread.values[half]) / span
    assert np.allclose(rate, -data.eigenvalue, atol=0.02)
    assert np.allclose(data.eigenvalue, [1.963445, 0.252872, -0.222104], atol=1e-6)


def test_one_column_per_leader_survives():
    data = small(leaders.id)
    last = data.attention.values[-1]
    assert 1 <= int(data.leader.sum()) <= 2
    assert np.allclose(last.sum(axis=1), 1.0)
    assert np.all(last[:, ~data.leader.values] < 1e-2)
    assert np.all(data.attention.values[0] > 1e-4)


def test_K2_6_rank_collapses_and_the_line_is_boolean():
    data = small(low_rank.id)
    assert int(data["rank"][0]) == 12
    assert int(data["rank"][-1]) <= 2
    assert float(data.effective_rank[-1]) <= 2.0 + 1e-9
    expected = np.eye(6)[[0, 0, 5, 5, 5, 5]]
    assert np.allclose(data.boolean, expected, atol=1e-6)


def test_coordinates_gather_or_fly_apart_by_sign():
    data = small(high_dimensional.id)
    spread = data.spread.values[int(np.argmax(data.tokens.values))]
    assert np.array_equal(spread[-1] < spread[0], data.eigenvalue > 0)
    # Until about half of the time the tokens still choose their group.
    late = 2 * data.sizes["time"] // 3
    rate = np.log(spread[-1] / spread[late]) / float(data.time[-1] - data.time[late])
    slow = np.abs(data.eigenvalue.values) < 3  # faster ones have reached rounding
    assert np.allclose(rate[slow], -data.eigenvalue[slow], atol=0.01)


def test_planes_are_cut_to_the_box():
    box = np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
    hexagon = cut(np.ones(3), 0.0, box)
    assert len(hexagon) == 6
    sides = np.linalg.norm(hexagon - np.roll(hexagon, 1, axis=0), axis=1)
    assert np.allclose(sides, np.sqrt(2.0))
    assert np.allclose(np.sort(cut(np.array([1.0, 0.0]), 0.5, box[:, :2])[:, 1]), [-1.0, 1.0])
    assert len(distinct(np.array([[0.0, 0.0], [1e-5, 0.0], [1.0, 0.0]]))) == 2
    assert np.allclose(leading_form(np.diag([2.0, 1.0])), [1.0, 0.0])


PANELS = {
    polytope.id: ["$z_1$", "$z_1$", "", "$t$"],
    mixed.id: ["$z_1$", "$z_1$", "$z_1$"],
    hyperplanes.id: ["$z_1$", "$t$"] * 3,
    codimension.id: [r"$\varphi_1(z)$", r"$\varphi_1(z)$", "$t$"],
    leaders.id: ["$z_1$"] * 4 + [r"$\lambda_1t$"] * 2,
    low_rank.id: ["attended $j$"] * 4 + ["", r"$\lambda_1t$", "attended $j$"],
    high_dimensional.id: ["$t$", "$t$", r"$\lambda_k$"],
}


@pytest.mark.parametrize("figure", PAPER.figures, ids=lambda figure: figure.id.split("/")[1])
def test_drawings(figure):
    import matplotlib.pyplot as plt

    picture = figure.draw(small(figure.id))
    assert [axes.get_xlabel() for axes in picture.axes] == PANELS[figure.id]
    picture.canvas.draw()
    plt.close(picture)
