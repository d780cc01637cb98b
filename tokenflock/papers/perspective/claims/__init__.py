"""2312.10794v4: A mathematical perspective on Transformers, section by section."""

from . import structure as structure  # isort: skip
from . import symmetry as symmetry  # isort: skip
from . import limits as limits  # isort: skip
from . import clustering as clustering  # isort: skip
from . import cones as cones  # isort: skip
from . import orthogonal as orthogonal  # isort: skip
from . import highdimension as highdimension  # isort: skip
