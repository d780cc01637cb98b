"""Figures of a run: tokens at a few times, time series, Gram histogram, attention matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..space import Sphere
from ..theory import spacing_angle
from ..trajectory import Trajectory
from .series import draw_series, fill_series, is_layers, scalar_names
from .style import INK, PALETTE, styled
from .views import cluster_colours, one_sample, quantity_text, rows_at, saved_states, view_of

KINDS = ("overview", "tokens", "series", "gram", "attention")
# Linking distance of the clusters that colour tokens in R^d; on a sphere the rule "spacing" finds an angle.
COLOUR_DISTANCE = 0.1
MOST_SHOWN = 2000
# Clusters form early and plateaus last: the picture between the ends is at a tenth of the way.
SHOWN_EARLY = 0.1


def draw(
    run: Trajectory, kind: str | None = None, sample: tuple[int, ...] | None = None, **options: Any
) -> Any:
    """A matplotlib Figure.

    kind -- overview (default: tokens at three times over the series), tokens, series, gram, attention;
    for a density run overview, density, series; for a run of another state series.
    sample -- which member of a batch, as indices of (beta, sample).
    """
    if run.is_density:
        from .densities import draw_density

        return draw_density(run, kind, sample, **options)
    if not _has_tokens(run):
        return _draw_numbers(run, kind, sample, **options)
    kind = "overview" if kind is None else kind
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    with styled() as plt:
        return _DRAW[kind](plt, run, sample, **options)


def _has_tokens(run: Trajectory) -> bool:
    """Whether it moved tokens alone: a state of a user's own may be anything."""
    return "measure" in run.attributes and "final_points" in run.arrays


def _draw_numbers(run: Trajectory, kind: str | None, sample: Any, **options: Any) -> Any:
    """The time series of a state that is neither tokens nor a density."""
    if kind not in (None, "series"):
        raise InputError(
            f"kind={kind!r} shows tokens or a density, and this run moved another state, of which the time "
            "series can be drawn: run.plot('series')"
        )
    with styled() as plt:
        return draw_series(plt, run, sample, **options)


def token_colours(run: Trajectory, sample: tuple[int, ...] | None) -> np.ndarray:
    """Colours of the shown tokens by their clusters at the end."""
    import jax.numpy as jnp

    from ..connected_components import linked_labels

    points = one_sample(run, "final_points", sample)[shown_tokens(run)]
    link = np.asarray(colour_link(run))
    labels = linked_labels(run.blank_measure.space, jnp.asarray(points), jnp.asarray(link))
    return cluster_colours(np.asarray(labels))


def colour_link(run: Trajectory) -> float:
    """The linking angle (sphere) or distance of the colours, for as many tokens as are shown."""
    if not isinstance(run.blank_measure.space, Sphere):
        return COLOUR_DISTANCE
    return float(spacing_angle(shown_tokens(run).size, run.blank_measure.d))


def shown_tokens(run: Trajectory) -> np.ndarray:
    """Which tokens a picture shows: of many, some evenly chosen (clusters need all pairs of them)."""
    n = run.blank_measure.n
    return np.linspace(0, n - 1, min(n, MOST_SHOWN)).round().astype(int)


def _tokens(plt: Any, run: Trajectory, sample: Any, at: list[float] | None = None) -> Any:
    times, states = saved_states(run, sample)
    rows = rows_at(times, at, SHOWN_EARLY)
    figure, grid = plt.subplots(1, len(rows), figsize=(2.4 * len(rows), 2.5), squeeze=False)
    _fill_tokens(run, sample, grid[0], times, states, rows)
    figure.tight_layout()
    return figure


def _fill_tokens(
    run: Trajectory,
    sample: Any,
    panels: Any,
    times: np.ndarray,
    states: np.ndarray,
    rows: list[int],
) -> None:
    colours, states = token_colours(run, sample), states[:, shown_tokens(run)]
    for axes, row in zip(panels, rows, strict=False):
        view_of(run, axes, states, colours).show(states[row])
        axes.set_title(f"t = {times[row]:.4g}")


def _gram(plt: Any, run: Trajectory, sample: Any, at: list[float] | None = None) -> Any:
    times, states = saved_states(run, sample)
    rows = rows_at(times, at, SHOWN_EARLY)
    figure, axes = plt.subplots(figsize=(4.2, 2.8))
    pairs = np.triu_indices(states.shape[-2], 1)
    bins = np.linspace(-1.0, 1.0, 61)
    for index, row in enumerate(rows):
        inner = np.clip((states[row] @ states[row].T)[pairs], -1.0, 1.0)
        axes.hist(
            inner,
            bins=bins,
            density=True,
            histtype="step",
            lw=1.4,
            color=PALETTE[index % len(PALETTE)],
            label=f"t = {times[row]:.4g}",
        )
    axes.set(xlabel=r"$\langle x_i, x_j\rangle$, $i \neq j$", ylabel="density", xlim=(-1.02, 1.02))
    axes.legend(fontsize=7)
    figure.tight_layout()
    return figure


def _attention(
    plt: Any, run: Trajectory, sample: Any, head: int = 0, time: float | None = None
) -> Any:
    import jax.numpy as jnp

    times, states = saved_states(run, sample)
    row = len(times) - 1 if time is None else int(np.argmin(np.abs(times - time)))
    terms = run.model.attentions()
    if not terms:
        raise InputError("this model has no attention term")
    if np.ndim(terms[0].beta):
        raise InputError("draw the attention of one beta at a time")
    matrices = terms[0].matrix(times[row], run.blank_measure.at(jnp.asarray(states[row])))
    if not 0 <= head < len(matrices):
        raise InputError(f"head is an index from 0 to {len(matrices) - 1}, got {head}")
    which = f"head {head + 1} of {len(matrices)}, " if len(matrices) > 1 else ""
    figure, axes = plt.subplots(figsize=(3.6, 3.1))
    picture = axes.imshow(
        np.asarray(matrices[head]), cmap="cividis", vmin=0, interpolation="nearest"
    )
    title = f"attention, {which}t = {times[row]:.4g}"
    axes.set(xlabel="attended token j", ylabel="token i", title=title)
    figure.colorbar(picture, ax=axes, shrink=0.85)
    figure.tight_layout()
    return figure


def _overview(plt: Any, run: Trajectory, sample: Any) -> Any:
    times, states = saved_states(run, sample)
    rows, names = rows_at(times, None, SHOWN_EARLY), scalar_names(run)
    height = 2.6 + 1.05 * len(names)
    figure = plt.figure(figsize=(7.0, height))
    grid = figure.add_gridspec(
        1 + len(names), len(rows), height_ratios=[2.4] + [1.0] * len(names), hspace=0.35
    )
    panels = [figure.add_subplot(grid[0, column]) for column in range(len(rows))]
    _fill_tokens(run, sample, panels, times, states, rows)
    if names:
        series = [figure.add_subplot(grid[1 + index, :]) for index in range(len(names))]
        fill_series(run, sample, series, names)
        figure.align_ylabels(series)
    figure.suptitle(_caption(run, sample), fontsize=9, color=INK, y=0.995)
    return figure


def _caption(run: Trajectory, sample: Any) -> str:
    measure = run.blank_measure
    betas = [part.beta for part in run.model.attentions()] if _rebuildable(run) else []
    beta = f", beta = {quantity_text(betas[0], sample)}" if betas else ""
    few = f" ({MOST_SHOWN} shown)" if measure.n > MOST_SHOWN else ""
    clock = ", discrete layers (not the flow's clock)" if is_layers(run) else ""
    return (
        f"{run.attributes['label']}, n = {measure.n}{few}, d = {measure.d}{beta}{clock}; "
        f"colours: clusters at the end, {_linked(run)}"
    )


def _linked(run: Trajectory) -> str:
    sphere = isinstance(run.blank_measure.space, Sphere)
    return f"linking {'angle' if sphere else 'distance'} {colour_link(run):.3g}"


def _rebuildable(run: Trajectory) -> bool:
    from ..errors import StoreError

    try:
        return run.model is not None
    except StoreError:
        return False


_DRAW = {
    "overview": _overview,
    "tokens": _tokens,
    "series": draw_series,
    "gram": _gram,
    "attention": _attention,
}
