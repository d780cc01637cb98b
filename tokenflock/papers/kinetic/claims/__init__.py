"""2605.09213: long causal prompts, what their last token remembers, and what it loses in the middle."""

from . import profile as profile  # isort: skip
from . import limit as limit  # isort: skip
from . import recall as recall  # isort: skip
