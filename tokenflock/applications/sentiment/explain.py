"""A trained classifier to ask: what a review is taken for, and which of its words decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import expit

from ...errors import InputError, require
from ...integrate import Layers, Save, solve
from ...measure import from_array
from ...observables.hardmax import leader_mask, leaders
from ...space import Euclidean
from ...trajectory import Trajectory
from .classifier import Classifier, draw_classifier, hard, network
from .fit import BASELINE, NETWORK, evaluate
from .folder import MODEL, identity_of, read_facts, read_tree
from .leaders import follow
from .settings import Settings
from .texts import PAD, numbered, words_of


class Trained(NamedTuple):
    """A classifier with its words and the names of its labels, negative first."""

    classifier: Classifier
    settings: Settings
    vocabulary: tuple[str, ...]
    names: tuple[str, str]

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Probability of the second label for every text, by the hardmax network."""
        return expit(evaluate(self.classifier, self.tokens(texts), self.settings.depth, hard()))

    def tokens(self, texts: Sequence[str]) -> np.ndarray:
        """Word numbers (texts, length)."""
        words = [words_of(text) for text in texts]
        return numbered(words, self.vocabulary, self.settings.length)

    def run(self, text: str) -> Trajectory:
        """The known words of a text through the layers, as a run like any other.

        `run.states` are their places after 0, 1, ... layers, `run["leader_mask"]` says which lead, and
        `run.attributes["words"]` names them. Layer k is at the time k alpha/(1 + alpha). Needs two words.
        """
        tokens = self._read(text)
        known = tokens[tokens != PAD]
        exact = self.classifier.exact()
        step = float(exact.step)
        run = solve(
            network(hard(), float),
            from_array(Euclidean(self.settings.d), exact.embedding[known]),
            self.settings.depth * step,
            method=Layers(step),
            save=Save(every=step, states=True, observe=[leader_mask, leaders]),
        )
        run.attributes["words"] = [self.vocabulary[token - 1] for token in known]
        return run

    def _read(self, text: str) -> np.ndarray:
        """The numbers of the words of a text."""
        (tokens,) = self.tokens([text])
        require(
            bool(np.any(tokens != PAD)),
            "the text has no word that the classifier knows; give a longer one, in its reviews' language",
        )
        return tokens

    def explain(self, text: str) -> dict[str, Any]:
        """The leaders of a text with their followers, their vote, and the network's own answer."""
        tokens = self._read(text)
        present = tokens != PAD
        found = follow(self.classifier, tokens[None], self.settings.depth)
        leader, born, follows, sentiment, logit, vote = (array[0] for array in found)
        words = [self.vocabulary[token - 1] if token != PAD else "" for token in tokens]
        entries = []
        for index in np.flatnonzero(leader):
            behind = np.flatnonzero(present & (follows == index))
            entries.append(
                {
                    "word": words[index],
                    "sentiment": float(sentiment[index]),
                    "share": behind.size / int(present.sum()),
                    "led_from_layer": int(born[index]),
                    "followers": sorted({words[i] for i in behind} - {words[index]}),
                }
            )
        entries.sort(key=lambda entry: (-entry["share"], entry["word"]))
        return {
            "label": self.names[int(logit > 0)],
            "positive_label": self.names[1],
            "probability": float(expit(logit)),
            "logit": float(logit),
            "vote": float(vote),
            "left": float((1 + self.classifier.alpha) ** -self.settings.depth),
            "words_read": int(present.sum()),
            "words_unknown": sorted(set(words_of(text)) - set(self.vocabulary)),
            "leaders": entries,
        }


def blank_models(settings: Settings, words: int) -> dict[str, Classifier]:
    """Classifiers of the right shapes, to read stored ones into."""
    return dict.fromkeys((NETWORK, BASELINE), draw_classifier(words, settings.d, settings.seed))


def open_training(place: str | Path) -> Trained:
    """The classifier of a training that has ended."""
    folder = Path(place)
    facts = read_facts(folder)
    if not (folder / MODEL).is_file():
        raise InputError(
            f"the training in {folder} has not ended; continue it with tokenflock train sentiment --resume "
            f"--out {folder}"
        )
    settings, words = Settings(**facts["settings"]), tuple(facts["vocabulary"])
    models = read_tree(folder / MODEL, blank_models(settings, len(words)), identity_of(facts))
    classifier = jax.tree.map(jax.numpy.asarray, models[NETWORK])
    return Trained(classifier, settings, words, tuple(facts["labels"]))
