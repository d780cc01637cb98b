"""Statistics of one attention call: the full matrix, the engine, masks, groups, blocks."""

import numpy as np
import pytest
from scipy.special import entr, softmax

from tokenflock.errors import InputError

torch = pytest.importorskip("torch")

from tokenflock.tracing.attention_statistics import (  # noqa: E402
    attention_statistics,
    batched_attention_statistics,
)

SCALING, WIDTH = 0.3, 50


def heads(count, keys, n, size=7, seed=0, kind=torch.float64):
    """Queries and keys with a large common part, as trained models have."""
    rng = np.random.default_rng(seed)
    query = 1.5 * rng.normal(size=(count, n, size)) + 2.0
    key = rng.normal(size=(keys, n, size)) + 3.0 * rng.normal(size=(keys, 1, size))
    key[:, 0] *= 1.7
    return torch.as_tensor(query, dtype=kind), torch.as_tensor(key, dtype=kind)


def direct(query, key, added):
    """Everything from the n x n scores; `added` (H, n, n) with -inf where nobody may look."""
    query, key = query.double().numpy(), key.double().numpy()
    key = np.repeat(key, len(query) // len(key), axis=0)
    scores = SCALING * query @ key.swapaxes(1, 2) + added
    visible = np.isfinite(scores)
    found = {name: [] for name in ("entropy", "share", "mass", "beta", "rank")}
    for head, seen in zip(scores, visible, strict=True):
        rows = [softmax(row) for row in head[seen.any(1)]]
        entropy = np.sum(entr(rows), axis=1)
        columns = seen.sum(1)[seen.any(1)]
        found["entropy"].append(entropy.sum() / len(seen))
        found["share"].append(np.mean(entropy[columns > 1] / np.log(columns[columns > 1])))
        found["mass"].append(np.mean(rows, axis=0))
        several = [row[mask] for row, mask in zip(head, seen, strict=True) if mask.sum() > 1]
        variance = np.mean([np.mean((row - row.mean()) ** 2) for row in several])
        found["beta"].append(np.sqrt(WIDTH * variance))
        singular = np.linalg.svd(np.asarray(rows), compute_uv=False)
        found["rank"].append(np.exp(np.sum(entr(singular / singular.sum()))))
    return {name: np.asarray(value) for name, value in found.items()}


def agree(found, known, rtol):
    mass = known["mass"]
    pairs = {
        "attention_entropy": known["entropy"],
        "attention_entropy_share": known["share"],
        "sink_share": mass.max(1),
        "first_mass": mass[:, 0],
        "beta_logits": known["beta"],
        "column_mass": mass.mean(0),
        "attention_rank": known["rank"],
    }
    for name, value in pairs.items():
        np.testing.assert_allclose(found[name], value, rtol=rtol, atol=rtol, err_msg=name)
    np.testing.assert_array_equal(found["sink_token"], mass.argmax(1))


def masks(heads, n):
    """(mask given, causal, the additive matrix it means)."""
    rng = np.random.default_rng(7)
    future = np.triu(np.ones((n, n), bool), 1)
    seen = rng.random((n, n)) < 0.5
    seen[:, 2] = True
    seen[4] = False  # a row that sees nothing: no entropy, no part of the other means
    bias = rng.normal(size=(heads, n, n))
    lowest = torch.finfo(torch.float32).min
    hide = np.where(seen, 0.0, -np.inf)
    padding = np.arange(n) < n - 3
    causal = np.where(future, -np.inf, 0.0)
    return {
        "none": (None, False, 0.0),
        "causal": (None, True, causal),
        "bool": (torch.as_tensor(seen)[None, None], False, hide),
        "lowest": (torch.where(torch.as_tensor(seen), 0.0, lowest)[None], False, hide),
        "bias": (torch.as_tensor(bias + causal)[None], False, bias + causal),
        "padding and causal": (
            torch.as_tensor(padding)[None, None, None],
            True,
            causal + np.where(padding, 0.0, -np.inf),
        ),
    }


@pytest.mark.parametrize("name", masks(2, 5))
@pytest.mark.parametrize("rows", [None, 5])
def test_blocks_agree_with_the_full_matrix(name, rows):
    query, key = heads(6, 2, 23)
    mask, causal, added = masks(6, 23)[name]
    found = attention_statistics(
        query, key, mask=mask, causal=causal, scaling=SCALING, width=WIDTH, rank=True, rows=rows
    )
    agree(found, direct(query, key, np.broadcast_to(added, (6, 23, 23))), rtol=1e-10)


@pytest.mark.parametrize("name", masks(2, 5))
@pytest.mark.parametrize("n", [23, 190])
def test_calls_that_are_read_together_are_read_alone(name, n):
    """Grouped key heads; at 190 tokens two calls fill a block, and five make three groups."""
    calls = [heads(6, 2, n, seed=seed) for seed in range(5)]
    mask, causal, _ = masks(6, n)[name]
    how = {"mask": mask, "causal": causal, "scaling": SCALING, "width": WIDTH, "rank": n < 50}
    query, key = (torch.stack(part) for part in zip(*calls, strict=True))
    for row, call in zip(batched_attention_statistics(query, key, **how), calls, strict=True):
        alone = attention_statistics(*call, **how)
        assert alone.keys() == row.keys()
        for kind, value in alone.items():
            np.testing.assert_allclose(row[kind], value, rtol=1e-12, atol=1e-15, err_msg=kind)


@pytest.mark.parametrize("causal", [False, True])
def test_single_precision_is_enough(causal):
    """Scores with a common part of about 100 per row lose nothing that shows."""
    query, key = heads(4, 4, 40, kind=torch.float32)
    added = np.broadcast_to(
        np.where(np.triu(np.ones((40, 40)), 1) * causal, -np.inf, 0), (4, 40, 40)
    )
    query, key = 2 * query, key + 20.0
    found = attention_statistics(query, key, causal=causal, scaling=SCALING, width=WIDTH, rank=True)
    agree(found, direct(query, key, added), rtol=3e-5)


def test_flat_and_sharp_heads_by_hand():
    """Zero queries look everywhere alike; long ones at one token. Rank 1 both times."""
    n, key = 8, torch.eye(8, dtype=torch.float64)[None].repeat(2, 1, 1)
    query = torch.zeros(2, n, 8, dtype=torch.float64)
    query[1, :, 5] = 1e3
    found = attention_statistics(query, key, causal=False, scaling=1.0, width=16, rank=True)
    np.testing.assert_allclose(found["attention_entropy"], [np.log(n), 0.0], atol=1e-12)
    np.testing.assert_allclose(found["attention_entropy_share"], [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found["sink_share"], [1 / n, 1.0])
    np.testing.assert_allclose(found["first_mass"], [1 / n, 0.0], atol=1e-12)
    assert found["sink_token"][1] == 5
    # One score of 1000 among seven zeros has the standard deviation 1000 sqrt(7)/8.
    np.testing.assert_allclose(found["beta_logits"], [0.0, 4 * 1e3 * np.sqrt(7) / 8], atol=1e-9)
    np.testing.assert_allclose(found["attention_rank"], [1.0, 1.0])
    np.testing.assert_allclose(found["column_mass"].sum(), 1.0)


def test_beta_of_isotropic_tokens_is_beta():
    """<q, k> = beta <x, y> on independent unit tokens in R^d: beta_logits returns beta."""
    rng, beta, d = np.random.default_rng(11), 6.0, 64
    tokens = rng.normal(size=(1, 600, d))
    tokens = torch.as_tensor(tokens / np.linalg.norm(tokens, axis=-1, keepdims=True))
    other = torch.as_tensor(np.linalg.qr(rng.normal(size=(d, d)))[0])
    found = attention_statistics(tokens, tokens @ other, causal=False, scaling=beta, width=d)
    assert found["beta_logits"][0] == pytest.approx(beta, rel=0.03)


def test_scaling_scales_beta_and_sharpens():
    query, key = heads(3, 1, 30)
    mild, warm = (
        attention_statistics(query, key, causal=True, scaling=scaling, width=WIDTH)
        for scaling in (0.1, 0.2)
    )
    np.testing.assert_allclose(warm["beta_logits"], 2 * mild["beta_logits"], rtol=1e-12)
    assert (warm["attention_entropy"] < mild["attention_entropy"]).all()


def test_one_token_and_nothing_visible():
    query, key = heads(2, 2, 1)
    alone = attention_statistics(query, key, causal=True, scaling=1.0, width=4)
    assert alone["attention_entropy"].tolist() == [0.0, 0.0]
    assert alone["first_mass"].tolist() == [1.0, 1.0]
    assert np.isnan(alone["attention_entropy_share"]).all()
    blind = attention_statistics(
        query, key, mask=torch.zeros(1, 1, dtype=torch.bool), causal=False, scaling=1.0, width=4
    )
    assert blind["attention_entropy"].tolist() == [0.0, 0.0]
    assert np.isnan(blind["attention_entropy_share"]).all()
    assert blind["column_mass"].tolist() == [0.0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"query": torch.ones(1, 4, 9, 7)}, "one text at a time"),
        ({"key": torch.ones(3, 9, 7)}, "3 key heads must divide the 4 query heads"),
        ({"key": torch.ones(2, 8, 7)}, "key heads, n, k"),
        ({"mask": torch.ones(1, 1, 9, 8, dtype=torch.bool)}, "must broadcast to"),
        ({"mask": torch.ones(2, 1, 9, 9, dtype=torch.bool)}, "must broadcast to"),
    ],
)
def test_bad_input_is_a_sentence(change, says):
    call = {"query": torch.ones(4, 9, 7), "key": torch.ones(2, 9, 7), **change}
    with pytest.raises(InputError, match=says):
        attention_statistics(**call, causal=False, scaling=1.0, width=4)
