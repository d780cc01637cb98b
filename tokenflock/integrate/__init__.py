"""Integration: diffrax steps, a retraction keeps tokens on their space, observables are read on the way."""

from ..methods import Layers as Layers
from ..methods import Stiff as Stiff
from ..states import Merge as Merge
from .api import solve as solve
from .clocks import LogTime as LogTime
from .clocks import Physical as Physical
from .reverse import Checkpointed as Checkpointed
from .reverse import Direct as Direct
from .save import Save as Save
from .stops import Stop as Stop
from .stops import at_clusters as at_clusters
from .stops import at_diameter as at_diameter
from .stops import when as when
