"""2305.05465v6: The emergence of clusters in self-attention dynamics."""

from . import polytopes as polytopes  # isort: skip
from . import hyperplanes as hyperplanes  # isort: skip
from . import attention as attention  # isort: skip
from . import high_dimension as high_dimension  # isort: skip
