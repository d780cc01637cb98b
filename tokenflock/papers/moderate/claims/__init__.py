"""2509.25040: fast collapse, clusters on the way, slow merging of pairs."""

from . import phases as phases  # isort: skip
from . import pairing as pairing  # isort: skip
from . import merging as merging  # isort: skip
from . import equation as equation  # isort: skip
