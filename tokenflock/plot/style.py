"""One visual language: colour-blind-safe colours, quiet axes, type that survives printing."""

from __future__ import annotations

import functools
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
    """matplotlib with our settings, restored afterwards; figures made meanwhile are shown once."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from cycler import cycler

    settings: Any = {**SETTINGS, "axes.prop_cycle": cycler(color=PALETTE)}
    # Only ours are restored: a notebook's backend turns itself on with the first figure, and stays on.
    before: Any = {name: mpl.rcParams[name] for name in settings}
    old = plt.get_fignums()
    mpl.rcParams.update(settings)
    try:
        yield plt
    finally:
        mpl.rcParams.update(before)
    for number in plt.get_fignums():
        if number not in old:
            _show_once(plt.figure(number))


def _show_once(figure: Any) -> None:
    """A notebook shows the last value of a cell, and then all figures that pyplot still has."""
    figure._ipython_display_ = functools.partial(_leave_pyplot, figure)


def _leave_pyplot(figure: Any) -> None:
    """Called by IPython when it is about to show the figure, for whichever of the two reasons."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    if "inline" in mpl.get_backend():
        plt.close(figure)
    # To IPython this says: show it as any other figure.
    raise NotImplementedError
