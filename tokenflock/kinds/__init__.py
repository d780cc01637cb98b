"""Kinds of attention: how scores s_ij become the weights of the values v_j. One file a kind.

A kind says everything that depends on it: how it sums, its pair energy and clock, its series, its peak,
its field at a Gaussian. What it does not say, the rest of the library refuses with a sentence.
"""

from .base import Carry as Carry
from .base import Convention as Convention
from .base import Fold as Fold
from .base import Kind as Kind
from .base import Weighted as Weighted
from .base import safe_divide as safe_divide
from .hardmax import Hardmax as Hardmax
from .kernel import Interaction as Interaction
from .kernel import Kernel as Kernel
from .kernel import Polynomial as Polynomial
from .kernel import as_function as as_function
from .linear import Linear as Linear
from .sigmoid import Sigmoid as Sigmoid
from .sinkhorn import Sinkhorn as Sinkhorn
from .softmax import L2 as L2
from .softmax import DotProduct as DotProduct
from .softmax import Score as Score
from .softmax import Softmax as Softmax
from .softmax import SquaredDistance as SquaredDistance
from .unnormalised import Unnormalised as Unnormalised
