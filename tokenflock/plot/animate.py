"""Animations of a run: GIF by Pillow, MP4 by the ffmpeg of the extra `video`; no system packages."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, MissingExtraError, StoreError, require_extra
from ..progress import ShareReport
from ..results.atomic import complete_file
from ..trajectory import Trajectory
from .draw import shown_tokens, token_colours
from .series import scalar_names
from .style import PALETTE, styled
from .views import one_sample, saved_states, view_of


def animate(
    run: Trajectory,
    path: Path,
    frames: int = 120,
    rate: int = 24,
    sample: tuple[int, ...] | None = None,
    report: ShareReport | None = None,
) -> Path:
    """Write an MP4 or GIF (by the file's ending) of the tokens with one time series below.

    Needs saved states; an MP4 also the extra `video`. `report` is called with the fraction done.
    """
    if run.is_density:
        raise InputError(
            "only tokens are animated; draw a density run with run.plot('density', at=[...])"
        )
    if path.suffix not in (".mp4", ".gif"):
        raise InputError(f"an animation ends in .mp4 or .gif, got {path.name!r}")
    if "states" not in run:
        raise InputError("an animation needs saved states: Save(..., states=True)")
    with styled() as plt:
        figure, show, count = _scene(plt, run, sample, frames)
        try:
            return write_film(path, figure, show, count, rate, report)
        finally:
            plt.close(figure)


def require_film_writer(path: Path) -> None:
    """Refuse an MP4 where there is no ffmpeg, before a frame is drawn."""
    if path.suffix == ".mp4":
        require_extra(f"{path.name}: an MP4", "imageio_ffmpeg", "video", "a .gif needs nothing")


def playable(path: Path) -> tuple[Path, str]:
    """`path`, or a GIF of the same name and why, where there is no ffmpeg."""
    try:
        require_film_writer(path)
    except MissingExtraError as error:
        return path.with_suffix(".gif"), f"a GIF is written in its place ({error})"
    return path, ""


def write_film(
    path: Path,
    figure: Any,
    show: Callable[[int], list[Any]],
    count: int,
    rate: int = 24,
    report: ShareReport | None = None,
) -> Path:
    """Write `count` frames of a figure; `show(index)` moves its artists and returns them."""
    require_film_writer(path)
    if not path.parent.is_dir():
        raise StoreError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    write = _write_mp4 if path.suffix == ".mp4" else _write_gif
    with complete_file(path) as scratch:
        write(scratch, _pictures(figure, show, count, report), rate, _size(figure))
    return path


def _scene(plt: Any, run: Trajectory, sample: Any, frames: int) -> tuple[Any, Any, int]:
    times, states = saved_states(run, sample)
    states = states[:, shown_tokens(run)]
    rows = np.unique(np.linspace(0, len(times) - 1, min(frames, len(times))).astype(int))
    names = scalar_names(run)
    series = "clusters" if "clusters" in names else (names[0] if names else None)
    figure, (top, below) = plt.subplots(
        2, 1, figsize=(4.0, 5.0), dpi=120, gridspec_kw={"height_ratios": [4.0, 1.0]}
    )
    view = view_of(run, top, states, token_colours(run, sample))
    marker = None
    if series is None:
        below.set_visible(False)
    else:
        values = one_sample(run, series, sample)[: len(times)]
        below.plot(times, values, color=PALETTE[0], lw=1.1)
        below.set(xlabel="time t", ylabel=series.replace("_", " "))
        (marker,) = below.plot([times[0]], [values[0]], "o", color=PALETTE[1], ms=5)
    # Only the time changes: text takes longer to draw than tokens.
    top.set_title(run.attributes["label"], loc="left")
    clock = top.set_title("t = 0", loc="right")
    figure.tight_layout()

    def show(index: int) -> list[Any]:
        row = rows[index]
        clock.set_text(f"t = {times[row]:.3g}")
        moving = [*view.show(states[row]), clock]
        if marker is not None:
            marker.set_data([times[row]], [values[row]])
            moving.append(marker)
        return moving

    return figure, show, len(rows)


def _size(figure: Any) -> tuple[int, int]:
    width, height = figure.canvas.get_width_height()
    return width - width % 2, height - height % 2


def _pictures(figure: Any, show: Any, count: int, report: ShareReport | None) -> Any:
    """The frames; what does not move is drawn once."""
    canvas = figure.canvas
    for artist in show(0):
        artist.set_animated(True)
    canvas.draw()
    still = canvas.copy_from_bbox(figure.bbox)
    width, height = _size(figure)
    for index in range(count):
        canvas.restore_region(still)
        for artist in show(index):
            artist.axes.draw_artist(artist)
        yield np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[:height, :width])
        if report is not None:
            report((index + 1) / count)


def _write_mp4(path: Path, pictures: Any, rate: int, size: tuple[int, int]) -> None:
    import imageio_ffmpeg

    writer = imageio_ffmpeg.write_frames(
        str(path),
        size,
        pix_fmt_in="rgba",
        fps=rate,
        codec="libx264",
        macro_block_size=2,
        ffmpeg_log_level="error",
        # Encoding keeps up with drawing, for a few kilobytes more.
        output_params=["-preset", "veryfast"],
    )
    with warnings.catch_warnings():
        # JAX warns of any fork; ffmpeg is executed at once and never runs JAX.
        warnings.simplefilter("ignore", RuntimeWarning)
        writer.send(None)
    try:
        for picture in pictures:
            writer.send(picture)
    finally:
        writer.close()


def _write_gif(path: Path, pictures: Any, rate: int, size: tuple[int, int]) -> None:
    from PIL import Image

    images = [
        Image.fromarray(picture).convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE)
        for picture in pictures
    ]
    images[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=round(1000 / rate),
        loop=0,
    )
