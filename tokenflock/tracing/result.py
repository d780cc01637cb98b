"""From rows of statistics to a Trajectory whose clock is the layer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..dynamics import Dynamics
from ..masks import Causal
from ..measure import Measure
from ..models import SA
from ..normalisation import PostLN, PreLN
from ..provenance import provenance
from ..serialise import describe
from ..space import Sphere
from ..states import TokenState
from ..theory import equiangular_rate, solve_scheme
from ..trajectory import Trajectory
from .arrays import LAYER_AXES, PER_TOKEN, axes_of, details_of
from .collect import Collector
from .state_statistics import ANGLES, BINS, CLUSTER_ANGLE, QUANTILES


@dataclass
class TraceFacts:
    """What is known about the model and the run besides the numbers."""

    model: dict[str, Any]
    labels: list[list[str]]
    interventions: dict[str, Any]
    notes: list[str]
    missing: list[str]
    scheme: Literal["post", "pre"] | None
    causal: bool
    width: int
    reference_beta: float
    seconds: float
    rounding: dict[str, Any] | None = None
    without_first: bool = False


def assemble(
    facts: TraceFacts,
    passes: Sequence[Collector],
    weights: Mapping[str, np.ndarray],
    extra: Mapping[str, np.ndarray],
) -> Trajectory:
    """One labelled Trajectory; several texts share a leading axis "sample".

    `weights` are read off the checkpoint, `extra` off the first text alone: no axis "sample"; nor
    has the equiangular curve one.
    """
    many = len(passes) > 1
    rows = [_one(facts, each) for each in passes]
    lead = ("sample",) if many else ()
    arrays = _stacked(rows) if many else rows[0]
    axes = {name: (*lead, *axes_of(name)) for name in arrays}
    if facts.scheme is not None:
        curve = _equiangular_curve(facts, rows, [heard.count for heard in passes])
        extra = {**extra, "equiangular_cosine": curve}
        arrays["equiangular_distance"] = np.abs(arrays["sphere_cosine"] - curve).mean(axis=-1)
        axes["equiangular_distance"] = lead
    arrays.update({**weights, **extra})
    axes.update({name: axes_of(name) for name in (*weights, *extra)})
    measure = _measure(facts, passes[0])
    if not many:
        _add_tokens(arrays, axes, passes[0])
    steps = len(passes[0].layers)
    arrays["final_time"] = (
        np.full((len(passes),), float(steps)) if many else np.asarray(float(steps))
    )
    axes["final_time"] = lead
    model = reference_model(facts)
    return Trajectory(
        arrays,
        axes,
        _coords(arrays, axes, len(passes)),
        _attributes(facts, arrays, model, measure, steps),
        {name: details_of(name, facts.reference_beta) for name in arrays},
        model,
        TokenState(measure),
    )


def reference_model(facts: TraceFacts) -> Dynamics:
    """SA with the checkpoint's mask and norms at the reference beta: what theory idealises it to."""
    return SA(
        facts.reference_beta,
        mask=Causal() if facts.causal else None,
        normalisation=PreLN() if facts.scheme == "pre" else PostLN(),
    )


def _one(facts: TraceFacts, heard: Collector) -> dict[str, np.ndarray]:
    """The arrays of one text."""
    arrays = {
        name: np.stack([np.asarray(row[name]) for row in heard.states]) for name in heard.states[0]
    }
    known = [name for name in LAYER_AXES if all(name in row for row in heard.layers)]
    for name in known:
        arrays[name] = np.stack([np.asarray(row[name]) for row in heard.layers])
    arrays["cosine_rate"] = np.diff(arrays["sphere_cosine"])
    if facts.scheme is not None:
        arrays["cosine_rate_predicted"] = _predicted_rate(facts, arrays, heard.count)
    return arrays


def _predicted_rate(facts: TraceFacts, arrays: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """d rho/dt of equiangular tokens at the cosine and the radius measured before each layer.

    Radii count in units of sqrt(d), the length of a normalised token in the network: an update of
    the size of a token then has size one, as in 2510.22026.
    """
    rho = _equiangular_range(arrays["sphere_cosine"][:-1], n)
    radius = arrays["norm_median"][:-1] / np.sqrt(facts.width)
    return equiangular_rate(rho, n, facts.reference_beta) / (radius if facts.scheme == "pre" else 1)


def _equiangular_curve(
    facts: TraceFacts, rows: Sequence[Mapping[str, np.ndarray]], counts: Sequence[int]
) -> np.ndarray:
    """The theory of equiangular tokens from the measured start; of several texts, their mean one."""
    assert facts.scheme is not None
    n = int(np.median(counts))
    start = np.asarray([row["sphere_cosine"][0] for row in rows])
    radius = np.mean([row["norm_median"][0] for row in rows]) / np.sqrt(facts.width)
    depth = np.arange(len(rows[0]["sphere_cosine"]), dtype=float)
    rho0 = float(_equiangular_range(start, n).mean())
    path = solve_scheme(
        facts.scheme, depth, n, facts.reference_beta, rho0=rho0, radius0=float(radius), rtol=1e-8
    )
    return path.rho


def _equiangular_range(cosine: np.ndarray, n: int) -> np.ndarray:
    """n unit vectors share an inner product only above -1/(n-1)."""
    return np.clip(cosine, -1.0 / (n - 1) + 1e-9, 1.0 - 1e-12)


def _stacked(rows: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Texts of different lengths have no common tokens: only what does not name one is kept."""
    names = [name for name in rows[0] if name not in PER_TOKEN]
    return {name: np.stack([row[name] for row in rows]) for name in names}


def _measure(facts: TraceFacts, first: Collector) -> Measure:
    points = (first.tokens or first.ends)[0]
    blank = Measure(Sphere(points.shape[1]), points, ordered=True)
    return blank.at(blank.points * 0.0)


def _add_tokens(arrays: dict[str, Any], axes: dict[str, Any], heard: Collector) -> None:
    points = heard.tokens or heard.ends
    arrays["initial_points"], arrays["final_points"] = points[0], points[-1]
    axes["initial_points"] = axes["final_points"] = ("token", "coordinate")
    if heard.tokens:
        arrays["states"] = np.stack(heard.tokens)
        axes["states"] = ("time", "token", "coordinate")


def _coords(arrays: dict[str, Any], axes: dict[str, Any], texts: int) -> dict[str, np.ndarray]:
    sizes = {
        axis: size
        for name, dims in axes.items()
        for axis, size in zip(dims, np.shape(arrays[name]), strict=True)
    }
    coords = {axis: np.arange(size) for axis, size in sizes.items()}
    coords["time"] = np.arange(sizes["time"], dtype=float)
    # Labels count from 1 (docs/notation.md): state l is what layer l made, and 0 the embedding.
    coords["layer"] = np.arange(1, sizes["time"])
    if "head" in sizes:
        coords["head"] = np.arange(1, sizes["head"] + 1)
    edges = np.linspace(-1.0, 1.0, BINS + 1)
    coords["cosine"] = (edges[1:] + edges[:-1]) / 2
    coords["quantile"] = np.asarray(QUANTILES)
    coords["angle"] = np.asarray(ANGLES)
    return coords


def _attributes(
    facts: TraceFacts, arrays: dict[str, Any], model: Dynamics, measure: Measure, steps: int
) -> dict[str, Any]:
    finite = all(bool(np.all(np.isfinite(arrays[name]))) for name in ("mean_cosine", "norm"))
    return {
        "label": facts.model["name"],
        "model": describe(model),
        "measure": describe(measure),
        "numerics": {"method": "trace", "clock": "layer", "dtype": facts.model["dtype"]},
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **provenance(),
        "outcome": "finished" if finite else "non-finite",
        "advice": "every layer was read"
        if finite
        else "the hidden states became NaN or infinite; use --precision float32 or float64, and check "
        "the interventions",
        "health": {
            "finite": finite,
            "norm_drift": 0.0,
            "steps": steps,
            "accepted_steps": steps,
            "rejected_steps": 0,
        },
        "trace": {
            "model": facts.model,
            "tokens": facts.labels,
            "interventions": facts.interventions,
            "notes": facts.notes,
            "missing": facts.missing,
            "scheme": facts.scheme,
            "causal": facts.causal,
            "without_first": facts.without_first,
            "cluster_angle": CLUSTER_ANGLE,
            "reference_beta": facts.reference_beta,
            "rounding": facts.rounding,
            "seconds": facts.seconds,
        },
    }
