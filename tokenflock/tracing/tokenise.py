"""From text to tokens: ids, labels, files of texts or tokens, the context limit, windows.

All input is bounded: a file larger than 64 MiB or with more than 100,000 texts is refused with a
sentence instead of being read in part.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError, require
from .files import VOCABULARY, only_vocabulary, read_start
from .load import Checkpoint
from .offline import quiet
from .vocabulary import check_range, cut, frame, unknown_token, vocabulary

UNKNOWN_SHARE = 0.2
BYTES_LIMIT = 2**26
TEXTS_LIMIT = 100_000
# Names under which configurations keep the number of positions, the common one first.
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "n_ctx")


@dataclass(frozen=True)
class Words:
    """The tokens of one text; `prefix` and `suffix` count the special tokens put around it."""

    ids: list[int]
    labels: list[str]
    text: str
    prefix: int = 0
    suffix: int = 0
    part: str = ""

    def __len__(self) -> int:
        return len(self.ids)


# --- text ---


def encode(
    checkpoint: Checkpoint, text: str, *, split: str | None = None, special: bool = True
) -> Words:
    """The tokens of `text` by the checkpoint's own tokenizer, or by `split` and its vocabulary.

    `split` is a regular expression or a built-in name ("smiles"). `special` adds what the
    tokenizer puts around a text ([CLS] ... [SEP], a first token). Refused if more than a fifth of
    the tokens, special ones aside, are unknown: then the model would not read the text at all.
    """
    require(bool(text.strip()), "the text is empty; give at least two tokens of text")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"the text is not valid Unicode ({error.reason})") from error
    if split is not None:
        return _by_split(checkpoint, text, split, special)
    if checkpoint.tokenizer is None:
        raise InputError(_no_tokenizer(checkpoint))
    return _by_tokenizer(checkpoint, text, special)


def _no_tokenizer(checkpoint: Checkpoint) -> str:
    why = checkpoint.tokenizer_problem or "it ships none"
    return (
        f"{checkpoint.name} has no tokenizer: {why}; give token ids (or token strings) with "
        f"--tokens FILE, or, with a {VOCABULARY} in the folder, --split REGEX (--split smiles)"
    )


def _by_split(checkpoint: Checkpoint, text: str, split: str, special: bool) -> Words:
    known = vocabulary(checkpoint)
    require(
        bool(known),
        f"--split needs a vocabulary, and {checkpoint.name} has neither {VOCABULARY} nor a "
        "tokenizer; give token ids with --tokens FILE",
    )
    pieces = cut(text, split)
    missing = [piece for piece in pieces if piece not in known]
    _require_known(len(missing), len(pieces), missing[0] if missing else "", checkpoint, split)
    spare = unknown_token(known)
    if missing and spare is None:
        raise InputError(
            f"{missing[0]!r} is not in the vocabulary of {checkpoint.name}, which has no token for "
            "unknown pieces; check the text or --split"
        )
    first, last = frame(known) if special else ([], [])
    labels = [*first, *(piece if piece in known else str(spare) for piece in pieces), *last]
    ids = [known[label] for label in labels]
    check_range(ids, checkpoint, f"the vocabulary of {checkpoint.name}")
    return Words(ids, labels, text, len(first), len(last))


def _by_tokenizer(checkpoint: Checkpoint, text: str, special: bool) -> Words:
    tokenizer = checkpoint.tokenizer
    with quiet():
        inner = list(tokenizer(text, add_special_tokens=False)["input_ids"])
        ids = list(tokenizer(text)["input_ids"]) if special else inner
    require(bool(inner), f"the tokenizer of {checkpoint.name} makes no tokens of this text")
    strange = [index for index, i in enumerate(inner) if i == _unknown_id(tokenizer)]
    example = _source_of(tokenizer, text, strange[0]) if strange else ""
    _require_known(len(strange), len(inner), example, checkpoint, None)
    check_range(ids, checkpoint, f"the tokenizer of {checkpoint.name} does not fit its model")
    prefix = _offset(inner, ids)
    labels = [str(label) for label in tokenizer.convert_ids_to_tokens(ids)]
    return Words(ids, labels, text, prefix, len(ids) - len(inner) - prefix)


def _unknown_id(tokenizer: Any) -> int | None:
    """The id of unknown pieces; none if it doubles as another special token (GPT-2)."""
    other = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return None if tokenizer.unk_token_id in other else tokenizer.unk_token_id


def _source_of(tokenizer: Any, text: str, index: int) -> str:
    """The stretch of text behind token `index`; the text's start if the tokenizer cannot say."""
    if not tokenizer.is_fast:
        return text
    with quiet():
        found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    start, end = found["offset_mapping"][index]
    return text[start:end] or text


def _offset(inner: list[int], whole: list[int]) -> int:
    """Where the text's own tokens start among those with special tokens around them."""
    starts = range(len(whole) - len(inner) + 1)
    return next((k for k in starts if whole[k : k + len(inner)] == inner), 0)


def _require_known(
    missing: int, total: int, example: str, checkpoint: Checkpoint, split: str | None
) -> None:
    if missing <= UNKNOWN_SHARE * total:
        return
    shown = example if len(example) <= 40 else example[:37] + "..."
    raise InputError(
        f"{missing} of {total} tokens are unknown to {checkpoint.name} (for example {shown!r}), "
        f"more than a fifth: {_why_unknown(checkpoint, split)}"
    )


def _why_unknown(checkpoint: Checkpoint, split: str | None) -> str:
    if split is not None:
        return f"--split {split} does not cut this text into pieces of its vocabulary"
    if checkpoint.folder is not None and only_vocabulary(checkpoint.folder):
        return (
            f"the folder ships only {VOCABULARY}, which does not say how to cut a text; say it with "
            "--split smiles (reaction SMILES) or --split REGEX"
        )
    return (
        "its tokenizer is probably not made for this kind of text; "
        "check the text, or give ids with --tokens FILE"
    )


# --- files ---


def read_texts(path: str | Path, lines: bool = True) -> list[str]:
    """The texts of a file: one per line (blank lines skipped), or the whole file as one."""
    content = _read_utf8(Path(path))
    texts = [line for line in _lines(content) if line.strip()] if lines else [content.strip()]
    require(bool(texts and texts[0]), f"{path} holds no text")
    _require_count(len(texts), path)
    return texts


def read_tokens(checkpoint: Checkpoint, path: str | Path) -> list[Words]:
    """Token ids or token strings as they are, no special tokens added: one text per line.

    A line is separated by white space or a JSON list; the file may also be one JSON list, of
    tokens or of lists of tokens. White-space lines are ids if every piece of the file is an
    integer, otherwise all are token strings (a SMILES vocabulary holds "1"); in JSON the type says.
    """
    rows = _rows(_read_utf8(Path(path)))
    require(bool(rows), f"{path} holds no tokens")
    _require_count(len(rows), path)
    known = vocabulary(checkpoint)
    names = {index: label for label, index in known.items()}
    found = []
    for number, row in enumerate(rows, start=1):
        where = f"{path}, text {number}"
        ids = [_token_id(token, known, where) for token in row]
        check_range(ids, checkpoint, where)
        labels = [names.get(i, str(i)) for i in ids]
        found.append(Words(ids, labels, " ".join(str(token) for token in row)))
    return found


def _rows(content: str) -> list[list[Any]]:
    """Lists of tokens, ids as int and token strings as str."""
    whole = _json_list(content)
    if whole is not None:
        nested = bool(whole) and all(isinstance(row, list) for row in whole)
        return whole if nested else ([whole] if whole else [])
    lines = [line for line in _lines(content) if line.strip()]
    rows = [_json_list(line) for line in lines]
    plain = [line.split() for line, row in zip(lines, rows, strict=True) if row is None]
    numbers = all(_is_integer(piece) for row in plain for piece in row)
    spare = iter([[int(p) for p in row] if numbers else row for row in plain])
    return [next(spare) if row is None else row for row in rows]


def _json_list(text: str) -> list[Any] | None:
    """The list in `text`, or None: `[CLS] C` is a line of token strings, not JSON."""
    if not text.lstrip().startswith("["):
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content


def _is_integer(piece: str) -> bool:
    digits = piece.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20


def _token_id(token: Any, known: dict[str, int], where: str) -> int:
    if isinstance(token, int) and not isinstance(token, bool):
        return token
    require(
        isinstance(token, str),
        f"{where}: a token is an integer id or a token string, got {token!r}",
    )
    if token not in known:
        size = f"its {len(known)} tokens" if known else "a vocabulary, which the model lacks"
        raise InputError(f"{where}: the token string {token!r} is not in {size}; give ids instead")
    return known[token]


def _read_utf8(path: Path) -> str:
    require(path.exists(), f"there is no file {path}")
    content = read_start(path, BYTES_LIMIT + 1)
    require(
        len(content) <= BYTES_LIMIT,
        f"{path} is larger than {BYTES_LIMIT // 2**20} MiB; trace a part of it",
    )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start}: {error.reason}); convert it first"
        ) from error


def _lines(content: str) -> list[str]:
    return [line.removesuffix("\r") for line in content.split("\n")]


def _require_count(count: int, path: str | Path) -> None:
    require(
        count <= TEXTS_LIMIT,
        f"{path} holds {count} texts, more than {TEXTS_LIMIT}; trace a part of it",
    )


# --- length ---


def limit(checkpoint: Checkpoint) -> int | None:
    """The longest text the model was made for, or None if its configuration states no length.

    Learned positions end there; rotary and relative ones go on, but outside the trained range.
    RoBERTa's positions start behind the padding index, so its table holds fewer than it says.
    """
    for name, module in getattr(checkpoint.model, "named_modules", lambda: ())():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            return module.num_embeddings - padding - 1
    config: Any = getattr(checkpoint.model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    stated = (getattr(config, name, None) for name in LENGTHS)
    return next((n for n in stated if isinstance(n, int) and n > 0), None)


def fit(
    words: Words, limit: int | None, truncate: bool = False, window: int | None = None
) -> list[Words]:
    """The text as the model can take it: whole, its start (`truncate`), or cut into windows.

    Windows are consecutive and hold `window` tokens each, special ones included (put around every
    window); the last one is shorter, and reaches one token back where it would hold only one.
    """
    require(not (truncate and window), "--truncate and --window exclude each other; give one")
    require(
        len(words) >= 2,
        f"the text {words.text[:40]!r} has {len(words)} token; "
        "tokens can only meet if there are two or more",
    )
    if window is not None:
        return _windows(words, _checked_window(words, window, limit))
    if limit is None or len(words) <= limit:
        return [words]
    require(
        truncate,
        f"the text has {len(words)} tokens, the model's context holds {limit}; "
        f"use --truncate for the first {limit}, or --window N (N <= {limit}) for all in parts",
    )
    room = limit - words.prefix - words.suffix
    require(room >= 1, f"a context of {limit} tokens has no room beside the special tokens")
    return [_piece(words, 0, room)]


def _checked_window(words: Words, window: int, limit: int | None) -> int:
    least = max(2, words.prefix + words.suffix + 1)
    require(
        window >= least and (limit is None or window <= limit),
        f"--window must lie between {least} and {'any length' if limit is None else limit} "
        f"tokens (special ones included), got {window}",
    )
    return window


def _windows(words: Words, window: int) -> list[Words]:
    if len(words) <= window:
        return [words]
    special = words.prefix + words.suffix
    room, total = window - special, len(words) - special
    starts = [min(start, total - 2 + special) for start in range(0, total, room)]
    return [_piece(words, start, min(start + room, total)) for start in starts]


def _piece(words: Words, start: int, stop: int) -> Words:
    """Tokens start..stop of the text itself, with its special tokens around them."""
    inner = slice(words.prefix + start, words.prefix + stop)
    tail = len(words) - words.suffix

    def take(row: list[Any]) -> list[Any]:
        return row[: words.prefix] + row[inner] + row[tail:]

    total = len(words) - words.prefix - words.suffix
    part = f"tokens {start + 1} to {stop} of {total}"
    return replace(words, ids=take(words.ids), labels=take(words.labels), part=part)
