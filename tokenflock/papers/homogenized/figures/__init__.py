"""2604.01978: overlaps in random layers, their limits, and the depth to collapse."""

from . import overlaps as overlaps  # isort: skip
from . import collapse_depth as collapse_depth  # isort: skip
