"""2510.22026v2: Normalization in attention dynamics, section by section."""

from . import synchronisation as synchronisation  # isort: skip
from . import start as start  # isort: skip
from . import cone as cone  # isort: skip
from . import equiangular as equiangular  # isort: skip
from . import checkpoint as checkpoint  # isort: skip
