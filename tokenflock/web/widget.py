"""The page as a notebook widget, by anywidget: Jupyter, VS Code, Colab."""

from __future__ import annotations

from typing import Any

from ..errors import InputError
from ..trajectory import Trajectory
from .bundle import page_options, require_bundle
from .replay import run_replay

SMALLEST, LARGEST = 240, 4_000


def make_widget(run: Trajectory, height: int = 640) -> Any:
    """A widget that shows this run; the same module as the page, with the replay in its options."""
    if isinstance(height, bool) or not isinstance(height, int) or not SMALLEST <= height <= LARGEST:
        raise InputError(f"height is {SMALLEST} to {LARGEST} pixels, got {height!r}")
    kind = _widget_class()
    return kind(options=page_options("widget", [run_replay(run)]), height=height)


def _widget_class() -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise InputError(
            f"a widget needs {error.name}, which is not installed; run: pip install 'tokenflock[web]'. "
            "Without it: run.plot(), run.animate(path), or tokenflock page --out DIR RUN"
        ) from error

    class View(anywidget.AnyWidget):
        """One view; the options are the page's (web/src/app/options.ts)."""

        _esm = require_bundle().read_text(encoding="utf-8")
        options = traitlets.Dict().tag(sync=True)
        height = traitlets.Int(640).tag(sync=True)

    return View
