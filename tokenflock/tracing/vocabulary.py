"""The vocabulary of a checkpoint, and how a text is cut where only vocab.txt is shipped."""

from __future__ import annotations

import re

from ..errors import InputError, require
from .files import VOCABULARY, only_vocabulary, read_start
from .load import Checkpoint

VOCABULARY_LIMIT = 2**26
# Atoms, bonds, rings and arrows of reaction SMILES: the pattern of Schwaller et al.
# (1811.02633), which rxnmapper was trained with; `>>` is one piece.
SPLITS = {
    "smiles": r"\[[^\]]+\]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?"
    r"|>>?|\*|\$|%[0-9]{2}|[0-9]"
}
UNKNOWN = ("[UNK]", "<unk>")
# What goes in front of a text and behind it, if the vocabulary has both.
FRAMES = (("[CLS]", "[SEP]"), ("<s>", "</s>"))


def vocabulary(checkpoint: Checkpoint) -> dict[str, int]:
    """Token string -> id; empty if the checkpoint ships none.

    Where only vocab.txt says what the tokens are it is read line by line: the automatic tokenizer
    of the family may ignore it without a word (rxnmapper's ALBERT expects a sentencepiece file).
    """
    folder = checkpoint.folder
    if folder is not None and only_vocabulary(folder):
        return _read_vocabulary(checkpoint)
    return {} if checkpoint.tokenizer is None else checkpoint.tokenizer.get_vocab()


def _read_vocabulary(checkpoint: Checkpoint) -> dict[str, int]:
    assert checkpoint.folder is not None
    path = checkpoint.folder / VOCABULARY
    try:
        text = read_start(path, VOCABULARY_LIMIT).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text ({error.reason}); copy it again") from error
    lines = text.removesuffix("\n").split("\n")
    return {line.removesuffix("\r"): index for index, line in enumerate(lines)}


def cut(text: str, split: str) -> list[str]:
    """The pieces of `text`: matches of the pattern (or of a built-in one), and what lies between.

    Text the pattern does not match is kept as a piece of its own, so that it counts as unknown
    instead of vanishing; white space between matches is dropped. Cost O(len(text)).
    """
    try:
        pattern = re.compile(SPLITS.get(split, split))
    except (re.error, RecursionError, OverflowError) as error:
        names = ", ".join(SPLITS)
        raise InputError(
            f"--split {split!r} is neither built in ({names}) nor a regular expression ({error})"
        ) from error
    pieces, end = [], 0
    for match in pattern.finditer(text):
        pieces += [*text[end : match.start()].split(), match.group()]
        end = match.end()
    return [piece for piece in [*pieces, *text[end:].split()] if piece.strip()]


def frame(known: dict[str, int]) -> tuple[list[str], list[str]]:
    """The special tokens in front of a text and behind it."""
    for first, last in FRAMES:
        if first in known and last in known:
            return [first], [last]
    return [], []


def unknown_token(known: dict[str, int]) -> str | None:
    """The token that stands for everything else, if there is one."""
    return next((token for token in UNKNOWN if token in known), None)


def check_range(ids: list[int], checkpoint: Checkpoint, where: str) -> None:
    """Every id must be a row of the model's embedding."""
    rows = embedding_rows(checkpoint.model)
    wrong = [i for i in ids if i < 0 or (rows is not None and i >= rows)]
    if wrong:
        known = "" if rows is None else f" of {rows} tokens (0 to {rows - 1})"
        raise InputError(
            f"{where}: the id {wrong[0]} is not in the model's vocabulary{known}; "
            "use the ids of this checkpoint's own tokenizer"
        )
    require(bool(ids), f"{where}: there are no tokens")


def embedding_rows(model: object) -> int | None:
    """How many tokens a model has vectors for, where it says so."""
    try:
        return getattr(model.get_input_embeddings(), "num_embeddings", None)  # type: ignore[attr-defined]
    except (AttributeError, NotImplementedError):
        return None
