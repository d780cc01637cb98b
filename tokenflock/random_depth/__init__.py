"""Transformers of random weights, layer after layer, and what they become (2604.01978).

laws       the law of a head (V, A), and exact draws of what one layer needs
chains     thousands of random networks in one compiled call
limits     ballistic, modified and diffusive limits, as models for `flock.solve`
simplex    the two moments f, g that move tokens with equal overlaps
slow       the slow limit at zero temperature: k by Monte Carlo, paths by diffrax
collapse   tables of the depth to collapse
"""

from .chains import diffusive_time as diffusive_time
from .chains import gaps as gaps
from .chains import layers_of as layers_of
from .chains import mean_overlap as mean_overlap
from .chains import overlaps as overlaps
from .chains import random_chains as random_chains
from .collapse import depth_to_collapse as depth_to_collapse
from .laws import AmongTokens as AmongTokens
from .laws import FixedScores as FixedScores
from .laws import Flat as Flat
from .laws import FullSupport as FullSupport
from .laws import HeadLaw as HeadLaw
from .laws import MatrixScores as MatrixScores
from .laws import Normal as Normal
from .laws import ProductScores as ProductScores
from .laws import Signs as Signs
from .laws import Values as Values
from .limit_models import ballistic as ballistic
from .limit_models import diffusive as diffusive
from .limit_models import modified as modified
from .limit_models import panel_of as panel_of
from .simplex import simplex_moments as simplex_moments
from .slow import measured_direction_overlap as measured_direction_overlap
from .slow import measured_slow_coefficient as measured_slow_coefficient
from .slow import slow_paths as slow_paths
