"""Terms of a velocity field, one file each; `base` says what a term may answer for."""

from .attention import Attention as Attention
from .base import Sum as Sum
from .base import Term as Term
from .drift import Drift as Drift
from .perceptron import GELU as GELU
from .perceptron import RELU as RELU
from .perceptron import Perceptron as Perceptron
from .potential import Potential as Potential
