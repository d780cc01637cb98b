"""Stationary states of noisy attention: d_t mu = T Laplacian mu - div(mu v[mu]) at rest.

equation    the fixed-point equation rho = e^{Phi[rho]/T}/Z, and for which models it holds
states      one stationary state from a start: Newton, or damped iteration where Newton fails
stability   the spectrum of the linearised equation
branches    all temperatures at once: branches that leave the uniform state, folds, first-order points
hysteresis  the equation itself, swept slowly down and up in temperature
"""

from .branches import Branch as Branch
from .branches import bifurcation_temperatures as bifurcation_temperatures
from .branches import branch as branch
from .branches import branches as branches
from .hysteresis import sweep_temperature as sweep_temperature
from .stability import Stability as Stability
from .stability import stability as stability
from .states import stationary_state as stationary_state
