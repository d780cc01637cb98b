"""The page as the output of a notebook cell: Jupyter, VS Code, Colab, and what they export.

The output is one element, an iframe with the whole page and the run inside. It needs no kernel, no
server and no network, so a stored or exported notebook shows what the live one did.
"""

from __future__ import annotations

import html

from ..errors import InputError
from ..trajectory import Trajectory
from .bundle import embedded_page
from .replay import run_replay

SMALLEST, LARGEST = 240, 4_000
# Until the page says how high it is.
FIRST_HEIGHT = 1_100
FRAME = (
    '<iframe title="tokenflock" srcdoc="{page}" loading="lazy" allow="fullscreen" '
    'style="width: 100%; height: {height}px; border: 0;"></iframe>'
)


class NotebookView:
    """A run as a page that a notebook shows when it is the last value of a cell."""

    def __init__(self, page: str, height: int, says: str):
        self.page, self.height, self.says = page, height, says

    def _repr_html_(self) -> str:
        return FRAME.format(page=html.escape(self.page, quote=True), height=self.height)

    def __repr__(self) -> str:
        return f"<view of {self.says}: shown by a notebook as the last value of a cell>"


def make_view(run: Trajectory, height: int | None = None) -> NotebookView:
    """A view of this run; without a height as high as what is in it."""
    if height is not None and (
        isinstance(height, bool) or not isinstance(height, int) or not SMALLEST <= height <= LARGEST
    ):
        raise InputError(
            f"height is {SMALLEST} to {LARGEST} pixels, or None for all there is, got {height!r}"
        )
    page = embedded_page([run_replay(run)], whole=height is None)
    return NotebookView(page, height or FIRST_HEIGHT, f"a run of {run.attributes['label']}")
