"""Limits in the step: the ballistic and the modified equation, the weak error of the diffusion."""

from __future__ import annotations

import jax.random as jr
import numpy as np

from ... import theory
from ...dynamics import Dynamics
from ...integrate import solve
from ...measure import Measure, uniform
from ...random_depth import HeadLaw, ballistic, modified, random_chains
from ...random_depth.laws import AmongTokens, Normal, ProductScores, Values
from ...space import Sphere
from ..core import Case, Comparison, at_least, broken, equals, misprint
from .paper import NUMBER, PAPER, standard_error

HEAD = {"n": 4, "d": 3, "beta": 1.5, "t": 1.0, "eta": 0.05}


@PAPER.claim(
    "ballistic-rate",
    where=f"corollary on the ODE limit ({NUMBER})",
    says="Without noise the layers follow X' = F(X) with an error of order eta, not eta^2.",
    given={**HEAD, "order": 1.0, "time": "kept"},
    at_paper_scale={"n": 16, "eta": 0.0125},
    options={"time": ("kept", "stretched")},
    needs={"the time is t = eta layer": lambda c: c.time == "kept"},
    control=broken(
        "a clock that runs 20 % faster leaves an error that does not fall", time="stretched"
    ),
    errata=[misprint("printed is eta (t+1) max(eta, alpha), with an extra eta", order=2.0)],
    note="A head that is no gradient, the same in every layer (alpha = 0).",
)
def ballistic_rate(case: Case) -> list[Comparison]:
    """log2 of the errors at eta and eta/2, +-0.15."""
    stretch = 1.2 if case.time == "stretched" else 1.0
    exact = _flow(case, ballistic(_head(case), case.d), case.t * stretch)
    errors = [_distance(_layers(case, eta, 1), exact) for eta in (case.eta, case.eta / 2)]
    return [equals("order in eta", np.log2(errors[0] / errors[1]), case.order, 0.15)]


@PAPER.claim(
    "modified-equation",
    where=f"weak error against the modified equation ({NUMBER})",
    says="At the times of layers the layers follow X' = F - (eta/2) grad_F F with an error of order eta^2.",
    given={**HEAD, "layer": "whole", "equation": "modified", "looks": "at layers"},
    at_paper_scale={"n": 16, "eta": 0.025},
    options={
        "layer": ("whole", "projected"),
        "equation": ("modified", "plain"),
        "looks": ("at layers", "between"),
    },
    needs={
        "the modified equation is used": lambda c: c.equation == "modified",
        "at grid times": lambda c: c.looks == "at layers",
    },
    control=broken("the plain equation X' = F is only of order one", equation="plain"),
    errata=[
        misprint(
            "printed for all times, but the piecewise constant chain lags by half a layer in between",
            looks="between",
        )
    ],
    note="For layers that move by the whole B, not by P_x B, -eta <x, F> F is added to the drift.",
)
def modified_rate(case: Case) -> list[Comparison]:
    """log2 of the errors at eta and eta/2, 2 +- 0.15; `between` looks half a layer late."""
    errors = []
    for eta in (case.eta, case.eta / 2):
        projected = case.layer == "projected"
        model = modified(_head(case), case.d, eta, projected)
        model = ballistic(_head(case), case.d) if case.equation == "plain" else model
        late = eta / 2 if case.looks == "between" else 0.0
        errors.append(
            _distance(_layers(case, eta, 1, projected), _flow(case, model, case.t + late))
        )
    return [equals("order in eta", np.log2(errors[0] / errors[1]), 2.0, 0.15)]


def _head(case: Case) -> HeadLaw:
    """A generic V and A, the same in every layer."""
    random = np.random.default_rng(case.seed)
    V = np.eye(case.d) + 0.5 * random.normal(size=(case.d, case.d)) / np.sqrt(case.d)
    return HeadLaw.deterministic(
        case.beta, V, random.normal(size=(case.d, case.d)) / np.sqrt(case.d)
    )


def _start(case: Case) -> Measure:
    return uniform(Sphere(case.d), case.n, case.seed)


def _layers(case: Case, eta: float, chains: int, projected: bool = False) -> np.ndarray:
    layers = round(case.t / eta)
    run = random_chains(
        _head(case), _start(case), layers, eta, chains=chains, states=True, projected=projected
    )
    return run.tokens.values[0]


def _flow(case: Case, model: Dynamics, t: float) -> np.ndarray:
    run = solve(model, _start(case), t, rtol=case.rtol, atol=case.atol)
    return np.asarray(run.states[-1])


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.max(np.abs(one - other)))


@PAPER.claim(
    "many-heads",
    where=f"ballistic regime ({NUMBER})",
    says="With E V = I, many heads and small steps the tokens follow X' = P_x E_A m_A: the noise "
    "averages out like sqrt(eta/H).",
    given={
        "n": 4,
        "d": 3,
        "beta": 2.0,
        "t": 0.5,
        "eta": 0.02,
        "heads": 32,
        "chains": 64,
        "mean": 1.0,
    },
    at_paper_scale={"eta": 0.005, "heads": 128, "chains": 400},
    needs={"E V = I": lambda c: c.mean == 1},
    control=broken("with E V = 0 nothing is left but noise", mean=0.0),
    rtol=1e-6,
    atol=1e-8,
)
def many_heads(case: Case) -> list[Comparison]:
    """P3-4: E x(t) of the chain against the ODE; 4 standard errors, O(eta) of the layer, 4000 draws of A.

    The panel's own error: m_A has a spread below 1/2 in each coordinate, so over t it moves tokens by less
    than 4 t/(2 sqrt 4000).
    """
    law = _random_head(case, case.mean)
    x0 = _start(case)
    run = random_chains(
        law,
        x0,
        round(case.t / case.eta),
        case.eta,
        heads=case.heads,
        chains=case.chains,
        seed=case.seed,
        states=True,
    )
    tokens = run.tokens.values
    exact = _flow(
        case, ballistic(_random_head(case, 1.0), case.d, panel=4000, seed=case.seed), case.t
    )
    error = 4 * standard_error(tokens).max() + case.eta + 2 * case.t / np.sqrt(4000)
    return [equals("E x(t)", tokens.mean(axis=0), exact, float(error))]


def _random_head(case: Case, mean: float) -> HeadLaw:
    values = Values(case.d**-0.5, mean=mean, entries=Normal())
    return HeadLaw(values, ProductScores(case.d**-0.5), AmongTokens(case.beta))


@PAPER.claim(
    "weak-error",
    where=f"weak error under Gaussian heads ({NUMBER})",
    says="Under Gaussian heads E phi of the layers differs from that of the diffusion by O(eta) at most: "
    "in truth by O(eta^2).",
    given={"d": 8, "tau": 1.28, "start": 0.2, "eta": 0.2, "order": 2.0, "variance": 1.0},
    at_paper_scale={"eta": 0.1},
    needs={
        "sigma_V^2 = 1/d": lambda c: c.variance == 1,
        "d >= 3": lambda c: c.d >= 3,
        "the order is two": lambda c: c.order == 2,
    },
    control=broken("a V with 10 % more variance has another limit", variance=1.1),
    note="Two tokens at beta = 0, phi = R_12, both expectations by quadrature, without sampling: the order "
    "is two because V and -V are equally likely.",
)
def weak_error(case: Case) -> list[Comparison]:
    """P3-10: log2 of the errors at eta and eta/2; the next term is of relative order eta^2."""
    exact = theory.diffusion_expectation(lambda r: r, case.tau, int(case.d))(case.start)
    errors = []
    for eta in (case.eta, case.eta / 2):
        layers = round(case.tau / eta**2)
        step = eta * np.sqrt(case.variance)
        found = theory.chain_expectation(lambda r: r, layers, float(step), int(case.d))(case.start)
        errors.append(abs(float(found - exact)))
    order = np.log2(errors[0] / errors[1])
    return [
        at_least("order in eta", order, 1.0),
        equals("order in eta under Gaussian heads", order, case.order, 4 * case.eta**2),
    ]


@PAPER.claim(
    "variance-proxy",
    where=f"Gaussian heads ({NUMBER})",
    says="Under Gaussian heads F = 0 and the noise that moves a token has the variance sigma_V^2 (d-1) "
    "where |m| = 1.",
    given={"d": 6, "draws": 20_000, "part": "tangent"},
    at_paper_scale={"draws": 500_000},
    options={"part": ("tangent", "whole")},
    needs={"only the tangent part moves a token": lambda c: c.part == "tangent"},
    control=broken("without the projection the radial noise is counted too", part="whole"),
)
def variance_proxy(case: Case) -> list[Comparison]:
    """Mean and second moment of P_x V m over draws, for a fixed unit m and x; 4 standard errors."""
    random = np.random.default_rng(case.seed)
    x, m = random.normal(size=(2, case.d))
    x, m = x / np.linalg.norm(x), m / np.linalg.norm(m)
    V = np.asarray(Normal().sample(jr.key(case.seed), (case.draws, case.d, case.d))) / np.sqrt(
        case.d
    )
    push = V @ m
    push = push - np.outer(push @ x, x) if case.part == "tangent" else push
    squares = np.sum(push**2, axis=1)
    return [
        equals("E P V m", push.mean(axis=0), 0.0, float(4 * standard_error(push).max())),
        equals(
            "E |P V m|^2",
            squares.mean(),
            theory.variance_proxy(case.d),
            float(4 * standard_error(squares)),
        ),
    ]
