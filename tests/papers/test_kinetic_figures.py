"""What the figures of 2605.09213 must show."""

import numpy as np
import pytest

from tokenflock.papers.kinetic import figures as album


def test_parameters_are_plain_numbers():
    """They are printed as they are by `tokenflock list figures`."""
    for figure in (album.profiles, album.thresholds):
        assert "np." not in repr(figure.quick)


def test_profiles_are_u_shaped_until_the_threshold():
    data = album.profiles.compute(points=100)
    assert data.minimum.sel(time=[0.25, 0.5, 1.0, 5.0]).values == pytest.approx(
        [0.0625, 0.1252, 0.2593, 1.0], abs=1e-3
    )
    assert np.all(np.diff(data.minimum) >= 0)
    before = data.sel(time=data.time[data.time < data.attrs["critical"]])
    assert np.all(before.profile[:, -1] > before.profile.min("s0"))
    assert np.all(np.diff(data.profile.sel(time=5.0)) < 0)
    assert album.profiles.draw(data) is not None


def test_thresholds_are_the_printed_ones_and_ordered():
    data = album.thresholds.compute()
    printed = [2.457489, 0.600716, 0.174018]
    assert data.critical.sel(beta=[1.0, 2.0, 3.0]).values == pytest.approx(printed, abs=1e-6)
    ratio = data.critical / data.small
    assert float(ratio.min()) > 1.0
    assert float(ratio.max()) < 1.5
    assert album.thresholds.draw(data) is not None


def test_without_a_bias_the_profile_falls_to_the_end():
    data = album.without_bias.compute(points=100)
    assert np.all(np.diff(data.profile.sel(slope=0.0)) < 0)
    assert np.all(np.sign(data.end) == np.sign(data.slope - 0.25))
    assert album.without_bias.draw(data) is not None


def test_the_double_well():
    data = album.double_well.compute()
    places, heights = album.turning_points(data)
    assert places == pytest.approx([0.130, 0.364, 0.795], abs=1e-3)
    assert heights == pytest.approx([0.0, 0.0458, 0.0], abs=1e-4)
    np.testing.assert_allclose(data.share.sum("head"), data.total, rtol=1e-12)
    assert album.double_well.draw(data) is not None


@pytest.mark.slow
def test_the_first_token_rests_and_arcs_come_to_it_in_turn():
    data = album.circle.compute()
    tokens = data.tokens.values
    assert np.all(tokens[:, 0] == tokens[0, 0])
    turn = np.angle((tokens[..., 0] + 1j * tokens[..., 1]) / complex(*tokens[0, 0]), deg=True)

    def arc(number, t):
        """Degrees from the first token, in the order of the text."""
        return turn[int(np.argmin(np.abs(data.time.values - t)))][data.arc.values == number]

    assert np.abs(arc(0, 2.0)).max() < 1.5
    assert np.ptp(arc(1, 1.0)) == pytest.approx(27.3, abs=0.5)
    assert np.abs(arc(1, 4.0)).max() < 1.0
    assert np.abs(arc(3, 4.0)).max() < 5.0
    # The third arc is led by its first token, the next one 58 degrees behind.
    lead, *rest = arc(2, 4.0)
    assert lead - max(rest) == pytest.approx(57.6, abs=1.5)
    assert np.abs(turn[-1]).max() < 0.1
    assert album.circle.draw(data) is not None


@pytest.mark.slow
def test_sampled_recall_lies_on_the_limit():
    """Within 4 standard errors and 1/N of the signal, at every place and size."""
    data = album.recall.compute(prompts=(100, 30))
    for n in data["size"].values:
        one = data.sel(size=n)
        limit = np.interp(one.position, data.s0, data.limit)
        assert np.all(np.abs(one.sampled - limit) < 4 * one.error + limit / n + 1e-3)
    assert album.recall.draw(data) is not None
