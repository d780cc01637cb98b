"""How random layers move the overlaps R_ij = <x_i, x_j>: drift, spread, collapse, common noise."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import ks_2samp

from .... import theory
from ....errors import require
from ....ledger.claim import Case, Comparison, at_least, at_most, broken, equals
from ....random_depth import diffusive_time, gaps, overlaps, random_chains, simplex_moments
from ....random_depth.laws import HeadLaw
from ....space import Sphere, normalise
from ....starts import cap, uniform
from .. import PAPER
from .shared import (
    COMMON,
    FLAT,
    NUMBER,
    SMALL_STEP,
    gaussian_heads,
    layers_in,
    simplex_start,
    standard_error,
)


@PAPER.claim(
    "overlap-drift",
    where=f"overlap drift ({NUMBER})",
    says="One layer moves the overlaps by (eta^2/H) D_ij on average, D_ij = ((d-2+R_ij^2) s_ij - "
    "(d-1) R_ij (s_ii+s_jj)/2)/d, and spreads them by (eta^2/H)(1-R_ij^2)(s_ii+s_jj-2 R_ij s_ij)/d.",
    given={"n": 4, "d": 6, "beta": 1.5, "eta": 0.05, "heads": 2, "draws": 8000, "common": 1},
    at_paper_scale={"draws": 500_000},
    needs=COMMON,
    resolves=SMALL_STEP,
    control=broken("another V for every token leaves no force between the tokens", common=0),
    note="s_ij = E_A <m_A(x_i), m_A(x_j)> by as many draws; V and -V are averaged. The spread is derived.",
)
def drift(case: Case) -> list[Comparison]:
    """Tolerance: 4 standard errors of both means, and the next order, eta^2/H times a number below 2."""
    require(case.n >= 2, f"an overlap needs two tokens, got n={case.n}")
    require(case.eta >= 1e-4, f"below eta = 1e-4 rounding is all that is seen, got {case.eta:g}")
    x = uniform(Sphere(case.d), case.n, case.seed).points
    clock = case.eta**2 / case.heads
    change, attended = _one_layer(gaussian_heads(case), x, case.eta, case.heads, _keys(case))
    change, attended = np.asarray(change) / clock, np.asarray(attended)
    R, s = np.asarray(x @ x.T), attended.mean(axis=0)
    pairs = np.triu_indices(case.n, 1)
    # D and the variation are sums of s_ij with weights of total size at most 2 and 4/d.
    own = 4 * standard_error(attended).max()
    found = []
    for name, values, expected, weight in (
        ("drift of R_ij", change.mean(axis=1), theory.gram_drift(R, s, case.d), 2.0),
        (
            "variance rate",
            (change**2).mean(axis=1) * clock,
            theory.gram_variation(R, s, case.d),
            1.0,
        ),
    ):
        error = 4 * standard_error(values)[pairs].max() + weight * own + 2 * clock
        found.append(equals(name, values.mean(axis=0)[pairs], expected[pairs], float(error)))
    return found


def _keys(case: Case) -> jax.Array:
    return jr.split(jr.key(case.seed), case.draws)


@functools.partial(jax.jit, static_argnums=3)
def _one_layer(
    law: HeadLaw, x: jax.Array, eta: jax.Array, heads: int, keys: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Changes of the Gram matrix under +-V (draw, sign, n, n), and <m_i, m_j> of another A (draw, n, n)."""
    log_weights = jnp.log(jnp.full(x.shape[0], 1.0 / x.shape[0]))

    def one(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        push = eta * law.displacement(key, x, log_weights, heads)
        ends = normalise(jnp.stack([x + push, x - push]))
        m = law.attending.sampled(law.scores, jr.fold_in(key, 1), x, log_weights)
        return ends @ ends.swapaxes(1, 2) - x @ x.T, m @ m.T

    return jax.vmap(one)(keys)


@PAPER.claim(
    "logistic-collapse",
    where=f"high temperature ({NUMBER})",
    says="At high temperature the mean overlap n^{-2} sum R_ij follows u' = u(1-u) in the time "
    "(eta^2/H) layer, up to O(1/d) and noise of size d^{-1/2}.",
    given={"n": 8, "d": 128, "gamma": 0.1, "beta": 0.0, "eta": 0.2, "chains": 64, "common": 1},
    at_paper_scale={"d": 400, "eta": 0.1, "chains": 80},
    needs={
        "beta <= 1": lambda c: c.beta <= 1,
        "gamma >= 0": lambda c: c.gamma >= 0,
        **COMMON,
    },
    resolves={**SMALL_STEP, "d >= 16": lambda c: c.d >= 16},
    control=broken("another V for every token leaves no force between the tokens", common=0),
)
def logistic(case: Case) -> list[Comparison]:
    """Mean over chains at tau = 0.8, 1.6, ..., 4.8 (P3-2).

    Tolerance: 4 standard errors; drift of the exact equation off by (1-u) at most 2/d, over a time of
    order 1 during which the logistic contracts; step error eta^2/4 (measured orders are eta^2 with a small
    constant); second order in beta.
    """
    every = layers_in(0.8, case.eta**2)
    run = random_chains(
        gaussian_heads(case),
        simplex_start(case),
        6 * every,
        case.eta,
        chains=case.chains,
        seed=case.seed,
        every=every,
    )
    m = run.array("mean_overlap")
    expected = theory.logistic_overlap(diffusive_time(run), m[0, 0])
    error = 4 * standard_error(m).max() + 2 / case.d + case.eta**2 / 4 + case.beta**2 / case.d
    return [equals("mean overlap", m.mean(axis=0), expected, float(error))]


@PAPER.claim(
    "simplex-ode",
    where=f"simplex data ({NUMBER})",
    says="Tokens with equal overlaps gamma keep them nearly equal, gamma' = h(gamma) + O(1/d), "
    "h = (1-gamma)(gamma + g - gamma f).",
    given={
        "n": 4,
        "d": 128,
        "gamma": 0.1,
        "beta": 30.0,
        "eta": 0.2,
        "chains": 80,
        "draws": 2000,
        "common": 1,
    },
    at_paper_scale={"d": 256, "draws": 20_000},
    needs=COMMON,
    resolves={
        **SMALL_STEP,
        "d >= 16": lambda c: c.d >= 16,
        "beta^2 n <= 30 d: the bound grows with 1 + d sigma_A^4 beta^2 n": lambda c: (
            c.beta**2 * c.n <= 30 * c.d
        ),
    },
    control=broken("another V for every token leaves no force between the tokens", common=0),
    note="f and g by Monte Carlo on a grid of gamma; the exact drift of (G) is used, which differs from "
    "h by (gamma P - (2-gamma^2) S)/d.",
)
def simplex(case: Case) -> list[Comparison]:
    """Mean over chains and pairs at tau = 1, 2, 3.

    Tolerance: 4 standard errors over chains, the step eta^2/4, the spread of overlaps (variance rate at most
    2/d each, entering the drift through its curvature, below 1), and 4 errors of g.
    """
    require(case.n >= 2, f"an overlap needs two tokens, got n={case.n}")
    grid = np.linspace(min(case.gamma, max(-0.1, -0.5 / (case.n - 1))), 1.0, 8)
    moments = simplex_moments(
        list(grid), case.n, case.d, case.beta, draws=case.draws, seed=case.seed
    )
    every = layers_in(1.0, case.eta**2)
    run = random_chains(
        gaussian_heads(case),
        simplex_start(case),
        3 * every,
        case.eta,
        chains=case.chains,
        seed=case.seed,
        every=every,
        observe=[overlaps],
    )
    values = run.array("overlaps").mean(axis=-1)
    expected = theory.simplex_overlap(diffusive_time(run), case.gamma, moments.at(), case.d)
    error = 4 * standard_error(values).max() + case.eta**2 / 4 + 3 / case.d
    error += 4 * 3 * moments.g_error.max()
    return [equals("mean overlap of pairs", values.mean(axis=0), expected, float(error))]


@PAPER.claim(
    "homogenization",
    where=f"scaling of depth ({NUMBER})",
    says="Under Gaussian heads the law of the overlaps at tau = (eta^2/H) layer does not depend on eta "
    "and H separately.",
    given={
        "n": 3,
        "d": 4,
        "gamma": 0.1,
        "beta": 1.0,
        "eta": 0.1,
        "ratio": 2.0,
        "chains": 400,
        "common": 1,
    },
    at_paper_scale={"chains": 4000, "eta": 0.05},
    needs={"eta^2/H is kept: H grows by ratio^2": lambda c: c.ratio == 2.0, **COMMON},
    resolves={
        "eta^2 sqrt(chains) <= 0.25: laws at two steps differ by O(eta^2)": lambda c: (
            c.eta**2 * c.chains**0.5 <= 0.25
        )
    },
    control=broken("eta four times larger with H = 4 is another clock", ratio=4.0),
)
def homogenization(case: Case) -> list[Comparison]:
    """P3-3: Kolmogorov-Smirnov p-value of R_12 after 1/(4 eta^2) layers, H = 1 against H = 4."""
    law, x0 = gaussian_heads(case), simplex_start(case)
    layers = layers_in(0.25, case.eta**2)
    ends = [
        random_chains(
            law,
            x0,
            layers,
            eta,
            heads=heads,
            chains=case.chains,
            seed=2 * case.seed + heads,
            observe=[overlaps],
        ).array("overlaps")[:, -1, 0]
        for eta, heads in ((case.eta, 1), (case.ratio * case.eta, 4))
    ]
    test: Any = ks_2samp(*ends)
    return [at_least("p-value of equal laws", float(test.pvalue), 0.001)]


@PAPER.claim(
    "flat-exponent",
    where=f"derived from the overlap drift ({NUMBER})",
    says="At beta = 0 two close tokens approach each other: log(1 - R) falls at the rate (d-1)/d.",
    given={"n": 2, "d": 8, "gamma": 0.9999, "beta": 0.0, "eta": 0.2, "chains": 400, "common": 1},
    at_paper_scale={"eta": 0.1, "chains": 4000},
    needs={**FLAT, **COMMON},
    resolves={**SMALL_STEP, "gamma >= 0.99, close tokens": lambda c: c.gamma >= 0.99},
    control=broken("with another V for every token close tokens part", common=0),
)
def flat_exponent(case: Case) -> list[Comparison]:
    """P3-6: mean slope of log(1-R) over tau = 6. Tolerance: 4 standard errors and the step eta^2 (P3-10)."""
    run = random_chains(
        gaussian_heads(case),
        simplex_start(case),
        layers_in(6.0, case.eta**2),
        case.eta,
        chains=case.chains,
        seed=case.seed,
        observe=[gaps],
    )
    logs = np.log(run.array("gaps")[:, :, 0])
    slope = (logs[:, -1] - logs[:, 0]) / float(diffusive_time(run)[-1])
    error = 4 * standard_error(slope) + case.eta**2
    expected = theory.two_point_exponent(case.d, 0.0)
    return [equals("slope of log(1 - R)", slope.mean(), expected, float(error))]


@PAPER.claim(
    "high-temperature-moments",
    where="second order in beta (derived here)",
    says="For small beta s_ij = |xbar|^2 + beta^2 d sigma_A^4 (R_ij tr C^2 + xbar.E(y-xbar)|y-xbar|^2) "
    "+ O(beta^4).",
    given={"n": 5, "d": 6, "beta": 0.2, "draws": 40_000},
    at_paper_scale={"draws": 400_000, "beta": 0.1},
    needs={"beta is small": lambda c: c.beta <= 0.3},
    control=broken("at beta = 3 the expansion is of no use", beta=3.0),
)
def small_beta(case: Case) -> list[Comparison]:
    """P3-12: largest error over the largest correction; 4 standard errors (A and -A averaged) and 2 %."""
    require(
        case.n >= 2 and case.d >= 2 and case.beta > 0,
        f"the correction vanishes for n=1, d=1 or beta=0; got n={case.n}, d={case.d}, beta={case.beta:g}",
    )
    random = np.random.default_rng(case.seed)
    x = random.normal(size=(case.n, case.d)) + 0.5
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    left, right = np.einsum("id,srdk->srik", x, random.normal(size=(2, case.draws, case.d, case.d)))
    logits = case.beta / case.d * left @ right.swapaxes(1, 2)
    total = np.zeros((case.draws, case.n, case.n))
    for sign in (1, -1):
        weight = np.exp(sign * logits)
        m = weight / weight.sum(axis=-1, keepdims=True) @ x
        total += m @ m.swapaxes(1, 2) / 2
    predicted = theory.high_temperature_moments(x, case.beta, case.d**-0.5)
    size = float(np.abs(predicted - np.sum(x.mean(axis=0) ** 2)).max())
    error = 4 * standard_error(total).max() / size + 0.02
    return [
        equals(
            "s_ij over its correction", (total.mean(axis=0) - predicted) / size, 0.0, float(error)
        )
    ]


@PAPER.claim(
    "common-noise",
    where=f"propagation of chaos, conditional law ({NUMBER})",
    says="Tokens are independent only given the weights: two clouds of the same law in the same layers "
    "have the same random limit, so their distance vanishes with n.",
    given={"n": 96, "d": 3, "beta": 1.0, "eta": 0.1, "runs": 8, "weights": "same"},
    at_paper_scale={"n": 512},
    options={"weights": ("same", "independent")},
    needs={"both clouds meet the same weights": lambda c: c.weights == "same"},
    resolves={
        "d = 3 and beta <= 2, where the bound 3/2 is known": lambda c: c.d == 3 and c.beta <= 2,
        "n >= 48 and runs >= 4, so that a mean of W2 means something": lambda c: (
            c.n >= 48 and c.runs >= 4
        ),
        **SMALL_STEP,
    },
    control=broken(
        "with weights of their own the clouds go to different places", weights="independent"
    ),
)
def common_noise(case: Case) -> list[Comparison]:
    """P3-11: mean W2 of two clouds in a cap after tau = 1/2, over what it was at the start.

    On S^2 W2 starts at order n^{-1/2} (times sqrt(log n)). Where tokens attract on average (d >= 3) the
    common flow does not stretch it by more than 3/2; weights of their own carry caps O(1) apart.
    """
    law = HeadLaw.gaussian(case.d, case.beta)
    layers = layers_in(0.5, case.eta**2)
    starts, ends = [], []
    for run in range(case.runs):
        x0 = cap(Sphere(case.d), case.n, 1000 * case.seed + run, radius=0.7, samples=2)
        moved = random_chains(law, x0, layers, case.eta, seed=run, quenched=case.weights == "same")
        starts.append(_w2(*np.asarray(x0.points)))
        ends.append(_w2(*moved.array("final_points")))
    return [at_most("W2 of two clouds over its start", np.mean(ends) / np.mean(starts), 1.5)]


def _w2(one: np.ndarray, other: np.ndarray) -> float:
    """W2 of two equal clouds, chord distance, by assignment."""
    cost = np.sum((one[:, None] - other[None]) ** 2, axis=-1)
    return float(np.sqrt(cost[linear_sum_assignment(cost)].mean()))
