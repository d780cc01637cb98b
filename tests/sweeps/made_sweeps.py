"""Small sweeps and made-up results of their blocks, for tests of what is kept on disk."""

import numpy as np

from tokenflock.sweeps.layout import BlockResult, Layout, Variable
from tokenflock.sweeps.plan import parse_sweep

TEXT = """
title = "small"
says = "A sweep to be damaged."
[model]
name = "SA"
beta = 1.0
[tokens]
law = "uniform"
d = 2
n = 8
[solve]
t1 = 4.0
rtol = 1e-6
atol = 1e-8
[save]
every = 1.0
observe = ["energy"]
[sweep]
batch = {batch}
[sweep.axes]
beta = {{ from = 1.0, to = 5.0, count = {betas} }}
pair = {{ zip = {{ "tokens.n" = [8, 16], "tokens.law" = ["uniform", "hemisphere"] }} }}
seed = {{ seeds = {seeds} }}
"""
TIMES = 5


def made_sweep(betas=3, seeds=5, batch=4):
    """30 cells in blocks of at most 4, of which some are cut short at the far end."""
    return parse_sweep(TEXT.format(betas=betas, seeds=seeds, batch=batch))


def made_layout(times=TIMES, observed=("energy", "diameter")):
    arrays = [
        Variable(name, ("time",), (times,), "float64", np.nan, {"units": "1"}) for name in observed
    ]
    flags = {"flag_values": [-2, -1, 0], "flag_meanings": "missing error finished"}
    return Layout(
        (
            *arrays,
            Variable("steps", (), (), "int64", -1),
            Variable("outcome", (), (), "int8", -2, flags),
        ),
        {"time": np.linspace(0.0, 4.0, times)},
    )


def made_result(block, layout, failures=None):
    """Numbers that depend on the block alone, so that two writers agree."""
    draw = np.random.default_rng(block.index)
    arrays = {}
    for variable in layout.variables:
        numbers = draw.normal(size=(block.size, *variable.shape))
        whole = np.dtype(variable.dtype).kind == "i"
        arrays[variable.name] = (np.abs(numbers * 10) if whole else numbers).astype(variable.dtype)
    return BlockResult(arrays, failures or {})


def write_blocks(store, blocks=None):
    """Commit some blocks, or all."""
    grid = store.sweep.grid
    with store.lock():
        for index in range(grid.block_count) if blocks is None else blocks:
            block = grid.block(index)
            store.write(block, made_result(block, store.layout))


def contents(folder):
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
