"""The figures of 2312.10794: what must be seen in them, where it is a number."""

import numpy as np
import pytest

from tokenflock.ledger.figure import FigureJob
from tokenflock.papers.perspective.figures.circle import kuramoto
from tokenflock.papers.perspective.figures.phases import (
    circle_zoom,
    in_own_span,
    phase_diagram,
    phase_diagrams,
)
from tokenflock.papers.perspective.figures.random_weights import random_weights
from tokenflock.papers.perspective.figures.sphere import movies
from tokenflock.space import Sphere
from tokenflock.starts import uniform

SMALL = {"n": 8, "samples": 4, "betas": 3, "beta_high": 4.0, "times": 61}


@pytest.fixture(scope="module")
def phases():
    return phase_diagrams.compute(dims=(2, 512), end=15.0, **{**SMALL, "samples": (4, 4)})


@pytest.mark.slow
def test_in_high_dimension_the_boundary_lies_on_the_theoretical_curve(phases):
    crossed = (phases.probability.sel(d=512) >= 0.5).argmax("time")
    measured = phases.time.values[crossed.values]
    # K1.18 at n = 8: random tokens of dimension 512 are orthogonal up to 1/sqrt(512), which moves
    # the crossing by a few hundredths of the time; a cell is 0.25 wide.
    assert np.all(np.abs(measured - phases.collapse_time.values) <= 0.5)


@pytest.mark.slow
def test_on_the_circle_it_does_not(phases):
    late = phases.probability.sel(d=2, time=15.0)
    assert float(late.sel(beta=4.0)) < 0.9
    assert float(phases.collapse_time.sel(beta=4.0)) < 15.0


@pytest.mark.slow
def test_phase_diagrams_are_drawn(phases):
    figure = phase_diagrams.draw(phases)
    titles = [axes.get_title() for axes in figure.axes[:2]]
    assert titles == ["$d=2$, 4 starts", "$d=512$, 4 starts"]
    assert "n=8" in figure.legends[0].get_title().get_text()
    assert "1-0.001" in figure.axes[-1].get_ylabel()


def test_tokens_in_their_own_span_have_the_inner_products_of_the_full_space():
    x0 = uniform(Sphere(12), 4, 3, samples=2)
    small = in_own_span(x0)
    assert (small.d, small.points.shape) == (4, (2, 4, 4))
    for full, own in zip(np.asarray(x0.points), np.asarray(small.points), strict=True):
        np.testing.assert_allclose(own @ own.T, full @ full.T, atol=1e-14)
    assert in_own_span(small) is small


@pytest.mark.slow
def test_a_diagram_is_the_same_in_the_span():
    job = FigureJob({**SMALL, "beta_low": 0.1, "end": 8.0, "times": 9}, 0)
    x0 = uniform(Sphere(24), 8, 5, samples=2)
    np.testing.assert_allclose(
        phase_diagram(job, x0), phase_diagram(job, in_own_span(x0)), atol=0.02
    )
    assert phase_diagram(job, x0).max() > 0.1


def test_quick_diagrams_are_not_blocky():
    for figure in (phase_diagrams, random_weights):
        assert figure.settings("quick")["betas"] >= 36
        assert figure.settings("quick")["times"] >= 120


@pytest.mark.slow
def test_circles_rest_in_several_clusters():
    data = circle_zoom.compute(**{**SMALL, "n": 32, "samples": 2}, end=30.0)
    # The circle Monte-Carlo reference of the theory: 2 or 3 clusters at beta = 4, 2 to 4 at 9.
    assert 2 <= int(data.clusters.sel(shown=4.0, moment=18.0)) <= 3
    assert 2 <= int(data.clusters.sel(shown=9.0, moment=30.0)) <= 4
    assert np.all(np.diff(data.clusters, axis=-1) <= 0)
    figure = circle_zoom.draw(data)
    assert sum("clusters" in axes.get_title() for axes in figure.axes) == 6


@pytest.mark.slow
def test_without_temperature_both_models_are_kuramoto():
    data = kuramoto.compute(n=8, samples=2, betas=(0.0, 0.1, 4.0), times=9)
    flat = data.order_parameter.sel(beta=0.0)
    np.testing.assert_allclose(flat.sel(model="SA"), flat.sel(model="USA"), atol=1e-6)
    assert np.all(np.diff(flat.sel(model="USA")) > 0)
    assert float(np.abs(data.order_parameter.sel(beta=4.0, model="SA") - flat[0]).max()) > 0.1
    figure = kuramoto.draw(data)
    assert [axes.get_title() for axes in figure.axes] == ["SA", "USA"]
    for axes in figure.axes:
        # beta = 0.1 lies on the curve of beta = 0: above it and narrower, or it is hidden.
        below, narrow = axes.lines[:2]
        assert (below.get_label(), narrow.get_label()) == (r"Kuramoto ($\beta=0$)", r"$\beta=0.1$")
        assert below.get_zorder() <= narrow.get_zorder()
        assert below.get_linewidth() > 2 * narrow.get_linewidth()


@pytest.mark.slow
def test_independent_random_matrices_cluster_at_every_temperature():
    data = random_weights.compute(**SMALL, d=64, end=20.0)
    last = data.probability.isel(time=-1)
    assert np.all(last.sel(panel="a") > 0.9)
    assert float(last.sel(panel="d").isel(beta=-1)) < 0.5
    assert len(random_weights.draw(data).axes) == 5


@pytest.mark.slow
def test_the_sphere_ends_in_one_cluster_and_moves(tmp_path):
    data = movies.compute(n=16, frames=9)
    assert np.all(data.clusters.isel(time=-1) == 1)
    assert len(movies.draw(data).axes) == 16
    assert movies.film_with is not None
    for name in ("movie.mp4", "movie.gif"):
        assert movies.film_with(data, tmp_path / name).stat().st_size > 5000
