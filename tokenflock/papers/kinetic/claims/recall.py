"""Recall measured on sampled prompts, beside the expansion of the soft accuracy."""

from __future__ import annotations

import numpy as np

from ....dynamics import Dynamics
from ....ensembles import mean_and_error
from ....kinetic import sample_recall
from ....ledger.claim import Case, Comparison, broken, equals, misprint
from ....models import CausalSA, KineticFlow
from ....theory import kinetic as theory
from .. import PAPER
from .shared import ATTENTIVE


@PAPER.claim(
    "accuracy-expansion",
    where="expansion of the soft accuracy",
    says="For N independent uniform tokens the soft accuracy of recalling token k = s0 N is sqrt(pi/2)/M + "
    "(sqrt(2 pi)/(M N)) S_t(s0), up to terms of order N^{-2} (and logarithms).",
    given={
        "n": 30,
        "prompts": 150,
        "beta": 1.0,
        "slope": 1.0,
        "t": 0.6,
        "attention": "unnormalised",
        "fourier": "normalised",
    },
    at_paper_scale={"n": 60, "prompts": 2000},
    options={
        "attention": ("unnormalised", "softmax"),
        "fourier": ("normalised", "unnormalised"),
    },
    needs={
        "attention without a partition function": lambda c: c.attention == "unnormalised",
        **ATTENTIVE,
    },
    control=broken(
        "softmax attention divides by its partition function, and recalls less", attention="softmax"
    ),
    errata=[
        misprint(
            "Fourier coefficients are printed without 1/(2 pi); with them a_n would be 2 pi times larger",
            fourier="unnormalised",
        )
    ],
    note="M = 8 words, tokens k = 4/30, 16/30 and 28/30 of the prompt, counted from 1 with s0 = k/N (another "
    "count moves s0 by 1/N, which is part of the O(1/N) bias). Each prompt is run from 8 places of token k: "
    "the O(1) part of a sample cancels. Tolerance: 4 standard errors and 1/N of the signal.",
)
def accuracy_expansion(case: Case) -> list[Comparison]:
    """N times the excess of the accuracy over chance, in units of sqrt(2 pi)/M, at three places."""
    tokens = [round(case.n * share) for share in (4 / 30, 16 / 30, 28 / 30)]
    run = sample_recall(
        _model(case),
        case.n,
        tokens,
        case.t,
        prompts=case.prompts,
        seed=case.seed,
        dt=0.1 / case.refine,
    )
    stretch = 2 * np.pi if case.fourier == "unnormalised" else 1.0
    # a_n and t appear as a_n t only: a larger a_n is a later time.
    profile, error = mean_and_error(run, "final_profile", over="prompt")
    places = profile.position.values
    predicted = theory.retrieval_profile(places, case.beta, stretch * case.t, case.slope)
    return [
        equals(
            f"S_t({place:.3g})",
            float(measured),
            float(target),
            4 * float(noise) + float(target) / case.n,
        )
        for place, measured, noise, target in zip(
            places, profile.values, error.values, predicted, strict=True
        )
    ]


def _model(case: Case) -> Dynamics:
    """The paper's model, or softmax with the same mask."""
    if case.attention == "unnormalised":
        return KineticFlow(case.beta, case.slope)
    return CausalSA(case.beta, self_term=False, slope=case.slope)
