"""Texts of a sweep in its picture: they may come from strangers, be long, or be in any script."""

from __future__ import annotations

import functools
import textwrap
from typing import Any

UNKNOWN = "?"


def legible(text: Any, most: int | None = None) -> str:
    """A text of one line that is drawn as it stands, and no longer than `most` characters.

    Control characters, and letters that the font lacks, become question marks. A dollar is no formula,
    and a leading underscore does not hide a line from the legend.
    """
    line = " ".join(str(text).split())
    known = _letters()
    line = "".join(c if c.isprintable() and ord(c) in known else UNKNOWN for c in line)
    line = cut(line, most) if most is not None else line
    return (" " + line if line.startswith("_") else line).replace("$", r"\$")


def cut(text: str, most: int) -> str:
    """At most so many characters, with dots where something is left out."""
    return text if len(text) <= most else text[: max(1, most - 1)].rstrip() + "…"


def wrapped(text: str, width: int, lines: int) -> str:
    """A legible text in lines of at most `width` characters; what needs more lines is cut."""
    return "\n".join(textwrap.wrap(text, max(8, width), max_lines=lines, placeholder=" …"))


@functools.cache
def _letters() -> frozenset[int]:
    """Letters of the font that pictures use."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties())).get_charmap())


def number(value: Any) -> str:
    """A value of a setting in few digits."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return legible(value, 24)


def words(name: str) -> str:
    """A name as a label: 'model.noise.temperature' is the temperature of a picture."""
    return legible(name.rsplit(".", 1)[-1].replace("_", " "), 32)
