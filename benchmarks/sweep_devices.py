"""By how much the numbers of a sweep differ between devices, machines and batch sizes.

    python benchmarks/sweep_devices.py compute HERE.npz [--batch 64]     # on each device
    python benchmarks/sweep_devices.py compare A.npz B.npz ... > benchmarks/results/sweep-devices.json

On CPUs the cells of a block run one after the other, so the batch changes nothing; on a GPU they run
side by side.
"""

import argparse
import json
from pathlib import Path

import numpy as np

SPEC = """
title = "devices"
[model]
name = "SA"
[tokens]
law = "uniform"
d = 2
n = 32
[solve]
{solve}
[save]
every = 1.0
observe = ["order_parameter", "energy", {{ name = "clusters", angle = 0.1 }}]
[sweep]
batch = {batch}
[sweep.axes]
beta = [0.5, 1.0, 2.0, 4.0, 6.0, 9.0]
seed = {{ seeds = 64 }}
"""
SOLVES = {
    "flow, rtol 1e-6": "t1 = 20.0\nrtol = 1e-6\natol = 1e-8",
    "flow, rtol 1e-10": "t1 = 20.0\nrtol = 1e-10\natol = 1e-12",
    "layers of 0.1": "t1 = 20.0\nstep = 0.1",
}


def compute(path: Path, batch: int):
    """Every cell of the small sweeps, as one array per observable."""
    import jax

    from tokenflock.sweeps.block import compute_block
    from tokenflock.sweeps.plan import parse_sweep

    arrays = {}
    for name, solve in SOLVES.items():
        sweep = parse_sweep(SPEC.format(solve=solve, batch=batch))
        for number in range(sweep.grid.block_count):
            block, result = sweep.grid.block(number), compute_block(sweep.text, number)
            assert not result.failures, result.failures
            for array, values in result.arrays.items():
                whole = arrays.setdefault(
                    f"{name}/{array}", np.full((*sweep.grid.shape, *values.shape[1:]), np.nan)
                )
                whole[block.region] = values.reshape(*block.shape, *values.shape[1:])
    device = jax.devices()[0]
    name = cpu_name() if device.platform == "cpu" else device.device_kind
    where = f"{name}, jax {jax.__version__}, batch {batch}"
    np.savez_compressed(path, where=where, **arrays)


def cpu_name() -> str:
    """The processor as the system names it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))


def compare(paths: list[Path]):
    """The largest difference of each observable from the first file's, and in how many cells."""
    first, *others = [np.load(path) for path in paths]
    rows = []
    for other in others:
        for name in SOLVES:
            found = {}
            for array in ("order_parameter", "energy", "clusters"):
                a, b = first[f"{name}/{array}"], other[f"{name}/{array}"]
                gap = np.abs(a - b) / (np.abs(a) if array == "energy" else 1.0)
                cells = np.any(gap > 0, axis=tuple(range(2, gap.ndim)))
                found[array] = {
                    "largest": float(gap.max()),
                    "median over cells": float(np.median(gap.max(axis=-1))),
                    "cells that differ": f"{int(cells.sum())} of {cells.size}",
                }
            rows.append(
                {"sweep": name, "a": str(first["where"]), "b": str(other["where"]), **found}
            )
    print(json.dumps(rows, indent=1))


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["compute", "compare"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    if given.what == "compute":
        compute(given.files[0], given.batch)
    else:
        compare(given.files)


if __name__ == "__main__":
    main()
