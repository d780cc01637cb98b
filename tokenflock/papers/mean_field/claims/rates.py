"""Linear growth of perturbations of the uniform measure: rates, and which mode is the fastest."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import roots_legendre

from .... import theory
from ....kinds import Unnormalised
from ....ledger.claim import Case, Comparison, broken, equals, misprint
from ....ledger.measure import KINDS, MODELS, field, flow
from ....measure import Measure, from_angles
from ....models import L2SA, SA, USA
from ....space import Sphere
from ....weights import Weights
from .. import PAPER
from .circle import angles_of, mode_rates, moments, waves

UNIFORM = "not numbered here (linearisation at the uniform measure)"
SMALL = {
    "the perturbation is small": lambda c: c.amplitude <= 1e-3,
    "the tokens resolve the kernel (n >= 16 sqrt(1 + beta))": lambda c: (
        c.n >= 16 * (1 + c.beta) ** 0.5
    ),
}


def _relative_rates(case: Case, model: str, predicted: Literal["SA", "USA"]) -> np.ndarray:
    """Rates of modes 1 to 5, each perturbed alone, divided by their closed form."""
    found = []
    for k in range(1, 6):
        mode = np.array([k])
        angles = waves(case.n, mode, np.array([case.amplitude]), case.seed + k)[0]
        found.append(mode_rates(MODELS[model](case.beta), angles, mode)[0])
    return np.array(found) / theory.growth_rate(np.arange(1, 6), 2, case.beta, KINDS[predicted])


@PAPER.claim(
    "rates-usa",
    where=UNIFORM,
    says="On the circle a small wave of frequency k on uniform tokens grows under USA at the rate "
    "k^2 I_k(beta)/beta.",
    given={"n": 256, "beta": 5.0, "amplitude": 1e-4, "form": "corrected"},
    at_paper_scale={"n": 2000},
    options={"form": ("corrected", "printed")},
    needs={**SMALL, "the corrected form is used": lambda c: c.form == "corrected"},
    control=broken("a wave of half the density grows nonlinearly", amplitude=0.5),
    errata=[
        misprint("the authors' notebook plots gamma_k with a further 1/pi", form="printed"),
    ],
    note="The factor 1/pi stands in the authors' notebook; the display of the paper was not seen.",
)
def rates_of_usa(case: Case) -> list[Comparison]:
    """(d muhat_k/dt)/muhat_k over k^2 I_k/beta, k = 1..5, from the field.

    The wave meets its own second harmonic at the relative order amplitude^2; 100 covers the
    largest quotient of two rates.
    """
    printed = 1 / np.pi if case.form == "printed" else 1.0
    ratio = _relative_rates(case, "USA", "USA")
    return [equals("rate / (k^2 I_k(beta)/beta)", ratio, printed, 1e-6)]


@PAPER.claim(
    "rates-sa",
    where=UNIFORM,
    says="On the circle a small wave of frequency k on uniform tokens grows under SA at the rate "
    "k^2 I_k(beta)/(beta I_0(beta)).",
    given={"n": 256, "beta": 7.0, "amplitude": 1e-4, "model": "SA"},
    at_paper_scale={"n": 2000},
    options={"model": ("SA", "USA")},
    needs={**SMALL, "the model is SA": lambda c: c.model == "SA"},
    control=broken("USA lacks the partition function, its rates are I_0 times SA's", model="USA"),
)
def rates_of_sa(case: Case) -> list[Comparison]:
    """(d muhat_k/dt)/muhat_k over k^2 I_k/(beta I_0), k = 1..5; tolerance as for USA."""
    return [
        equals("rate / (k^2 I_k/(beta I_0))", _relative_rates(case, case.model, "SA"), 1.0, 1e-6)
    ]


def quadrature(nodes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of S^2, their uniform masses and heights: Gauss-Legendre by regular, turned at random."""
    height, mass = roots_legendre(nodes)
    turn = 2 * np.pi * np.arange(3 * nodes // 2) / (3 * nodes // 2)
    height, turn, mass = np.broadcast_arrays(height[:, None], turn, mass[:, None])
    radius = np.sqrt(1 - height**2)
    points = np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=-1)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    return points.reshape(-1, 3) @ rotation.T, mass.ravel() / mass.sum(), height.ravel()


def _zonal_rate(case: Case, model: str, degree: int) -> float:
    """d/dt int P_k dmu per unit of P_k in the density 1 + tilt z + e P_k(z): central in e."""
    points, mass, height = quadrature(case.nodes, case.seed)
    legendre = np.polynomial.legendre.Legendre.basis(degree)
    axis = points.T @ (mass * height) / (mass @ height**2)
    slopes = []
    for size in (1e-3, -1e-3):
        masses = mass * (1 + case.tilt * height + size * legendre(height))
        velocity = field(MODELS[model](case.beta), Measure(Sphere(3), points, masses))
        slopes.append((masses * legendre.deriv()(height)) @ (velocity @ axis))
    return (slopes[0] - slopes[1]) / (2e-3 * (mass @ legendre(height) ** 2))


@PAPER.claim(
    "rates-sphere",
    where=UNIFORM,
    says="On the sphere in R^3 a small zonal wave of degree k grows at k(k+1) times the eigenvalue "
    "that the Funk-Hecke formula gives the kernel.",
    given={"beta": 4.0, "nodes": 16, "tilt": 0.0},
    at_paper_scale={"nodes": 32},
    needs={
        "the base state is uniform": lambda c: c.tilt == 0,
        "the quadrature resolves the kernel (nodes >= 6 + 2 beta)": lambda c: (
            c.nodes >= 6 + 2 * c.beta
        ),
    },
    control=broken("around a tilted density the modes mix and grow at other rates", tilt=0.5),
)
def rates_on_the_sphere(case: Case) -> list[Comparison]:
    """Growth of degrees 1 to 4 under USA and SA, over k(k+1) c_k (and c_k/Z0).

    USA is quadratic in the measure, so the central difference is exact; for SA it leaves 1e-6 times
    a quotient of eigenvalues.
    """
    degrees = np.arange(1, 5)
    comparisons = []
    for model in ("USA", "SA"):
        found = np.array([_zonal_rate(case, model, int(k)) for k in degrees])
        ratio = found / theory.growth_rate(degrees, 3, case.beta, KINDS[model])
        comparisons.append(equals(f"{model} rate / (k(k+1) c_k)", ratio, 1.0, 1e-4))
    return comparisons


@PAPER.claim(
    "fastest-mode",
    where=UNIFORM + ", table of k*",
    says="The wave that grows fastest passes from frequency k to k+1 where "
    "(k+1)^2 I_{k+1}(beta) overtakes k^2 I_k(beta), near beta = k(k+1)/2.",
    given={"n": 64, "sign": 1.0, "away": 0.05},
    at_paper_scale={"n": 512, "away": 0.01},
    needs={
        "tokens attract (V = +I)": lambda c: c.sign == 1,
        "beta is off the transition": lambda c: 0 < c.away < 0.2,
    },
    control=broken("with V = -I the same waves decay, the dominant one fastest", sign=-1.0),
    rtol=1e-11,
    atol=1e-13,
)
def fastest_mode(case: Case) -> list[Comparison]:
    """Winner among modes 1..8 of equal amplitude 1e-5 just below and above beta_1, ..., beta_5.

    The winner is a whole number. Rates are read from log-growth over t = 10, in the slow clock,
    where the largest growth is sevenfold: 28 pairs of waves disturb each other by 28 * 7 * 1e-5.
    """
    modes, degrees = np.arange(1, 9), np.arange(1, 6)
    edges = theory.transition_beta(degrees)
    betas = np.stack([edges * (1 - case.away), edges * (1 + case.away)], axis=-1).ravel()
    start = waves(case.n, modes, np.full(8, 1e-5), case.seed)[0]
    model = USA(betas, "metastability", weights=Weights(V=case.sign))
    states = flow(case, model, from_angles(start), [10.0])[:, -1]
    growth = np.log(np.abs(moments(angles_of(states), modes) / moments(start, modes))) / 10.0
    expected = np.stack([degrees, degrees + 1], axis=-1).ravel()
    rates = theory.growth_rate(modes, 2, betas[:, None], Unnormalised("metastability"))
    top = rates.max(axis=-1, keepdims=True)
    return [
        equals("fastest mode", modes[np.argmax(growth, axis=-1)], expected, 0.25),
        equals("error of a rate over the largest rate", (growth - rates) / top, 0.0, 2e-3),
    ]


@PAPER.claim(
    "many-clusters",
    where=UNIFORM + ", large beta",
    says="For large beta the fastest wave has a frequency close to sqrt(2 beta), so clusters number "
    "of the order of sqrt(beta).",
    given={"beta": 50.0, "n": 256, "model": "SA"},
    at_paper_scale={"beta": 200.0, "n": 1024},
    options={"model": ("SA", "L2SA")},
    needs={
        "beta is large": lambda c: c.beta >= 20,
        "the tokens resolve the kernel (n >= 16 sqrt(beta))": lambda c: c.n >= 16 * c.beta**0.5,
        "scores are beta <x, y>": lambda c: c.model == "SA",
    },
    control=broken("scores -beta |x-y|^2 sharpen twice as fast: sqrt(4 beta)", model="L2SA"),
    note="An asymptotic statement: the integer k* is compared with sqrt(2 beta) at beta, 2 beta and "
    "4 beta, within 3/4 (1/2 for the rounding, the rest for O(beta^{-1/2})).",
)
def large_beta_law(case: Case) -> list[Comparison]:
    """argmax_k of the growth rates against sqrt(2 beta), all waves present at amplitude 1e-7."""
    betas = case.beta * np.array([1.0, 2.0, 4.0])
    modes = np.arange(1, int(4 * (2 * case.beta) ** 0.5) + 1)
    angles = waves(case.n, modes, np.full(len(modes), 1e-7), case.seed)[0]
    build = {"SA": SA, "L2SA": L2SA}[case.model]
    winners = [modes[np.argmax(mode_rates(build(b), angles, modes))] for b in betas]
    return [equals("fastest mode against sqrt(2 beta)", winners, np.sqrt(2 * betas), 0.75)]
