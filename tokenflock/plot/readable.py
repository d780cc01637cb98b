"""What a reader would miss in a picture: names of axes, keys to colours and marks, words that collide."""

from __future__ import annotations

from typing import Any

# Inches by which two texts may overlap: ascenders and descenders of letters that are not there.
TOUCH = 0.03
DASHES = {"--": "dashed", "-.": "dash-dotted", ":": "dotted"}
# A dot needs no key; the caps and stems of error bars are no marks.
PLAIN_MARKS = ("o", ".", "_", "|")


def complaints(picture: Any) -> list[str]:
    """Sentences about a matplotlib figure; none where it can be read.

    Every panel with data names both axes, its own or those of the panel at the edge it shares them with;
    maps without a frame (a circle, a globe) have none. Two colours in a panel, dashes and marks other than
    dots need an entry in a legend, a text in that colour, or a word ("dashed: ...", "a colour for each ...").
    No text lies on another.
    """
    picture.canvas.draw()
    panels = [axes for axes in picture.axes if axes.get_visible() and not _is_bar(axes)]
    said = [word for axes in panels if _has_data(axes) for word in _unnamed(axes)]
    return said + _unexplained(picture, panels) + _colliding(picture)


def _is_bar(axes: Any) -> bool:
    return axes.get_label() == "<colorbar>"


def _has_data(axes: Any) -> bool:
    return bool(axes.lines or axes.collections or axes.images or axes.patches)


def _is_map(axes: Any) -> bool:
    return not axes.axison or (
        axes.name != "3d" and not any(s.get_visible() for s in axes.spines.values())
    )


def _unnamed(axes: Any) -> list[str]:
    if _is_map(axes):
        return []
    sides = "xyz" if axes.name == "3d" else "xy"
    return [
        f"{_name(axes)} has no label on its {side} axis" for side in sides if not _label(axes, side)
    ]


def _name(axes: Any) -> str:
    title = axes.get_title()
    return f"the panel {title!r}" if title else f"panel {axes.figure.axes.index(axes) + 1}"


def _label(axes: Any, side: str) -> str:
    """The label of an axis, or of a panel in the same column (x) or row (y) with the same limits."""
    own = getattr(axes, f"get_{side}label")()
    if own or side == "z":
        return own
    here, limits = axes.get_subplotspec(), getattr(axes, f"get_{side}lim")()
    part = "colspan" if side == "x" else "rowspan"
    for other in axes.figure.axes:
        there = other.get_subplotspec()
        if here is None or there is None or here.get_gridspec() is not there.get_gridspec():
            continue
        beside = list(getattr(here, part)) == list(getattr(there, part))
        if beside and (side == "x" or _is_alike(axes, other, limits)):
            own = own or getattr(other, f"get_{side}label")()
    return own


def _is_alike(axes: Any, other: Any, limits: tuple[float, float]) -> bool:
    """Whether y means the same in two panels of a row: one scale, or no numbers on the axis at all."""
    return other.get_ylim() == limits or not axes.get_yticks().size or _is_plane(axes, other)


def _is_plane(axes: Any, other: Any) -> bool:
    """Two pictures of the same plane, with equal units on both axes."""
    return axes.get_aspect() == other.get_aspect() == 1.0


def _unexplained(picture: Any, panels: list[Any]) -> list[str]:
    """Colours, dashes and marks that no legend and no text speaks of."""
    known, words = _keyed(picture), " ".join(one.get_text().lower() for one in _texts(picture))
    told = {kind for kind in ("colour", "dashed", "dotted") if kind in words}
    missing = set()
    for axes in panels:
        used = {look for line in axes.lines for look in _look_of_line(line)}
        # The title of a panel explains a colour that has it for itself.
        alone = sum(kind == "colour" for kind, _ in used) == 1
        missing |= {
            (kind, value)
            for kind, value in used - known
            if not (kind == "colour" and (alone or "colour" in told)) and value not in told
        }
    return sorted(f"the {kind} {value!r} is not explained" for kind, value in missing)


def _look_of_line(line: Any) -> set[tuple[str, str]]:
    """What tells a line from others: dashes, a mark that is no dot, a colour that is no grey."""
    found = set()
    marked = line.get_marker() not in ("None", "none", "", " ", None)
    drawn = line.get_linestyle() != "None"
    if not line.get_visible() or not (marked or drawn):
        return found
    if line.get_linestyle() in DASHES and not _is_white(line.get_color()):
        found.add(("line", DASHES[line.get_linestyle()]))
    if marked and str(line.get_marker()) not in PLAIN_MARKS:
        found.add(("mark", str(line.get_marker())))
    colour = line.get_color() if drawn else line.get_markeredgecolor()
    if _is_hue(colour):
        found.add(("colour", _hex(colour)))
    return found


def _keyed(picture: Any) -> set[tuple[str, str]]:
    """Looks of the entries of all legends, and colours of texts."""
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found = {("colour", _hex(text.get_color())) for text in _texts(picture)}
    for legend in _legends(picture):
        for line in legend.findobj(Line2D):
            found |= _look_of_line(line)
        for patch in legend.findobj(Patch):
            found.add(("colour", _hex(patch.get_facecolor())))
        for group in legend.findobj(Collection):
            found |= {("colour", _hex(colour)) for colour in group.get_facecolor()}
    return found


def _legends(picture: Any) -> list[Any]:
    from matplotlib.legend import Legend

    return [one for one in picture.findobj(Legend) if one.get_visible()]


def _texts(picture: Any) -> list[Any]:
    """Titles, labels, annotations, entries of legends, and the ticks inside the frames."""
    found = [text for part in picture.findobj(_is_figure) for text in _words_of_figure(part)]
    for axes in picture.axes:
        found += [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        if axes.name != "3d" and axes.axison:
            found += _ticks(axes)
    for legend in _legends(picture):
        found += [legend.get_title(), *legend.get_texts()]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def _is_figure(artist: Any) -> bool:
    return hasattr(artist, "subfigs")


def _words_of_figure(part: Any) -> list[Any]:
    return [*part.texts]


def _ticks(axes: Any) -> list[Any]:
    """Labels of the ticks that are drawn: matplotlib keeps some beyond the limits."""
    found = []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if low - slack <= tick.get_loc() <= high + slack:
                found.append(tick.label1)
    return found


def _is_hue(colour: Any) -> bool:
    """Neither grey nor white nor black."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return max(red, green, blue) - min(red, green, blue) > 0.1


def _is_white(colour: Any) -> bool:
    from matplotlib.colors import to_hex

    return to_hex(colour) == "#ffffff"


def _hex(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour)


def _colliding(picture: Any) -> list[str]:
    """Pairs of texts whose boxes overlap by more than a touch."""
    boxes = [(one.get_text(), one.get_window_extent()) for one in _texts(picture)]
    said = []
    for k, (words, box) in enumerate(boxes):
        for others, other in boxes[k + 1 :]:
            wide = min(box.x1, other.x1) - max(box.x0, other.x0)
            high = min(box.y1, other.y1) - max(box.y0, other.y0)
            if min(wide, high) > TOUCH * picture.dpi:
                said.append(f"{words!r} lies on {others!r}")
    return said
