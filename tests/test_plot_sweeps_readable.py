"""Pictures of sweeps can be read: room for every panel and tick, legends of what is there, any text."""

import numpy as np
import pytest
import xarray as xr
from made_pictures import BETAS, NOISES, SIZES, TIMES, drawn, mesh_of, seed_mean, sweep

KINDS = np.array(["SA", "USA", "hardmax"])


def failed(made):
    made["outcome"][:] = -1
    made["order_parameter"][:] = np.nan
    return made


@pytest.mark.parametrize(
    ("axes", "times", "legend"),
    [
        ({"beta": BETAS, "n": SIZES}, TIMES, ["no run succeeded"]),
        ({"kind": KINDS}, TIMES, list(KINDS)),
        ({"beta": BETAS}, (), ["runs failed"]),
        ({}, (), []),
    ],
)
def test_a_legend_explains_only_what_is_drawn(axes, times, legend):
    """Of runs that all failed a heatmap is hatched, lines have crosses below, and the rest says so."""
    figure = drawn(failed(sweep(axes, times=times)))
    shown = [text.get_text() for key in figure.legends for text in key.texts]
    assert shown == legend
    assert " failed" in figure.get_suptitle()
    panel = figure.axes[0]
    assert len(figure.axes) == 1  # a colour bar would have nothing to say
    says = [text.get_text() for text in panel.texts]
    assert ("no run succeeded" in says) != ("no run succeeded" in legend)


def overlapping(axes, side):
    """Tick labels of an axis that lie on one another."""
    labels = [one for one in getattr(axes, f"get_{side}ticklabels")() if one.get_text()]
    boxes = [one.get_window_extent() for one in labels]
    return [
        (one.get_text(), other.get_text())
        for k, one in enumerate(labels)
        for box, other in zip(boxes[k + 1 :], labels[k + 1 :], strict=True)
        if boxes[k].overlaps(box)
    ]


def random_trials(count, **more):
    rng = np.random.default_rng(5)
    return {"model.beta": ("trial", 10 ** rng.uniform(-1, 1, count))} | {
        name: ("trial", rng.choice(values, count)) for name, values in more.items()
    }


MANY = {
    "five axes, one random": (
        {"n": SIZES, "d": [2, 3], "pair": [0, 1], "trial": range(3)},
        {"t1": ("pair", [2.0, 4.0]), "every": ("pair", [1.0, 2.0]), **random_trials(3)},
    ),
    "five axes": ({"beta": BETAS, "noise": NOISES, "n": SIZES, "d": range(2, 7), "l": [1, 2]}, {}),
    "logs in panels": (
        {"beta": np.geomspace(0.1, 10, 7), "n": 2 ** np.arange(4, 11), "x": np.geomspace(1e-3, 1, 4)},
        {},
    ),
    "narrow log": ({"beta": BETAS, "n": np.geomspace(16, 64, 20).round()}, {}),
    "many words": ({"one": [f"word {k}" for k in range(40)], "two": [f"w {k}" for k in range(30)]}, {}),
    "long words": ({"beta": BETAS, "kind": ["a long word " * 4 + str(k) for k in range(3)]}, {}),
    "one cell": ({"beta": [1.0], "n": [4]}, {}),
    "an axis of one": ({"beta": BETAS, "n": [4]}, {}),
    "truth": ({"beta": BETAS, "self_term": [True, False]}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", MANY)
def test_panels_fill_the_picture_and_ticks_can_be_read(case):
    axes, beside = MANY[case]
    made = sweep(
        {name: np.asarray(list(values)) for name, values in axes.items()}, 2, beside=beside
    )
    figure = drawn(made)
    panels = [one for one in figure.axes if one.get_xlabel() or one.get_title()]
    assert all(one.get_position().width > 0.55 / min(3, len(panels)) for one in panels)
    for one in figure.axes:
        assert overlapping(one, "x") == overlapping(one, "y") == []


def test_all_panels_of_a_random_search_have_the_same_axes():
    made = sweep(
        {"trial": np.arange(60), "d": np.array([2, 3])}, 1, beside=random_trials(60, n=[16, 32, 64])
    )
    beta, n = np.log(made["model.beta"]), made["n"] / 16
    made["order_parameter"] = made["order_parameter"] * 0 + xr.concat(
        [3 * beta + n, beta + 3 * n], "d"
    )
    figure = drawn(made)
    for panel in figure.axes[:2]:
        np.testing.assert_allclose(panel.collections[0].get_offsets()[:, 0], made["model.beta"])
        np.testing.assert_allclose(panel.collections[0].get_offsets()[:, 1], made["n"])


def test_words_of_a_random_search_have_colours_or_are_named():
    beside = random_trials(40, kind=KINDS)
    made = sweep({"trial": np.arange(40)}, beside=beside)
    figure = drawn(made)
    assert {text.get_text() for text in figure.legends[0].texts} == set(KINDS)
    more = {**beside, "noise": ("trial", np.linspace(1, 0, 40) ** 2 * (-1.0) ** np.arange(40))}
    assert "kind not shown" in drawn(sweep({"trial": np.arange(40)}, beside=more)).get_suptitle()


def test_very_uneven_values_get_rows_of_equal_height():
    values = np.array([1.0, 1e3, 0.0, 1e-3])
    made = sweep({"beta": values})
    axes, _ = drawn(made).axes
    np.testing.assert_allclose(mesh_of(axes).get_array(), seed_mean(made)[[2, 3, 0, 1]])
    assert axes.get_yticks().tolist() == [0, 1, 2, 3]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["0", "0.001", "1", "1000"]
    (axes,) = drawn(sweep({"beta": values}, times=())).axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "0.001", "1", "1000"]


def test_texts_of_strangers_are_drawn_as_they_stand():
    names = np.array(["$x_{$", "_hidden", "\x1b[31m\u8868"])
    made = sweep({"beta": BETAS, "kind": names, "w": np.array([1.0, 2.0])}, seeds=2)
    made = made.assign_attrs(title="$x_{$ \x1b[2J \u8868\n" + "a long title " * 40)
    figure = drawn(made)
    assert figure.get_suptitle().startswith(r"\$x_{\$ ?[2J ? a long title")
    assert len(figure.get_suptitle().splitlines()) <= 4
    shown = [text.get_text() for text in figure.legends[0].texts]
    assert shown == [r"\$x_{\$", " _hidden", "?[31m?"]
    assert "…" in drawn(made.assign_attrs(title="x" * 2_000)).get_suptitle()


def test_huge_numbers_are_drawn_without_a_warning():
    for axes in ({"beta": BETAS, "n": SIZES}, {"beta": BETAS}, {}):
        made = sweep(axes, times=())
        drawn(made.assign(order_parameter=made["order_parameter"] * 1e300))
