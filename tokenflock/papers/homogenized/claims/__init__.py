"""2604.01978: random layers, their limits, and how tokens collapse under noise they share."""

from . import slow as slow  # isort: skip
from . import overlaps as overlaps  # isort: skip
from . import depth as depth  # isort: skip
from . import small_steps as small_steps  # isort: skip
