"""From a review to whole numbers: clean, cut into words, count, number the frequent ones."""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

# Number 0 is no word: it fills short reviews up and is masked everywhere.
PAD = 0
# A tag has a name: "<3" and "->" are punctuation, and what stands between them is text.
MARKUP = re.compile(
    r"<!--.*?-->|</?[a-z][\w:-]*(?:\s[^<>]*)?/?>|https?://\S+|www\.\S+", re.IGNORECASE | re.DOTALL
)
# A letter of any alphabet: a character of a word that is neither a digit nor an underscore.
_LETTER = r"[^\W\d_]"
WORD = re.compile(rf"{_LETTER}+(?:'{_LETTER}+)?")
# A letter more than twice in a row is emphasis: "sooooo" is "soo".
REPEATED = re.compile(rf"({_LETTER})\1{{2,}}")
# Words that carry grammar and no opinion. Negations and "but" stay: they carry one.
_STOP_WORDS = (
    "a an the and or of to in on at by for with from as into about up out is it its it's that this "
    "these those was be are were been being am i i'm i've you he she they we his her their my your "
    "our me him them there here which who whom whose what when where while has have had do does did "
    "will would can could shall should may might so if than then just also one s t"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())


def words_of(text: str) -> list[str]:
    """The words of a review, lower case, without markup, links, digits, punctuation and stop words.

    Words are runs of letters, of any alphabet: "naïve" is one, also where its accent is a character of
    its own (Unicode's form NFC). Scripts without spaces are not cut, and vowel signs end a word.
    """
    plain = MARKUP.sub(" ", html.unescape(text)).lower().replace("’", "'")
    if not plain.isascii():
        plain = _composed(plain)
    found = WORD.findall(REPEATED.sub(r"\1\1", plain))
    return [word for word in found if word not in STOP_WORDS]


def _composed(text: str) -> str:
    """Accents joined to their letters, and numerals such as a half, letters to the pattern, taken out."""
    joined = unicodedata.normalize("NFC", text)
    numerals = {ord(c): " " for c in set(joined) if c.isnumeric() and not c.isalpha()}
    return joined.translate(numerals)


def vocabulary_of(reviews: Iterable[Sequence[str]], size: int) -> tuple[str, ...]:
    """The `size` words that occur in most reviews, the most frequent first, ties by alphabet."""
    counts = Counter(word for review in reviews for word in set(review))
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(word for word, _ in ordered[:size])


def numbered(
    reviews: Sequence[Sequence[str]], vocabulary: Sequence[str], length: int
) -> np.ndarray:
    """Word numbers (reviews, length): the first `length` known words of each, then PAD."""
    number = {word: index for index, word in enumerate(vocabulary, start=PAD + 1)}
    found = np.full((len(reviews), length), PAD, np.int32)
    for row, review in zip(found, reviews, strict=True):
        known = [number[word] for word in review if word in number][:length]
        row[: len(known)] = known
    return found
