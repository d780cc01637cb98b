"""Table 1 on a trained network: how far the directions of its tokens turn in one layer.

The paper's clock says theta_j' = P_theta_j A_j / s_j with s_j = r_j under pre-LN. A trained network is
no flow: a layer is one step of size one, A is attention with learned weights plus the perceptron, and
the first layers add updates much longer than the tokens. What is left of the statement is the clock,
in the layers whose step is small, and that is what is measured here.
"""

from __future__ import annotations

import functools

import numpy as np

from ....errors import InputError, SolveError
from ....ledger.claim import Case, Comparison, at_least, broken, equals
from ....trajectory import Trajectory
from .. import PAPER

# A layer whose updates are a larger part of the tokens is no step of a flow.
SMALL_TURN = 0.5
TEXT = (
    "A flock of starlings has no leader. Every bird watches the few that fly next to it, turns when "
    "they turn, and keeps its distance. From rules as small as these a cloud of ten thousand birds "
    "bends over the field in the evening, splits around a tower, and closes again behind it."
)


@functools.lru_cache(maxsize=4)
def _trace(checkpoint: str, text: str, split: str, precision: str) -> Trajectory:
    from ....tracing import trace

    return trace(
        checkpoint,
        text or TEXT,
        split=split or None,
        precision=precision,
        states=False,
        without_first=True,
    )


def _layer_speed(case: Case) -> list[Comparison]:
    """Measured turning over |P(a + m)|/r, layer by layer; halved tolerances mean float64."""
    if not case.checkpoint:
        raise InputError(
            f"{PAPER.id}/layer-speed is about a trained network: give it with --set checkpoint=FOLDER "
            "(a folder in the Hugging Face layout, or a .gguf file)"
        )
    precision = "float64" if case.refine > 1 else "float32"
    text, split = ("" if value == "-" else value for value in (case.text, case.split))
    run = _trace(case.checkpoint, text, split, precision)
    if case.theory == "equiangular":
        return _equiangular(run)
    if "turning_angle_predicted" not in run:
        raise SolveError(run.attributes["trace"]["missing"][0])
    own, fixed = run.array("turning_angle_predicted"), run.array("turning_angle_fixed_radius")
    small = own <= case.small
    if not np.any(small):
        raise SolveError(
            f"no layer has an update of less than {case.small:g} of its tokens (the smallest "
            f"|P A|/r is {float(np.min(own)):.2g}): the layers of this network do not resolve a flow"
        )
    predicted = (own if case.clock == "own" else fixed)[small]
    ratio = np.median(run.array("turning_angle")[small] / predicted)
    return [
        equals(
            "median over small layers of the measured over the predicted turn", ratio, 1.0, 0.15
        ),
        at_least("share of layers with a small turn", np.mean(small), 0.5),
    ]


def _equiangular(run: Trajectory) -> list[Comparison]:
    """The closed system of equiangular tokens with Q = K = V = I at the heads' own temperature."""
    measured, predicted = run.array("cosine_rate"), run.array("cosine_rate_predicted")
    return [equals("change of the mean cosine in a layer", measured, predicted, 0.02)]


PAPER.claim(
    "layer-speed",
    where="Table 1, on a checkpoint",
    says="In a layer of a trained pre-LN Transformer the direction of a token turns by |P_theta A|/r, "
    "A being what attention and perceptron add to it and r its norm.",
    given={
        "checkpoint": "",
        "text": "-",
        "split": "-",
        "small": SMALL_TURN,
        "clock": "own",
        "theory": "updates",
    },
    options={"clock": ("own", "post"), "theory": ("updates", "equiangular")},
    needs={"the clock of pre-LN, s = r": lambda case: case.clock == "own"},
    control=broken(
        "the clock of post-LN, s = 1: norms that grow with depth are ignored", clock="post"
    ),
    note="A statement about the clock, not about what was learned: random weights with small updates "
    "meet it too, and that a trained network has them is what is measured. The idealisation breaks in "
    "three places: in the first layers, whose updates are several "
    "times longer than the tokens (no small step); at the first token of a decoder, a sink with a norm "
    "a hundred times the others (left out here); and in Q = K = V = I (--set theory=equiangular), whose "
    "equiangular tokens stand still at the temperature of real heads while the mean cosine moves.",
)(_layer_speed)
