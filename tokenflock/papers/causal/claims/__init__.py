"""2411.04990v2: Clustering in causal attention masking.

convergence  where causal tokens go in the end (section 4), and how long it takes
circle       the pull between two angles, and what causal tokens descend (sections 3 and B)
centres      tokens that hardly move and capture the others (section 5), and their number
"""

from . import convergence as convergence  # isort: skip
from . import circle as circle  # isort: skip
from . import centres as centres  # isort: skip
