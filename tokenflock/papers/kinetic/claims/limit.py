"""The limit of many tokens: how fast it is reached, and the correlations that remain at order 1/N."""

from __future__ import annotations

import diffrax
import numpy as np
from jaxtyping import Array
from scipy.integrate import solve_ivp

from ....density import Density
from ....integrate import Save, solve
from ....kinetic import LayeredDensity, correlations
from ....kinetic.correlations import fourier_coefficients
from ....ledger.claim import Case, Comparison, at_most, broken, equals, misprint
from ....meanfield.laws import cosine
from ....measure import from_angles
from ....models import KineticFlow
from ....observables import order_parameter
from ....theory import kinetic as theory
from ....trajectory import Trajectory
from .. import PAPER
from .shared import ATTENTIVE, BIASED

# The modes of a crowd are held to the tail at which a run would stop.
CARRIED = 1e-6


@PAPER.claim(
    "mean-field-rate",
    where="quantitative mean-field limit",
    says="For independent tokens the mean square distance of the empirical measure to the layered limit is "
    "of order 1/N.",
    given={"prompts": 400, "beta": 1.0, "slope": 1.0, "t": 0.5, "common": 0.0},
    at_paper_scale={"prompts": 4000},
    needs={"tokens are independent at t = 0": lambda c: c.common == 0.0},
    control=broken(
        "tokens of a prompt that share a random turn keep a variance of order 1", common=1.0
    ),
    note="E |N^{-1} sum_j e^{i theta_j(t)}|^2 at N = 20 and 80, from uniform tokens, whose limit is 0; "
    "`common` is the share of the angle that all tokens of a prompt have in common. The logarithm of a mean "
    "of m squares has standard error 1/sqrt(m).",
)
def mean_field_rate(case: Case) -> list[Comparison]:
    """The exponent of N in the variance, within 4 standard errors and 0.05 for the next order."""
    rng = np.random.default_rng(case.seed)
    variances = []
    for n in (20, 80):
        shared = rng.uniform(0, 2 * np.pi, (case.prompts, 1))
        own = rng.uniform(0, 2 * np.pi, (case.prompts, n))
        starts = case.common * shared + (1 - 0.9 * case.common) * own
        run = solve(
            KineticFlow(case.beta, case.slope),
            from_angles(starts),
            case.t,
            dt=0.1 / case.refine,
            method=diffrax.Tsit5(),
            save=Save(observe=[order_parameter]),
        )
        variances.append(np.mean(run.array("final_order_parameter") ** 2))
    exponent = np.log(variances[1] / variances[0]) / np.log(4.0)
    noise = np.sqrt(2 / case.prompts) / np.log(4.0)
    return [equals("exponent of N in the variance", exponent, -1.0, 4 * noise + 0.05)]


def _first_wave(x: Array) -> Array:
    return x[:, 0]


@PAPER.claim(
    "correlations",
    where="correlations of independent uniform tokens; closed form",
    says="For uniform tokens f = 1 and A = phi - int phi are constant, and C^(t, s, n) = phi^(n) k(s, s0) "
    "sqrt(a_n t/Y) I_1(2 sqrt(a_n t Y)), a_n = n^2 I_n(beta), solves the correlation equations. From any "
    "start A is carried by the mean field: A^(t, s, n) = E e^{-in theta(t)} (phi(theta(0)) - E phi), "
    "theta' = V[f].",
    given={
        "beta": 1.0,
        "slope": 1.0,
        "t": 1.0,
        "positions": 40,
        "modes": 12,
        "amplitude": 0.0,
        "crowd": 0.2,
        "fourier": "normalised",
    },
    at_paper_scale={"positions": 160},
    options={"fourier": ("normalised", "unnormalised")},
    needs={"tokens are uniform at t = 0": lambda c: c.amplitude == 0.0, **BIASED, **ATTENTIVE},
    control=broken("tokens crowd at theta = 0 (density 1 + 0.2 cos)", amplitude=0.2),
    errata=[
        misprint(
            "Fourier coefficients are printed without 1/(2 pi); with them a_n would be 2 pi times larger",
            fourier="unnormalised",
        )
    ],
    note="s0 = 1/5, phi = cos theta. Interpolation in s is off by h^2/8 times the second derivative of "
    "C, largest at s0, and the equation carries that on by at most e^{a t}. The last comparison starts from "
    "the density 1 + `crowd` cos at every position, where V[f] is not 0; its prediction moves 64 quantiles "
    "of it, which see each other as a long prompt sees its law.",
)
def correlation_equations(case: Case) -> list[Comparison]:
    """max_s |C^(t, s, 1) - phi^(1) g_{a_1}|, with the interpolation's own bound as tolerance."""
    s0, first = 0.2, case.positions // 5
    on = LayeredDensity(case.positions, case.modes)
    start = Density.from_law(on, cosine(case.amplitude))
    model = KineticFlow(case.beta, case.slope)
    how = {"rtol": case.rtol, "atol": case.atol}
    found = correlations(model, start, _first_wave, s0, [case.t], **how)
    crowd = Density.from_law(on, cosine(case.crowd))
    carried = _waves(correlations(model, crowd, _first_wave, s0, [case.t], **how), "A")[-1, :, 1]
    late = on.places[first:]
    rate = float(theory.mode_rates(1, case.beta)[0])
    printed = rate * (2 * np.pi if case.fourier == "unnormalised" else 1.0)
    exact = theory.mode_response(printed, case.t, late, s0, case.slope) / 2
    bend = np.diff(theory.mode_response(rate, case.t, s0 + 1e-3 * np.arange(3), s0, case.slope), 2)
    bound = abs(bend[0]) / 1e-6 / 2 / (8 * case.positions**2) * np.exp(rate * case.t)
    measured = _waves(found, "C")[-1, first:, 1]
    return [
        equals("C^(t, s, 1)", np.real(measured), exact, float(bound)),
        at_most("|f - 1|", np.abs(_waves(found, "states")[..., 1:]).max(), 0.0, 1e-12),
        equals("A^(t, s, 1)", np.real(_waves(found, "A")[-1, :, 1]), 0.5, 1e-12),
        equals("A^(t, s, 1), crowded", np.real(carried), _carried_wave(case), CARRIED),
    ]


def _waves(run: Trajectory, name: str) -> np.ndarray:
    """Complex Fourier coefficients (time, position, n) of one of the functions."""
    return fourier_coefficients(run.array(name))


def _carried_wave(case: Case, tokens: int = 64) -> float:
    """E cos theta(t) (cos theta(0) - E cos), over quantiles of 1 + crowd cos moved by each other's forces."""
    levels = 2 * np.pi * (np.arange(tokens) + 0.5) / tokens
    start = levels.copy()
    for _ in range(60):  # theta + crowd sin theta = level, a contraction by crowd
        start = levels - case.crowd * np.sin(start)

    def speeds(t: float, x: np.ndarray) -> np.ndarray:
        gaps = x[:, None] - x
        return np.mean(-case.beta * np.sin(gaps) * np.exp(case.beta * np.cos(gaps)), axis=1)

    late = solve_ivp(speeds, (0, case.t), start, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    return float(np.mean(np.cos(late) * (np.cos(start) - np.cos(start).mean())))
