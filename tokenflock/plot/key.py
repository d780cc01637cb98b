"""Entries of a legend that stand for what many curves or marks of a figure have in common."""

from __future__ import annotations

from typing import Any

from .style import INK


def mark(marker: str, label: str, colour: str = INK, **style: Any) -> Any:
    """A mark, without a line unless `ls` says which; hollow with mfc="none"."""
    from matplotlib.lines import Line2D

    return Line2D([], [], marker=marker, color=colour, label=label, **{"ls": "", "ms": 4, **style})


def stroke(line: str, label: str, colour: str = INK, **style: Any) -> Any:
    """A line without marks."""
    from matplotlib.lines import Line2D

    return Line2D([], [], ls=line, color=colour, label=label, **{"lw": 1.1, **style})


def area(label: str, colour: str, **style: Any) -> Any:
    """A filled area, such as a band around a curve."""
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, label=label, **{"lw": 0, "alpha": 0.25, **style})
