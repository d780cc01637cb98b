"""How exact the construction is: largest errors over numbers of sequences, dimensions and seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .sequences import interpolate_sequences

if TYPE_CHECKING:
    import xarray as xr

SHORTEST, LONGEST = 2, 60


def random_sequences(
    count: int, d: int, seed: int, lengths: tuple[int, int] = (SHORTEST, LONGEST)
) -> tuple[list[np.ndarray], np.ndarray]:
    """Gaussian sequences of random lengths, and a Gaussian target for each."""
    rng = np.random.default_rng([seed, count, d])
    sizes = rng.integers(lengths[0], lengths[1], size=count, endpoint=True)
    return [rng.normal(size=(size, d)) for size in sizes], rng.normal(size=(count, d))


def error_table(
    counts: Sequence[int],
    dimensions: Sequence[int],
    seeds: Sequence[int],
    lengths: tuple[int, int] = (SHORTEST, LONGEST),
    report: Callable[[float], None] = lambda done: None,
) -> xr.Dataset:
    """Over (N, d, seed): the largest error of a forward pass, the conditioning, the number of blocks."""
    import xarray as xr

    shape = (len(counts), len(dimensions), len(seeds))
    names = ("error", "smallest_gap", "amplification", "attention_gap", "blocks")
    found = {name: np.empty(shape) for name in names}
    for place, index in enumerate(np.ndindex(shape)):
        count, d, seed = counts[index[0]], dimensions[index[1]], seeds[index[2]]
        sequences, targets = random_sequences(count, d, seed, lengths)
        network = interpolate_sequences(sequences, targets, seed)
        found["error"][index] = network.error(sequences, targets)
        found["smallest_gap"][index] = network.conditioning.smallest_gap
        found["amplification"][index] = network.conditioning.amplification
        found["attention_gap"][index] = network.conditioning.attention_gap
        found["blocks"][index] = len(network.blocks)
        report((place + 1) / np.prod(shape))
    axes = ("N", "d", "seed")
    coords = {"N": list(counts), "d": list(dimensions), "seed": list(seeds)}
    return xr.Dataset({name: (axes, values) for name, values in found.items()}, coords)
