"""Section 5: centres that hardly move and capture the others; how many there are (section C)."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .... import theory
from ....ledger.claim import Case, Comparison, at_most, broken, equals, misprint
from ....ledger.measure import flow
from ....masks import Causal
from ....measure import Measure, from_angles
from ....models import SA, CausalSA
from ....observables import Observable, Snapshot, renyi_centres, strong_centre_mask, strong_centres
from ....reduce import Dense
from ....space import Sphere
from ....starts import hemisphere, uniform
from .. import PAPER

LAWS = {"uniform": uniform, "hemisphere": hemisphere}
# A mean of hundreds of independent counts is normal to a part in a thousand: a true statement is called false
# with probability 7e-6.
STANDARD_ERRORS = 4.5


def radius(case: Case) -> float:
    """delta = c beta^{-1/2}."""
    return case.c * case.beta**-0.5


@eqx.filter_jit
def _read_samples(observable: Observable, tokens: Measure) -> Array:
    """The observable of every sample of tokens (samples, n, d)."""

    def one(points: Array) -> Array:
        return observable(Snapshot(jnp.zeros(()), tokens.at(points), SA(1.0), Dense()))

    return eqx.filter_vmap(one)(tokens.points)


def counted(observable: Observable, tokens: Measure) -> tuple[float, float]:
    """Mean of a count over the samples, and `STANDARD_ERRORS` of it."""
    counts = np.asarray(_read_samples(observable, tokens), dtype=float)
    return float(counts.mean()), STANDARD_ERRORS * float(counts.std()) / np.sqrt(len(counts))


COUNTING = {"n": 64, "beta": 64.0, "c": 4.0, "samples": 900, "start": "uniform"}
UNIFORM = {
    "tokens are independent and uniform": lambda c: c.start == "uniform",
    "delta < pi": lambda c: 0 < radius(c) < np.pi,
}


def expected_centres(case: Case) -> list[Comparison]:
    """Mean number of strong centres against (1 - (1-m)^n)/m, m the mass of a cap of radius delta.

    Token k + 1 is a centre if the k tokens before lie outside its cap: probability (1-m)^k. Within
    `STANDARD_ERRORS`.
    """
    tokens = LAWS[case.start](Sphere(case.d), case.n, case.seed, case.samples)
    mean, error = counted(strong_centres(radius(case)), tokens)
    mass = float(theory.cap_mass(radius(case), case.d))
    if case.values.get("form") == "printed":
        mass = min(3 * mass, 1.0)
    return [equals("strong centres", mean, (1 - (1 - mass) ** case.n) / mass, error)]


PAPER.claim(
    "strong-centres-circle",
    where="Lemma C.1, d = 2",
    says="The expected number of strong centres of uniform tokens on the circle is the inverse of "
    "the mass of a cap, pi/delta.",
    given={**COUNTING, "d": 2},
    at_paper_scale={"n": 512, "beta": 400.0, "samples": 2250},
    options={"start": tuple(LAWS)},
    needs={**UNIFORM, "d = 2": lambda c: c.d == 2},
    control=broken("tokens on a half circle have fewer centres", start="hemisphere"),
    note="The lemma counts an infinite sequence; n tokens miss the part (1-m)^n of it.",
)(expected_centres)

PAPER.claim(
    "strong-centres-sphere",
    where="Lemma C.1, d = 3",
    says="The expected number of strong centres of uniform tokens on the sphere is the inverse of "
    "the mass sin^2(delta/2) of a cap.",
    given={**COUNTING, "d": 3, "form": "corrected"},
    at_paper_scale={"n": 1024, "beta": 200.0, "samples": 900},
    options={"start": tuple(LAWS), "form": ("corrected", "printed")},
    needs={
        **UNIFORM,
        "d = 3": lambda c: c.d == 3,
        "the corrected form is used": lambda c: c.form == "corrected",
    },
    control=broken("tokens on a half sphere have fewer centres", start="hemisphere"),
    errata=[misprint("the cap mass is sin^2(delta/2); 3 sin^2(delta/2) exceeds 1", form="printed")],
    note="The lemma counts an infinite sequence; n tokens miss the part (1-m)^n of it.",
)(expected_centres)


@PAPER.claim(
    "renyi-centres",
    where="Section 5 and appendix C, number of Renyi centres on the circle",
    says="A long uniform sequence on the circle has about 0.7476 times 2 pi/delta Renyi centres.",
    given={"n": 400, "beta": 40.0, "c": 4.0, "samples": 450, "centres": "renyi"},
    at_paper_scale={"n": 2000, "beta": 400.0, "samples": 225},
    options={"centres": ("renyi", "strong")},
    needs={
        "only earlier centres exclude a token": lambda c: c.centres == "renyi",
        "delta <= 1, so that the circle is long": lambda c: radius(c) <= 1,
        "the sequence is long: n delta >= 80 pi": lambda c: c.n * radius(c) >= 80 * np.pi,
    },
    control=broken("strong centres are fewer, 0.5 times 2 pi/delta", centres="strong"),
    note="Renyi's parking constant; the last gaps fill slowly.",
)
def renyi_centre_count(case: Case) -> list[Comparison]:
    """Mean number of Renyi centres against `theory.expected_renyi_centres`.

    Tolerance: `STANDARD_ERRORS`, and the centres still missing after t = n delta/(2 pi) arrivals
    per length delta, e^{-2 gamma}/t per length (gamma Euler's constant).
    """
    tokens = uniform(Sphere(2), case.n, case.seed, case.samples)
    count = renyi_centres if case.centres == "renyi" else strong_centres
    mean, error = counted(count(radius(case)), tokens)
    lengths = 2 * np.pi / radius(case)
    missing = lengths * np.exp(-2 * np.euler_gamma) * lengths / case.n
    predicted = float(theory.expected_renyi_centres(radius(case)))
    return [equals("Renyi centres", mean, predicted, error + missing)]


def beyond_peak(case: Case) -> bool:
    """c beta^{-1/2} lies beyond the peak of the pull."""
    return radius(case) > float(theory.kernel_peak(case.beta))


@PAPER.claim(
    "centres-rest",
    where="Lemma 5.1",
    says="A token that starts far from all earlier ones moves less than a small part of that "
    "distance for a time exponential in its square.",
    given={"n": 8, "beta": 25.0, "c": 4.0, "eps": 0.1, "samples": 4, "watched": "strong"},
    at_paper_scale={"n": 32, "beta": 100.0, "samples": 16},
    options={"watched": ("strong", "all")},
    needs={
        "the watched tokens are strong centres": lambda c: c.watched == "strong",
        "c beta^{-1/2} lies beyond the peak of the pull": beyond_peak,
        "c (1 + 2 eps) beta^{-1/2} < pi": lambda c: radius(c) * (1 + 2 * c.eps) < np.pi,
    },
    control=broken("tokens near an earlier one are drawn to it", watched="all"),
)
def centres_rest(case: Case) -> list[Comparison]:
    """Displacement of centre s on [0, T], T = eps delta/(s h(delta)), against eps delta."""
    delta = radius(case)
    x0 = uniform(Sphere(2), case.n, case.seed, case.samples)
    first = case.eps * delta / float(theory.interaction_kernel(delta, case.beta))
    times = first / np.arange(case.n, 0, -1)
    states = flow(case, CausalSA(case.beta), x0, times)
    moved = np.linalg.norm(states - np.asarray(x0.points)[:, None], axis=-1)
    # Token s may be watched until first/s, the time number n - s of the list.
    allowed = times[None, :, None] <= first / np.arange(1, case.n + 1)
    watched = np.ones((case.samples, 1, case.n), dtype=bool)
    if case.watched == "strong":
        distance = delta * (1 + 2 * case.eps)
        watched = np.asarray(_read_samples(strong_centre_mask(distance), x0))[:, None, :]
    return [at_most("displacement", np.where(allowed & watched, moved, 0.0), case.eps * delta)]


def largest_crowd(case: Case) -> float:
    """The number N of free tokens that the sufficient window allows."""
    return case.eps / (case.c - 1) * np.exp(3 * (case.c - 1 - 2 * case.eps) ** 2 / 8)


def in_window(case: Case) -> bool:
    """eps < 0.1, c >= 5.5 + 2 eps, beta and N inside their bounds."""
    enough = case.beta >= (case.c - 1 - 2 * case.eps) ** 2 / 2
    crowded = case.n - len(CENTRES) <= largest_crowd(case)
    return bool(0 < case.eps < 0.1 and case.c >= 5.5 + 2 * case.eps and enough and crowded)


# Far enough apart for c = 6.5 and beta >= 15, where they pull each other by less than 1e-8.
CENTRES = np.array([0.0, 1.9, 4.0])


def centres_apart(case: Case) -> bool:
    """The centres are c beta^{-1/2}-separated."""
    gaps = np.diff(np.append(CENTRES, CENTRES[0] + 2 * np.pi))
    return bool(gaps.min() > radius(case))


@PAPER.claim(
    "capture",
    where="Theorem 5.2",
    says="Once separated centres are frozen, every other token comes to rest next to one of them.",
    given={"n": 19, "beta": 15.0, "c": 6.5, "eps": 0.09, "until": 1e4, "order": "first"},
    at_paper_scale={"n": 43, "until": 3e4},
    options={"order": ("first", "last")},
    needs={
        "eps, c, beta and N lie in the sufficient window": in_window,
        "the centres are c beta^{-1/2}-separated": centres_apart,
        "the centres come first, so that nothing moves them": lambda c: c.order == "first",
    },
    control=broken("centres at the end of the text are not seen by the others", order="last"),
    note="Frozen centres are tokens 1, 2, 3 of a causal sequence: they see each other with weights "
    "below 1e-8, and move by less than 1e-4 in the run.",
)
def capture(case: Case) -> list[Comparison]:
    """max over tokens of the distance to the nearest centre at the end, in units beta^{-1/2}."""
    free = np.random.default_rng(case.seed).uniform(0, 2 * np.pi, size=case.n - len(CENTRES))
    parts = [CENTRES, free] if case.order == "first" else [free, CENTRES]
    model = SA(case.beta, mask=Causal())
    final = flow(case, model, from_angles(np.concatenate(parts)), [case.until])[-1]
    places = np.stack([np.cos(CENTRES), np.sin(CENTRES)], axis=-1)
    chord = np.linalg.norm(final[:, None] - places[None], axis=-1).min(axis=1)
    distance = 2 * np.arcsin(chord / 2) * np.sqrt(case.beta)
    return [at_most("distance to the nearest centre, times sqrt(beta)", distance, case.eps)]
