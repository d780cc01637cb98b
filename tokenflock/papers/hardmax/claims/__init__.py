"""2407.01602: hardmax attention, its leaders and their followers."""

from . import layer as layer  # isort: skip
from . import following as following  # isort: skip
from . import sentiment as sentiment  # isort: skip
