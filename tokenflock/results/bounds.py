"""How much a result may say that it holds: what tells of more was not written by this library."""

from __future__ import annotations

# Of a sweep.
MOST_CELLS, MOST_AXES = 1_000_000, 16
