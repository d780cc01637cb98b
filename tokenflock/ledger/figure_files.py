"""Figures as files: data in a Zarr store beside the picture, reused while it still fits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__  # pyright: ignore[reportAttributeAccessIssue]
from ..errors import InputError, StoreError
from ..plot.animate import require_film_writer
from ..progress import ShareReport
from ..results.atomic import complete_file
from ..store import read_dataset, write_dataset
from .figure import Figure, Scale

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "tokenflock-figure-1"
DOTS_PER_INCH = 200
# A small PNG has as many colours as the eye tells apart in a heatmap, or fewer if it grows too large.
PALETTE_SIZES, SMALL_BYTES = (256, 64), 150_000
PICTURES = (".pdf", ".svg", ".png")
FILMS = (".mp4", ".gif")
# Text in a PDF stays text, and an SVG needs no font installed.
PRINT: Any = {"pdf.fonttype": 42, "svg.fonttype": "path"}


def default_path(figure: Figure, scale: Scale) -> Path:
    """figures/PAPER-NAME-SCALE.pdf."""
    return Path("figures") / f"{figure.id.replace('/', '-')}-{scale}.pdf"


def check_path(figure: Figure, path: Path) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    suffix = path.suffix.lower()
    if suffix in FILMS and figure.film_with is None:
        raise InputError(f"{figure.id} does not move; write it to {', '.join(PICTURES)}")
    if suffix not in PICTURES + FILMS:
        raise InputError(
            f"--out must end in one of {', '.join(PICTURES + FILMS)}, got {str(path)!r}"
        )
    require_film_writer(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"cannot write into {folder}; choose another --out")


def data_path(path: Path) -> Path:
    """The store of the data behind a picture."""
    return path.with_suffix(".zarr")


def stored_data(figure: Figure, path: Path, scale: Scale, seed: int) -> xr.Dataset | None:
    """The data stored beside a picture, if it is whole and was made by the same request."""
    if not data_path(path).exists():
        return None
    try:
        data = read_dataset(data_path(path), FORMAT)
    except StoreError:
        return None
    return data if data.attrs.get("request") == _request(figure, scale, seed) else None


def compute_and_store(
    figure: Figure, path: Path, scale: Scale, seed: int, report: ShareReport | None = None
) -> xr.Dataset:
    """Compute the data of a figure and store it beside the picture."""
    data = figure.compute(scale, seed, report)
    labelled = data.assign_attrs(request=_request(figure, scale, seed))
    write_dataset(labelled, data_path(path), FORMAT, overwrite=True)
    return labelled


def _request(figure: Figure, scale: Scale, seed: int) -> str:
    """What the data depends on, as text."""
    return repr((__version__, figure.id, scale, seed, sorted(figure.settings(scale).items())))


def write_picture(figure: Figure, data: Any, path: Path) -> Path:
    """Draw the data into a file, which appears only when it is complete."""
    with complete_file(path) as scratch:
        if path.suffix.lower() in FILMS:
            assert figure.film_with is not None
            figure.film_with(data, scratch)
        else:
            _save(figure.draw(data), scratch)
    return path


def write_small_png(picture: Any, path: Path) -> None:
    """A drawn figure at full size as a PNG of at most 256 colours, for what is kept in git."""
    from PIL import Image

    _save(picture, path)
    with Image.open(path) as given:
        ground = Image.new("RGBA", given.size, "white")
        opaque = Image.alpha_composite(ground, given.convert("RGBA"))
    for colours in PALETTE_SIZES:
        few = opaque.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
        few.save(path, format="PNG", optimize=True)
        if path.stat().st_size < SMALL_BYTES:
            return


def _save(picture: Any, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    kind = path.suffix.lower().removeprefix(".")
    with mpl.rc_context(PRINT):
        picture.savefig(path, bbox_inches="tight", format=kind, dpi=DOTS_PER_INCH)
    plt.close(picture)
