"""The energy landscape of attention with a perceptron (2601.21366): its critical points and branches.

    model = USA(5.0, "metastability", plus=Perceptron.gradient(omega, a, GELU))
    point = find_critical(model, start, "descent")
    print(point, certify(point))
    branch = continue_branch(point, "beta", to=20.0)

structure    the energy of a model, its field at atoms, its second variation
points       CriticalPoint: atoms with masses
finding      find_critical, critical_near, explore: flow, merge, Newton
certifying   certify: residual, eigenvalues, verdict (SOPD or not)
branches     continue_branch, switch_branch: branches in beta and in the perceptron's scale
events       folds, bifurcations, touches and kinks on a branch: where they are, and which
counting     atoms and heaviest masses of a state against the bounds of the paper
"""

from .branches import branch_point as branch_point
from .branches import continue_branch as continue_branch
from .branches import switch_branch as switch_branch
from .certifying import Certificate as Certificate
from .certifying import certify as certify
from .counting import Crowding as Crowding
from .counting import crowding as crowding
from .finding import critical_near as critical_near
from .finding import explore as explore
from .finding import find_critical as find_critical
from .points import CriticalPoint as CriticalPoint
from .structure import Landscape as Landscape
from .structure import reversed_model as reversed_model
