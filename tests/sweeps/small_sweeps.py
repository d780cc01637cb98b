"""Small sweeps of real cells: layers, whose programs compile fastest."""

import numpy as np

from tokenflock.sweeps.block import compute_block
from tokenflock.sweeps.plan import parse_sweep

TEXT = """
title = "small"
[model]
name = "SA"
beta = 4.0
[tokens]
law = "uniform"
d = 2
n = 6
seed = 0
[solve]
t1 = 2.0
step = 0.1
[save]
every = 0.5
observe = ["order_parameter", { name = "clusters", angle = 0.1 }]
[sweep.axes]
%s
"""


ADAPTIVE = "solve={t1=2.0, rtol=1e-6, atol=1e-8}"


def small_sweep(axes, *settings):
    """A sweep over the given lines of [sweep.axes]."""
    return parse_sweep(TEXT % axes, list(settings))


def cells_of(sweep):
    """Arrays and the failure of every cell, by its index."""
    found = {}
    for number in range(sweep.grid.block_count):
        result = compute_block(sweep.text, number)
        for position, index in enumerate(sweep.grid.block(number).cells()):
            arrays = {name: values[position] for name, values in result.arrays.items()}
            found[index] = arrays, result.failures.get(position)
    return found


def equal_bits(one, other):
    return one.keys() == other.keys() and all(
        np.asarray(one[name]).tobytes() == np.asarray(other[name]).tobytes() for name in one
    )
