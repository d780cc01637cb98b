"""Statistics of one hidden state: the engine's numbers, hand-made states, blocks, bad input."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from tokenflock.errors import InputError
from tokenflock.measure import Measure
from tokenflock.models import SA
from tokenflock.observables import (
    Snapshot,
    clusters,
    gram_histogram,
)
from tokenflock.reduce import Dense
from tokenflock.space import Sphere

torch = pytest.importorskip("torch")

from tokenflock.tracing.pair_statistics import _join_edges  # noqa: E402
from tokenflock.tracing.state_statistics import (  # noqa: E402
    ANGLES,
    QUANTILES,
    NormAffine,
    batched_state_statistics,
    join,
    spectrum_rank,
    sphere_tokens,
    state_statistics,
)

BETA = 3.0


def lumps(n, d, seed, spread=0.04, groups=5):
    """Tokens in groups of unequal size, of unequal norms, with one heavy coordinate."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(groups, d)) + 0.7
    which = (groups * rng.random(n) ** 2).astype(int)
    states = centres[which] + spread * rng.normal(size=(n, d)) * rng.random((n, 1))
    states *= np.exp(rng.normal(size=(n, 1)))
    states[:, 1] *= 2.0
    return torch.as_tensor(states)


def norm_affine(d, seed):
    rng = np.random.default_rng(seed)
    gain, bias = rng.normal(size=d) + 0.2, rng.normal(size=d)
    return NormAffine(torch.as_tensor(gain), torch.as_tensor(bias))


@eqx.filter_jit
def engine(points):
    measure = Measure(Sphere(points.shape[1]), points)
    snapshot = Snapshot(jnp.asarray(0.0), measure, SA(BETA), Dense())
    return {
        "cosine_histogram": gram_histogram(64)(snapshot),
        "clusters_at": jnp.stack([clusters(angle=angle)(snapshot) for angle in ANGLES]),
    }


@pytest.mark.parametrize(("n", "d"), [(37, 5), (21, 48)], ids=["n>d", "n<d"])
def test_the_engine_counts_the_same_clusters_and_pairs(n, d):
    """What goes under other names here; shared names are compared in test_one_definition.py."""
    hidden, affine = lumps(n, d, seed=n), norm_affine(d, seed=d)
    found = state_statistics(hidden, affine, reference_beta=BETA, rows=8)
    known = engine(jnp.asarray(sphere_tokens(hidden, affine).numpy()))
    assert 1 < known["clusters_at"][2] < known["clusters_at"][0] < n
    np.testing.assert_array_equal(found["clusters_at"], known["clusters_at"])
    pairs = n * (n - 1)
    counts = np.asarray(known["cosine_histogram"]) * pairs
    np.testing.assert_array_equal(np.rint(found["cosine_histogram"] * pairs), np.rint(counts))
    assert found["clusters"] == found["clusters_at"][1]


def direct(hidden, tokens):
    """Straight from the definitions, with n x n matrices and d x d moments."""
    n = len(tokens)
    units = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
    apart = ~np.eye(n, dtype=bool)
    cosines, gram = units @ units.T, tokens @ tokens.T
    eigen = np.linalg.eigvalsh(tokens.T @ tokens / n)
    energies = np.sum(hidden**2, axis=0)
    norms = np.linalg.norm(hidden, axis=1)
    return {
        "mean_cosine": cosines[apart].mean(),
        "mean_cosine_rest": cosines[1:, 1:][apart[1:, 1:]].mean(),
        "sphere_cosine": gram[apart].mean(),
        "anisotropy": eigen[-1] / eigen.sum(),
        "norm": norms.mean(),
        "norm_median": np.median(norms),
        "norm_max": norms.max(),
        "outlier_share": energies.max() / energies.sum(),
        "outlier_dimension": energies.argmax(),
        "norms": norms,
    }


def test_every_number_follows_its_definition():
    hidden, affine = lumps(40, 12, seed=3), norm_affine(12, seed=4)
    found = state_statistics(hidden, affine, reference_beta=BETA)
    tokens = (hidden.numpy() - affine.bias.numpy()) / affine.gain.numpy()
    tokens /= np.linalg.norm(tokens, axis=1, keepdims=True)
    for name, value in direct(hidden.numpy(), tokens).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-11, err_msg=name)
    gram = (tokens @ tokens.T)[~np.eye(40, dtype=bool)]
    exact = np.quantile(gram, QUANTILES, method="inverted_cdf")
    np.testing.assert_allclose(found["cosine_quantiles"], exact, atol=2 / 16384)


def test_states_that_are_read_together_are_read_alone():
    """Two groups of pairs (2^18 / 150^2 = 11 states each), with norms, without, and without bias."""
    hidden = torch.stack([lumps(150, 9, seed) for seed in range(13)])
    affines = [norm_affine(9, seed) if seed % 3 else None for seed in range(13)]
    affines[4] = NormAffine(affines[4].gain)
    rows, tokens = batched_state_statistics(hidden, affines, BETA, torch.float64)
    for state, affine, row, points in zip(hidden, affines, rows, tokens, strict=True):
        alone = state_statistics(state, affine, reference_beta=BETA)
        assert alone.keys() == row.keys()
        for name, value in alone.items():
            np.testing.assert_allclose(row[name], value, rtol=1e-12, err_msg=name)
        np.testing.assert_array_equal(points, sphere_tokens(state, affine))
    assert len({float(row["scaled_energy"]) for row in rows}) == 13


def test_two_opposite_pairs_by_hand():
    """e1, e1, -e1, e2: six pairs with cosines 1, -1, -1, 0, 0, 0; M = diag(3, 1)/4."""
    hidden = torch.tensor([[2.0, 0, 0], [1, 0, 0], [-3, 0, 0], [0, 0.5, 0]])
    found = state_statistics(hidden, None, reference_beta=1.0)
    assert found["mean_cosine"] == pytest.approx(-1 / 6)
    assert found["mean_cosine_rest"] == pytest.approx(-1 / 3)
    assert found["clusters_at"].tolist() == [3, 3, 3]
    assert found["anisotropy"] == pytest.approx(0.75)
    assert found["effective_rank"] == pytest.approx(4 / 3**0.75)
    assert found["order_parameter"] == pytest.approx(math.sqrt(2) / 4)
    energy = (6 + 4 * math.exp(-2) + 6 * math.exp(-1)) / 16
    assert found["scaled_energy"] == pytest.approx(energy)
    full = {int(i): float(found["cosine_histogram"][i]) for i in (0, 32, 63)}
    assert full == pytest.approx({0: 1 / 3, 32: 1 / 2, 63: 1 / 6})
    assert found["cosine_quantiles"] == pytest.approx([-1, -1, 0, 0, 1], abs=2 / 16384)
    assert found["outlier_share"] == pytest.approx(14 / 14.25)
    assert (found["norm_max"], found["norm_median"], found["outlier_dimension"]) == (3.0, 1.5, 0)


def test_a_chain_is_one_cluster_only_at_the_angle_of_its_links():
    angles = np.cumsum(np.r_[0.0, np.full(30, 0.1), 0.3, np.full(5, 0.04)])
    order = np.random.default_rng(0).permutation(len(angles))
    hidden = torch.as_tensor(np.c_[np.cos(angles), np.sin(angles)][order])
    assert state_statistics(hidden, reference_beta=1.0)["clusters_at"].tolist() == [32, 2, 1]


@pytest.mark.parametrize(
    ("kind", "rank", "rest"), [(torch.float32, 1e-4, 1e-5), (torch.float64, 1e-8, 1e-8)], ids=str
)
def test_a_collapse_reads_one_to_the_precision_of_the_states(kind, rank, rest):
    rng = np.random.default_rng(1)
    states = np.ones((50, 300)) * 7.0 + 1e-5 * rng.normal(size=(50, 300))
    found = state_statistics(torch.as_tensor(states, dtype=kind), reference_beta=20.0)
    assert found["effective_rank"] == pytest.approx(1.0, abs=rank)
    assert found["anisotropy"] == pytest.approx(1.0, abs=rest)
    # A cosine is a sum of 300 products in an order that depends on the processor, and beta multiplies it.
    rounding = 20.0 * np.sqrt(300) * torch.finfo(kind).eps
    assert found["scaled_energy"] == pytest.approx(1.0, abs=max(rounding, 1e-8))
    for name in ("mean_cosine", "sphere_cosine", "order_parameter"):
        assert found[name] == pytest.approx(1.0, abs=1e-8), name
    assert found["clusters_at"].tolist() == [1, 1, 1]
    assert found["cosine_histogram"][-1] == 1.0


def test_single_precision_pairs_lose_nothing_that_shows():
    hidden = lumps(90, 40, seed=11).float()
    single = state_statistics(hidden, reference_beta=20.0)
    double = state_statistics(hidden.double(), reference_beta=20.0)
    np.testing.assert_array_equal(single["clusters_at"], double["clusters_at"])
    np.testing.assert_allclose(single["cosine_quantiles"], double["cosine_quantiles"], atol=1e-6)
    for name, loss in (("effective_rank", 1e-6), ("anisotropy", 1e-6), ("scaled_energy", 4e-6)):
        assert single[name] == pytest.approx(double[name], rel=loss), name
    for name in ("mean_cosine", "sphere_cosine", "norm", "outlier_share"):
        assert single[name] == double[name], name


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 40),
    d=st.integers(2, 30),
    rows=st.integers(1, 45),
)
@settings(max_examples=25, deadline=None)
def test_the_block_size_changes_no_number(seed, n, d, rows):
    hidden = lumps(n, d, seed)
    whole = state_statistics(hidden, reference_beta=BETA, rows=n)
    parts = state_statistics(hidden, reference_beta=BETA, rows=rows)
    assert whole.keys() == parts.keys()
    for name, value in whole.items():
        exact = name in ("clusters", "clusters_at", "outlier_dimension")
        np.testing.assert_allclose(parts[name], value, rtol=0 if exact else 1e-11, atol=1e-13)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), edges=st.floats(0, 3))
@settings(max_examples=40, deadline=None)
def test_joining_finds_the_components_of_any_graph(seed, n, edges):
    rng = np.random.default_rng(seed)
    close = rng.random((n, n)) < edges / n
    close |= close.T | np.eye(n, dtype=bool)
    labels, step = np.arange(n, dtype=np.int32), max(1, n // 3)
    for start in range(0, n, step):
        labels = join(labels, close[start : start + step, start:], start)
    few = _join_edges(np.arange(n, dtype=np.int32), *np.nonzero(close))
    np.testing.assert_array_equal(few, labels)
    count, known = connected_components(close, directed=False)
    assert len(np.unique(labels)) == count
    assert len({*zip(labels.tolist(), known.tolist(), strict=True)}) == count


def test_tokens_do_not_depend_on_norms_order_or_turns_of_space():
    hidden = lumps(30, 6, seed=8)
    rng = np.random.default_rng(9)
    turn = torch.as_tensor(np.linalg.qr(rng.normal(size=(6, 6)))[0])
    scale = torch.as_tensor(rng.random((30, 1)) + 0.1)
    one = state_statistics(hidden, reference_beta=BETA)
    other = state_statistics(
        (scale * hidden)[torch.as_tensor(rng.permutation(30))] @ turn, reference_beta=BETA
    )
    for name in ("mean_cosine", "sphere_cosine", "clusters_at", "effective_rank", "scaled_energy"):
        np.testing.assert_allclose(other[name], one[name], rtol=1e-10)
    assert other["norm"] != pytest.approx(one["norm"], rel=1e-3)


def test_the_norm_of_a_layer_is_undone():
    """After LayerNorm the sphere token is the centred state before it, whatever gain and bias."""
    rng = np.random.default_rng(2)
    layer = torch.nn.LayerNorm(16, eps=0.0, dtype=torch.float64)
    layer.weight.data = torch.as_tensor(rng.normal(size=16) + 0.1)
    layer.bias.data = torch.as_tensor(rng.normal(size=16))
    before = torch.as_tensor(rng.normal(size=(9, 16)))
    tokens = sphere_tokens(layer(before), NormAffine(layer.weight, layer.bias))
    centred = (before - before.mean(1, keepdim=True)).numpy()
    expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(tokens.numpy(), expected, atol=1e-12)
    assert not tokens.requires_grad


def test_a_coordinate_without_gain_is_left_out():
    gain = torch.tensor([2.0, -1.0, 1e-9, 0.0])
    tokens = sphere_tokens(torch.tensor([[2.0, 1.0, 5.0, 7.0]]), NormAffine(gain))
    np.testing.assert_allclose(tokens[0], np.array([1, -1, 0, 0]) / math.sqrt(2), atol=1e-12)


def test_zero_tokens_have_no_direction_and_harm_nothing():
    hidden = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    found = state_statistics(hidden, reference_beta=1.0)
    assert found["mean_cosine"] == pytest.approx(1 / 6)
    assert found["clusters"] == 3
    assert found["effective_rank"] == pytest.approx(1.0)
    assert np.isfinite([np.sum(value) for value in found.values()]).all()
    assert spectrum_rank(np.zeros((2, 3))).tolist() == [0.0, 0.0]


def test_one_token_has_no_pairs():
    found = state_statistics(torch.tensor([[3.0, 4.0]]), reference_beta=1.0)
    assert math.isnan(found["mean_cosine"])
    assert math.isnan(found["mean_cosine_rest"])
    assert np.isnan(found["cosine_histogram"]).all()
    assert (found["clusters"], found["norm"]) == (1, 5.0)
    assert found["effective_rank"] == pytest.approx(1.0)


def test_half_precision_states_are_read():
    hidden = lumps(20, 8, seed=5)
    for kind in (torch.float16, torch.bfloat16):
        rounded = state_statistics(hidden.to(kind), reference_beta=BETA)
        known = state_statistics(hidden.to(kind).double(), reference_beta=BETA)
        assert rounded["effective_rank"] == pytest.approx(known["effective_rank"], rel=1e-6)
        assert rounded["mean_cosine"] == known["mean_cosine"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda h: state_statistics(h[None], reference_beta=1.0), "one text at a time"),
        (lambda h: state_statistics(h[:0], reference_beta=1.0), r"got \(0, 4\)"),
        (lambda h: state_statistics(h / 0.0, reference_beta=1.0), "overflowed"),
        (
            lambda h: state_statistics(h, NormAffine(torch.ones(3)), reference_beta=1.0),
            "acts on 3 coordinates",
        ),
        (
            lambda h: state_statistics(h, reference_beta=1.0, angles=(0.0, 0.1415)),
            "cluster angles must lie",
        ),
        (lambda h: state_statistics(h, reference_beta=1.0, angles=(0.3,)), "add it to them"),
    ],
)
def test_bad_input_is_a_sentence(call, says):
    with pytest.raises(InputError, match=says):
        call(torch.ones(5, 4))
