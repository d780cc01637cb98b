"""2601.21366v2: attention with a perceptron follows an energy; how its critical points concentrate."""

from . import energy as energy  # isort: skip
from . import concavity as concavity  # isort: skip
from . import atoms as atoms  # isort: skip
