"""2410.23228: clusters that grow out of the uniform measure, from the first mode to the last merge."""

from . import rates as rates  # isort: skip
from . import equation as equation  # isort: skip
from . import large_beta as large_beta  # isort: skip
from . import clusters as clusters  # isort: skip
