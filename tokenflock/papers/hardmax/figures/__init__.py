"""2407.01602: what leaders are, and the classifier that can be read."""

from . import leaders as leaders  # isort: skip
from . import sentiment as sentiment  # isort: skip
