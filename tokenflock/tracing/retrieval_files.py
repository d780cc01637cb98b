"""A retrieval response on disk and as a picture, the theory's profile beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..plot.style import INK, REST, styled
from ..results.atomic import complete_files, making
from ..results.locking import only_writer_in
from ..results.names import SUMMARY
from ..results.places import check_place
from ..store import write_dataset
from ..theory.kinetic import retrieval_profile
from .html_page import to_png
from .retrieval_narrative import summary

if TYPE_CHECKING:
    import xarray as xr

STORE = "retrieval.zarr"
FORMAT = "tokenflock-retrieval-1"
PICTURE = "retrieval.png"
CURVES = 6
# The profile of the paper's own figures: beta = lambda = 1, M = 8 words.
THEORY: dict[str, Any] = {"beta": 1.0, "slope": 1.0, "words": 8}
THEORY_TIMES = (0.25, 0.5, 1.0, 2.0)


def check_retrieval_place(place: Path, overwrite: bool) -> None:
    """Refuse a folder that must not be touched or cannot be written, before anything is computed."""
    check_place(place, overwrite, lambda at: (at / STORE).is_dir(), "a retrieval response")


def write_retrieval(data: xr.Dataset, place: Path) -> None:
    """retrieval.zarr, summary.json and retrieval.png, each in place only when complete."""
    with making(place), only_writer_in(place), complete_files(place) as scratch:
        (scratch / PICTURE).write_bytes(to_png(draw_retrieval(data)))
        content = json.dumps(summary(data), indent=1, allow_nan=False)
        (scratch / SUMMARY).write_text(content + "\n")
        write_dataset(data, place / STORE, FORMAT, overwrite=True)


# --- the picture ---


def draw_retrieval(data: xr.Dataset) -> Any:
    """Response and covariance of a few layers by position; S_t(s0) of the theory on the right."""
    with styled() as plt:
        figure, (response, covariance, theory) = plt.subplots(
            1, 3, figsize=(10.2, 3.6), layout="constrained"
        )
        layers = _chosen_layers(data)
        colours = plt.get_cmap("viridis_r")(np.linspace(0.1, 1.0, len(layers)))
        for layer, colour in zip(layers, colours, strict=True):
            _profile(response, data, "response", layer, colour)
            _profile(covariance, data, "covariance", layer, colour)
        response.set(yscale="log", ylabel="response: variance of the read direction")
        covariance.axhline(0, color=REST, lw=0.8, zorder=0)
        covariance.set_ylabel("covariance with the replaced token, times $N$")
        response.legend(fontsize=6.5, ncols=2, loc="best")
        response.set_title(
            f"{data.attrs['model']}: measured on a\ntrained network, not a check of theory"
        )
        covariance.set_title("the theory's covariance, same network\n(own token left out)")
        _theory(plt, theory)
        for axes in (response, covariance, theory):
            axes.set(xlim=(-0.02, 1.04), xlabel="relative position $s_0$ of the token")
            axes.title.set_fontsize(7.5)
        return figure


def _chosen_layers(data: xr.Dataset) -> np.ndarray:
    """A few layers from the first to the last; before the first nothing has been exchanged."""
    deepest = data.sizes["layer"] - 1
    return np.unique(np.linspace(1, deepest, min(CURVES, deepest)).round().astype(int))


def _profile(axes: Any, data: xr.Dataset, name: str, layer: int, colour: Any) -> None:
    """A line through the tokens between the first (hollow, apart) and the read one (a square)."""
    position, s0 = data.position.values, data.s0.values
    late = int(data.attrs["read"])
    values, errors = data[name].values[layer], data[f"{name}_error"].values[layer]
    errors = np.where(np.isfinite(errors), errors, 0.0)
    inner = (position > 1) & (position < late)
    axes.errorbar(
        s0[inner],
        values[inner],
        errors[inner],
        color=colour,
        lw=1.2,
        elinewidth=0.7,
        marker=".",
        ms=4,
        label=f"layer {layer}",
    )
    first = position == 1
    axes.errorbar(
        s0[first], values[first], errors[first], color=colour, mfc="white", marker="o", ms=4, lw=0.7
    )
    if name == "response":
        own = position == late
        axes.plot(s0[own], values[own], marker="s", color=colour, ms=3.5, ls="")


def _theory(plt: Any, axes: Any) -> None:
    s0 = np.linspace(0.02, 1.0, 400)
    colours = plt.get_cmap("copper_r")(np.linspace(0.15, 0.9, len(THEORY_TIMES)))
    for t, colour in zip(THEORY_TIMES, colours, strict=True):
        axes.plot(
            s0, retrieval_profile(s0, t=t, **THEORY), color=colour, lw=1.4, label=f"$t={t:g}$"
        )
    axes.set(yscale="log", ylabel="$S_t(s_0)$")
    axes.set_title("theory, another model (2605.09213):\n$\\beta=\\lambda=1$, $M=8$", color=INK)
    axes.legend(fontsize=6.5, ncols=2)
