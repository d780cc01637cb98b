"""A block that cannot be computed as a whole: its cells one by one, so that only the guilty are lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from .grid import Block
from .layout import ERROR, BlockResult, Layout
from .workers import Crew


def computed(
    crew: Crew, blocks: Iterable[Block], layout: Layout
) -> Iterator[tuple[Block, BlockResult]]:
    """Every block with its result; those that killed their workers, or stood beside one, come last."""
    suspects: list[Block] = []
    for block, answer in crew.stream(blocks):
        if isinstance(answer, BlockResult):
            yield block, answer
        else:
            suspects.append(block)
    # With nothing else under way nobody is blamed for a neighbour.
    for block in suspects:
        answer = crew.attempt(block, None)
        if not isinstance(answer, BlockResult):
            answer = cell_by_cell(crew, block, layout)
        yield block, answer


def cell_by_cell(crew: Crew, block: Block, layout: Layout) -> BlockResult:
    """A block put together from single cells; one that cannot be computed has no numbers."""
    arrays = {
        variable.name: np.full((block.size, *variable.shape), variable.fill, variable.dtype)
        for variable in layout.variables
    }
    failures: dict[int, str] = {}
    seconds = 0.0
    for place in range(block.size):
        answer = crew.attempt(block, (place,))
        if isinstance(answer, BlockResult):
            for name, array in arrays.items():
                array[place] = answer.arrays[name][place]
            failures.update((k, text) for k, text in answer.failures.items() if k == place)
            seconds += answer.seconds
        else:
            arrays["outcome"][place] = ERROR
            failures[place] = _sentence(answer)
    return BlockResult(arrays, failures, seconds)


def _sentence(error: Exception) -> str:
    """What is known of a cell that gave nothing."""
    deaths = getattr(error, "allowed_failures", None)
    if deaths is not None:
        return f"the worker died {deaths + 1} times (out of memory?)"
    reason = str(error).strip().split("\n")[0][:300]
    return f"{type(error).__name__}: {reason}" if reason else type(error).__name__
