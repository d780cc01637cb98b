"""Prompts of one length, and the tokens that replace one of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from ..errors import InputError, require
from .load import Checkpoint
from .tokenise import Words, encode, limit
from .vocabulary import embedding_rows

Pool = Literal["vocabulary", "prompts"]
RANDOM_LENGTH = 64


@dataclass(frozen=True)
class Prompts:
    """Token ids (prompt, token), the ids a replacement may have, where they come from, the seed."""

    ids: np.ndarray
    pool: np.ndarray
    source: str
    seed: int

    @property
    def length(self) -> int:
        """Tokens of a prompt."""
        return self.ids.shape[1]

    def replacements(self, prompt: int, number: int, draws: int) -> np.ndarray:
        """`draws` different ids of the pool; the same at every position of a prompt."""
        require(
            draws <= len(self.pool),
            f"{draws} different replacements were asked for and the pool has {len(self.pool)} tokens; "
            "use fewer draws, or pool='vocabulary'",
        )
        random = np.random.default_rng([self.seed, prompt, number])
        return random.choice(self.pool, size=draws, replace=False)


def make_prompts(
    checkpoint: Checkpoint,
    text: str | Sequence[str] | None,
    words: Sequence[Words] | None,
    random: int | None,
    length: int | None,
    split: str | None,
    pool: Pool,
    seed: int,
) -> Prompts:
    """Exactly one source of prompts, cut to one length that the model can read."""
    require(
        sum(item is not None for item in (text, words, random)) == 1,
        "give one of text, words or random: the prompts whose tokens are replaced",
    )
    require(
        pool in get_args(Pool), f"pool must be one of {', '.join(get_args(Pool))}, got {pool!r}"
    )
    ordinary = _ordinary_ids(checkpoint)
    if random is not None:
        ids, source = _random_ids(ordinary, random, length, seed), "random"
    else:
        ids, source = _text_ids(_encoded(checkpoint, text, words, split), length), "text"
    most = limit(checkpoint)
    require(
        most is None or ids.shape[1] <= most,
        f"the prompts have {ids.shape[1]} tokens, the model's context holds {most}; give length={most} "
        "(--length) or less",
    )
    return Prompts(ids, ordinary if pool == "vocabulary" else np.unique(ids), source, seed)


def _encoded(
    checkpoint: Checkpoint,
    text: str | Sequence[str] | None,
    words: Sequence[Words] | None,
    split: str | None,
) -> list[Words]:
    if text is not None:
        texts = [text] if isinstance(text, str) else list(text)
        words = [encode(checkpoint, each, split=split) for each in texts]
    assert words is not None
    require(len(words) > 0, "there is no text; give at least one")
    return list(words)


def _text_ids(words: list[Words], length: int | None) -> np.ndarray:
    """The first tokens of every text; what a tokenizer puts behind a text is left out."""
    rows = [each.ids[: len(each) - each.suffix] for each in words]
    shortest = min(len(row) for row in rows)
    wanted = shortest if length is None else length
    short = [index for index, row in enumerate(rows, start=1) if len(row) < wanted]
    if short:
        raise InputError(
            f"text {short[0]} has {len(rows[short[0] - 1])} tokens and the prompts shall have {wanted}; "
            f"give longer texts, leave it out, or use --length {shortest}"
        )
    require(wanted >= 1, f"the length must be positive, got {wanted}")
    return np.asarray([row[:wanted] for row in rows])


def _random_ids(ordinary: np.ndarray, count: int, length: int | None, seed: int) -> np.ndarray:
    """Independent tokens, each as likely as every other."""
    wanted = RANDOM_LENGTH if length is None else length
    require(count >= 1, f"there must be at least one random prompt, got {count}")
    require(wanted >= 1, f"the length must be positive, got {wanted}")
    return np.random.default_rng([seed]).choice(ordinary, size=(count, wanted))


def _ordinary_ids(checkpoint: Checkpoint) -> np.ndarray:
    """Ids with a row in the embedding that are no special token, as far as the tokenizer knows."""
    rows = embedding_rows(checkpoint.model)
    if rows is None:
        raise InputError(
            f"{checkpoint.name} has no embedding of tokens, so that none can be replaced; give a causal "
            "language model"
        )
    if checkpoint.tokenizer is None:
        return np.arange(rows)
    known = np.asarray(sorted(set(checkpoint.tokenizer.get_vocab().values())))
    special = checkpoint.tokenizer.all_special_ids
    return np.setdiff1d(known[known < rows], special)
