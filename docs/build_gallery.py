"""Rebuild docs/gallery.md and its pictures, each with the command that draws it.

Usage: make gallery
"""

from pathlib import Path

from tokenflock.claims.registry import papers
from tokenflock.gallery.files import compute_and_store, stored_data, write_picture
from tokenflock.gallery.registry import albums

DOCS = Path(__file__).parent
IMAGES = DOCS / "images" / "gallery"
# Enough for a screen; the files are kept in git.
PAGE_DPI = 100
PREFACE = """# Gallery

What the papers drew, redrawn from data computed here. Under each figure: what must be seen in it, and the
command that makes it (`--scale paper` takes the paper's own sizes, `--out FILE.pdf` or `.svg` writes
vectors). `make gallery` rebuilds this page.
"""


def main() -> None:
    """Draw every figure from stored data where it fits, and list them."""
    titles = {paper.id: paper.title for paper in papers()}
    lines = [PREFACE]
    for album in albums():
        lines += [f"## {album.paper}: {titles[album.paper]}", ""]
        for figure in album.figures:
            path = IMAGES / f"{figure.id.replace('/', '-')}.png"
            data = stored_data(figure, path, "quick", 0)
            if data is None:
                data = compute_and_store(figure, path, "quick", 0)
            write_picture(figure, data, path, dpi=PAGE_DPI)
            print(figure.id, flush=True)
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
