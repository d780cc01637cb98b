"""The classifier: what its leaders are, what it loses by its surrogate, and that it reads nothing but
words.

Trained on the synthetic reviews of `tokenflock.applications.sentiment`, whose polar words are known; the
paper's own evidence is a histogram of leaders on film reviews.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ....ledger.claim import Case, Comparison, at_least, at_most, broken, equals, misprint
from .. import PAPER

# Training is imported where a claim runs: whoever lists claims, or checks others, does not wait for it.
if TYPE_CHECKING:
    from ....applications.sentiment.classifier import Classifier
    from ....applications.sentiment.reviews import Data
    from ....applications.sentiment.settings import Settings

TRAINING = {"reviews": 1500, "d": 2, "depth": 2, "epochs": 6, "batch": 32, "rate": 0.05}
AT_PAPER_SCALE = {"reviews": 6000, "depth": 8, "epochs": 30, "rate": 0.01}
COLD = 1e-3


class Network(NamedTuple):
    """A classifier with its reviews, before the first step and after the last epoch."""

    data: Data
    random: Classifier
    trained: Classifier


@functools.lru_cache(maxsize=4)
def _network(settings: Settings, reviews: int) -> Network:
    """One training serves a claim, its control, and the other claim."""
    from ....applications.sentiment.fit import NETWORK, start, train_epoch
    from ....applications.sentiment.reviews import prepare
    from ....applications.sentiment.synthetic import synthetic_reviews

    data = prepare(synthetic_reviews(reviews, settings.seed), settings)
    trainee = start(settings, len(data.vocabulary))[NETWORK]
    random = trainee.classifier
    for _ in range(settings.epochs):
        trainee = train_epoch(trainee, settings.depth, data, settings, lambda done, note: None)
    return Network(data, random, trainee.classifier)


def _of(case: Case) -> Network:
    from ....applications.sentiment.settings import Settings
    from ....applications.sentiment.synthetic import WORDS

    sizes: dict[str, Any] = {name: case.values[name] for name in TRAINING if name != "reviews"}
    return _network(Settings(**sizes, length=WORDS, tau=COLD, seed=case.seed), case.reviews)


@PAPER.claim(
    "polar-words-lead",
    where="the experiment on sentiment analysis (its histogram of leaders)",
    says="In a trained classifier the words that carry an opinion lead, on their side of the plane; the "
    "others follow them.",
    given={**TRAINING, "network": "trained"},
    at_paper_scale=AT_PAPER_SCALE,
    options={"network": ("trained", "random")},
    needs={"the network is trained": lambda c: c.network == "trained"},
    control=broken("before its first step the network knows nothing of words", network="random"),
    note="On synthetic reviews, where the 40 polar words of 200 are known. The paper gives no number: asked "
    "is that a polar word leads at least twice as often as a neutral one, where it occurs, and that three "
    "quarters of them stand on their side, where chance puts half.",
)
def polar_words_lead(case: Case) -> list[Comparison]:
    """Share of its test reviews in which a word leads, polar over neutral; sides of the polar ones."""
    from ....applications.sentiment.leaders import count_words, follow
    from ....applications.sentiment.synthetic import NEGATIVE, POSITIVE

    network = _of(case)
    classifier = network.trained if case.network == "trained" else network.random
    tokens, words = network.data.test.tokens, np.array(network.data.vocabulary)
    counts = count_words(follow(classifier, tokens, case.depth), tokens, words.size)
    often = counts.leads / np.maximum(counts.occurs, 1)
    positive, negative = np.isin(words, POSITIVE), np.isin(words, NEGATIVE)
    polar = positive | negative
    side = np.asarray(classifier.sentiment(classifier.embedding[1:])) > 0
    return [
        at_least(
            "leading of polar over neutral words", often[polar].mean() / often[~polar].mean(), 2.0
        ),
        at_least("polar words on their side", np.mean(side[polar] == positive[polar]), 0.75),
    ]


@PAPER.claim(
    "surrogate",
    where="the experiment on sentiment analysis (training with softmax at temperature 1e-3)",
    says="A network trained as softmax at a small temperature loses the same, to three digits, when it is "
    "evaluated as the hardmax network that is meant.",
    given={**TRAINING, "temperature": COLD},
    at_paper_scale=AT_PAPER_SCALE,
    needs={"the temperature is far below the scores' gaps": lambda c: c.temperature <= 10 * COLD},
    control=broken("at temperature 1 many words share the attention", temperature=1.0),
    note="The published histories have losses such as .1605 and .1604; 1e-3 is allowed.",
)
def surrogate(case: Case) -> list[Comparison]:
    """|cross-entropy of softmax at a temperature - that of hardmax| on the test reviews."""
    from ....applications.sentiment.classifier import hard, soft
    from ....applications.sentiment.fit import score

    network = _of(case)
    hardmax, softmax = (
        score(network.trained, network.data.test, case.depth, slot)[1]
        for slot in (hard(), soft(case.temperature))
    )
    return [at_most("difference of the losses", abs(softmax - hardmax), 1e-3)]


@PAPER.claim(
    "padding",
    where="the experiment on sentiment analysis (reviews filled up to one length)",
    says="The places that fill a short review up are no words: its logit is that of the review alone.",
    given={"d": 2, "depth": 4, "words": 9, "places": 16, "samples": 8, "filler": "nothing"},
    at_paper_scale={"depth": 8, "words": 60, "places": 128},
    options={"filler": ("nothing", "a word", "public code")},
    needs={"the places hold no word": lambda c: c.filler == "nothing"},
    control=broken("a word in these places has a vote", filler="a word"),
    errata=[
        misprint(
            "the public code fills reviews up with a token that has a learned vector, attends, is attended "
            "to and enters the mean",
            filler="public code",
        )
    ],
)
def padding(case: Case) -> list[Comparison]:
    """Logits of random reviews among more places against those of the reviews alone, in double precision."""
    from ....applications.sentiment.classifier import Classifier, draw_classifier, hard
    from ....applications.sentiment.fit import evaluate
    from ....applications.sentiment.texts import PAD

    rng = np.random.default_rng(case.seed)
    known = 50
    drawn = draw_classifier(known + 1, case.d, case.seed)
    # Word 51 stands for the learned vector of the padding token, of the length of any other.
    filled = {"nothing": PAD, "a word": 1, "public code": known + 1}[case.filler]
    classifier = Classifier(*(jnp.asarray(part, float) for part in vars(drawn).values()))
    reviews = rng.integers(2, known + 1, size=(case.samples, case.words)).astype(np.int32)
    longer = np.pad(reviews, ((0, 0), (0, case.places)), constant_values=filled)
    alone, among = (evaluate(classifier, one, case.depth, hard()) for one in (reviews, longer))
    return [equals("logit among empty places", among, alone, 1e-12)]
