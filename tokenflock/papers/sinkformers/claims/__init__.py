"""2110.11773: Sinkformers, doubly stochastic attention as a Wasserstein gradient flow."""

from . import normalisations as normalisations  # isort: skip
from . import gradient as gradient  # isort: skip
from . import heat as heat  # isort: skip
