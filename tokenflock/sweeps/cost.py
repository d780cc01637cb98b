"""How long a cell may take, guessed from its spec alone: the guess decides how a grid is cut, no more.

The guess must not be a measurement: a resumed sweep, or the same sweep on another machine, cuts its
grid alike.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..integrate.save import MOST_SAVES
from ..lab.density import sizes
from ..lab.sizes import heads_of, tokens_of
from ..lab.spec import RunSpec
from ..reduce import Dense

if TYPE_CHECKING:
    from .plan import Sweep

# A block should take about this long: little is lost by a kill, and little time goes into hand-overs.
BLOCK_SECONDS = 2.0
LARGEST_BATCH = 256
# So many blocks keep a progress bar moving and a few workers busy to the end.
FEWEST_BLOCKS = 64
# Seconds per pair of tokens and coordinate on one core, and per evaluation for everything else.
PAIR_SECONDS, CALL_SECONDS = 2e-9, 5e-6
# Seconds per number in the tables of a density.
NUMBER_SECONDS = 2e-8
STAGES = {"adaptive": 13, "stiff": 40, "fixed": 13, "layers": 1}
# Adaptive steps: some per unit of time, and no more than this however long the run (clusters at rest).
STEPS_PER_TIME, MOST_STEPS = 2.0, 1_000.0
# One look at the tokens costs about as much as evaluating the field.
LOOKS_PER_SAVE = 1.0
# Stages of a solver hold copies of the tokens.
TOKEN_COPIES = 20
MOST_GUESSED = 64


def cell_seconds(spec: RunSpec) -> float:
    """A guess, within a factor of ten, of what one cell takes on one core."""
    call = CALL_SECONDS + _field_seconds(spec)
    solve = spec.solve
    if solve.fixed_step is not None:
        steps = min(solve.t1 / solve.fixed_step, solve.max_steps)
    else:
        steps = min(STEPS_PER_TIME * solve.t1, MOST_STEPS)
    looks = LOOKS_PER_SAVE * saves_of(spec) * max(1, len(spec.save.observe or []))
    return call * (STAGES[str(solve.method)] * steps + looks)


def _field_seconds(spec: RunSpec) -> float:
    """One evaluation of the field."""
    if spec.density is not None:
        return NUMBER_SECONDS * sum(sizes(spec.density))
    n, d = tokens_of(spec)
    return PAIR_SECONDS * n * n * (4 + d) * heads_of(spec)


def largest_part(spec: RunSpec) -> str:
    """What takes the memory of a cell, in words."""
    if spec.density is not None:
        return f"the tables of the density on {spec.density.on}"
    return f"the sums over n={tokens_of(spec)[0]} tokens"


def cell_bytes(spec: RunSpec) -> float:
    """Memory of one cell's largest temporary, and of its tokens or its density."""
    if spec.density is not None:
        numbers, tables = sizes(spec.density)
        return 8.0 * (TOKEN_COPIES * numbers + tables)
    n, d = tokens_of(spec)
    tokens = TOKEN_COPIES * 8.0 * n * d
    if spec.solve.reduction != "dense" or not hasattr(spec.model, "beta"):
        return tokens
    return tokens + Dense().peak_bytes(n, heads_of(spec), 1)


def mean_cell_seconds(sweep: Sweep) -> float:
    """The mean of the guesses for some cells spread over the grid."""
    count = min(MOST_GUESSED, sweep.grid.size)
    found = []
    for number in np.linspace(0, sweep.grid.size - 1, count).astype(int):
        index = tuple(int(place) for place in np.unravel_index(number, sweep.grid.shape))
        with contextlib.suppress(InputError):
            found.append(cell_seconds(sweep.cell_spec(index)))
    return sum(found) / max(1, len(found))


def default_batch(spec: RunSpec, cells: int) -> int:
    """Cells per block."""
    fitting = BLOCK_SECONDS / cell_seconds(spec)
    return max(1, min(LARGEST_BATCH, int(fitting), math.ceil(cells / FEWEST_BLOCKS)))


def saves_of(spec: RunSpec) -> int:
    """About how many save times there are, of a cell that is not refused for having too many."""
    save = spec.save
    if save.every is not None:
        return int(min(spec.solve.t1 / save.every, MOST_SAVES)) + 1
    if save.log is not None:
        return save.log.count
    return 2 + len(save.at or [])
