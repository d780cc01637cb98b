"""Leaders and followers: who leads, who stays, where the layers end."""

from __future__ import annotations

import numpy as np

from ....ledger.claim import Case, Comparison, at_least, at_most, broken, equals, misprint
from ....ledger.measure import field, largest_chord
from ....measure import Measure, from_array
from ....space import Euclidean
from .. import PAPER
from .shared import (
    DEFINITE,
    GIVEN,
    NUMBER,
    PAPER_SCALE,
    POSITIVE_ALPHA,
    ROUNDING,
    cloud,
    hardmax,
    metric,
    run_layers,
    scores,
    squared_norms,
)

STARTS = {"start": ("gaussian", "square")}
NO_TIES = {"tokens are in general position, without ties": lambda c: c.start == "gaussian"}
# Followers closer than this to their leader count as leading; see `observables.leader_mask`.
SAME_PLACE = 1e-6


def _square(case: Case, offset: float) -> Measure:
    """Corners, the tokens (-1/2, 0) and (1/2, offset), and two random tokens inside."""
    rng = np.random.default_rng(case.seed)
    fixed = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [-0.5, 0], [0.5, offset]])
    inside = rng.uniform(-0.5, 0.5, size=(case.samples, 2, 2))
    tokens = np.concatenate([np.broadcast_to(fixed, (case.samples, 6, 2)), inside], axis=1)
    return from_array(Euclidean(2), tokens)


def _start(case: Case) -> tuple[np.ndarray, Measure]:
    """A and the tokens: a generic metric with Gaussian tokens, or the square with its ties."""
    if case.start == "square":
        return np.eye(2), _square(case, 0.0)
    return metric(case), cloud(case)


@PAPER.claim(
    "leaders-persist",
    where=f"leaders ({NUMBER})",
    says="The longest token leads, a leader leads and rests for ever, and the number of places held "
    "by leaders never falls.",
    given={**GIVEN, "sign": 1.0},
    at_paper_scale=PAPER_SCALE,
    needs={**DEFINITE, **POSITIVE_ALPHA},
    control=broken("with A negative even the longest token follows", sign=-1.0),
    note="Leaders are recognised by place (within 1e-6), not by index: collapsed followers count.",
)
def leaders_persist(case: Case) -> list[Comparison]:
    """Leader masks and leader steps over the layers."""
    matrix = metric(case)
    run = run_layers(case, hardmax(case.sign * matrix), cloud(case))
    longest = squared_norms(run.states, matrix).argmax(axis=-1)
    steps = np.linalg.norm(np.diff(run.states, axis=1), axis=-1)
    return [
        at_least(
            "whether the longest token leads",
            np.take_along_axis(run.leads, longest[..., None], axis=-1),
            1.0,
        ),
        at_least("change of a token's leading", np.diff(run.leads.astype(int), axis=1), 0.0),
        at_least("change of the number of leader places", np.diff(run.locations, axis=1), 0.0),
        at_most("step of a leader", steps * run.leads[:, :-1], 0.0, SAME_PLACE),
    ]


@PAPER.claim(
    "following",
    where=f"following a leader ({NUMBER})",
    says="A token that attends to one leader goes straight to it, and every layer divides its "
    "distance by exactly 1 + alpha.",
    given={**GIVEN, "start": "gaussian"},
    at_paper_scale=PAPER_SCALE,
    options=STARTS,
    needs={**NO_TIES, **POSITIVE_ALPHA},
    control=broken("a token that ties between two corners goes to neither", start="square"),
)
def following(case: Case) -> list[Comparison]:
    """max |z_i^k - z_l - (1+alpha)^{-k} (z_i^0 - z_l)| over the tokens that follow a leader l at k = 0."""
    matrix, x0 = _start(case)
    run = run_layers(case, hardmax(matrix), x0)
    start = run.states[:, 0]
    attended = scores(start, matrix).argmax(axis=-1)
    follows = np.take_along_axis(run.leads[:, 0], attended, axis=-1)
    goal = np.take_along_axis(start, attended[..., None], axis=1)
    shrink = (1 + case.alpha) ** -np.arange(case.layers + 1.0)
    predicted = goal[:, None] + shrink[:, None, None] * (start - goal)[:, None]
    off = np.where(follows[:, None, :, None], run.states - predicted, 0.0)
    return [equals("followers against the exact contraction", off, 0.0, ROUNDING)]


@PAPER.claim(
    "limits",
    where=f"the convergence theorem ({NUMBER})",
    says="From distinct nonzero tokens in general position every token converges to a leader.",
    given={**GIVEN, "start": "gaussian"},
    at_paper_scale=PAPER_SCALE,
    options=STARTS,
    needs={**NO_TIES, **POSITIVE_ALPHA},
    control=broken("tokens that tie between two corners of a square do not lead", start="square"),
    note="The theorem also allows projections of the origin on faces of the limit polytope, which "
    "need exact ties. It has no rate: half the number of layers pays for the time until a leader "
    "is followed.",
)
def limits(case: Case) -> list[Comparison]:
    """Distance of each token to the nearest leader after the last layer, over the first diameter."""
    matrix, x0 = _start(case)
    run = run_layers(case, hardmax(matrix), x0)
    last, leads = run.states[:, -1], run.leads[:, -1]
    chords = np.linalg.norm(last[:, :, None] - last[:, None], axis=-1)
    diameter = largest_chord(run.states[:, 0])
    # Without any leader the diameter itself stands for the distance.
    nearest = np.where(leads[:, None], chords, diameter[:, None, None]).min(axis=-1)
    allowed = (1 + case.alpha) ** (-case.layers / 2)
    return [at_most("distance to a leader, relative", nearest / diameter[:, None], 0.0, allowed)]


EMERGING = np.array(
    [
        [1, 1 / 3],
        [-1 / 12, 1 / 12],
        [-1, -1],
        [0, 1 / 4],
        [-0.3, -0.7],
        [-0.6, -0.9],
        [0.8, 0.1],
        [0.6, 0.15],
    ]
)


@PAPER.claim(
    "emerging-leader",
    where="Figure 2, first case",
    says="A token can become a leader later: in the figure's first case token 1 starts to lead, and "
    "stops, after one layer.",
    given={"samples": 4, "alpha": 0.5, "layers": 32, "table": "all layers"},
    options={"table": ("all layers", "public code")},
    needs={"alpha = 1/2, as in the figure": lambda c: c.alpha == 0.5},
    control=broken("a longer step carries token 1 past the place where it would lead", alpha=5.0),
    errata=[
        misprint(
            "the table of leaders of the public code runs one layer more and overwrites the first state, so "
            "that a leader after one layer counts as one from layer 0",
            table="public code",
        )
    ],
)
def emerging_leader(case: Case) -> list[Comparison]:
    """Leaders 0, 2 at layer 0 and 0, 1, 2 from layer 1; z_1 = (z_1 + alpha z_3)/(1 + alpha) stays."""
    turns = _rotations(case)
    run = run_layers(case, hardmax(np.eye(2)), from_array(Euclidean(2), EMERGING @ turns))
    arrival = (EMERGING[1] + case.alpha * EMERGING[3]) / (1 + case.alpha)
    goals = EMERGING[[0, 1, 2, 0, 2, 2, 0, 0]]
    goals[1] = arrival
    start = np.where(np.arange(8)[:, None] == 1, goals, EMERGING)
    predicted = goals + (1 + case.alpha) ** -float(case.layers) * (start - goals)
    places = np.array([2] + [3] * case.layers)
    counted = run.locations.copy()
    if case.table == "public code":
        counted[:, 0] = counted[:, 1]
    return [
        equals("number of leader places per layer", counted, places, 0.0),
        equals("tokens after the last layer", run.states[:, -1], predicted @ turns, ROUNDING),
    ]


def _rotations(case: Case) -> np.ndarray:
    """One random rotation per sample, (samples, 2, 2)."""
    angles = np.random.default_rng(case.seed).uniform(0, 2 * np.pi, case.samples)
    cosine, sine = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], -2)


@PAPER.claim(
    "face-projections",
    where="Figure 2, last case; the convergence theorem",
    says="Tokens that tie between two leaders converge to the projection of the origin on the edge "
    "between them and do not lead.",
    given={"samples": 4, "alpha": 0.5, "layers": 32, "offset": 0.0},
    needs={**POSITIVE_ALPHA, "the tie is exact": lambda c: c.offset == 0.0},
    control=broken("a billionth off the tie, the token goes to a corner", offset=1e-9),
)
def face_projections(case: Case) -> list[Comparison]:
    """Square (+-1, +-1), tokens (+-1/2, 0), two random ones: limits, approached by 1/(1+alpha)."""
    run = run_layers(case, hardmax(np.eye(2)), _square(case, case.offset))
    start = run.states[:, 0]
    goals = np.sign(start)
    goals[:, 4:6] = [[-1.0, 0.0], [1.0, 0.0]]
    predicted = goals + (1 + case.alpha) ** -float(case.layers) * (start - goals)
    corners = [1, 1, 1, 1, 0, 0]
    return [
        equals("tokens after the last layer", run.states[:, -1], predicted, ROUNDING),
        equals("who leads, of corners and edge tokens", run.leads[:, -1, :6], corners, 0.0),
    ]


@PAPER.claim(
    "equilibria",
    where=f"equilibria ({NUMBER})",
    says="Tokens rest if each is a leader or both the mean of what it attends to and the projection of the "
    "origin on that face; a token at the origin rests if the barycentre is there.",
    given={"place": 0.5},
    needs={"the edge token is its projection of the origin": lambda c: c.place == 0.5},
    control=broken("elsewhere on the edge the token is drawn to one corner", place=0.25),
)
def equilibria(case: Case) -> list[Comparison]:
    """Field 0 for A = [[2, 1], [1, 3]], corners +-(1, 1), +-(2, -1) of equal |.|_A, edge tokens, 0.

    All numbers are small multiples of 1/4, so that ties are exact in floating point.
    """
    corners = np.array([[1.0, 1.0], [2.0, -1.0]])
    edge = case.place * corners[0] + (1 - case.place) * corners[1]
    tokens = np.concatenate([corners, -corners, [edge, -edge, [0.0, 0.0]]])
    model = hardmax(np.array([[2.0, 1.0], [1.0, 3.0]]))
    velocity = field(model, from_array(Euclidean(2), tokens))
    return [equals("velocity of the tokens", velocity, 0.0, ROUNDING)]


@PAPER.claim(
    "ellipsoid",
    where=f"equilibria on an ellipsoid ({NUMBER})",
    says="Tokens of equal length in the metric of A are all leaders, and nothing moves.",
    given={**GIVEN, "start": "ellipsoid"},
    at_paper_scale=PAPER_SCALE,
    options={"start": ("ellipsoid", "sphere")},
    needs={"all tokens have |z|_A = 1": lambda c: c.start == "ellipsoid"},
    control=broken("on a round sphere the tokens have different lengths for A", start="sphere"),
)
def ellipsoid(case: Case) -> list[Comparison]:
    """Displacement after all layers, and whether every token leads at the start."""
    matrix = metric(case)
    shape = matrix if case.start == "ellipsoid" else np.eye(case.d)
    tokens = np.asarray(cloud(case).points)
    tokens = tokens / np.sqrt(squared_norms(tokens, shape))[..., None]
    run = run_layers(case, hardmax(matrix), from_array(Euclidean(case.d), tokens))
    return [
        equals("displacement", run.states[:, -1] - tokens, 0.0, ROUNDING),
        at_least("whether every token leads", run.leads[:, 0], 1.0),
    ]


@PAPER.claim(
    "decoder",
    where=f"what the decoder reads ({NUMBER})",
    says="Once every token follows its leader, the mean of the tokens is the vote of the leaders, "
    "weighted by their followers, up to the diameter over (1 + alpha) to the number of layers since.",
    given={**GIVEN, "start": "gaussian"},
    at_paper_scale=PAPER_SCALE,
    options=STARTS,
    needs={**NO_TIES, **POSITIVE_ALPHA},
    control=broken("a token that ties between two corners votes for neither", start="square"),
)
def decoder(case: Case) -> list[Comparison]:
    """|mean z^k - sum_l (n_l/n) z_l| (1+alpha)^{k-k0} / diam from the layer k0 where nobody switches on."""
    matrix, x0 = _start(case)
    states = run_layers(case, hardmax(matrix), x0).states
    attended = scores(states, matrix).argmax(axis=-1)
    followed = np.take_along_axis(states, attended[..., None], axis=2)
    vote = followed[:, -1].mean(axis=1)
    switched = np.linalg.norm(followed - followed[:, -1:], axis=-1).max(axis=-1) > SAME_PLACE
    diameter = largest_chord(states[:, 0])
    ratios = []
    for sample, tokens in enumerate(states):
        settled = 1 + int(np.max(np.flatnonzero(switched[sample]), initial=-1))
        distance = np.linalg.norm(tokens[settled:].mean(axis=1) - vote[sample], axis=-1)
        growth = (1 + case.alpha) ** np.arange(len(distance))
        ratios.append(np.max(distance * growth) / diameter[sample])
    return [at_most("distance to the vote over its bound", ratios, 1.0)]
