"""The built front end and the HTML around it."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ..errors import InputError

BUNDLE = Path(__file__).parent / "static" / "tokenflock.js"
# Another build of the page, for those who work on it.
BUNDLE_VARIABLE = "TOKENFLOCK_BUNDLE"
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<circle cx="16" cy="16" r="13" fill="none" stroke="#8a94a6" stroke-width="2"/>'
    '<g fill="#0072b2"><circle cx="25" cy="7" r="4"/><circle cx="28" cy="13" r="3"/></g>'
    '<circle cx="5" cy="22" r="4" fill="#d55e00"/><circle cx="13" cy="29" r="3" fill="#009e73"/></svg>'
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tokenflock: see tokens flock</title>
<meta name="description" content="Transformers as interacting particles, live in the browser.">
<link rel="icon" href="data:image/svg+xml;base64,{icon}">
<style>html, body {{ margin: 0; height: 100%; }} #tokenflock-page {{ height: 100%; }}</style>
</head>
<body>
<div id="tokenflock-page"></div>
<noscript>This page simulates tokens in the browser; it needs JavaScript.</noscript>
<script id="tokenflock-options" type="application/json">{options}</script>
{script}
</body>
</html>
"""


def require_bundle() -> Path:
    """The path of the built module, or a sentence."""
    bundle = Path(os.environ.get(BUNDLE_VARIABLE) or BUNDLE)
    if not bundle.is_file():
        raise InputError(
            f"the page has not been built ({bundle} is missing); from a clone run: make page (or "
            "python web/build.py). An installed wheel has it: pip install --force-reinstall tokenflock"
        )
    return bundle


def page_options(
    mode: Literal["served", "static", "notebook"],
    replays: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """What the page is told when it is put in its place (web/src/app/options.ts)."""
    from .. import __version__  # pyright: ignore[reportAttributeAccessIssue]

    return {"mode": mode, "version": __version__, "replays": list(replays)}


def served_page() -> str:
    """The page as the server sends it; the module is a file of its own."""
    return _page(page_options("served"), '<script type="module" src="/tokenflock.js"></script>')


def static_page(replays: Sequence[dict[str, Any]]) -> str:
    """The page as one file, with the module and the replays inside; it works from disk."""
    return _page(page_options("static", replays), _module())


def embedded_page(replays: Sequence[dict[str, Any]], whole: bool) -> str:
    """The page inside the output of a notebook cell; `whole`: as high as what is in it."""
    return _page({**page_options("notebook", replays), "whole": whole}, _module())


def _module() -> str:
    source = require_bundle().read_text(encoding="utf-8")
    return f'<script type="module">{escape_script(source)}</script>'


def _page(options: dict[str, Any], script: str) -> str:
    icon = base64.b64encode(ICON.encode()).decode("ascii")
    return PAGE.format(icon=icon, options=escape_data(options), script=script)


def escape_data(content: Any) -> str:
    """JSON that no HTML parser reads as a tag: `<` only stands inside strings, where \\u003c is it."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def escape_script(source: str) -> str:
    """Source that does not end its own element, nor open a comment in which that end is not seen.

    \\x3c is `<` in strings, templates and regular expressions; `a<!--b` in code is a comparison.
    """
    source = re.sub(r"</(?=script)", r"\\x3c/", source, flags=re.IGNORECASE)
    source = re.sub(r"(?<=[\w$)\]])<!--", "< !--", source)
    return source.replace("<!--", "\\x3c!--")
