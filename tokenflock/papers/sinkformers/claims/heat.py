"""Small bandwidths: attention that repels from its own average is the heat equation."""

from __future__ import annotations

import numpy as np

from ....dynamics import Dynamics
from ....integrate import Save, solve
from ....kinds import L2, Softmax
from ....ledger.claim import Case, Comparison, at_most, broken, equals
from ....ledger.measure import field
from ....meanfield.moments import gaussian_density
from ....measure import Measure
from ....space import Euclidean
from ....terms import Attention, Drift
from ....weights import Weights
from .. import PAPER, closed_forms
from .shared import KINDS, NUMBER

# Two Gaussians on the line: mass, mean, deviation.
MIXTURE = ((0.6, -0.8, 0.5), (0.4, 0.9, 0.4))
LINE = (-3.2, 2.9)
TOKENS = 161
# Where the density is large enough to speak of its gradient.
BULK = 0.1


def shift(kind: str, bandwidth: float) -> Dynamics:
    """The field E[y|x] - x under scores x y/eps (`sinkhorn`, `softmax`) or a Gaussian kernel (`gauss`)."""
    attention = {
        "sinkhorn": Attention(None, 1.0 / bandwidth, KINDS["sinkhorn"]),
        "softmax": Attention(None, 1.0 / bandwidth, Softmax()),
        "gauss": Attention(None, 0.5 / bandwidth, L2()),
    }[kind]
    return Dynamics(None, attention + Drift(-1.0), label=kind)


def on_a_line(density: np.ndarray, x: np.ndarray) -> Measure:
    """Equally spaced tokens with the density as their mass: sums are integrals to rounding."""
    return Measure(Euclidean(1), x[:, None], density)


def mixture(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Density and (log density)' of the mixture."""
    parts = np.array([m * np.exp(-((x - c) ** 2) / (2 * s**2)) / s for m, c, s in MIXTURE])
    parts /= np.sqrt(2 * np.pi)
    slopes = np.array([-(x - c) / s**2 for _, c, s in MIXTURE])
    return parts.sum(axis=0), (parts * slopes).sum(axis=0) / parts.sum(axis=0)


@PAPER.claim(
    "heat-shift",
    where=f"the small-bandwidth limit ({NUMBER})",
    says="Under K^inf with scores x.y/eps the average seen by a token lies (eps/2) grad log rho away from "
    "it, up to O(eps^2), whatever the density rho.",
    given={"kind": "sinkhorn", "bandwidth": 0.01},
    options={"kind": ("sinkhorn", "gauss")},
    needs={
        "attention is doubly stochastic": lambda c: c.kind == "sinkhorn",
        "the bandwidth is small": lambda c: 0 < c.bandwidth <= 0.02,
    },
    resolves={"tokens are closer than the bandwidth": lambda c: c.bandwidth >= 0.005},
    control=broken("a Gaussian kernel with normalised rows moves twice as far", kind="gauss"),
    note="Derived here: K^inf = a(x) N_eps(x - y) a(y) with a ~ rho^{-1/2}, so that the shift is eps grad "
    "log(N_eps * (a rho)).",
)
def heat_shift(case: Case) -> list[Comparison]:
    """Shifts over eps at eps and eps/2: their extrapolation, and the order of the error.

    The error is c_1 eps + c_2 eps^2; extrapolated, c_2 eps^2/2 of it is left, with c_2 about 9: 5e-4 at
    eps = 0.01, and 2e-3 at the largest eps. The ratio of errors is 2 + O(eps) with the same constants.
    """
    x = np.linspace(*LINE, TOKENS)
    density, score = mixture(x)
    tokens, bulk = on_a_line(density, x), density > BULK
    coarse, fine = (
        field(shift(case.kind, eps), tokens)[bulk, 0] / eps
        for eps in (case.bandwidth, case.bandwidth / 2)
    )
    errors = [np.max(np.abs(found - score[bulk] / 2)) for found in (coarse, fine)]
    return [
        equals("shift over eps, extrapolated", 2 * fine - coarse, score[bulk] / 2, 1e-2),
        equals("error at eps over error at eps/2", errors[0] / errors[1], 2.0, 0.1),
    ]


@PAPER.claim(
    "localises",
    where=f"the small-bandwidth limit with dot products ({NUMBER})",
    says="With scores x.y/eps only doubly stochastic attention sees the neighbourhood of a token: on N(0, S) "
    "the slope of E[y|x] - x is sqrt(1 + u^2) - u - 1, u = eps/(2S), which tends to -eps/(2S).",
    given={"kind": "sinkhorn", "variance": 0.5, "bandwidth": 0.02},
    options={"kind": ("sinkhorn", "softmax")},
    needs={
        "attention is doubly stochastic": lambda c: c.kind == "sinkhorn",
        "the bandwidth is small": lambda c: 0 < c.bandwidth < c.variance,
    },
    resolves={"tokens are closer than the bandwidth": lambda c: c.bandwidth >= 0.01},
    control=broken("softmax of the same scores looks S/eps times as far away", kind="softmax"),
    note="Sinkhorn's potentials absorb e^{|y|^2/2eps}, by which dot products and a Gaussian kernel differ.",
)
def localises(case: Case) -> list[Comparison]:
    """P6c-3: the slope at the tokens within two deviations, and its limit with the next term as bound."""
    x = np.linspace(-6.5, 6.5, TOKENS) * np.sqrt(case.variance)
    tokens = on_a_line(np.exp(-(x**2) / (2 * case.variance)), x)
    inner = (np.abs(x) < 2 * np.sqrt(case.variance)) & (np.abs(x) > 0.1)
    slope = field(shift(case.kind, case.bandwidth), tokens)[inner, 0] / x[inner]
    limit = -case.bandwidth / (2 * case.variance)
    expected = closed_forms.sinkhorn_shift(case.variance, case.bandwidth)
    return [
        equals("slope of E[y|x] - x", slope, expected, 1e-6),
        equals("slope against -eps/(2S)", slope, limit, limit**2 / 2 + 1e-6),
    ]


@PAPER.claim(
    "heat-flow",
    where=f"the heat equation as a limit ({NUMBER})",
    says="The flow x' = -(2/eps)(E[y|x] - x) of K^inf tends to the heat equation as eps -> 0: a Gaussian's "
    "covariance grows as Sigma_0 + 2t I, short of it by at most (eps/2c) log(1 + ct/S), c = 2 - eps/2S.",
    given={"kind": "sinkhorn", "bandwidth": 0.2, "t": 1.0},
    at_paper_scale={"bandwidth": 0.05},
    options={"kind": ("sinkhorn", "softmax")},
    needs={"attention is doubly stochastic": lambda c: c.kind == "sinkhorn"},
    control=broken("softmax of the same scores contracts where heat spreads", kind="softmax"),
    note="Solved and bounded here for Gaussians, by eigenvalues of the covariance; mean and covariance are "
    "the engine's own equations.",
    rtol=1e-10,
    atol=1e-12,
)
def heat_flow(case: Case) -> list[Comparison]:
    """Variances at t against the closed form, and what they lack of S_0 + 2t over its bound."""
    rng = np.random.default_rng(case.seed)
    frame = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    variances = np.array([0.3, 1.1])
    rate, eye = 2.0 / case.bandwidth, np.eye(2)
    weights = Weights(B=eye / case.bandwidth, V=-rate * eye)
    model = Dynamics(None, Attention(weights, 1.0, KINDS[case.kind]) + Drift(rate))
    start = gaussian_density(np.zeros(2), (frame * variances) @ frame.T)
    save = Save(at=np.linspace(0.0, case.t, 9), states=True)
    run = solve(model, start, case.t, rtol=case.rtol, atol=case.atol, save=save, throw=False)
    found = np.linalg.eigvalsh(np.asarray(run.final.state)[1:])
    exact = closed_forms.sinkhorn_heat_variance(case.t, variances, case.bandwidth)
    bound = closed_forms.heat_deficit_bound(case.t, variances, case.bandwidth)
    return [
        equals("variances", found, exact, 1e-7),
        at_most(
            "what they lack of heat, over its bound", (variances + 2 * case.t - found) / bound, 1.0
        ),
    ]
