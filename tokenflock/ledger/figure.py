"""What a figure is: data computed once and stored, a drawing made from the stored data alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..plot.style import styled
from ..progress import ShareReport
from .case import Settled, changed

if TYPE_CHECKING:
    import xarray as xr

Settings = Mapping[str, Any]
Scale = Literal["quick", "paper"]


class FigureJob(Settled):
    """What a figure's data is computed from: the settings as attributes, a seed, a progress report."""

    KIND = "figure"

    def __init__(self, values: Settings, seed: int, report: ShareReport | None = None):
        super().__init__(values)
        self.seed = seed
        self.report: ShareReport = report or (lambda done: None)


Compute = Callable[[FigureJob], "xr.Dataset"]
Draw = Callable[[Any, "xr.Dataset"], Any]
Film = Callable[["xr.Dataset", Path], Path]


@dataclass
class Figure:
    """One figure: `compute(scale)` gives a dataset, `draw(data)` a matplotlib figure.

    `shows` says what must be seen in it. `quick` and `paper` are the settings of the two scales
    (those of `paper` are laid over `quick`).
    """

    id: str
    title: str
    shows: str
    quick: Settings
    paper: Settings
    compute_with: Compute
    draw_with: Draw | None = None
    film_with: Film | None = None

    def settings(self, scale: Scale) -> dict[str, Any]:
        """The settings of a scale."""
        return {**self.quick, **(self.paper if scale == "paper" else {})}

    def compute(
        self,
        scale: Scale = "quick",
        seed: int = 0,
        report: ShareReport | None = None,
        **changes: Any,
    ) -> xr.Dataset:
        """The data of the figure; `changes` replace settings of the scale."""
        values = changed(self.id, self.settings(scale), changes)
        data = self.compute_with(FigureJob(values, seed, report))
        return data.assign_attrs(figure=self.id, scale=scale, seed=seed, settings=values)

    def draw(self, data: xr.Dataset) -> Any:
        """A matplotlib figure of the data, in the house style."""
        assert self.draw_with is not None, f"{self.id} has no drawing"
        with styled() as plt:
            return self.draw_with(plt, data)

    def drawing(self, draw: Draw) -> Draw:
        """Decorator: `draw(plt, data)` is the drawing of this figure."""
        self.draw_with = draw
        return draw

    def film(self, film: Film) -> Film:
        """Decorator: `film(data, path)` writes the moving version of this figure."""
        self.film_with = film
        return film
