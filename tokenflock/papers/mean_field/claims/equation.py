"""The continuity equation itself, solved as a density: rates, periodicity and the delay of clusters."""

from __future__ import annotations

import numpy as np

from .... import theory
from ....density import Density
from ....integrate import Save, solve
from ....ledger.claim import Case, Comparison, broken, equals
from ....ledger.measure import KINDS
from ....meanfield.circle import Fourier
from ....meanfield.laws import cosine
from ....meanfield.linear import growth_rates
from ....meanfield.zonal import Zonal
from ....models import SA, USA
from ....weights import Weights
from .. import PAPER

UNIFORM = "not numbered here (linearisation at the uniform measure)"


@PAPER.claim(
    "rates-any-dimension",
    where=UNIFORM,
    says="Around the uniform measure on S^{d-1} perturbations of degree k of the mean-field equation grow "
    "at k(k+d-2) times the kernel's Funk-Hecke number, for every k and d, under SA and USA.",
    given={"d": 8, "beta": 5.0, "degree": 24, "detuned": 0.0},
    at_paper_scale={"d": 64, "degree": 64},
    needs={
        "the closed form is read at the beta of the flow": lambda c: c.detuned == 0,
        "beta > 0 and d >= 2": lambda c: c.beta > 0 and c.d >= 2,
    },
    control=broken("a closed form at a beta larger by 1/1000 is told apart", detuned=1e-3),
    note="From the derivative of the discretised equation: zonal densities for d >= 3, Fourier series for "
    "d = 2. Weights B = I, V = I make the field a sum over nodes, without Bessel functions and without "
    "knowing that harmonics are eigenfunctions; rounding hides degrees slower than 1e-9 of the fastest. "
    "The last comparison has all degrees, but of plain attention, which is computed by those numbers.",
)
def rates_in_any_dimension(case: Case) -> list[Comparison]:
    """Rates over their closed form, and the fastest degree.

    Rounding of sums over nodes is some 1e-14 of the fastest rate, so 1e-5 of the slowest compared; plain
    attention has 1e-11 of every rate, also of 1e-30.
    """
    on = Fourier(case.degree) if case.d == 2 else Zonal(case.d, case.degree)
    degrees = np.arange(1, case.degree + 1)
    summed = Weights(B=np.eye(case.d), V=np.eye(case.d))
    usa = growth_rates(USA(case.beta, weights=summed), on, degrees)
    sa = growth_rates(SA(case.beta, weights=summed), on, degrees)
    plain = growth_rates(SA(case.beta), on, degrees)
    beta = case.beta * (1 + case.detuned)
    usa_law = theory.growth_rate(degrees, case.d, beta)
    sa_law = theory.growth_rate(degrees, case.d, beta, KINDS["SA"])
    seen = usa_law >= 1e-9 * np.max(usa_law)
    best = int(theory.dominant_mode(case.d, beta))
    return [
        equals("USA rate / (k(k+d-2) c_k)", (usa / usa_law)[seen], 1.0, 1e-4),
        equals("SA rate / (k(k+d-2) c_k/Z0)", (sa / sa_law)[seen], 1.0, 1e-4),
        equals("fastest degree", degrees[np.argmax(sa)], best, 0.25),
        equals("plain SA rate / (k(k+d-2) c_k/Z0), all k", plain / sa_law, 1.0, 1e-9),
    ]


@PAPER.claim(
    "equation-keeps-periodicity",
    where="not numbered here (quasi-linear phase)",
    says="A density that repeats after the angle 2 pi/k* keeps doing so, while its wave grows at the rate "
    "of k* until it saturates.",
    given={"beta": 5.0, "modes": 60, "amplitude": 1e-6, "wave": 3, "stray": 0.0},
    at_paper_scale={"modes": 240},
    needs={
        "the start repeats after 2 pi/k*": lambda c: c.stray == 0,
        "the wave is the dominant one": lambda c: c.wave == int(theory.dominant_mode(2, c.beta)),
        "the start is close to uniform": lambda c: 0 < c.amplitude <= 1e-3,
    },
    control=broken("a stray wave of frequency 2 is not a multiple of k*", stray=1e-6),
    note="Seen until the wave has half of the density, log(1/amplitude)/lambda_{k*} after the start: "
    "rounding has then grown by less than a factor 1/amplitude.",
    rtol=1e-9,
    atol=1e-14,
)
def equation_keeps_periodicity(case: Case) -> list[Comparison]:
    """Coefficients off the multiples of k*, and the log-growth of k* up to the size 0.005.

    At that size the wave meets its overtones at the relative order 0.005^2 of its rate, times the 12
    e-folds seen. What is not periodic starts at rounding 1e-16 and grows at most like the wave.
    """
    rate = float(theory.growth_rate(case.wave, 2, case.beta))
    times = np.log(np.array([0.005, 0.5]) / case.amplitude) / rate
    start = Density.from_law(Fourier(case.modes), cosine(case.amplitude, case.wave, 0.4))
    state = np.array(start.state)
    state[2] += case.stray
    start = Density(start.on, state)
    save = Save(at=[0.0, *times], states=True)
    run = solve(USA(case.beta), start, times[-1], rtol=case.rtol, atol=case.atol, save=save)
    states = np.asarray(run.states)
    k = np.concatenate([[0], np.arange(1, case.modes + 1), np.arange(1, case.modes + 1)])
    off = np.abs(states[:, k % case.wave != 0]).max()
    size = np.linalg.norm(states[:, k == case.wave], axis=-1)
    growth = np.log(size[1] / size[0]) / (rate * times[0])
    return [
        equals("largest coefficient off the multiples of k*", off, 0.0, 1e-8),
        equals("log-growth of the wave over rate times t", growth, 1.0, 1e-3),
    ]
