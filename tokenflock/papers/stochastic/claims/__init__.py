"""2601.21942: random value matrices, two tokens, hybrid noise, and formations of many tokens."""

from . import two_tokens as two_tokens  # isort: skip
from . import hybrid as hybrid  # isort: skip
from . import formations as formations  # isort: skip
