"""What the figures of 2411.04990 must show."""

import functools

import numpy as np
import pytest

from tokenflock import theory
from tokenflock.papers.causal.figures import centres, collapse, times_to

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def gathered():
    return centres.compute(
        n=64, beta=25.0, snapshots=(0.0, 10.0, 300.0), times=40, deltas=(0.2, 0.5), tokens=800
    )


@functools.cache
def collapsed():
    return collapse.compute(samples=12, times=81)


def test_strong_centres_stand_still_and_gather_the_tokens():
    data = gathered()
    assert data.strong.values[0]
    assert np.all(data.renyi.values | ~data.strong.values)
    assert float(data.moved[-1]) < 0.1 * 25**-0.5
    assert float(data.near[0]) < 0.6
    assert float(data.near[-1]) == 1.0
    assert len(np.unique(data.cluster)) == int(data.strong.sum())


def test_mean_numbers_of_centres():
    """Three standard errors; a finite sequence leaves a little room for further Renyi centres."""
    data = gathered()
    for delta in data.delta.values:
        sample = data["count"].sel(delta=delta)
        error = 3 * sample.std("sample") / np.sqrt(sample.sizes["sample"])
        strong = float(theory.expected_strong_centres(delta, 2, 800))
        assert abs(float(sample.sel(kind="strong").mean()) - strong) < float(
            error.sel(kind="strong")
        )
        renyi = float(theory.expected_renyi_centres(delta))
        mean = float(sample.sel(kind="Rényi").mean())
        assert abs(mean - renyi) < float(error.sel(kind="Rényi")) + 0.02 * renyi


def test_K4_2_all_tokens_go_to_the_first():
    data = collapsed()
    assert float(data.distance.sel(token=1).max()) < 1e-12
    arrival = times_to(data)
    assert 8 < np.median(arrival) < 25
    assert np.mean(arrival < 40) >= 0.9


def test_drawings():
    picture = centres.draw(gathered())
    assert len(picture.axes) == 3 + 2
    labels = [axes.get_xlabel() for axes in picture.axes]
    assert labels == ["", "", "", r"$\delta$", "$t$"]
    one, many = collapse.draw(collapsed()).axes
    assert len(one.lines) == 7
    assert one.get_yscale() == "log"
    assert "max" in many.get_ylabel()
