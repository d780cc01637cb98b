"""The order and the times of the merges: pair by pair, the closest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .... import theory
from ....errors import InputError
from ....integrate import LogTime, Merge
from ....ledger.claim import Case, Comparison, broken, equals
from ....ledger.measure import flow, gram, unit
from ....measure import Measure
from ....models import SA
from ....space import Sphere
from .. import PAPER

# Two clusters count as one below this angle; the rest of their way takes a time of order 1.
JOINED = 0.02


@dataclass(frozen=True)
class Event:
    """A merge foretold: 1 - <x, y> when it starts, the lead over the next pair, and who joins."""

    height: float
    lead: float
    joined: frozenset[int]


def _foretold(points: np.ndarray, masses: np.ndarray, count: int) -> list[Event]:
    """The first merges: again and again the closest pair goes to its merge point; masses add."""
    places, weights = list(points), list(masses)
    members = [frozenset([i]) for i in range(len(places))]
    events = []
    for _ in range(count):
        rows, columns = np.triu_indices(len(places), 1)
        overlap = gram(np.array(places))[rows, columns]
        next_best, best = np.argsort(overlap)[-2:]
        i, j = rows[best], columns[best]
        lead = float(overlap[best] - overlap[next_best])
        events.append(Event(1 - float(overlap[best]), lead, members[i] | members[j]))
        places[i] = theory.merge_point(places[i], places[j], weights[i], weights[j])
        weights[i] += weights[j]
        members[i] = events[-1].joined
        del places[j], weights[j], members[j]
    return events


def _prefactor(beta: float) -> float:
    """T = e^{beta (1-c)}/(2 beta sin^2 phi) for equal masses: log(T)/beta is off by this or less."""
    return float((np.log(beta) + 2) / beta)


def _random_clusters(case: Case, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points in general position, and unequal masses."""
    points = random.normal(size=(case.n, case.d))
    points = unit(points)
    return points, random.dirichlet(np.full(case.n, 20.0))


def _tied_clusters(case: Case, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same, but three of the clusters have equal masses and the common inner product 0.7."""
    points, masses = _random_clusters(case, random)
    angle = 2 * np.pi * np.arange(3) / 3
    points[:3] = 0
    points[:3, :3] = np.stack([0.5 * np.cos(angle), 0.5 * np.sin(angle), np.ones(3)], axis=-1)
    points[:3] = unit(points[:3])
    masses[:3] = masses[:3].mean()
    return points, masses


def _start(case: Case) -> tuple[np.ndarray, np.ndarray, list[Event]]:
    """Clusters with two foretold merges at heights above 0.15, each pair well ahead of the next.

    Ahead means more than `_prefactor`, so that the logarithm cannot change the order; tied clusters
    instead have to be far from the others, which would break the tie. A pair closes within a time of
    order 1, which double precision resolves up to t = e^28.
    """
    random = np.random.default_rng(case.seed)
    tied = case.start == "tied"
    make = _tied_clusters if tied else _random_clusters
    for _ in range(20_000):
        points, masses = make(case, random)
        events = _foretold(points, masses, 2)
        first, second = events
        ahead = min(first.lead, second.lead, second.height - first.height)
        alone = second.joined <= {0, 1, 2} and np.max(points[3:] @ points[:3].T) < 0.2
        wanted = alone if tied else ahead > _prefactor(case.beta)
        if wanted and first.height > 0.15 and second.height < 28 / case.beta:
            return points, masses, events
    raise InputError(f"found no separated merges of {case.n} tokens in R^{case.d}; take fewer")


@PAPER.claim(
    "merge-order",
    where="last phase, as quoted in 2512.01868",
    says="For large beta clusters merge two at a time, the pair with the largest inner product c "
    "first, after a time T with log T close to beta (1 - c).",
    given={"n": 4, "d": 3, "beta": 30.0, "start": "generic"},
    at_paper_scale={"n": 6, "d": 4, "beta": 60.0},
    options={"start": ("generic", "tied")},
    needs={
        "no two pairs are equally close": lambda c: c.start == "generic",
        "beta is large": lambda c: c.beta >= 20,
        "at least four clusters in d >= 3": lambda c: c.n >= 4 and c.d >= 3,
    },
    control=broken("three clusters at equal angles merge at once", start="tied"),
    note="The exponent is checked for the first two merges, at finite beta within the "
    "prefactor's logarithm.",
    rtol=1e-9,
    atol=1e-12,
)
def merge_order(case: Case) -> list[Comparison]:
    """Numbers of clusters lost at once, who merged, and log(T)/beta against 1 - c.

    Save times are beta/128 apart in log t or closer, an error of 1/128.
    """
    points, masses, events = _start(case)
    times = np.exp(np.linspace(0, case.beta * max(event.height for event in events), 128))
    start = Measure(Sphere(case.d), points, masses)
    states = flow(case, SA(case.beta), start, times, clock=LogTime(), merge=Merge(1e-3))
    joined = gram(states) > np.cos(JOINED)
    # Without a chain of clusters a token is the first of its own when it is joined to none before.
    counts = (~np.tril(joined, -1).any(axis=-1)).sum(axis=-1)
    lost = -np.diff(counts, prepend=case.n)
    comparisons = [equals("clusters lost at once", lost.max(), 1, 0.25)]
    for number, event in enumerate(events, start=1):
        after = int(np.argmax(counts <= case.n - number))
        together = joined[after][np.ix_(*[sorted(event.joined)] * 2)].all()
        late = np.log(times[after]) / case.beta - event.height
        comparisons += [
            equals(f"merge {number} joins the closest pair", float(together), 1.0, 0.25),
            equals(f"log(T)/beta - (1 - c), merge {number}", late, 0.0, _prefactor(case.beta)),
        ]
    return comparisons
