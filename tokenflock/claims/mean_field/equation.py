"""The continuity equation itself, solved as a density: rates, periodicity and the delay of clusters."""

from __future__ import annotations

import numpy as np

from ... import theory
from ...density import Density
from ...integrate import Save, solve
from ...meanfield.circle import Fourier
from ...meanfield.laws import cosine
from ...meanfield.linear import fastest_degree, growth_rates
from ...meanfield.zonal import Zonal
from ...models import SA, USA, NoisyUSA
from ..core import Case, Comparison, broken, equals
from .paper import PAPER

UNIFORM = "not numbered here (linearisation at the uniform measure)"


@PAPER.claim(
    "rates-any-dimension",
    where=UNIFORM,
    says="Around the uniform measure on S^{d-1} perturbations of degree k of the mean-field equation grow "
    "at k(k+d-2) times the kernel's Funk-Hecke number, for every k and d, under SA and USA.",
    given={"d": 8, "beta": 5.0, "degree": 24, "temperature": 0.0},
    at_paper_scale={"d": 64, "degree": 128},
    needs={
        "there is no noise": lambda c: c.temperature == 0,
        "beta > 0 and d >= 2": lambda c: c.beta > 0 and c.d >= 2,
    },
    control=broken("noise takes k(k+d-2) T off every rate", temperature=0.05),
    note="From the derivative of the discretised equation, without the formula: zonal densities for d >= 3, "
    "Fourier series for d = 2.",
)
def rates_in_any_dimension(case: Case) -> list[Comparison]:
    """Rates of all degrees over their closed form, and the fastest degree.

    Sums over some 40 nodes in double precision: 1e-11 relative, also for rates of 1e-30.
    """
    on = Fourier(case.degree) if case.d == 2 else Zonal(case.d, case.degree)
    degrees = np.arange(1, case.degree + 1)
    noisy = case.temperature > 0
    usa = NoisyUSA(case.beta, case.temperature) if noisy else USA(case.beta)
    found = growth_rates(usa, on, degrees) / theory.growth_rate(degrees, case.d, case.beta)
    softmax = growth_rates(SA(case.beta), on, degrees)
    softmax = softmax / theory.growth_rate(degrees, case.d, case.beta, "SA")
    best = int(theory.dominant_mode(case.d, case.beta))
    return [
        equals("USA rate / (k(k+d-2) c_k)", found, 1.0, 1e-9),
        equals("SA rate / (k(k+d-2) c_k/Z0)", softmax, 1.0, 1e-9),
        equals("fastest degree", fastest_degree(SA(case.beta), on), best, 0.25),
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
