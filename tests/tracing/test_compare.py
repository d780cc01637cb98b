"""Traces side by side: zero against itself, aligned by layer or by depth, strict JSON."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import matplotlib as mpl  # noqa: E402
from made_runs import collapsing, made_run, merging, stacked, unit, with_heads  # noqa: E402

from tokenflock.cli.trace_compare import _tell_comparison  # noqa: E402
from tokenflock.errors import InputError  # noqa: E402
from tokenflock.tracing.compare import compare, names  # noqa: E402
from tokenflock.tracing.compare_page import draw_compare, write_compare  # noqa: E402


def fanning(layers, n=5):
    """Equiangular tokens whose cosine falls linearly with depth, from 0.8 to 0.2."""
    depths = np.linspace(0.0, 1.0, layers + 1)
    states = []
    for depth in depths:
        rho = 0.8 - 0.6 * depth
        gram = (1 - rho) * np.eye(n) + rho
        states.append(unit(np.linalg.cholesky(gram)))
    return np.stack(states)


def test_a_run_against_itself_differs_nowhere():
    run = with_heads(made_run(merging()))
    found = compare(run, run)
    assert found["aligned"] == "layer"
    assert found["first_difference"]["at"] == {"b": None}
    for pair in found["layers"].values():
        np.testing.assert_array_equal(np.array(pair["difference"]["b"], dtype=float), 0.0)
    assert found["words"][0] == "Both: metastable clusters."


def test_differences_are_b_minus_a_and_the_first_wide_one_is_named():
    a, b = made_run(merging(sizes=(5, 4))), made_run(collapsing())
    found = compare(a, b)
    gaps = b.array("mean_cosine") - a.array("mean_cosine")
    np.testing.assert_allclose(found["layers"]["mean_cosine"]["difference"]["b"], gaps)
    first = next(layer for layer, gap in enumerate(gaps) if abs(gap) > 0.1)
    assert found["first_difference"]["threshold"] == 0.1
    assert found["first_difference"]["at"] == {"b": first}
    assert found["words"][0] == "A: metastable clusters; B: collapse."
    assert any(f"at layer {first}" in words for words in found["words"])


def test_depths_that_differ_are_matched_by_relative_depth():
    a, b = made_run(fanning(4)), made_run(fanning(12))
    found = compare(a, b)
    assert found["aligned"] == "relative depth"
    assert found["depth"] == pytest.approx(np.arange(13) / 12)
    gaps = found["layers"]["sphere_cosine"]["difference"]["b"]
    np.testing.assert_allclose(gaps, 0.0, atol=1e-12)
    assert any("A has 4 layers and B 12" in words for words in found["words"])


def test_steps_are_matched_at_their_middles():
    a, b = with_heads(made_run(fanning(4))), with_heads(made_run(fanning(12)))
    a.arrays["turning_angle"], b.arrays["turning_angle"] = (
        np.arange(4) + 0.5,
        (np.arange(12) + 0.5) / 3,
    )
    gaps = np.array(compare(a, b)["layers"]["turning_angle"]["difference"]["b"])
    # Beyond the middle of its first and last layer the shallow run has nothing to interpolate.
    np.testing.assert_allclose(gaps[2:-2], 0.0, atol=1e-12)


def test_passes_through_one_checkpoint_are_matched_layer_by_layer():
    source = {"source": "/models/a"}
    states = merging(layers=12)
    a, b = made_run(states[:5], model=source), made_run(states, model=source)
    found = compare(a, b)
    assert found["aligned"] == "layer"
    assert found["depth"] == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(found["layers"]["clusters"]["difference"]["b"], 0)
    assert found["b"]["layers"] == 12


def test_other_tokens_are_said():
    a, b = made_run(merging()), made_run(merging(), labels=[*"abcdefghij"])
    assert "B did not read the same tokens as A" in " ".join(compare(a, b)["words"])
    assert "did not read" not in " ".join(compare(a, a)["words"])


def test_what_tells_the_two_apart():
    plain = made_run(merging())
    bare = made_run(merging(), interventions={"mlp": False})
    other = made_run(merging(), model={"name": "other"})
    assert names(plain, bare) == ["A: as trained", "B: no feed-forward"]
    assert names(plain, other) == ["A: planted", "B: other"]
    assert names(bare, other) == ["A: planted, no feed-forward", "B: other, as trained"]


def test_one_text_against_many_and_strict_json():
    many = stacked([made_run(merging(seed=seed)) for seed in range(3)])
    lonely = made_run(merging()[:, :1])
    json.dumps(compare(made_run(merging()), many), allow_nan=False)
    json.dumps(compare(made_run(merging()), lonely), allow_nan=False)


def test_only_what_both_have_is_compared():
    full, bare = with_heads(made_run(merging())), made_run(merging())
    assert "turning_angle" in compare(full, full)["layers"]
    assert "turning_angle" not in compare(full, bare)["layers"]


def test_all_of_three_are_compared():
    """The third was ignored: every part of the result has it."""
    a, b = made_run(merging(sizes=(5, 4))), made_run(collapsing())
    c = made_run(fanning(a.array("mean_cosine").size - 1, n=9))
    found = compare(a, b, c)
    assert found["runs"] == ["a", "b", "c"]
    assert found["c"]["verdict"]["word"] == "spread"
    for letter, run in (("b", b), ("c", c)):
        gaps = run.array("mean_cosine") - a.array("mean_cosine")
        np.testing.assert_allclose(found["layers"]["mean_cosine"]["difference"][letter], gaps)
    assert found["words"][0] == "A: metastable clusters; B: collapse; C: spread."
    assert sum("Mean cosines of A and" in words for words in found["words"]) == 2
    pair = compare(a, c)
    assert pair["layers"]["mean_cosine"]["b"] == found["layers"]["mean_cosine"]["c"]


def test_no_number_of_a_wide_table_is_cut(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    found = compare(*(made_run(fanning(6, n=9)) for _ in range(5)))
    _tell_comparison(found, [0, 3, 6], None)
    table = capsys.readouterr().out
    assert "\u2026" not in table
    assert "clusters E" in table


def test_three_depths_and_three_checkpoints():
    runs = [made_run(fanning(layers)) for layers in (4, 12, 6)]
    found = compare(*runs)
    assert found["aligned"] == "relative depth"
    assert any("A has 4 layers, B 12 and C 6" in words for words in found["words"])
    assert names(*runs)[2].startswith("C: ")
    assert compare(runs[0], runs[0], runs[0])["words"][0].startswith("All: ")


def test_one_alone_is_refused():
    with pytest.raises(InputError, match="two to 26 traces are compared at a time, got 1"):
        compare(made_run(merging()))


def test_the_page_is_written_with_its_picture(tmp_path):
    mpl.use("Agg")
    hostile = made_run(merging(), model={"name": "<script>$x$</script>"})
    other = with_heads(made_run(collapsing(layers=5)))
    place = write_compare([hostile, other], tmp_path / "both")
    assert sorted(path.name for path in place.parent.iterdir()) == ["compare.html", "compare.png"]
    document = place.read_text(encoding="utf-8")
    assert "<script>" not in document
    assert document.count("<img") == 1
    assert "Verdict on A" in document
    assert "Verdict on B" in document


@pytest.mark.parametrize("count", [2, 3, 9])
def test_the_picture_shows_every_curve(count):
    mpl.use("Agg")
    starts = [made_run(merging(seed=seed)) for seed in range(2, count)]
    runs = [made_run(merging(sizes=(5, 4))), made_run(collapsing()), *starts]
    figure = draw_compare(*runs)
    curves = [line.get_ydata() for axes in figure.axes for line in axes.lines]
    for run in runs:
        assert any(np.array_equal(run.array("sphere_cosine"), curve) for curve in curves)
    looks = {
        (line.get_color(), line.get_linestyle())
        for axes in figure.axes
        for line in axes.lines
        if not line.get_label().startswith("_")
    }
    assert len(looks) == count
    mpl.pyplot.close(figure)
