"""One visual language: colour-blind-safe colours, quiet axes, type that survives printing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Okabe and Ito's palette, which all common forms of colour blindness can tell apart.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
REST = "#888888"
INK = "#222222"
FAINT = "#BBBBBB"

SETTINGS = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.prop_cycle": None,
    "figure.dpi": 150,
    "savefig.dpi": 200,
    "legend.frameon": False,
    "text.usetex": False,
}


@contextmanager
def styled() -> Iterator[Any]:
    """matplotlib with our settings, restored afterwards."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from cycler import cycler

    settings: Any = {**SETTINGS, "axes.prop_cycle": cycler(color=PALETTE)}
    with mpl.rc_context(settings):
        yield plt
