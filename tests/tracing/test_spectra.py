"""Spectra of value-output and query-key maps: small problems against the d x d ones, real weights."""

import dataclasses
import itertools

import numpy as np
import pytest

from tokenflock.errors import InputError

torch = pytest.importorskip("torch")

from tokenflock.tracing.spectra import (  # noqa: E402
    Projections,
    attraction,
    head_maps,
    layer_values,
    positive_share,
    spectra,
)


def layer(heads=6, keys=3, k=4, d=20, seed=0, scaling=0.5):
    rng = np.random.default_rng(seed)
    return Projections(
        query=rng.normal(size=(heads, k, d)),
        key=rng.normal(size=(keys, k, d)) + 0.3,
        value=rng.normal(size=(keys, k, d)),
        output=rng.normal(size=(d, heads, k)) - 0.2,
        scaling=scaling,
    )


def full(projections):
    """The d x d maps W_O W_V and scaling sym(W_Q^T W_K) of every head."""
    group = projections.query.shape[0] // projections.key.shape[0]
    for head in range(projections.query.shape[0]):
        query, key = projections.query[head], projections.key[head // group]
        moves = projections.output[:, head] @ projections.value[head // group]
        scores = projections.scaling * query.T @ key
        yield moves, (scores + scores.T) / 2


def pad(values, size):
    return np.sort(np.concatenate([values, np.zeros(size - len(values))]))


@pytest.mark.parametrize("d", [20, 6], ids=["2k<d", "2k>d"])
def test_small_problems_have_the_spectra_of_the_full_maps(d):
    projections = layer(d=d)
    found = head_maps(projections)
    for head, (moves, scores) in enumerate(full(projections)):
        eigen = np.linalg.eigvals(moves)
        largest = eigen[np.argsort(-np.abs(eigen))[:4]]
        mine = found["ov_real"][head] + 1j * found["ov_imag"][head]
        assert (np.diff(found["ov_real"][head]) <= 0).all()
        gaps = np.abs(mine[:, None] - largest[None, :])
        assert max(gaps.min(0).max(), gaps.min(1).max()) < 1e-10
        assert found["ov_trace"][head] == pytest.approx(np.trace(moves), rel=1e-12)
        symmetric = np.linalg.eigvalsh(scores)
        np.testing.assert_allclose(pad(found["qk_eigen"][head], d), symmetric, atol=1e-11)


@pytest.mark.parametrize("d", [20, 40], ids=["d<Hk", "d>Hk"])
def test_the_values_of_all_heads_add_up(d):
    projections = layer(d=d)
    known = np.linalg.eigvals(sum(moves for moves, _ in full(projections)))
    known = known[np.argsort(-np.abs(known))[: min(d, 24)]]
    found = layer_values(projections)
    assert len(found) == len(known)
    np.testing.assert_allclose(np.sort(found.real), np.sort(known.real), atol=1e-9)
    np.testing.assert_allclose(np.sum(found).real, head_maps(projections)["ov_trace"].sum())


def test_beta_gives_the_spread_that_random_tokens_show():
    """Scores of independent Gaussian tokens, sampled: rms beta/sqrt(d), for scores not symmetric."""
    projections = layer(d=20)
    beta = head_maps(projections)["beta_weights"]
    x, y = np.random.default_rng(0).normal(size=(2, 20_000, 20))
    for head, value in enumerate(beta):
        group = head * len(projections.key) // len(projections.query)
        q = x @ np.asarray(projections.query[head]).T
        k = y @ np.asarray(projections.key[group]).T
        spread = np.sqrt(np.mean((projections.scaling * np.sum(q * k, axis=1)) ** 2))
        assert np.sqrt(20) * spread == pytest.approx(value, rel=0.05)


def test_beta_gives_the_spread_of_scores_of_isotropic_tokens():
    """B = beta I/d on tokens of norm sqrt(d) is beta <x, y> on the sphere: |B|_F sqrt(d) = beta."""
    d, beta = 8, 5.0
    eye = np.eye(d)[None]
    known = Projections(eye, eye, eye, eye.transpose(1, 0, 2), scaling=beta / d)
    found = head_maps(known)
    assert found["beta_weights"][0] == pytest.approx(beta)
    np.testing.assert_allclose(found["qk_eigen"][0], np.full(d, beta / d), atol=1e-14)
    assert found["qk_positive_share"][0] == pytest.approx(1.0)


def test_an_antisymmetric_score_has_no_symmetric_part():
    """<x, K y> with K^T = -K attracts and repels alike: no eigenvalue, though scores are spread."""
    turn = np.array([[[0.0, 1.0], [-1.0, 0.0]]])
    eye = np.eye(2)[None]
    found = head_maps(Projections(eye, turn, turn, eye.transpose(1, 0, 2), scaling=1.0))
    np.testing.assert_allclose(found["qk_eigen"], 0.0, atol=1e-15)
    assert found["beta_weights"][0] == pytest.approx(2.0)
    np.testing.assert_allclose(found["ov_imag"][0], [1.0, -1.0])


def test_the_sign_of_the_values_decides_attraction():
    eye, projections = np.eye(4), layer(heads=1, keys=1, k=4, d=4)
    signs = {"attractive": [1.0, 2, 3, 1], "repulsive": [-1, -0.5, -2, -1], "mixed": [3, -1, 1, 0]}
    for word, diagonal in signs.items():
        shown = dataclasses.replace(
            projections, value=np.diag(diagonal)[None], output=eye[:, None, :]
        )
        found = head_maps(shown)
        np.testing.assert_allclose(found["ov_real"][0], np.sort(diagonal)[::-1], atol=1e-12)
        assert attraction(found["ov_real"][0]) == word
    assert found["ov_positive_share"][0] == pytest.approx(0.8)
    assert attraction(np.array([0.95 + 9j, -0.05 - 9j])) == "attractive"
    assert positive_share(np.zeros(3)) == 0.5
    assert attraction(np.zeros(3)) == "mixed"


def test_layers_are_stacked_and_a_shared_one_is_read_once(monkeypatch):
    from tokenflock.tracing import spectra as module

    one, other, read = layer(seed=1), layer(seed=2), []
    whole = module.head_maps
    monkeypatch.setattr(module, "head_maps", lambda part: read.append(part) or whole(part))
    found = module.spectra([one, other, one])
    assert len(read) == 2
    assert found["qk_eigen"].shape == (3, 6, 8)
    np.testing.assert_array_equal(found["ov_real"][0], found["ov_real"][2])
    assert not np.allclose(found["ov_real"][0], found["ov_real"][1])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"key": np.ones((4, 4, 20))}, "Hk dividing H"),
        ({"output": np.ones((6, 20, 4))}, r"output \(6, 20, 4\)"),
        ({"query": np.ones((4, 20))}, r"query \(4, 20\)"),
    ],
)
def test_bad_shapes_are_a_sentence(change, says):
    with pytest.raises(InputError, match=says):
        head_maps(dataclasses.replace(layer(), **change))


def test_no_layer_and_unequal_layers_are_a_sentence():
    with pytest.raises(InputError, match="at least one layer"):
        spectra([])
    with pytest.raises(InputError, match="layer by layer"):
        spectra([layer(), layer(k=3)])


def albert_projections():
    """The one shared layer of rxnmapper's ALBERT, split by head."""
    from real_parts import rxnmapper_folder

    stored = torch.load(rxnmapper_folder() / "pytorch_model.bin", "cpu", weights_only=True)
    inside = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention."
    query, key, value, output = (
        stored[f"{inside}{name}.weight"] for name in ("query", "key", "value", "dense")
    )
    split = (8, 32, 256)
    return Projections(
        query.reshape(split),
        key.reshape(split),
        value.reshape(split),
        output.reshape(256, 8, 32),
        scaling=32**-0.5,
    )


def test_the_values_of_a_trained_albert_repel():
    projections = albert_projections()
    found = head_maps(projections)
    together = layer_values(projections).real
    assert (together[-1], together[0]) == pytest.approx((-1.87, 0.80), abs=0.005)
    words = [attraction(real) for real in found["ov_real"]]
    assert words[2] == words[6] == "repulsive"
    assert (found["ov_real"][[2, 6]] < 0).all()
    parts = ("query", "key", "value", "output")
    arrays = {name: getattr(projections, name).double().numpy() for name in parts}
    maps = full(Projections(**arrays, scaling=32**-0.5))
    for head, (moves, scores) in enumerate(itertools.islice(maps, 3)):
        eigen = np.linalg.eigvals(moves)
        largest = np.sort(eigen[np.argsort(-np.abs(eigen))[:32]].real)
        np.testing.assert_allclose(np.sort(found["ov_real"][head]), largest, atol=1e-8)
        symmetric = np.linalg.eigvalsh(scores)
        np.testing.assert_allclose(pad(found["qk_eigen"][head], 256), symmetric, atol=1e-10)
