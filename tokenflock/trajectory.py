"""Trajectory: the labelled result of a run, a thin layer over an xarray Dataset."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .doors import door
from .errors import InputError
from .outcomes import GOOD, name_outcomes
from .runtime import is_traced
from .serialise import rebuild

if TYPE_CHECKING:
    import xarray as xr

    from .density import Density
    from .measure import Measure
    from .observables.plain import Observed
    from .states import State


NOTHING_TO_OBSERVE = (
    "this run did not keep its states, from which observables are computed afterwards; solve again with "
    "save=Save(states=True), or ask for the observable during the run: save=Save(observe=[...]) of solve, "
    "observe=[...] of random_chains (an ensemble takes neither: use solve)"
)


class Trajectory:
    """What a run left behind: observables and states with named axes, and how they were made.

    run["energy"] -- a labelled array (xarray.DataArray) with dims such as (beta, sample, time);
    run.array("energy", time=-1) -- plain numbers, picked by the names of their axes; jax.grad can
    differentiate them;
    run.states -- the tokens (time, token, coordinate) of a single run, if they were saved;
    run.final -- the last measure; run.outcome, run.reached, run.advice, run.health -- how it went;
    run.outcomes, run.stop_summary() -- how each member of a batch went.
    """

    def __init__(
        self,
        arrays: dict[str, Any],
        axes: dict[str, tuple[str, ...]],
        coords: dict[str, Any],
        attributes: dict[str, Any],
        details: dict[str, dict[str, Any]] | None = None,
        model: Any = None,
        state: State | None = None,
    ):
        self.arrays = arrays
        self.axes = axes
        self.coords = coords
        self.attributes = attributes
        self.details = details or {}
        # What made the run, while it is at hand; a stored run rebuilds both from its attributes.
        self._model = model
        self._state = state

    @functools.cached_property
    def dataset(self) -> xr.Dataset:
        """Everything as one xarray Dataset."""
        import xarray as xr

        if is_traced(self.arrays):
            raise InputError("inside jax.grad or jit use run.array(name), which takes axes by name")
        variables = {
            name: (self.axes[name], np.asarray(value), self.details.get(name, {}))
            for name, value in self.arrays.items()
        }
        return xr.Dataset(variables, coords=self.coords, attrs=self.attributes)

    def __getitem__(self, name: str) -> xr.DataArray:
        self._require(name)
        return self.dataset[name]

    def array(self, name: str, **positions: int | slice) -> Any:
        """The plain array of one variable, in a JAX transformation too; axes are picked by name.

        `run.array("states", time=-1)` is the last row, of every beta and every sample of a batch;
        `run.array("energy", beta=0, sample=3)` one member. Positions count from 0, or from the end
        if negative; `run["energy"].sel(beta=9.0)` picks by value.
        """
        self._require(name)
        value, dims = self.arrays[name], self.axes[name]
        for axis, position in positions.items():
            self._check_position(name, axis, position)
        return (
            value[tuple(positions.get(axis, slice(None)) for axis in dims)] if positions else value
        )

    def _check_position(self, name: str, axis: str, position: Any) -> None:
        """Refuse what is no axis or lies outside it: JAX would take the last entry without a word."""
        sizes = dict(zip(self.axes[name], np.shape(self.arrays[name]), strict=True))
        if axis not in sizes:
            raise InputError(f"{name} has the axes ({_told(sizes)}), and no {axis!r}")
        if isinstance(position, slice):
            return
        if isinstance(position, bool) or not isinstance(position, int | np.integer):
            raise InputError(
                f"{axis} takes a position counted from 0, or a slice, got {position!r}; by value use "
                f"run[{name!r}].sel({axis}=...)"
            )
        if not -sizes[axis] <= position < sizes[axis]:
            raise InputError(
                f"{axis}={position} lies outside: {name} has the axes ({_told(sizes)})"
            )

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def _require(self, name: str) -> None:
        if name == "states" and name not in self.arrays:
            raise InputError(
                "this run did not keep its states; use save=Save(..., states=True). The first and "
                "last tokens are in run.initial and run.final"
            )
        if name not in self.arrays:
            raise InputError(
                f"this run has no {name!r}; it has {', '.join(sorted(self.arrays))}. Ask for it with "
                "Save(observe=[...]) or, if states were saved, run.observe(observable)"
            )

    @property
    def batch_axes(self) -> tuple[str, ...]:
        """The axes of a batch, which stand in front: beta, then samples; empty for a single run."""
        return self.axes.get("final_time", ())

    @property
    def states(self) -> Any:
        """The tokens of a single run, with axes (time, token, coordinate).

        Refused for a batch, where the first axis is no time: see `array`.
        """
        self._require("states")
        if self.batch_axes:
            sizes = dict(zip(self.axes["states"], np.shape(self.arrays["states"]), strict=True))
            raise InputError(
                f"this run is a batch: its states have the axes ({_told(sizes)}), so states[-1] would "
                f"be the last {self.batch_axes[0]}, not the last time. Pick by name: "
                'run.array("states", time=-1) for plain numbers, run["states"].isel(time=-1) for '
                'labelled ones; run.array("states") is the whole array'
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
        return self.state.value(self._parts(which))

    def _parts(self, which: str) -> dict[str, Any]:
        """The arrays of one end of the run, by the names the state gives them."""
        start = f"{which}_"
        return {n.removeprefix(start): v for n, v in self.arrays.items() if n.startswith(start)}

    @functools.cached_property
    def state(self) -> State:
        """What was integrated, without its numbers: how tokens or a density are held."""
        from .states import from_description

        return from_description(self.attributes) if self._state is None else self._state

    @property
    def is_density(self) -> bool:
        """Whether this is a run of the infinite-token limit, whose states are no tokens."""
        return "initial_state" in self.arrays and "density" in self.attributes

    @property
    def blank_density(self) -> Density:
        """The density of a run without its numbers: how it is held."""
        return self.state.density  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def blank_measure(self) -> Measure:
        """The measure without its points: space, weights, order."""
        return self.state.measure  # pyright: ignore[reportAttributeAccessIssue]

    @functools.cached_property
    def model(self) -> Any:
        """The model that made this run."""
        return rebuild(self.attributes["model"]) if self._model is None else self._model

    @property
    def outcome(self) -> str:
        """finished, stopped, or what went wrong; a count such as `324 stopped, 124 finished` of a batch."""
        return self.attributes["outcome"]

    @property
    def outcomes(self) -> xr.DataArray:
        """The outcome of each member of a batch, with the axes of the batch."""
        names = np.full(np.shape(self.arrays["final_time"]), self.outcome, dtype=object)
        if "outcome_code" in self.arrays:
            names = self._outcome_names()
        return self._labelled("outcome", names.astype(str), self.batch_axes)

    def _outcome_names(self) -> np.ndarray:
        self._require_untraced("outcomes")
        last = np.asarray(self.arrays.get("final_points", self.arrays.get("final_state")))
        inner = tuple(range(len(self.batch_axes), last.ndim))
        names = name_outcomes(self.arrays["outcome_code"], np.all(np.isfinite(last), axis=inner))
        broken = np.asarray(self.attributes.get("identity_broken", False))
        names = np.where(broken & np.isin(names, GOOD), "unresolved", names)
        cut = self.outcome == "interrupted"
        return np.where((names == "finished") & cut, "interrupted", names)

    @property
    def advice(self) -> str:
        """What the outcome means and what to do about it."""
        return self.attributes["advice"]

    @property
    def reached(self) -> Any:
        """The time reached: a number, or for a batch a labelled array with that of every member.

        Inside a JAX transformation a plain array.
        """
        times = self.arrays["final_time"]
        if is_traced(self.arrays, self.coords):
            return times
        if not self.batch_axes:
            return float(times)
        return self._labelled("reached", np.asarray(times), self.batch_axes)

    def stop_summary(
        self,
        over: str | Sequence[str] | None = None,
        quantiles: Sequence[float] = (0.25, 0.5, 0.75),
    ) -> xr.Dataset:
        """How many members of a batch met their stop, how many reached t1 first (censored) or broke off.

        `stop_time` holds quantiles of the stop times that allow for the censored ones (Kaplan-Meier);
        infinite where too few had stopped by t1. Counted over all samples, for each beta; `over`
        names other axes.
        """
        from .censoring import stop_summary

        self._require_untraced("stop_summary")
        return stop_summary(self, over, quantiles)

    def _labelled(self, name: str, values: np.ndarray, dims: tuple[str, ...]) -> xr.DataArray:
        import xarray as xr

        coords = {axis: self.coords[axis] for axis in dims if axis in self.coords}
        return xr.DataArray(values, dims=dims, coords=coords, name=name)

    def _require_untraced(self, what: str) -> None:
        if is_traced(self.arrays):
            raise InputError(
                f"{what} has no value inside jax.grad or jit; run.array('outcome_code') and "
                "run.array('final_time') have"
            )

    @property
    def health(self) -> dict[str, Any]:
        """Norm drift, energy monotonicity, step counts, error bound of the reduction."""
        return self.attributes["health"]

    @property
    def notes(self) -> dict[str, str]:
        """What observables say of their own meaning, where there is something to say."""
        return {name: said["note"] for name, said in self.details.items() if said.get("note")}

    def observe(self, observable: Observed, model: Any = None) -> xr.DataArray:
        """Compute an observable from the saved states, for every time, sample and beta.

        A plain function of a snapshot will do: `run.observe(lambda s: s.measure.points[0, 0])`.
        """
        import xarray as xr

        from .states.stored import observe_states

        if "states" not in self.arrays:
            raise InputError(NOTHING_TO_OBSERVE)
        model = self.model if model is None else model
        lead, states = self._saved()
        thing, values = observe_states(
            observable, model, self.state, jnp.asarray(self.time), states, lead
        )
        coords = {name: self.coords[name] for name in lead if name in self.coords}
        return xr.DataArray(
            np.asarray(values),
            dims=(*lead, *thing.axes),
            coords={**coords, **thing.coords},
            name=thing.name,
            attrs=self.state.notes(thing),
        )

    def _saved(self) -> tuple[tuple[str, ...], Any]:
        """The axes of the saved states up to time, and the states."""
        states = jnp.asarray(self.array("states"))
        axes = self.axes["states"]
        return axes[: axes.index("time") + 1], states

    @property
    def densities(self) -> xr.DataArray:
        """The density at the nodes of its discretisation, for every saved state; 1 is uniform."""
        import xarray as xr

        if not self.is_density:
            raise InputError(
                "this run moved tokens, which have no density; its states are run.states"
            )
        lead, states = self._saved()
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
        if is_traced(self.arrays):
            raise InputError("inside jax.grad or jit a run has no numbers to save; save it outside")
        return door("save")(self, Path(path), overwrite)

    def plot(self, kind: str | None = None, **options: Any) -> Any:
        """A figure for a paper; see `tokenflock.plot.draw`."""
        return door("plot")(self, kind, **options)

    def animate(self, path: str | Path, **options: Any) -> Path:
        """An MP4 or GIF of the tokens; see `tokenflock.plot.animate`."""
        return door("animate")(self, Path(path), **options)

    def view(self, height: int | None = None) -> Any:
        """The page of `tokenflock play` with this run in it, as the output of a notebook cell.

        `height` is in pixels; without it the page is as high as what is in it.
        """
        return door("view")(self, height)

    def __repr__(self) -> str:
        return (
            f"<Trajectory {self.attributes['label']} ({_told(self._sizes())}) {self.outcome} "
            f"{reached_text(self)} [{', '.join(self.arrays)}]>"
        )

    def _sizes(self) -> dict[str, int]:
        """Every axis with its size, in the order of the arrays: the batch, time, then the others."""
        found: dict[str, int] = {}
        for name in sorted(self.arrays, key=lambda name: name != "states"):
            found |= dict(zip(self.axes[name], np.shape(self.arrays[name]), strict=True))
        first = [axis for axis in (*self.batch_axes, "time") if axis in found]
        return {axis: found[axis] for axis in dict.fromkeys([*first, *found])}


def reached_text(run: Trajectory) -> str:
    """The time reached, for a sentence: `t=3`, or of a batch `t=0.5 to 3`."""
    if is_traced(run.arrays):
        return "t=?"
    times = np.asarray(run.arrays["final_time"], dtype=float)
    low, high = f"{np.min(times):g}", f"{np.max(times):g}"
    return f"t={low}" if low == high else f"t={low} to {high}"


def _told(sizes: dict[str, int]) -> str:
    return ", ".join(f"{axis}: {size}" for axis, size in sizes.items())
