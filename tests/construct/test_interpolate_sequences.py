"""H11: exact interpolation by hardmax blocks (control.md 4.13), its conditioning, its refusals."""

import json

import numpy as np
import pytest

import tokenflock as flock
from tokenflock import construct
from tokenflock.construct import Attend, Push, error_table, forward, forward_all, random_sequences
from tokenflock.construct.sequences import collapse, sorted_pushes
from tokenflock.dynamics import Particles
from tokenflock.errors import InputError
from tokenflock.serialise import describe, rebuild


def one_block(block, tokens):
    """One block in NumPy, token by token, from the numbers of the block alone."""
    if isinstance(block, Push):
        return np.array(
            [x + block.outer * max(float(x @ block.inner) - block.threshold, 0.0) for x in tokens]
        )
    new = []
    for x in tokens:
        scores = np.array([float(x @ block.query) * float(y @ block.key) for y in tokens])
        behind = scores - scores.max()
        weights = np.exp(behind / block.temperature) if block.temperature else behind == 0
        new.append(block.value * (weights @ tokens) / weights.sum())
    return np.array(new)


def by_hand(blocks, tokens):
    """The network once more, block by block."""
    for block in blocks:
        tokens = one_block(block, tokens)
    return tokens


@pytest.fixture(scope="module")
def network():
    sequences, targets = random_sequences(6, 3, seed=2)
    return sequences, targets, flock.construct.interpolate_sequences(sequences, targets, seed=2)


def test_H11_errors_stay_below_1e_8():
    """N <= 20, d = 8, lengths 2 to 60."""
    table = error_table((1, 2, 5, 20), (8,), range(6))
    assert float(table.error.max()) < 1e-8
    assert np.all(table.blocks == 2 * table.N + 2)


@pytest.mark.slow
def test_H11_errors_over_sixty_seeds():
    table = error_table((5, 20), (2, 8), range(60))
    assert float(table.error.max()) < 1e-8
    large = error_table((40,), (16,), range(10))
    assert float(large.error.max()) < 1e-7
    # The amplification foretells the digits: eps times it, times the size and number of coordinates met.
    for found in (table, large):
        foretold = 2.2e-16 * found.amplification * 100 * found.N
        assert np.all(found.error < foretold)


def test_H11_the_forward_pass_is_the_networks(network):
    sequences, targets, made = network
    for tokens, target in zip(sequences, targets, strict=True):
        other = by_hand(made.blocks, tokens)
        np.testing.assert_allclose(made(tokens), other, atol=1e-11)
        np.testing.assert_allclose(other, np.broadcast_to(target, other.shape), atol=1e-11)


def test_H11_the_number_of_blocks_does_not_depend_on_lengths():
    for lengths in ((2, 2), (60, 60)):
        sequences, targets = random_sequences(4, 2, 1, lengths)
        made = flock.construct.interpolate_sequences(sequences, targets)
        assert len(made.blocks) == 10
        assert made.error(sequences, targets) < 1e-11


@pytest.mark.parametrize("part", [None, 20])
def test_a_run_of_the_engine_keeps_the_promise_layer_by_layer(network, part):
    """`solve` with `Layers(1)`: every block is what NumPy makes of it, and the end is the target."""
    sequences, targets, made = network
    if part is not None:
        made = made.softened(made.conditioning.attention_gap / part)
    tokens, target = sequences[2], targets[2]
    run = made.run(tokens)
    assert run.states.shape == (len(made.blocks) + 1, *tokens.shape)
    np.testing.assert_array_equal(run.states[0], tokens)
    for block, before, after in zip(made.blocks, run.states[:-1], run.states[1:], strict=True):
        expected = one_block(block, np.asarray(before))
        np.testing.assert_allclose(after, expected, rtol=1e-13, atol=1e-13)
    allowed = (
        1e-11
        if part is None
        else made.conditioning.softmax_error(made.conditioning.attention_gap / part)
    )
    assert np.max(np.abs(run.states[-1] - target)) < allowed
    np.testing.assert_allclose(made(tokens), run.states[-1], atol=1e-12)


def test_blocks_are_layers_of_their_model(network):
    """`Dynamics.layer` of the whole network at depth k is block k, and no other."""
    sequences, _, made = network
    model, mu = made.dynamics(), flock.from_array(flock.Euclidean(3), sequences[0])
    for k in (0, 1, 2, 13):
        found = model.layer(float(k), Particles(mu.points), mu, 1.0).points
        block = made.blocks[k]
        np.testing.assert_allclose(found, one_block(block, sequences[0]), rtol=1e-12, atol=1e-12)


def test_attention_keeps_its_digits_among_tokens_of_any_size():
    """x <- value mean: a residual connection that is taken away again would leave 1e-4 of rounding."""
    key = np.array([0.6, 0.8, 0.0])
    tokens = 2.0**40 * np.random.default_rng(3).normal(size=(7, 3))
    attend = Attend(key, key, value=2.0**-40)
    np.testing.assert_allclose(forward([attend], tokens), one_block(attend, tokens), rtol=1e-15)


def test_sequences_of_all_lengths_are_one_batch(network):
    """Filling up changes nothing, also for softmax, which would see a token more; one token is enough."""
    sequences, _, made = network
    for blocks in (made.blocks, made.softened(0.5).blocks):
        given = [*sequences, sequences[0][:1]]
        together = forward_all(blocks, given)
        for tokens, found in zip(given, together, strict=True):
            np.testing.assert_allclose(found, by_hand(blocks, tokens), atol=1e-11)


def test_a_network_needs_blocks_of_one_temperature():
    key = np.array([1.0, 0.0])
    with pytest.raises(InputError, match=r"same temperature, got \[0.0, 0.5\]"):
        construct.network([Attend(key, key), Attend(key, key, temperature=0.5)])
    with pytest.raises(InputError, match="no block"):
        forward([], np.ones((2, 2)))


def test_blocks_are_plain_data(network):
    sequences, _, made = network
    text = json.dumps(describe(made))
    again = rebuild(json.loads(text))
    np.testing.assert_array_equal(again(sequences[1]), made(sequences[1]))
    assert again.conditioning == made.conditioning
    numbers = sum(np.size(leaf) for block in made.blocks for leaf in vars(block).values())
    assert numbers == (2 * 6 + 2) * (2 * 3 + 1) + 1, "O(N d) numbers, and a temperature"


def test_a_repeated_extreme_token_does_no_harm():
    sequences, targets = random_sequences(3, 2, 5)
    doubled = [np.concatenate([tokens, tokens]) for tokens in sequences]
    made = flock.construct.interpolate_sequences(doubled, targets)
    assert made.error(doubled, targets) < 1e-12
    assert np.isfinite(made.conditioning.attention_gap)


@pytest.mark.parametrize("size", [2.0**-40, 2.0**40])
def test_the_size_of_the_data_does_not_matter(size):
    """Tokens times a power of two: the same blocks in other units, and the same error to the last digit."""
    sequences, targets = random_sequences(5, 4, 3)
    scaled = [size * tokens for tokens in sequences]
    plain, made = (
        flock.construct.interpolate_sequences(given, targets) for given in (sequences, scaled)
    )
    assert made.error(scaled, targets) == plain.error(sequences, targets) < 1e-11
    assert made.conditioning.amplification == plain.conditioning.amplification


AWAY = np.array([1.0, -0.5, 0.3])


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_where_the_tokens_lie_does_not_matter(offset):
    """The first neuron brings them to the origin: what comes of rounding is as if they had been there."""
    sequences, targets = random_sequences(5, 3, 0)
    moved = [tokens + offset * AWAY for tokens in sequences]
    plain, made = (
        flock.construct.interpolate_sequences(given, targets) for given in (sequences, moved)
    )
    assert made.error(moved, targets) < 1e-13
    assert made.conditioning.amplification == pytest.approx(
        plain.conditioning.amplification, rel=1e-15 * offset + 1e-12
    )
    assert len(made.blocks) == 12


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_targets_far_away_cost_the_digits_that_their_coordinates_lack(offset):
    """Not their square: errors are those of rounding numbers so large, times the same amplification."""
    sequences, targets = random_sequences(5, 3, 0)
    moved = [tokens - offset * AWAY for tokens in sequences]
    goals = targets + offset * AWAY
    made = flock.construct.interpolate_sequences(moved, goals)
    assert made.error(moved, goals) < made.conditioning.rounding_error < 1e-14 * offset
    assert made.conditioning.amplification < 23


def test_targets_too_far_away_are_refused_with_the_numbers():
    sequences, targets = random_sequences(5, 3, 0)
    with pytest.raises(InputError, match=r"errors of about 0\.005.* up to 1e\+12.* 23 times"):
        flock.construct.interpolate_sequences(sequences, targets + 1e12 * AWAY)


def test_softmax_at_a_small_temperature_is_as_good(network):
    """4.9: rows differ by at most 2(n-1)e^{-gap/tau} in l1; the bound holds, and falls to rounding."""
    sequences, targets, made = network
    shift, attend = made.blocks[:2]
    gap = made.conditioning.attention_gap
    errors = []
    for part in (5, 10, 20, 60):
        temperature = gap / part
        soft = made.softened(temperature)
        for tokens in sequences:
            moved = one_block(shift, tokens)
            scores = np.outer(moved @ attend.query, moved @ attend.key)
            rows = np.exp((scores - scores.max(1, keepdims=True)) / temperature)
            rows /= rows.sum(1, keepdims=True)
            hard = scores == scores.max(1, keepdims=True)
            off = np.abs(rows - hard / hard.sum(1, keepdims=True)).sum(1)
            assert np.all(off <= 2 * (len(tokens) - 1) * np.exp(-part) + 1e-14)
            np.testing.assert_allclose(
                forward(soft.blocks[1:2], moved), attend.value * rows @ moved, atol=1e-12
            )
        errors.append(soft.error(sequences, targets))
        assert errors[-1] <= made.conditioning.softmax_error(temperature) + 1e-10
    assert errors[0] > 1e-3 > 1e-10 > errors[-1]


def test_collapse_needs_queries_of_one_sign():
    """With a negative margin some tokens go to the opposite extreme: the shift is no decoration."""
    sequences, _ = random_sequences(3, 2, 0, (8, 8))
    key = np.array([0.6, 0.8])
    for margin, one_place in ((1.0, True), (-1.0, False)):
        ends = [forward(collapse(sequences, key, margin), tokens) for tokens in sequences]
        assert all(np.ptp(end, axis=0).max() < 1e-12 for end in ends) == one_place


def test_each_push_leaves_earlier_points():
    rng = np.random.default_rng(1)
    points, targets = rng.normal(size=(2, 7, 3))
    p = np.array([1.0, 0.0, 0.0])
    pushes, moved = sorted_pushes(points, targets, p, np.diag([0.0, 1.0, 1.0]))
    order = np.argsort(points[:, 0])
    now = points
    for count, push in enumerate(pushes):
        now = one_block(push, now)
        done = order[: count + 1]
        np.testing.assert_allclose(now[done, 1:], targets[done, 1:], atol=1e-12)
    np.testing.assert_allclose(moved, now, atol=1e-13)
    np.testing.assert_allclose(moved[:, 0], points[:, 0], atol=1e-14)


GOOD, GOALS = random_sequences(3, 2, 0)
REFUSED = [
    ([], np.zeros((0, 2)), "there is no sequence"),
    ([GOOD[0], GOOD[1][:0], GOOD[2]], GOALS, "sequence 1 must be an array of tokens"),
    ([GOOD[0], GOOD[1] * np.nan, GOOD[2]], GOALS, "sequence 1 has entries that are not finite"),
    ([GOOD[0], GOOD[1][:, :1], GOOD[2]], GOALS, r"same dimension, got d in \[1, 2\]"),
    ([x[:, :1] for x in GOOD], GOALS[:, :1], "needs d >= 2, got d=1"),
    (GOOD, GOALS[:2], r"shape \(3, 2\), got \(2, 2\)"),
    (GOOD, GOALS * np.inf, "targets must be finite"),
    (GOOD, GOALS[[0, 1, 0]], "targets 0 and 2 are the same point"),
    ([GOOD[0], GOOD[1], GOOD[1][::-1]], GOALS, "sequences 1 and 2 have the same extreme token"),
]


@pytest.mark.parametrize(("sequences", "targets", "words"), REFUSED)
def test_what_cannot_work_is_refused(sequences, targets, words):
    with pytest.raises(InputError, match=words):
        flock.construct.interpolate_sequences(sequences, targets)


def test_a_shared_token_is_refused_only_where_it_is_extreme_in_every_direction():
    """A token that two sequences share is harmless as long as some direction has other extremes."""
    shared = [np.concatenate([tokens, [[3.0, 0.0]]]) for tokens in GOOD]
    made = flock.construct.interpolate_sequences(shared, GOALS)
    assert made.error(shared, GOALS) < 1e-10
    with pytest.raises(InputError, match="temperature > 0"):
        made.softened(0.0)
    with pytest.raises(InputError, match="temperature > 0"):
        made.conditioning.softmax_error(-1.0)
    with pytest.raises(InputError, match="array of tokens"):
        made(np.zeros(2))
    assert isinstance(made.blocks[1], Attend)
