"""One self-contained HTML page: skeleton, style, pieces, and writing it with its pictures in one go.

Everything that comes from a model or a text (names, tokens, paths) goes through `escaped`; the page
asks for nothing outside itself, and its own policy forbids it to.
"""

from __future__ import annotations

import base64
import html
import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..results.atomic import complete_files, making
from ..results.locking import only_writer_in

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
RESOLUTION = 160
STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #222222; --faint: #666666;
  --line: #d8d8d8; --box: #f4f6f8; --accent: #0072B2; --warn: #D55E00; }
@media (prefers-color-scheme: dark) { :root { --paper: #15181b; --ink: #e6e6e6; --faint: #a5a5a5;
  --line: #3a4045; --box: #1f2428; --accent: #56B4E9; --warn: #E69F00; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 52rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .3rem; }
p, li { margin: .35rem 0; }
.quiet { color: var(--faint); font-size: .9rem; }
.box { background: var(--box); border-left: .3rem solid var(--accent); border-radius: .3rem;
  padding: .6rem 1rem; margin: 1rem 0; }
.box h2 { font-size: 1rem; margin: 0 0 .3rem; }
.warning { border-left-color: var(--warn); }
.verdict strong { font-size: 1.25rem; }
figure { margin: .5rem 0 1.5rem; }
figure img { display: block; width: 100%; height: auto; background: #ffffff; padding: .4rem;
  border-radius: .3rem; }
figcaption { color: var(--faint); font-size: .9rem; margin-top: .3rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .5rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
th { position: sticky; top: 0; background: var(--paper); }
summary { cursor: pointer; padding: .4rem 0; font-weight: 600; }
code { font-size: .9em; }
"""


def escaped(text: object) -> str:
    """Text that a browser shows as it is; lone surrogates, which no file can hold, as question marks."""
    return html.escape(str(text).encode("utf-8", "replace").decode("utf-8"), quote=True)


def page(title: str, parts: Iterable[str]) -> str:
    """The whole document."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def heading(text: str, level: int = 2) -> str:
    """A heading."""
    return f"<h{level}>{escaped(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{kind}">{escaped(text)}</p>' if kind else f"<p>{escaped(text)}</p>"


def listing(sentences: Sequence[str], ordered: bool = False) -> str:
    """A list of sentences, nothing for none."""
    if not sentences:
        return ""
    tag = "ol" if ordered else "ul"
    return f"<{tag}>" + "".join(f"<li>{escaped(each)}</li>" for each in sentences) + f"</{tag}>"


def box(title: str, body: str, kind: str = "") -> str:
    """A section set apart; `body` is HTML."""
    return f'<section class="box {kind}">{heading(title)}{body}</section>'


def folded(title: str, body: str) -> str:
    """Something to unfold; `body` is HTML."""
    return f"<details><summary>{escaped(title)}</summary>{body}</details>"


def table(columns: dict[str, Sequence[Any]], caption: str) -> str:
    """Columns of numbers of equal length, None as an empty cell."""
    head = "".join(f'<th scope="col">{escaped(name)}</th>' for name in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>"
        for row in zip(*columns.values(), strict=True)
    )
    return (
        f'<div class="wide"><table><caption class="quiet">{escaped(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else escaped(value)


def picture(png: bytes, title: str, shows: str, alternative: str) -> str:
    """An embedded PNG with heading, caption and a text for those who do not see it."""
    data = base64.b64encode(png).decode("ascii")
    return (
        f'<section>{heading(title, 3)}<figure><img alt="{escaped(alternative)}" '
        f'src="data:image/png;base64,{data}"><figcaption>{escaped(shows)}</figcaption></figure></section>'
    )


def to_png(figure: Any) -> bytes:
    """A figure as PNG; it is closed, since pyplot would keep it alive."""
    import matplotlib.pyplot as plt

    target = io.BytesIO()
    try:
        with warnings.catch_warnings():
            # Tokens of other scripts may lack a glyph: a box is drawn in its place.
            warnings.filterwarnings("ignore", message="Glyph")
            figure.savefig(target, format="png", dpi=RESOLUTION)
    finally:
        plt.close(figure)
    return target.getvalue()


def write_files(folder: Path, files: dict[str, bytes], stale: Iterable[str] = ()) -> None:
    """Put files into a folder, each whole or not at all, in the order given.

    They are written beside and moved into place; names in `stale` that are not among them are
    removed (pictures of an earlier report). A folder that had to be made is removed on failure.
    """
    with making(folder), only_writer_in(folder):
        with complete_files(folder) as scratch:
            for name, content in files.items():
                (scratch / name).write_bytes(content)
        for name in set(stale) - set(files):
            (folder / name).unlink(missing_ok=True)
