"""Test support: traces of planted tokens, without a model."""

import numpy as np
import torch

from tokenflock.tracing.arrays import STATE_AXES
from tokenflock.tracing.state_statistics import state_statistics
from tokenflock.trajectory import Trajectory

ANGLE = 0.1415


def unit(points):
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def made_run(states, labels=None, **facts):
    """A trace whose hidden states are `states` (layers + 1, n, d); other facts by keyword."""
    rows = [state_statistics(torch.tensor(state), None, reference_beta=2.0) for state in states]
    arrays = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
    axes = {name: ("time", *STATE_AXES[name]) for name in arrays}
    points = [
        state / np.maximum(np.linalg.norm(state, axis=1, keepdims=True), 1e-300) for state in states
    ]
    arrays |= {"states": np.stack(points), "final_points": points[-1], "initial_points": points[0]}
    axes |= {"states": ("time", "token", "coordinate")}
    axes |= dict.fromkeys(("final_points", "initial_points"), ("token", "coordinate"))
    n = states.shape[1]
    return _trajectory(arrays, axes, [labels or [f"t{i}" for i in range(n)]], states.shape, facts)


def stacked(runs, **facts):
    """Several texts in one trace: what names no token, on an axis "sample"."""
    shared = [name for name in STATE_AXES if name in runs[0] and name != "norms"]
    arrays = {name: np.stack([run.array(name) for run in runs]) for name in shared}
    axes = {name: ("sample", *runs[0].axes[name]) for name in shared}
    labels = [run.attributes["trace"]["tokens"][0] for run in runs]
    return _trajectory(arrays, axes, labels, runs[0].array("states").shape, facts)


def _trajectory(arrays, axes, labels, shape, facts):
    layers, _, width = shape
    model = {
        "name": "planted",
        "source": None,
        "heads": 2,
        "width": width,
        "distinct_layers": layers - 1,
    }
    model |= facts.pop("model", {})
    trace = {
        "model": model,
        "tokens": labels,
        "interventions": {},
        "notes": [],
        "missing": [],
        "scheme": "post",
        "cluster_angle": ANGLE,
        "reference_beta": 2.0,
        "rounding": None,
        "seconds": 0.5,
    }
    coords = {
        "time": np.arange(layers, dtype=float),
        "layer": np.arange(1, layers),
        "angle": np.array([0.05, ANGLE, 0.45]),
        "cosine": (np.arange(64) + 0.5) / 32 - 1,
    }
    attributes = {"label": "planted", "outcome": "finished", "advice": "", "trace": trace | facts}
    return Trajectory(arrays, axes, coords, attributes)


def with_heads(run, seed=0):
    """Add attention, turning angles and spectra with random but valid numbers, one sink at token 2."""
    random = np.random.default_rng(seed)
    layers, n = len(run.time) - 1, len(run.attributes["trace"]["tokens"][0])
    by_head = {
        "attention_entropy": random.uniform(0, np.log(n), (layers, 2)),
        "attention_entropy_share": random.uniform(0, 1, (layers, 2)),
        "attention_rank": random.uniform(1, n, (layers, 2)),
        "sink_share": random.uniform(0.4, 0.9, (layers, 2)),
        "sink_token": np.full((layers, 2), 2),
        "first_mass": random.uniform(0, 0.3, (layers, 2)),
        "beta_logits": random.uniform(1, 90, (layers, 2)),
        "beta_weights": random.uniform(1, 90, (layers, 2)),
        "ov_positive_share": random.uniform(0, 1, (layers, 2)),
    }
    mass = random.dirichlet(np.ones(n), layers) * 0.4
    mass[1:, 2] += 0.6
    add(run, by_head, ("layer", "head"))
    add(run, {"column_mass": mass}, ("layer", "attended"))
    spectra = {name: random.normal(size=(layers, 2, 5)) for name in ("ov_real", "ov_imag")}
    add(run, spectra, ("layer", "head", "eigen"))
    turned = random.uniform(0.1, 0.3, layers)
    add(run, {"turning_angle": turned, "turning_angle_predicted": 1.2 * turned}, ("layer",))
    rate = np.diff(run.array("sphere_cosine"))
    add(run, {"cosine_rate": rate, "cosine_rate_predicted": rate / 3}, ("layer",))
    growth = 3.0 ** np.arange(layers + 1)
    start = np.full(layers + 1, run.array("sphere_cosine")[0])
    add(run, {"perturbation_growth": growth, "equiangular_cosine": start}, ("time",))
    return run


def add(run, arrays, axes):
    run.arrays.update(arrays)
    run.axes.update(dict.fromkeys(arrays, axes))


def collapsing(layers=8, n=9, d=12, seed=0):
    """Tokens around a common direction whose spread falls by a factor 0.6 each layer."""
    random = np.random.default_rng(seed)
    pole, noise = np.eye(d)[0], random.normal(size=(n, d))
    return np.stack([3.0 * unit(pole + 2.0 * 0.6**layer * noise) for layer in range(layers + 1)])


def merging(sizes=(5, 3, 2), layers=8, d=12, seed=0):
    """Tokens that start apart and end at one orthogonal centre per group."""
    random = np.random.default_rng(seed)
    centres = np.repeat(np.eye(d)[: len(sizes)], sizes, axis=0)
    noise = random.normal(size=centres.shape)
    return np.stack([unit(centres + 0.5 * 0.4**layer * noise) for layer in range(layers + 1)])
