"""What the figures of 2601.21942 must show."""

import functools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tokenflock.papers.stochastic import closed_forms
from tokenflock.papers.stochastic import figures as stochastic


@functools.cache
def computed(name):
    smaller = {
        "phase_diagram": {"dimensions": (3, 4, 8), "lines": (3, 8), "entries": 60_000},
        "absorption": {"models": ((2, 1.0), (3, 1.0)), "runs": 100, "layers": 1500},
        "hybrid": {"ratios": (1.0, 2.0, 3.0), "runs": 40},
        "formations_figure": {"runs": 60, "depths": (500, 1500, 3000), "shown": (0, 100, 3000)},
    }
    return getattr(stochastic, name).compute(**smaller[name])


def test_P6a_2_measured_exponents_lie_on_their_formula():
    data = computed("phase_diagram")
    expected = closed_forms.antipodal_exponent(data.d.values[:, None], data.beta.values)
    # the bias of a layer of step 0.05 beside four standard errors
    assert np.all(np.abs(data.exponent - expected) < 4 * data.error + 0.05**2)
    assert data.threshold.values[0] == 0
    assert np.cosh(2 * data.threshold.values[1:]) == pytest.approx([2, 6])


def test_P6a_1_shares_lie_on_the_scale_function():
    data = computed("absorption")
    for model in range(data.sizes["model"]):
        one = data.isel(model=model)
        exact = closed_forms.antipodal_probability(one.start.values, int(one.d), float(one.beta))
        error = 4 * np.sqrt(exact * (1 - exact) / 100) + one.doubt.values + 0.01
        assert np.all(np.abs(one.chain - exact) < error)
        assert np.all(np.abs(one.limit - exact) < error)
        assert np.interp(one.start, one.overlap, one.exact) == pytest.approx(exact, abs=2e-3)


def test_P6a_3_only_ito_switches():
    data = computed("hybrid")
    ito, stratonovich = (data.share.sel(reading=name) for name in ("ito", "stratonovich"))
    assert ito.values[[0, -1]].tolist() == [0, 1]
    assert not np.any(stratonovich)
    signs = np.sign(data.exponent.sel(reading="ito", ratio=[1.0, 3.0]))
    assert signs.values.tolist() == [[-1, 1], [1, -1]]
    assert np.all(np.sign(data.exponent.sel(reading="stratonovich")) == [-1, 1])


def test_P6a_4_equal_halves_last_and_unequal_ones_decay():
    data = computed("formations_figure")
    share = data.share.transpose("side", "depth").values
    assert np.all(np.diff(share[4]) >= 0), "four against four never leaves"
    assert share[1:4, -1].sum() < share[1:4].sum(axis=0).max()
    assert np.all(share.sum(axis=0) <= 1)
    last = data.gram.values[-1]
    assert np.all(np.abs(np.abs(last) - 1) < 0.01)
    assert last.min() < -0.99


@pytest.mark.parametrize(
    ("name", "panels"),
    [("phase_diagram", 3), ("absorption", 1), ("hybrid", 2), ("formations_figure", 5)],
)
def test_drawings(name, panels):
    picture = getattr(stochastic, name).draw(computed(name))
    drawn = sum(1 for axes in picture.axes if axes.get_visible())
    assert drawn == panels
    plt.close(picture)
