"""Large beta at a fixed density: SA becomes a backward heat equation, USA a backward porous medium."""

from __future__ import annotations

import numpy as np

from .... import theory
from ....ledger.claim import Case, Comparison, broken, equals
from ....ledger.measure import MODELS
from ....measure import from_angles
from ....models import SA
from .. import PAPER
from .circle import angular_speed, mode_rates, waves

LARGE = {
    "beta is large": lambda c: c.beta >= 20,
    "the tokens resolve the kernel (n >= 16 sqrt(beta))": lambda c: c.n >= 16 * c.beta**0.5,
}
BOTH = {"model": ("SA", "USA")}
MODES, SIZES = np.array([1, 2]), np.array([0.4, 0.2])


def _density(angles: np.ndarray, phases: np.ndarray, order: int) -> np.ndarray:
    """The derivative of that order of rho = 1 + 0.4 cos(theta + a) + 0.2 cos(2 theta + b)."""
    phase = MODES * angles[:, None] + phases + order * np.pi / 2
    return (SIZES * MODES**order * np.cos(phase)).sum(axis=-1) + (order == 0)


def _drift(case: Case) -> tuple[np.ndarray, list[np.ndarray]]:
    """beta theta' on tokens with masses rho (of USA over Z0), and rho with three derivatives."""
    phases = np.random.default_rng(case.seed).uniform(0, 2 * np.pi, size=2)
    grid = 2 * np.pi * np.arange(case.n) / case.n
    density = [_density(grid, phases, order) for order in range(4)]
    model = MODELS[case.model](case.beta)
    log_speed = theory.log_partition(2, case.beta) if case.model == "USA" else 0.0
    speed = angular_speed(model, from_angles(grid, density[0])) * np.exp(-log_speed)
    return case.beta * speed, density


@PAPER.claim(
    "backward-heat",
    where="not numbered here (limit of large beta)",
    says="For large beta SA moves a smooth density like the heat equation run backwards, "
    "d_t rho = -(1/beta) Lap rho.",
    given={"n": 256, "beta": 50.0, "model": "SA"},
    at_paper_scale={"n": 1024, "beta": 500.0},
    options=BOTH,
    needs={**LARGE, "the model is SA": lambda c: c.model == "SA"},
    control=broken("USA's drift is proportional to rho' instead of rho'/rho", model="USA"),
)
def backward_heat(case: Case) -> list[Comparison]:
    """beta v against (log rho)', and beta lambda_k/k^2 against 1 for k = 1, 2, 3.

    The kernel multiplies mode k by I_k/I_0 = 1 - k^2/(2 beta) + ..., so the neglected terms are
    (rho''/rho)'/(2 beta) and k^2/(2 beta); half of them is added for the next order.
    """
    drift, (rho, first, second, third) = _drift(case)
    neglected = np.max(np.abs(third / rho - second * first / rho**2)) / (2 * case.beta)
    modes = np.arange(1, 4)
    rates = [
        mode_rates(SA(case.beta), waves(case.n, k, np.array([1e-4]), case.seed)[0], k)[0]
        for k in modes[:, None]
    ]
    return [
        equals("beta v against rho'/rho", drift, first / rho, 1.5 * neglected),
        equals(
            "beta lambda_k / k^2",
            case.beta * np.array(rates) / modes**2,
            1.0,
            1.5 * 9 / (2 * case.beta),
        ),
    ]


@PAPER.claim(
    "backward-porous-medium",
    where="not numbered here (limit of large beta)",
    says="For large beta USA moves a smooth density like the porous medium equation run backwards, "
    "d_t rho = -(Z0/(2 beta)) Lap rho^2.",
    given={"n": 256, "beta": 50.0, "model": "USA"},
    at_paper_scale={"n": 1024, "beta": 500.0},
    options=BOTH,
    needs={**LARGE, "the model is USA": lambda c: c.model == "USA"},
    control=broken("SA's drift is rho'/rho instead of a multiple of rho'", model="SA"),
)
def backward_porous_medium(case: Case) -> list[Comparison]:
    """beta v/Z0 against rho' (so that the flux is rho rho' = (rho^2)'/2).

    The neglected term is rho'''/(2 beta); half of it is added for the next order.
    """
    drift, (_, first, _, third) = _drift(case)
    neglected = np.max(np.abs(third)) / (2 * case.beta)
    return [equals("beta v/Z0 against rho'", drift, first, 1.5 * neglected)]
