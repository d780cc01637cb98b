"""Chains of random layers: collapse, homogenisation, exponents, and thousands of them in one call."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp

import tokenflock as flock
from tokenflock import random_depth as rd
from tokenflock import theory
from tokenflock.errors import InputError
from tokenflock.papers.homogenized import flat_pair

D = 4
TOKENS = flock.equiangular(flock.Sphere(D), 3, 0.1)
LAW = rd.HeadLaw.gaussian(D, 1.0)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_chain_however_many_run_beside_it():
    few, many = (
        rd.random_chains(LAW, TOKENS, 6, 0.2, chains=count, every=3, observe=[rd.overlaps])
        for count in (2, 5)
    )
    np.testing.assert_allclose(few.array("overlaps"), many.array("overlaps")[:2], atol=1e-14)
    assert np.std(many.array("overlaps")[:, -1, 0]) > 0.01
    np.testing.assert_allclose(rd.layers_of(few), [0, 3, 6])
    np.testing.assert_allclose(rd.diffusive_time(few), [0, 0.12, 0.24])
    assert few.array("overlaps")[0, 0] == pytest.approx(0.1)


@pytest.mark.slow
def test_a_deterministic_law_is_the_layered_network():
    """V = A = I in every layer is SA with Layers(eta)."""
    x0 = flock.uniform(flock.Sphere(D), 3, seed=1)
    law = rd.HeadLaw.deterministic(2.0)
    ours = rd.random_chains(law, x0, 4, 0.25, chains=1).array("final_points")[0]
    run = flock.solve(flock.SA(2.0), x0, 1.0, method=flock.Layers(0.25))
    np.testing.assert_allclose(ours, run.states[-1], atol=1e-13)


def test_impossible_chains_are_refused():
    with pytest.raises(InputError, match="multiple of every"):
        rd.random_chains(LAW, TOKENS, 5, 0.1, chains=2, every=2)
    with pytest.raises(InputError, match="give chains="):
        rd.random_chains(LAW, TOKENS, 5, 0.1)
    plane = flock.gaussian(flock.Euclidean(D), 3, seed=0)
    with pytest.raises(InputError, match="need a sphere"):
        rd.random_chains(LAW, plane, 5, 0.1, chains=1)


@pytest.mark.parametrize(
    ("law", "options", "words"),
    [
        (rd.HeadLaw.gaussian(8, 1.0), {}, "scales of d=8"),
        (rd.HeadLaw.deterministic(1.0, V=np.eye(3)), {}, "mean of V"),
        (LAW, {"layers": 2.5}, "whole number"),
        (LAW, {"step": np.inf}, "finite"),
        (LAW, {"observe": "overlaps"}, "takes a list of observables"),
        (LAW, {"layers": 10**8, "every": 1, "observe": [rd.overlaps]}, "GiB"),
        (
            rd.HeadLaw(
                rd.Values(0.5, entries=rd.Normal(), common=False),
                rd.ProductScores(0.5),
                rd.AmongTokens(1.0),
            ),
            {"quenched": True},
            "one V for all tokens",
        ),
    ],
)
def test_what_would_be_another_experiment_is_refused(law, options, words):
    with pytest.raises(InputError, match=words):
        rd.random_chains(
            **{"law": law, "x0": TOKENS, "layers": 4, "step": 0.1, "chains": 20} | options
        )


@pytest.mark.slow
def test_depth_to_collapse_is_the_median_of_the_chains_within_the_longest_time():
    """Against the same chains looked at one by one, whatever the step has of layers to `longest`."""
    table = rd.depth_to_collapse(
        [4], [2], [1.0], step=(0.5, 0.3), chains=33, longest=6.0, level=0.8
    )
    x0 = flock.equiangular(flock.Sphere(4), 2, 0.0)
    for step, every in ((0.5, 1), (0.3, 1)):
        layers = int(6.0 / step**2 + 1e-9)
        run = rd.random_chains(LAW, x0, layers, step, chains=33, every=every)
        met = run.array("mean_overlap") >= 0.8
        first = np.where(met.any(axis=1), met.argmax(axis=1), np.inf)
        cell = table.sel(d=4, n=2, beta=1.0, heads=1, step=step)
        assert float(cell.arrived) == pytest.approx(np.isfinite(first).mean())
        assert float(cell.layers) == np.median(first)
        assert float(cell.tau) == pytest.approx(np.median(first) * step**2)
    with pytest.raises(InputError, match="steps eta"):
        rd.depth_to_collapse([4], [2], [1.0], step=[0.0])


def test_slow_paths_are_known_at_any_time():
    """k = 2: z is a Brownian motion of variance 2t, also between steps and before the first."""
    times = np.array([0.01, 0.25, 0.5, 0.75, 1.0])
    z = rd.slow_paths(times, 2.0, 0.0, paths=20_000, dt=0.5)
    np.testing.assert_allclose(z.var(axis=0) / (2 * times), 1.0, atol=0.04)
    with pytest.raises(InputError, match="raise dt"):
        rd.slow_paths([np.inf], 2.0)


@pytest.mark.slow
def test_chains_have_the_law_of_the_engines_random_weights():
    """The engine draws V and B = A^T themselves, at O(d^3) a layer; KS over 600 runs each, p > 0.01."""
    eta, samples, layers = 0.25, 600, 8
    ours = rd.random_chains(
        LAW, TOKENS, layers, eta, heads=2, chains=samples, observe=[rd.overlaps]
    )
    weights = flock.random_weights.RandomWeights(
        d=D,
        seed=3,
        heads=2,
        B=flock.random_weights.Product(1 / D),
        V=flock.random_weights.Ginibre(D**-0.5 / 2),
        period=eta,
        per="sample",
    )
    x0 = TOKENS.at(jnp.broadcast_to(TOKENS.points, (samples, *TOKENS.points.shape)))
    run = flock.solve(flock.SA(1.0, weights=weights), x0, eta * layers, method=flock.Layers(eta))
    end = np.asarray(run.array("states", time=-1))
    for index, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        theirs = np.sum(end[:, i] * end[:, j], axis=-1)
        assert ks_2samp(ours.array("overlaps")[:, -1, index], theirs).pvalue > 0.01


@pytest.mark.slow
def test_p3_2_flat_attention_follows_the_logistic():
    """P3-2: b = 0, d = 400, n = 8, gamma0 = 0.1, eta = 0.1, 600 layers, 80 runs.

    Tolerance: 4 standard errors of the mean, the O(1/d) of the exact drift, and the step eta^2.
    """
    x0 = flock.equiangular(flock.Sphere(400), 8, 0.1)
    run = rd.random_chains(rd.HeadLaw.gaussian(400, 0.0), x0, 600, 0.1, chains=80, every=60)
    m = run.array("mean_overlap")
    expected = theory.logistic_overlap(rd.diffusive_time(run), m[0, 0])
    gap = np.abs(m.mean(axis=0) - expected)
    assert np.all(gap < 4 * m.std(axis=0) / np.sqrt(80) + 2 / 400 + 0.1**2 / 4)
    assert gap.max() < 0.02
    assert m[:, -1].min() > 0.9


@pytest.mark.slow
def test_p3_3_only_the_ratio_of_squared_step_and_heads_counts():
    """P3-3: (eta, H) = (0.1, 1) and (0.2, 4) give the same law of R(tau); twice the ratio gives another."""
    runs = {
        (eta, heads): rd.random_chains(
            LAW, TOKENS, 100, eta, heads=heads, chains=500, seed=heads, observe=[rd.overlaps]
        ).array("overlaps")[:, -1, 0]
        for eta, heads in [(0.1, 1), (0.2, 4), (0.2, 1)]
    }
    assert ks_2samp(runs[0.1, 1], runs[0.2, 4]).pvalue > 0.01
    assert ks_2samp(runs[0.1, 1], runs[0.2, 1]).pvalue < 1e-6


@pytest.mark.slow
def test_p3_6_two_close_tokens_approach_at_the_flat_exponent():
    """P3-6: d log(1-R)/dtau = -(d-1)/d at b = 0; 4 standard errors (variance 4/d per tau) and eta^2."""
    d, eta, layers, chains = 8, 0.1, 600, 1500
    x0 = flock.equiangular(flock.Sphere(d), 2, 1 - 1e-4)
    run = rd.random_chains(
        rd.HeadLaw.gaussian(d, 0.0), x0, layers, eta, chains=chains, observe=[rd.gaps]
    )
    logs = np.log(run.array("gaps")[:, :, 0])
    tau = float(rd.diffusive_time(run)[-1])
    slope = (logs[:, -1] - logs[:, 0]) / tau
    error = np.sqrt(4 / d / tau / chains)
    assert slope.std() / np.sqrt(chains) == pytest.approx(error, rel=0.1)
    expected = theory.two_point_exponent(d, 0.0)
    assert expected == pytest.approx(-(d - 1) / d)
    assert slope.mean() == pytest.approx(float(expected), abs=4 * error + eta**2)


@pytest.mark.slow
def test_ten_thousand_chains_of_depth_two_thousand_in_one_call():
    """Scores are drawn but weigh nothing (beta = 0), so that E R is known to 1e-6 at every depth."""
    d, eta = 4, 0.1
    law = rd.HeadLaw(
        rd.Values(d**-0.5, entries=rd.Normal()), rd.ProductScores(d**-0.5), rd.AmongTokens(0.0)
    )
    x0 = flock.equiangular(flock.Sphere(d), 2, 0.0)
    run = rd.random_chains(
        law, x0, 2000, eta, chains=10_000, every=200, seed=1, observe=[rd.overlaps]
    )
    R = run.array("overlaps")[:, :, 0]
    assert R.shape == (10_000, 11)
    for look, layers in enumerate(rd.layers_of(run)):
        exact = flat_pair.chain_expectation(lambda r: r, int(layers), eta, d)(0.0)
        error = 4 * R[:, look].std() / np.sqrt(10_000) + 1e-6
        assert R[:, look].mean() == pytest.approx(float(exact), abs=error)


@pytest.mark.slow
def test_p3_11_clouds_in_the_same_weights_stay_together():
    """P3-11: two independent clouds meet the same layers: W2 between them falls with n; other weights: O(1).

    On S^2 the W2 of two samples of n is of order n^{-1/2}, so four times n halves it (here by 1.5 at least).
    The clouds start in a cap, where the weights carry them away as a whole.
    """
    from scipy.optimize import linear_sum_assignment

    def w2(one, other):
        cost = np.sum((one[:, None] - other[None]) ** 2, axis=-1)
        rows, columns = linear_sum_assignment(cost)
        return np.sqrt(cost[rows, columns].mean())

    def distances(n, seeds):
        law = rd.HeadLaw.gaussian(3, 1.0)
        ends = []
        for seed in seeds:
            x0 = flock.starts.cap(flock.Sphere(3), n, 100 + seed, radius=0.7, samples=2)
            ends.append(
                rd.random_chains(law, x0, 60, 0.1, seed=seed, quenched=True).array("final_points")
            )
        together = [w2(*pair) for pair in ends]
        apart = [w2(ends[i][0], ends[i - 1][1]) for i in range(len(ends))]
        return np.mean(together), np.mean(apart)

    small, _ = distances(32, range(12))
    large, independent = distances(128, range(12))
    assert small / large > 1.5
    assert independent > 3 * large
