"""2512.01868: The mean-field dynamics of transformers, section by section."""

from . import clusters as clusters  # isort: skip
from . import context as context  # isort: skip
from . import noise as noise  # isort: skip
from . import bifurcation as bifurcation  # isort: skip
