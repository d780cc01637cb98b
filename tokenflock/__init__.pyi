# The submodules, each a concept, in one statement.
# isort: off
from . import (
    applications as applications,
    construct as construct,
    errors as errors,
    frame as frame,
    integrate as integrate,
    kinds as kinds,
    kinetic as kinetic,
    ledger as ledger,
    masks as masks,
    meanfield as meanfield,
    noise as noise,
    normalisation as normalisation,
    observables as observables,
    papers as papers,
    random_depth as random_depth,
    random_weights as random_weights,
    reduce as reduce,
    schedule as schedule,
    starts as starts,
    states as states,
    terms as terms,
    testing as testing,
    theory as theory,
    tracing as tracing,
)

# isort: on
from .density import Density as Density
from .dynamics import Dynamics as Dynamics
from .ensembles import ensemble as ensemble
from .integrate import Layers as Layers
from .integrate import LogTime as LogTime
from .integrate import Merge as Merge
from .integrate import Save as Save
from .integrate import Stiff as Stiff
from .integrate import at_clusters as at_clusters
from .integrate import at_diameter as at_diameter
from .integrate import solve as solve
from .integrate import when as when
from .ledger import check as check
from .meanfield import laws as laws
from .measure import Measure as Measure
from .measure import from_angles as from_angles
from .measure import from_array as from_array
from .models import L2SA as L2SA
from .models import SA as SA
from .models import USA as USA
from .models import CausalSA as CausalSA
from .models import HardmaxFlow as HardmaxFlow
from .models import KernelFlow as KernelFlow
from .models import KineticFlow as KineticFlow
from .models import LinearSA as LinearSA
from .models import NoisyUSA as NoisyUSA
from .models import RescaledSA as RescaledSA
from .models import SigmoidSA as SigmoidSA
from .models import SinkhornSA as SinkhornSA
from .models import StochasticSA as StochasticSA
from .noise import Brownian as Brownian
from .observables import attention_entropy as attention_entropy
from .observables import clusters as clusters
from .observables import diameter as diameter
from .observables import effective_rank as effective_rank
from .observables import energy as energy
from .observables import entropy as entropy
from .observables import free_energy as free_energy
from .observables import order_parameter as order_parameter
from .observables import speed as speed
from .records import open as open
from .records import runs as runs
from .reduce import Dense as Dense
from .reduce import GpuKernel as GpuKernel
from .reduce import Sharded as Sharded
from .reduce import Spectral as Spectral
from .reduce import Tiled as Tiled
from .schedule import Piecewise as Piecewise
from .space import Euclidean as Euclidean
from .space import Sphere as Sphere
from .starts import equiangular as equiangular
from .starts import gaussian as gaussian
from .starts import perturbed as perturbed
from .starts import uniform as uniform
from .sweeps.api import sweep as sweep
from .terms import Attention as Attention
from .terms import Drift as Drift
from .terms import Potential as Potential
from .terms.perceptron import Perceptron as Perceptron
from .tracing import trace as trace
from .trajectory import Trajectory as Trajectory
from .weights import Weights as Weights

__version__: str
