"""Verdict, plain words and summary: planted collapse, planted groups, planted spread."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from made_runs import ANGLE, add, collapsing, made_run, merging, stacked, with_heads  # noqa: E402
from real_parts import rxnmapper_folder, tiny_bert  # noqa: E402

import tokenflock as flock  # noqa: E402
from tokenflock.errors import InputError  # noqa: E402
from tokenflock.tracing.interventions import Interventions  # noqa: E402
from tokenflock.tracing.spectra import attraction  # noqa: E402
from tokenflock.tracing.tokenise import Words  # noqa: E402
from tokenflock.tracing.trace_values import band, groups, mean  # noqa: E402
from tokenflock.tracing.verdict import plain_words, summary, verdict  # noqa: E402
from tokenflock.tracing.wording import percent, ranges, shown  # noqa: E402


def spread(layers=6, n=7, d=12):
    return np.stack([np.roll(np.eye(d), layer, axis=1)[:n] for layer in range(layers + 1)])


def test_a_planted_collapse_with_its_layer():
    states = collapsing()
    found = verdict(made_run(states))
    cosines = [(np.sum(x.sum(0) ** 2) / 9 - 9) / (9 * 8) for x in states]
    first = next(layer for layer, cosine in enumerate(cosines) if cosine >= 0.9)
    assert 0 < first < 8
    assert found.word == "collapse"
    assert found.numbers["collapsed_from_layer"] == first
    assert found.numbers["sphere_cosine"] == pytest.approx(cosines[-1], abs=1e-12)
    assert f"from layer {first} on" in found.criterion


def test_planted_groups_are_metastable_clusters_and_are_named():
    run = made_run(merging(), labels=[*"aaaaa", "x", "y", "x", "C", "O"])
    found = verdict(run)
    assert found.word == "metastable clusters"
    assert found.numbers["clusters"] == 3
    assert groups(run, ANGLE) == [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9]]
    assert any("x y x (tokens 5, 6, 7)" in words for words in plain_words(run))


def test_orthogonal_tokens_are_spread():
    found = verdict(made_run(spread()))
    assert found.word == "spread"
    assert not found.numbers["still_changing"]


def test_equal_words_at_the_start_are_no_merger():
    twice = np.concatenate([np.eye(12)[:4]] * 2)
    still = np.stack([twice] * 5)
    assert verdict(made_run(still)).word == "spread"
    apart = np.stack([twice, *(np.eye(12)[:8],) * 4])
    run = made_run(apart)
    assert verdict(run).word == "spread"
    assert any("come apart" in words for words in plain_words(run))


def test_merging_again_after_coming_apart_counts():
    twice = np.concatenate([np.eye(12)[:4]] * 2)
    run = made_run(np.stack([twice, np.eye(12)[:8], twice, twice]))
    assert verdict(run).word == "metastable clusters"


@pytest.mark.parametrize(
    ("cosine", "clusters", "word"),
    [
        (0.9, 7, "collapse"),
        (0.8999, 7, "spread"),
        (0.8999, 5, "metastable clusters"),
        (0.5, 6, "spread"),
    ],
)
def test_thresholds(cosine, clusters, word):
    run = made_run(spread())  # seven tokens: five are 71 %, six 86 %
    run.array("sphere_cosine")[-1] = cosine
    run.array("clusters")[-1] = clusters
    assert verdict(run).word == word


def test_interventions_and_rounding_are_said():
    rounding = {"decides_from_layer": 5}
    run = made_run(spread(), interventions={"mlp": False, "repeat": 4}, rounding=rounding)
    said = " ".join(verdict(run).caveats)
    assert "training regime (no feed-forward, stack x 4)" in said
    assert "from layer 5 on" in said
    assert verdict(made_run(spread())).caveats == ()


def test_a_start_that_is_already_one_point_is_said():
    run = made_run(np.stack([np.tile(np.eye(5)[0], (4, 1))] * 3))
    assert verdict(run).word == "collapse"
    assert any("start as close" in caveat for caveat in verdict(run).caveats)


def test_a_count_that_still_falls_is_said():
    run = made_run(merging())
    counts = run.array("clusters")
    counts[:] = [10, 10, 9, 9, 8, 8, 8, 6, 5]
    assert verdict(run).numbers["still_changing"]
    assert "(8 to 5)" in verdict(run).criterion


def test_several_texts_are_means_and_a_tally():
    runs = [made_run(collapsing(seed=1)), made_run(merging(seed=2)), made_run(merging(seed=3))]
    found = verdict(stacked(runs))
    ends = [run.array("sphere_cosine")[-1] for run in runs]
    assert found.numbers["sphere_cosine"] == pytest.approx(np.mean(ends))
    assert found.numbers["texts"] == {"collapse": 1, "metastable clusters": 2}


def test_a_text_without_pairs_does_not_spoil_the_others():
    lonely = made_run(spread(layers=8, n=1))
    run = stacked([made_run(merging()), lonely])
    assert np.isfinite(mean(run, "sphere_cosine")).all()
    assert np.isfinite(band(run, "sphere_cosine")).all()
    assert verdict(run).word == "metastable clusters"
    json.dumps(summary(run), allow_nan=False)
    assert verdict(lonely).word == "undecided"
    json.dumps(summary(lonely), allow_nan=False)


def test_words_start_with_the_regime_and_end_with_what_is_missing():
    notes = ["a remark", "outside the training regime: the stack is run 4 times over"]
    words = plain_words(made_run(spread(), notes=notes, missing=["no spectra here"]))
    assert words[0] == "Outside the training regime: the stack is run 4 times over."
    assert words[-2:] == ["A remark.", "No spectra here."]


def test_words_name_the_sink_its_layers_and_where_the_turning_is_off():
    run = with_heads(made_run(merging(), labels=[*"abSdefghij"]))
    predicted = run.array("turning_angle_predicted")
    predicted[[1, 2, 5]] = 2.1 * run.array("turning_angle")[[1, 2, 5]]
    said = " ".join(plain_words(run))
    assert "S (token 2) is an attention sink in layers 2-8" in said
    assert "off by more than 2 times in layers 2-3, 6" in said
    share = run.array("sink_share")
    layer, head = np.unravel_index(share.argmax(), share.shape)
    assert f"the strongest is head {head + 1} of layer {layer + 1} (" in said
    assert "6,561 times its size at the end" in said


def test_a_sink_outside_the_states_is_the_first_token():
    run = with_heads(made_run(merging()))
    run.attributes["trace"]["without_first"] = True
    mass = np.concatenate([np.full((8, 1), 0.9), 0.1 * run.array("column_mass")], axis=1)
    add(run, {"column_mass": mass}, ("layer", "attended"))
    assert any(
        words.startswith("The first token is an attention sink") for words in plain_words(run)
    )


@pytest.mark.parametrize("gone", ["", "sink_share", "column_mass", "turning_angle", "turning_angle_predicted",
                                  "ov_positive_share", "beta_weights", "equiangular_cosine",
                                  "perturbation_growth", "norms", "mean_cosine_rest"])  # fmt: skip
def test_words_and_summary_work_without_what_was_not_measured(gone):
    run = with_heads(made_run(merging()))
    run.arrays.pop(gone, None)
    assert len(plain_words(run)) >= 8
    json.dumps(summary(run), allow_nan=False)


def test_the_summary_is_the_run():
    given = [Words([1, 5, 9, 33, 5, 70], [*"abcdef"], "")]
    run = flock.trace(tiny_bert(), words=given, attention_rank=True)
    found = json.loads(json.dumps(summary(run), allow_nan=False))
    assert found["tokens"] == [*"abcdef"]
    assert found["texts"] == 1
    assert found["bands"] == {}
    for name in ("mean_cosine", "sphere_cosine", "clusters", "effective_rank", "norm"):
        np.testing.assert_allclose(found["layers"][name], run.array(name), rtol=1e-15)
    assert len(found["layers"]["turning_angle"]) == 3
    sinks = run.array("sink_share")
    np.testing.assert_allclose(found["layers"]["sink_share"], sinks.max(axis=1))
    assert found["layers"]["clusters_at"]["0.1415"] == found["layers"]["clusters"]
    spectrum = run.array("ov_real") + 1j * run.array("ov_imag")
    assert found["heads"]["attraction"] == [[attraction(head) for head in row] for row in spectrum]


def test_bands_hold_nine_tenths_of_the_texts():
    runs = [made_run(merging(seed=seed)) for seed in range(21)]
    found = summary(stacked(runs))["bands"]["sphere_cosine"]
    values = np.stack([run.array("sphere_cosine") for run in runs])
    inside = (values >= found["low"]) & (values <= found["high"])
    assert (inside.sum(axis=0) == 19).all()
    assert summary(stacked(runs))["lengths"] == [10] * 21


def test_other_runs_are_refused():
    run = made_run(spread())
    del run.attributes["trace"]
    with pytest.raises(InputError, match=r"not a trace of a model; make one with flock\.trace"):
        verdict(run)


def test_numbers_as_words():
    assert ranges([2, 3, 4, 7, 9, 10]) == "2-4, 7, 9-10"
    assert [percent(share) for share in (0.0, 1e-6, 0.042, 0.5, 0.9996, 1.0)] == [
        "0.0 %",
        "under 0.1 %",
        "4.2 %",
        "50 %",
        "99.9 %",
        "100 %",
    ]
    assert shown("Ġa\nb") == "␣a\\x0ab"
    assert len(shown("x" * 99)) == 16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "word"),
    [
        (Interventions(), "spread"),
        (Interventions(mlp=False), "collapse"),
        (Interventions(repeat=4), "metastable clusters"),
    ],
    ids=["as trained", "no mlp", "repeat 4"],
)
def test_the_albert_of_reactions(change, word):
    reaction = (
        "CC(C)(C)OC(=O)N1CCC(CC1)C(=O)O.C1COCCN1.ClCCl>>CC(C)(C)OC(=O)N1CCC(CC1)C(=O)N1CCOCC1"
    )
    run = flock.trace(rxnmapper_folder(), reaction, split="smiles", change=change)
    assert verdict(run).word == word
