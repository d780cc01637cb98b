"""2305.05465v6: attention on R^d without layer norm, theorem by theorem."""

from . import line as line  # isort: skip
from . import polytopes as polytopes  # isort: skip
from . import hyperplanes as hyperplanes  # isort: skip
from . import repulsion as repulsion  # isort: skip
from . import frame as frame  # isort: skip
