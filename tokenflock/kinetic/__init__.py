"""Long causal prompts on the circle: their limit equation, their correlations, and recall by sampling.

Positions s = j/N of N tokens become a continuum; token s sees the earlier ones through the graphon
k(s, s') of the mask (2605.09213).

    graphon            averages over earlier positions on a grid
    layered_density    LayeredDensity(positions, modes): one density per position, a state of `solve`
    correlations       what a late token at time t has to do with an early one at time 0, to order 1/N
    retrieval          the same by sampling prompts, the noise of plain sampling cancelled

Closed forms: `tokenflock.theory.kinetic`. The names of __init__.pyi are loaded on first use.
"""

import lazy_loader

from ..old_names import refusing

_look_up, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = refusing(__name__, _look_up)
