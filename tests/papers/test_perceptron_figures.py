"""What the figures of 2601.21366 must show."""

import functools

import numpy as np
import pytest

from tokenflock.papers.perceptron.figures import atom_counts, bifurcations, readme_gallery

# Every figure here costs a few programs; make test-all draws them.
pytestmark = pytest.mark.slow


@functools.cache
def branches():
    return bifurcations.compute(largest_step=0.1)


def test_the_pair_splits_where_repulsion_wins():
    data = branches()
    for parameter, stable_side in (("scale", 1.0), ("beta", -1.0)):
        rows = data.isel(branch=np.flatnonzero(data.parameter.values == parameter))
        together = rows.isel(branch=0).dropna("step", subset=["value"])
        np.testing.assert_allclose(together.angle[:, 0], together.angle[:, 1], atol=1e-9)
        split = float(together.event_value[0])
        expected = stable_side * (together.value.values - split) > 0
        np.testing.assert_array_equal(together.negative.values == 0, expected)
        assert rows.sizes["branch"] == 3
        folds = []
        for side in (1, 2):
            apart = rows.isel(branch=side).dropna("step", subset=["value"])
            # From the bifurcation itself on, where the atoms are in one place.
            assert float(apart.value[0]) == pytest.approx(split, abs=1e-12)
            np.testing.assert_allclose(apart.angle[0, 0], apart.angle[0, 1], atol=1e-6)
            assert np.abs(apart.angle[:, 0] - apart.angle[:, 1]).max() > 0.3
            assert float(apart.negative[-1]) == 0
            folds += apart.event_value.values[apart.event_kind.values == "fold"].tolist()
            if "fold" in apart.event_kind.values:
                # Not SOPD from the crossing to the fold, on the side where the pair together is.
                assert set(apart.negative.values[1:3]) == {1.0}
        assert len(folds) == 1
        assert stable_side * (folds[0] - split) > 0.01


def test_the_split_is_where_the_curvatures_balance():
    """Form B: v''/2 = 1 at the common minimum, so that with omega scaled by s the product is constant."""
    data = branches()
    events = data.event_value.isel(event=0)
    in_scale = float(events.isel(branch=int(np.flatnonzero(data.parameter == "scale")[0])))
    in_beta = float(events.isel(branch=int(np.flatnonzero(data.parameter == "beta")[0])))
    # Form B: 4 s k = 1; form A: 17 k = e^beta, for the same curvature k of the two neurons.
    assert np.exp(in_beta) * in_scale == pytest.approx(17 / 4, rel=1e-5)


def test_perceptrons_make_atoms_below_the_bound():
    data = atom_counts.compute(betas=(4.0, 9.0), seeds=2, n=24)
    own, null = data.sel(case="perceptron"), data.sel(case="null")
    assert bool((own.atoms < null.atoms).all())
    np.testing.assert_array_equal(null.atoms, 24)
    good = own.kappa > -1e-8
    assert bool(good.any())
    assert bool((own.crowded <= own.mass_bound).where(good, True).all())


def test_ascent_gathers_and_descent_spreads():
    data = readme_gallery.compute(n=24, times=8)
    for space in ("circle", "sphere"):
        last = data[space].isel(time=-1)
        np.testing.assert_allclose(np.linalg.norm(last, axis=-1), 1.0, atol=1e-9)
        for model in data.model.values:
            counts = {
                str(flow): _places(last.sel(model=model, flow=flow).values)
                for flow in data.flow.values
            }
            assert counts["ascent, ReLU"] <= 3
            assert counts["descent, GELU"] >= counts["ascent, ReLU"]


def _places(points):
    return len(np.unique(np.round(points, 2), axis=0))
