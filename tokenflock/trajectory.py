"""Trajectory: the labelled result of a run, a thin layer over an xarray Dataset."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .density import Density
from .describe import rebuild
from .dynamics import beta_axes
from .errors import InputError
from .measure import Measure
from .observables.base import Observable, Snapshot
from .reduce import Dense
from .runtime import is_traced

if TYPE_CHECKING:
    import xarray as xr


class Trajectory:
    """What a run left behind: observables and states with named axes, and how they were made.

    run["energy"] -- a labelled array (xarray.DataArray) with dims such as (beta, sample, time);
    run.array("energy") -- the same as a plain array, which jax.grad can differentiate;
    run.states -- the tokens (..., time, token, coordinate), if they were saved;
    run.final -- the last measure; run.outcome, run.advice, run.health -- how it went.
    """

    def __init__(
        self,
        arrays: dict[str, Any],
        axes: dict[str, tuple[str, ...]],
        coords: dict[str, Any],
        attributes: dict[str, Any],
        details: dict[str, dict[str, Any]] | None = None,
        model: Any = None,
        measure: Measure | None = None,
        density: Density | None = None,
    ):
        self.arrays = arrays
        self.axes = axes
        self.coords = coords
        self.attributes = attributes
        self.details = details or {}
        # What made the run, while it is at hand; a stored run rebuilds both from its attributes.
        self._model = model
        self._measure = measure
        self._density = density

    @functools.cached_property
    def dataset(self) -> xr.Dataset:
        """Everything as one xarray Dataset."""
        import xarray as xr

        if is_traced(self.arrays):
            raise InputError("inside jax.grad or jit use run.array(name) or run.states")
        variables = {
            name: (self.axes[name], np.asarray(value), self.details.get(name, {}))
            for name, value in self.arrays.items()
        }
        return xr.Dataset(variables, coords=self.coords, attrs=self.attributes)

    def __getitem__(self, name: str) -> xr.DataArray:
        self._require(name)
        return self.dataset[name]

    def array(self, name: str) -> Any:
        """The plain array of one variable."""
        self._require(name)
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def _require(self, name: str) -> None:
        if name not in self.arrays:
            raise InputError(
                f"this run has no {name!r}; it has {', '.join(sorted(self.arrays))}. Ask for it with "
                "Save(observe=[...]) or, if states were saved, run.observe(observable)"
            )

    @property
    def states(self) -> Any:
        """The tokens, with axes (..., time, token, coordinate)."""
        if "states" not in self.arrays:
            raise InputError(
                "this run did not keep its states; use save=Save(..., states=True). The first and "
                "last tokens are in run.initial and run.final"
            )
        return self.arrays["states"]

    @property
    def time(self) -> Any:
        """The save times."""
        return self.coords["time"]

    @property
    def initial(self) -> Any:
        """The tokens, or the density, at t = 0."""
        return self._end("initial")

    @property
    def final(self) -> Any:
        """The tokens, or the density, at the end."""
        return self._end("final")

    def _end(self, which: str) -> Any:
        if self.is_density:
            return self.blank_density.at(jnp.asarray(self.arrays[f"{which}_state"]))
        return self.measure_at(f"{which}_points")

    @property
    def is_density(self) -> bool:
        """Whether this is a run of the infinite-token limit, whose states are no tokens."""
        return "initial_state" in self.arrays

    @functools.cached_property
    def blank_density(self) -> Density:
        """The density of a run without its state: how it is held."""
        return rebuild(self.attributes["density"]) if self._density is None else self._density

    def measure_at(self, name: str) -> Measure:
        """The measure of one stored array of tokens."""
        blank = self.blank_measure
        radii = self.arrays.get(name.replace("points", "radii"))
        return blank.at(jnp.asarray(self.arrays[name]), radii)

    @functools.cached_property
    def blank_measure(self) -> Measure:
        """The measure without its points: space, weights, order."""
        return rebuild(self.attributes["measure"]) if self._measure is None else self._measure

    @functools.cached_property
    def model(self) -> Any:
        """The model that made this run."""
        return rebuild(self.attributes["model"]) if self._model is None else self._model

    @property
    def outcome(self) -> str:
        """finished, stopped, or what went wrong."""
        return self.attributes["outcome"]

    @property
    def advice(self) -> str:
        """What the outcome means and what to do about it."""
        return self.attributes["advice"]

    @property
    def reached(self) -> float:
        """The time reached by every sample."""
        return float(np.min(np.asarray(self.arrays["final_time"])))

    @property
    def health(self) -> dict[str, Any]:
        """Norm drift, energy monotonicity, step counts, error bound of the reduction."""
        return self.attributes["health"]

    @property
    def notes(self) -> dict[str, str]:
        """What observables say of their own meaning, where there is something to say."""
        return {name: said["note"] for name, said in self.details.items() if said.get("note")}

    def observe(self, observable: Observable, model: Any = None) -> xr.DataArray:
        """Compute an observable from the saved states, for every time, sample and beta."""
        import xarray as xr

        states = jnp.asarray(self.states)
        lead = self.axes["states"][: self.axes["states"].index("time") + 1]
        model = self.model if model is None else model
        blank = self.blank_density if self.is_density else self.blank_measure
        values = _observe(observable, model, blank, jnp.asarray(self.time), states, lead)
        coords = {name: self.coords[name] for name in lead if name in self.coords}
        return xr.DataArray(
            np.asarray(values),
            dims=(*lead, *observable.axes),
            coords={**coords, **observable.coords},
            name=observable.name,
            attrs=attributes_on(observable, blank),
        )

    @property
    def densities(self) -> xr.DataArray:
        """The density at the nodes of its discretisation, for every saved state; 1 is uniform."""
        import xarray as xr

        if not self.is_density:
            raise InputError(
                "this run moved tokens, which have no density; its states are run.states"
            )
        states = jnp.asarray(self.states)
        lead = self.axes["states"][: self.axes["states"].index("time") + 1]
        scheme = self.blank_density.on.scheme()
        values = scheme.values
        for _ in lead:
            values = eqx.filter_vmap(values)
        coords = {name: self.coords[name] for name in lead if name in self.coords}
        return xr.DataArray(
            np.asarray(values(states)), dims=(*lead, "node"), coords=coords, name="density"
        )

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write a Zarr v3 store; the folder appears only when it is complete."""
        from .store import write

        return write(self, Path(path), overwrite)

    def plot(self, kind: str | None = None, **options: Any) -> Any:
        """A figure for a paper; see `tokenflock.plot.draw`."""
        from .plot import draw

        return draw(self, kind, **options)

    def animate(self, path: str | Path, **options: Any) -> Path:
        """An MP4 or GIF of the tokens; see `tokenflock.plot.animate`."""
        from .plot import animate

        return animate(self, Path(path), **options)

    def view(self, height: int = 640) -> Any:
        """The page of `tokenflock play` with this run in it, as a notebook widget.

        Needs anywidget (pip install 'tokenflock[web]'); `height` is in pixels.
        """
        from .web.widget import make_widget

        return make_widget(self, height)

    def __repr__(self) -> str:
        sizes = {axis: len(self.coords[axis]) for axis in self.coords}
        return (
            f"<Trajectory {self.attributes['label']} {sizes} {self.outcome} "
            f"t={self.reached:g} [{', '.join(self.arrays)}]>"
        )


@eqx.filter_jit
def attributes_on(observable: Observable, state: Measure | Density) -> dict[str, Any]:
    """What is written beside the values; an observable with notes on tokens reads a density as those."""
    if isinstance(state, Measure):
        return observable.attributes_on(state)
    if observable.notes is None:
        return observable.attributes
    return observable.attributes_on(state.as_measure())


def _observe(
    observable: Observable,
    model: Any,
    blank: Measure | Density,
    times: Any,
    states: Any,
    lead: tuple[str, ...],
) -> Any:
    """The observable at every (beta, sample, time) of an array of states."""

    def look(model: Any, t: Any, state: Any) -> Any:
        if isinstance(blank, Density):
            from .meanfield.reading import read_state

            return read_state(observable, t, blank.at(state), model)
        return observable(Snapshot(t, blank.at(state), model, Dense()))

    compute = eqx.filter_vmap(look, in_axes=(None, 0, 0))
    for axis in reversed(lead[:-1]):
        over = beta_axes(model) if axis == "beta" else None
        compute = eqx.filter_vmap(compute, in_axes=(over, None, 0))
    return compute(model, times, states)
