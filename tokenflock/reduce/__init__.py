"""How sums over tokens are evaluated: the same numbers at another cost, each with its error bound."""

from .auto import Auto as Auto
from .base import Problem as Problem
from .base import Reduction as Reduction
from .base import Task as Task
from .dense import Dense as Dense
from .kernel import GpuKernel as GpuKernel
from .sharded import Sharded as Sharded
from .spectral import Spectral as Spectral
from .tiled import Tiled as Tiled
