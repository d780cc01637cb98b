"""Sections 2 and 7: symmetries of the flow, the circle, Kuramoto's model at beta = 0."""

from __future__ import annotations

import numpy as np

from .... import theory
from ....dynamics import Dynamics
from ....ledger.claim import Case, Comparison, at_least, broken, equals
from ....ledger.measure import KINDS, MODELS, field, flow
from ....measure import Measure, from_angles, from_array
from ....models import CausalSA
from ....space import Sphere
from ....starts import uniform
from .. import PAPER
from .shared import pulled

BOTH = {"model": ("SA", "USA")}
# Formulas evaluated twice: only rounding is left, here against speeds of order e^beta.
ROUNDING = 1e-11


def _angular_velocity(model: Dynamics, angles: np.ndarray) -> np.ndarray:
    """theta_i' = <x_i', (-sin theta_i, cos theta_i)>."""
    velocity = field(model, from_angles(angles))
    return np.cos(angles) * velocity[:, 1] - np.sin(angles) * velocity[:, 0]


def _random_angles(case: Case) -> np.ndarray:
    return np.random.default_rng(case.seed).uniform(0, 2 * np.pi, case.n)


@PAPER.claim(
    "eq-7.1",
    where="Equation (7.1)",
    says="On the circle USA moves each angle by the mean of e^{beta cos} sin of its differences to "
    "the others.",
    given={"n": 12, "beta": 2.0, "model": "USA"},
    at_paper_scale={"n": 32},
    options=BOTH,
    needs={"the tokens follow USA": lambda c: c.model == "USA"},
    control=broken("SA divides by the partition function", model="SA"),
)
def usa_on_the_circle(case: Case) -> list[Comparison]:
    """theta_i' against -(1/n) sum_j e^{beta cos(theta_i - theta_j)} sin(theta_i - theta_j)."""
    angles = _random_angles(case)
    gaps = angles[:, None] - angles
    predicted = -np.mean(np.exp(case.beta * np.cos(gaps)) * np.sin(gaps), axis=1)
    measured = _angular_velocity(MODELS[case.model](case.beta), angles)
    return [equals("theta_i'", measured, predicted, ROUNDING * np.exp(case.beta))]


@PAPER.claim(
    "sec-7-kuramoto",
    where="Section 7 (not numbered)",
    says="At beta = 0 SA and USA on the circle are Kuramoto's model with equal frequencies and unit "
    "coupling.",
    given={"n": 12, "beta": 0.0},
    at_paper_scale={"n": 32},
    needs={"beta = 0": lambda c: c.beta == 0},
    control=broken("attention that is not flat", beta=1.0),
)
def kuramoto_at_beta_zero(case: Case) -> list[Comparison]:
    """theta_i' against (1/n) sum_j sin(theta_j - theta_i), both models."""
    angles = _random_angles(case)
    predicted = np.mean(np.sin(angles - angles[:, None]), axis=1)
    return [
        equals(
            f"theta_i' ({name})", _angular_velocity(model(case.beta), angles), predicted, ROUNDING
        )
        for name, model in MODELS.items()
    ]


@PAPER.claim(
    "sec-7-angle-sum",
    where="Section 7, from the symmetry of (7.1) (not numbered)",
    says="On the circle USA conserves the sum of the angles.",
    given={"n": 8, "beta": 1.0, "samples": 8, "model": "USA"},
    at_paper_scale={"n": 32, "samples": 64},
    options=BOTH,
    needs={"the tokens follow USA": lambda c: c.model == "USA"},
    control=broken("SA's partition functions make the pull of a pair unequal", model="SA"),
    rtol=1e-10,
    atol=1e-12,
)
def usa_conserves_the_sum_of_angles(case: Case) -> list[Comparison]:
    """sum_i theta_i(t) - sum_i theta_i(0), angles followed continuously, for t e^beta <= 8.

    No token turns faster than e^beta, so between two of nine times it turns by less than pi. Each
    angle is off by the tolerance 1e-10 times some tens of steps; 1e-7 leaves room for n of them.
    """
    times = np.linspace(0.0, 8.0 * np.exp(-case.beta), 9)
    x0 = uniform(Sphere(2), case.n, case.seed, samples=case.samples)
    states = flow(case, pulled(case.model, case.beta, 1.0), x0, times)
    angles = np.unwrap(np.arctan2(states[..., 1], states[..., 0]), axis=-2)
    total = angles.sum(axis=-1)
    return [equals("change of the sum of angles", total - total[..., :1], 0.0, 1e-7)]


@PAPER.claim(
    "sec-7-polygon",
    where="Section 7, Hessian of the energy on the torus (not numbered)",
    says="The regular n-gon rests under USA, and its perturbations grow at n times the eigenvalues "
    "of the energy's Hessian, one of which is positive.",
    given={"n": 6, "beta": 2.0, "part": 1.0},
    at_paper_scale={"n": 32, "beta": 9.0},
    needs={
        "the tokens are equally spaced on the whole circle": lambda c: c.part == 1,
        "beta > 0": lambda c: c.beta > 0,
    },
    control=broken("tokens equally spaced on nine tenths of the circle", part=0.9),
)
def polygon_is_a_saddle(case: Case) -> list[Comparison]:
    """theta' at theta = 2 pi i/n, and its derivative along the Fourier modes cos(m theta).

    The step 1e-4 of the central difference leaves an error of order 1e-8 (1 + beta)^3 e^beta.
    """
    angles = 0.3 + case.part * 2 * np.pi * np.arange(case.n) / case.n
    modes = np.cos(np.outer(np.arange(case.n), 2 * np.pi * np.arange(case.n) / case.n))
    model, step = MODELS["USA"](case.beta), 1e-4
    response = [
        (_angular_velocity(model, angles + step * m) - _angular_velocity(model, angles - step * m))
        / (2 * step)
        for m in modes
    ]
    growth = np.sum(np.array(response) * modes, axis=1) / np.sum(modes**2, axis=1)
    predicted = case.n * np.asarray(theory.ngon_hessian_eigenvalues(case.n, case.beta))
    scale = np.exp(case.beta)
    return [
        equals("speed at rest", _angular_velocity(model, angles), 0.0, ROUNDING * scale),
        equals("growth of mode m", growth, predicted, 1e-7 * (1 + case.beta) ** 3 * scale),
        at_least("fastest growth", growth.max(), 0.0),
    ]


@PAPER.claim(
    "eq-2.3-equivariance",
    where="Equations (2.3) and (2.4), their symmetry (not numbered)",
    says="Relabelling, rotating or reflecting the tokens before the flow or after it gives the same.",
    given={"n": 8, "d": 3, "beta": 2.0, "samples": 2, "duration": 3.0, "mask": "full"},
    at_paper_scale={"n": 32, "d": 128},
    options={"mask": ("full", "causal")},
    needs={"every token sees every token": lambda c: c.mask == "full"},
    control=broken("under a causal mask the labels matter", mask="causal"),
)
def flow_is_equivariant(case: Case) -> list[Comparison]:
    """Phi(x g) - Phi(x) g for a permutation, a rotation and a reflection g.

    Both runs err by the tolerance 1e-8 times some tens of steps, so 1e-6 is ample.
    """
    rng = np.random.default_rng(case.seed)
    order = np.roll(rng.permutation(case.n), 1)
    turn = np.linalg.qr(rng.normal(size=(case.d, case.d)))[0]
    mirror = turn @ np.diag([-1.0] + [1.0] * (case.d - 1))
    plain = np.asarray(uniform(Sphere(case.d), case.n, case.seed, samples=case.samples).points)
    acted = [plain, plain[:, order], plain @ turn.T, plain @ mirror.T]
    model = pulled("SA", case.beta, 1.0) if case.mask == "full" else CausalSA(case.beta)
    x0 = from_array(Sphere(case.d), np.concatenate(acted))
    final = flow(case, model, x0, np.linspace(0.0, case.duration, 9))[:, -1]
    first, permuted, rotated, reflected = np.split(final, 4)
    return [
        equals("permuted", permuted, first[:, order], 1e-6),
        equals("rotated", rotated, first @ turn.T, 1e-6),
        equals("reflected", reflected, first @ mirror.T, 1e-6),
    ]


@PAPER.claim(
    "sec-6-two-tokens",
    where="Equations (6.9) and (6.10) with n = 2 (not numbered)",
    says="The angle of two tokens closes at a rate known in closed form, and an antipodal pair is an "
    "unstable equilibrium.",
    given={"d": 5, "beta": 2.0, "model": "SA", "others": 0},
    at_paper_scale={"d": 128},
    options=BOTH,
    needs={"there are two tokens": lambda c: c.others == 0, "beta >= 0": lambda c: c.beta >= 0},
    control=broken("a third token pulls on both", others=1),
)
def angle_of_two_tokens(case: Case) -> list[Comparison]:
    """phi' from the field against `theory.two_token_rate`, and its slope at phi = pi.

    phi' = -<x_1', x_2> - <x_1, x_2'> over sin phi; near pi, phi' = -rate (pi - phi) up to a
    relative (pi - phi)^2 (1 + beta).
    """
    angles = np.array([0.2, 1.1, 2.0, 3.0, np.pi - 1e-3])
    measured = np.array([_closing_rate(case, float(phi)) for phi in angles])
    predicted = theory.two_token_rate(angles, case.beta, KINDS[case.model])
    release = float(theory.antipodal_growth_rate(0.5, 0.5, case.beta, KINDS[case.model]))
    return [
        equals("phi'", measured, predicted, 1e-9 * np.exp(case.beta)),
        equals("release from the antipode", -measured[-1] / 1e-3, release, 1e-5 * (1 + case.beta)),
    ]


def _closing_rate(case: Case, phi: float) -> float:
    """d phi/dt of the first two tokens, in a plane chosen at random."""
    rng = np.random.default_rng(case.seed)
    frame = np.linalg.qr(rng.normal(size=(case.d, 3)))[0].T
    pair = [frame[0], np.cos(phi) * frame[0] + np.sin(phi) * frame[1]]
    x0: Measure = from_array(
        Sphere(case.d), np.array(pair + [frame[2] + frame[0]] * case.others), normalise=True
    )
    velocity = field(MODELS[case.model](case.beta), x0)
    x = np.asarray(x0.points)
    return -float(velocity[0] @ x[1] + velocity[1] @ x[0]) / np.sin(phi)
