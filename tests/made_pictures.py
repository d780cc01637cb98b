"""Datasets as sweeps store them, and their pictures, for tests of pictures."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from tokenflock.plot import draw_sweep

TIMES = np.linspace(0.0, 10.0, 21)
BETAS = np.linspace(0.5, 9.0, 12)
SIZES = np.array([16, 32, 64, 128])
NOISES = np.array([0.0, 0.1, 0.2])


def sweep(axes, seeds=8, times=TIMES, beside=None, names=("order_parameter",)):
    """A sweep as it is stored: dims are the axes, the seeds and time; values grow with every axis."""
    rng = np.random.default_rng(0)
    dims = [*axes, *(["seed"] if seeds else []), *(["time"] if len(times) else [])]
    shape = [len(values) for values in axes.values()] + [seeds] * bool(seeds)
    cells = tuple(shape)
    shape += [len(times)] * bool(len(times))
    values = 0.05 * rng.normal(size=shape)
    for k, size in enumerate(cells[: len(axes)]):
        values += np.linspace(0, 1, size).reshape([-1 if i == k else 1 for i in range(len(shape))])
    if len(times):
        values += np.tanh(times / 3)
    coords = {**axes, "seed": np.arange(seeds), "time": times} if seeds else {**axes, "time": times}
    if not len(times):
        del coords["time"]
    runs = tuple(dims[: len(cells)])
    details = {"units": "1", "long_name": "mean resultant length"}
    arrays = {name: (tuple(dims), values, details) for name in names}
    arrays["outcome"] = (runs, np.zeros(cells, np.int8))
    arrays["final_time"] = (runs, np.full(cells, times[-1] if len(times) else 0.0))
    attributes = {
        "title": "made",
        "axes": {name: [f"model.{name}"] for name in [*axes, *(["seed"] if seeds else [])]},
        "seed_axes": ["seed"] if seeds else [],
        "spec": {"save": {"observe": list(names)}},
    }
    return xr.Dataset(arrays, coords={**coords, **(beside or {})}, attrs=attributes)


def random_search():
    rng = np.random.default_rng(1)
    beta, n, dull = 10 ** rng.uniform(-1, 1, 60), rng.choice([16, 32, 64], 60), rng.uniform(size=60)
    beside = {
        "model.beta": ("trial", beta),
        "tokens.n": ("trial", n),
        "model.dull": ("trial", dull),
    }
    made = sweep({"trial": np.arange(60)}, seeds=3, beside=beside)
    made["order_parameter"] = (
        made["order_parameter"] * 0.01 + np.log(made["model.beta"]) + made["tokens.n"] / 64
    )
    return made


def drawn(*arguments):
    """draw_sweep, with its figure drawn to the end; a warning would reach the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = draw_sweep(*arguments)
        figure.canvas.draw()
    plt.close(figure)
    return figure


def mesh_of(axes):
    """The coloured mesh of a panel: the last one, above that of missing cells."""
    return [child for child in axes.collections if hasattr(child, "get_array")][-1]


def seed_mean(dataset, name="order_parameter"):
    return dataset[name].mean("seed")
