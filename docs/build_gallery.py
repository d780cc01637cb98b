"""Rebuild docs/gallery.md and its pictures, each with the command that draws it.

Refuses a picture that cannot be read (tokenflock/plot/readable.py). Usage: make gallery
"""

from pathlib import Path

import matplotlib as mpl

from tokenflock.ledger.figure import Figure
from tokenflock.ledger.figure_files import compute_and_store, stored_data, write_small_png
from tokenflock.ledger.finding import papers
from tokenflock.plot.readable import complaints

mpl.use("Agg")
DOCS = Path(__file__).parent
IMAGES = DOCS / "images" / "gallery"
PREFACE = """# Gallery

What the papers drew, redrawn from data computed here. Under each figure: what must be seen in it, and the
command that makes it (`--scale paper` takes the paper's own sizes, `--out FILE.pdf` or `.svg` writes
vectors). `make gallery` rebuilds this page.
"""


def draw(figure: Figure, path: Path) -> None:
    """The picture of a figure from its stored data, or from data computed now."""
    data = stored_data(figure, path, "quick", 0)
    if data is None:
        data = compute_and_store(figure, path, "quick", 0)
    picture = figure.draw(data)
    found = complaints(picture)
    if found:
        raise SystemExit(f"{figure.id} cannot be read: " + "; ".join(found))
    write_small_png(picture, path)
    print(figure.id, flush=True)


def main() -> None:
    """Draw every figure from stored data where it fits, and list them."""
    lines = [PREFACE]
    for paper in papers():
        if not paper.figures:
            continue
        lines += [f"## {paper.id}: {paper.title}", ""]
        for figure in paper.figures:
            path = IMAGES / f"{figure.id.replace('/', '-')}.png"
            draw(figure, path)
            lines += [
                f"### {figure.title}",
                "",
                f"![{figure.title}](images/gallery/{path.name})",
                "",
                f"{figure.shows[0].upper()}{figure.shows[1:]}.",
                "",
                f"```console\n$ tokenflock figure {figure.id}\n```",
                "",
            ]
    (DOCS / "gallery.md").write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
