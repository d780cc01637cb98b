"""Stationary states with a perceptron are finitely many atoms, and how many an arc can hold."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ....dynamics import Dynamics
from ....kinds import Unnormalised
from ....ledger.claim import Case, Comparison, at_least, at_most, broken, misprint
from ....meanfield.landscape import CriticalPoint, certify, critical_near, find_critical
from ....measure import Measure, from_angles
from ....models import SA, USA
from ....terms.perceptron import GELU, RELU, Activation, Perceptron
from ....theory import perceptron as theory
from .. import PAPER
from .circle import Neurons, unit
from .spread import refusal

# What refuses a spread-out state must exceed its rounding, some 1e-15, by far.
REFUSED = 1e-9
CERTIFIED = 1e-12
CLOCK = Unnormalised("metastability")


def _neurons(case: Case, width: int = 2) -> Neurons:
    """Wells of depths around `strength` in random directions."""
    random = np.random.default_rng(case.seed)
    turns = random.uniform(0, 2 * np.pi, width)
    return Neurons(-case.strength * random.uniform(0.8, 1.2, width), unit(turns))


def _term(neurons: Neurons, activation: Activation = RELU) -> Perceptron:
    return Perceptron.gradient(neurons.omega, neurons.a, activation)


def _grid(count: int) -> Measure:
    return from_angles(2 * np.pi * (np.arange(count) + 0.5) / count)


def _descent(model: Dynamics, start: Measure, case: Case) -> CriticalPoint:
    return find_critical(model, start, merge=1e-6 / case.refine)


@PAPER.claim(
    "finitely-many-atoms",
    where="theorem on the circle, ReLU",
    says="On the circle, with a ReLU perceptron whose potential is not analytic, every stationary state is "
    "finitely many atoms.",
    given={"n": 16, "beta": 4.0, "strength": 0.5},
    at_paper_scale={"n": 128},
    resolves={
        "there are more tokens than arcs of length 1/(2 sqrt beta) (2 n > 4 pi sqrt beta)": (
            lambda c: 2 * c.n > 4 * np.pi * np.sqrt(c.beta)
        )
    },
    needs={"v is not analytic: there is a perceptron": lambda c: c.strength > 0},
    control=broken(
        "without a perceptron the uniform measure is stationary, and descent of 2 n tokens ends in 2 n atoms",
        strength=0.0,
    ),
    note="The first comparison decides for all stationary states of the perceptron drawn: a support with a "
    "limit point leaves one measure per set of active neurons, and each is refused by a negative density or "
    "a field. The others are finite evidence from two certified states: n tokens are never more than n "
    "atoms, but those of a density would double with them.",
)
def finitely_many_atoms(case: Case) -> list[Comparison]:
    """What refuses spread-out states; atoms of the certified descent limits of n and 2 n tokens."""
    neurons = _neurons(case)
    model = USA(case.beta, "metastability", plus=_term(neurons))
    coarse, fine = (_descent(model, _grid(count), case) for count in (case.n, 2 * case.n))
    return [
        at_least(
            "least refusal of a spread-out state", refusal(neurons, case.beta, False), REFUSED
        ),
        at_most("largest field", max(coarse.residual, fine.residual), CERTIFIED),
        at_most("atoms of 2 n tokens", fine.count, 2 * coarse.count - 1),
    ]


@PAPER.claim(
    "strict-states-are-atoms",
    where="theorem on the circle, analytic activations",
    says="On the circle, with GELU, every strict SOPD state is finitely many atoms.",
    given={"n": 16, "beta": 4.0, "strength": 0.5},
    at_paper_scale={"n": 128},
    needs={"the perceptron can hold atoms strictly: there is one": lambda c: c.strength > 0},
    control=broken(
        "without a perceptron rotations cost nothing, kappa = 0, and 2 n tokens end in 2 n atoms",
        strength=0.0,
    ),
    note="Tested by a number that the proof allows: kappa keeps atoms apart, by at least 2 (sqrt(D^2 + Q "
    "kappa) - D)/Q with D, Q the largest third and fourth derivatives (derived in theory.perceptron). Two "
    "certified states are finite evidence; that they do not double with the tokens is not in the theorem.",
)
def strict_states_are_atoms(case: Case) -> list[Comparison]:
    """kappa of the certified descent limits of n and 2 n tokens, their gaps against it, their atoms."""
    term = _term(_neurons(case), GELU)
    model = USA(case.beta, "metastability", plus=term)
    states = [_descent(model, _grid(count), case) for count in (case.n, 2 * case.n)]
    found = [certify(state) for state in states]
    spaced = [_spacing(case.beta, term, max(each.kappa, 0.0)) for each in found]
    return [
        at_most("largest field", max(state.residual for state in states), CERTIFIED),
        at_least("kappa", [f.kappa for f in found], [10 * f.tolerance for f in found]),
        at_least("smallest gap", [_smallest_gap(state) for state in states], spaced),
        at_most("atoms of 2 n tokens", states[1].count, 2 * states[0].count - 1),
    ]


def _spacing(beta: float, term: Perceptron, kappa: float) -> float:
    """`theory.strict_spacing` with the derivatives' largest values on a grid of the circle."""

    def attention(t: Array) -> Array:
        return jnp.exp(beta * (jnp.cos(t) - 1)) / beta

    third = _largest_derivative(attention, 3) + _largest_derivative(_potential(term), 3) / 2
    return float(theory.strict_spacing(kappa, third, _largest_derivative(attention, 4)))


def _potential(term: Perceptron) -> Callable[[Array], Array]:
    return lambda t: term.v(jnp.stack([jnp.cos(t), jnp.sin(t)])[None])[0]


def _largest_derivative(function: Callable[[Array], Array], order: int) -> float:
    for _ in range(order):
        function = jax.grad(function)
    return float(jnp.max(jnp.abs(jax.vmap(function)(jnp.linspace(0.0, 2 * jnp.pi, 2000)))))


def _smallest_gap(point: CriticalPoint) -> float:
    """The shortest arc between neighbours; the whole circle where there is one atom."""
    angles = np.sort(point.angles)
    return float(np.diff(angles, append=angles[0] + 2 * np.pi).min())


@functools.cache
def _signs(width: int) -> np.ndarray:
    return np.array(list(itertools.product([1, -1], repeat=width)))


def _softmax_neurons(case: Case) -> Neurons:
    """Four neurons: in random directions, or +-e_1 and +-e_2 turned, of which v is constant."""
    own = _neurons(case, 4)
    if case.weights == "generic":
        return own
    turn = np.arctan2(own.a[0, 1], own.a[0, 0])
    return Neurons(np.full(4, own.omega[0]), unit(turn + np.pi / 2 * np.arange(4)))


def _no_multiple_of_the_identity(case: Case) -> bool:
    neurons = _softmax_neurons(case)
    return bool(np.abs(neurons.waves(_signs(4))).min() > REFUSED * neurons.size)


@PAPER.claim(
    "softmax-atoms",
    where="proposition on normalised attention",
    says="With softmax and ReLU on the circle, if for no subset J of the neurons sum_J omega_j a_j a_j^T - "
    "sum_{not J} omega_j a_j a_j^T is a multiple of I, every stationary state is finitely many atoms.",
    given={"n": 16, "beta": 4.0, "strength": 0.5, "weights": "generic"},
    at_paper_scale={"n": 128},
    options={"weights": ("generic", "balanced")},
    needs={"no such sum is a multiple of I (all subsets are tried)": _no_multiple_of_the_identity},
    control=broken(
        "+-e_1 and +-e_2 with one omega: J = {e_1, e_2} gives 0, v is constant, and the uniform measure "
        "stationary",
        weights="balanced",
    ),
    note="The first comparison decides for all stationary states of the weights drawn. It needs less than "
    "the paper: what it shows is that only a constant v, of any weights, has other states than finitely many "
    "atoms. The state found is one example, certified as stationary.",
)
def softmax_atoms(case: Case) -> list[Comparison]:
    """What refuses spread-out states; the field of the state that descent of a grid reaches."""
    neurons = _softmax_neurons(case)
    state = _descent(SA(case.beta, plus=_term(neurons)), _grid(case.n), case)
    return [
        at_least("least refusal of a spread-out state", refusal(neurons, case.beta, True), REFUSED),
        at_most("largest field", state.residual, CERTIFIED),
    ]


@PAPER.claim(
    "atom-count",
    where="corollary of the theorem on the mass of clusters",
    says="If M arcs of length L cover an SOPD state, it has at most (M/eps)(1 + 2 L sqrt beta)(0.5742 + "
    "O(e^{-beta})) atoms of mass eps or more.",
    given={"n": 2, "beta": 4.0, "size": 0.1, "factor": 1.0, "start": "crowd", "bound": "whole"},
    at_paper_scale={"beta": 30.0},
    options={"start": ("crowd", "single"), "bound": ("whole", "printed")},
    needs={
        "beta >= 0.423": lambda c: c.beta >= 0.423,
        "the perceptron is as small as said": lambda c: c.factor <= 1,
    },
    control=broken(
        "a perceptron of size 0.93, not 0.1, holds two atoms in an arc shorter than 1/(2 sqrt beta)",
        factor=9.3,
    ),
    errata=[
        misprint(
            "printed without the one atom that an arc can always hold: a single atom at a minimum of v is "
            "strictly SOPD, lies in an arc of any length, and 0.5742 < 1",
            bound="printed",
            start="single",
        )
    ],
    note="Corrected: every piece of length 1/(2 sqrt beta) may hold one atom of any mass, see the misprint. "
    "O(e^{-beta}) is W e^{-beta}/(c1 + c2) as in the claim on clusters (form B: W). Every eps and every "
    "M = 1, 2, ... is tried, with the shortest M arcs of one length that cover the state.",
)
def atom_count(case: Case) -> list[Comparison]:
    """Atoms over their bound, largest over arcs and masses, for certified descent limits of crowds in a well.

    Two tokens in the well v = -W cos^2 end at +-phi, sin^2 phi = -log(W)/(2 beta): within one arc from
    W = e^{-1/8} = 0.88 on, apart for the W of the bound.
    """
    random = np.random.default_rng(case.seed)
    centre = random.uniform(0, 2 * np.pi)
    neurons = Neurons(-case.factor * np.array([case.size]), unit(np.array([centre])))
    model = USA(case.beta, "metastability", plus=_term(neurons))
    if case.start == "single":
        state = critical_near(model, unit(np.array([centre])), [1.0])
    else:
        state = _descent(model, from_angles(centre + random.uniform(-0.05, 0.05, case.n)), case)
    certificate = certify(state)
    return [
        at_most("largest field", state.residual, CERTIFIED),
        at_least("kappa", certificate.kappa, 10 * certificate.tolerance),
        at_most("atoms over their bound", _counted(state, case), 1.0),
    ]


def _counted(state: CriticalPoint, case: Case) -> float:
    """Largest number of atoms of mass >= eps over its bound."""
    ratios = []
    for arcs, length in enumerate(_covering_lengths(state), start=1):
        for eps in np.unique(state.masses):
            heavy = int(np.sum(state.masses >= eps))
            ratios.append(heavy / _bound(case, float(eps), arcs, length))
    return max(ratios)


def _bound(case: Case, eps: float, arcs: int, length: float) -> float:
    if case.bound == "whole":
        bound = theory.atom_count_bound(case.beta, eps, case.size, CLOCK, arcs=arcs, length=length)
        return float(bound)
    mass = float(theory.mass_bound(case.beta, case.size, CLOCK))
    return arcs / eps * (1 + 2 * length * np.sqrt(case.beta)) * mass


def _covering_lengths(state: CriticalPoint) -> list[float]:
    """Lengths of M = 1, 2, ... equal arcs that cover the atoms, cut at the M largest gaps."""
    angles = np.sort(state.angles)
    gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
    order, lengths = np.argsort(gaps)[::-1], []
    for arcs in range(1, len(gaps) + 1):
        cuts = np.sort(order[:arcs])
        starts = angles[(cuts + 1) % len(angles)]
        ends = angles[np.roll(cuts, -1)]
        lengths.append(float(np.mod(ends - starts, 2 * np.pi).max()))
    return lengths
