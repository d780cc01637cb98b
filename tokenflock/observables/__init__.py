"""Observables: what is read off a trajectory.

Each is an `Observable`: a pure function of one snapshot, with units, written for one set of tokens
and vectorised over time and samples by the caller.
"""

from .attention import attention_entropy as attention_entropy
from .attention import attention_matrix as attention_matrix
from .attention import attention_rank as attention_rank
from .base import Observable as Observable
from .base import Snapshot as Snapshot
from .centres import renyi_centre_mask as renyi_centre_mask
from .centres import renyi_centres as renyi_centres
from .centres import strong_centre_mask as strong_centre_mask
from .centres import strong_centres as strong_centres
from .circle import fourier_moments as fourier_moments
from .components import cluster_centres as cluster_centres
from .components import cluster_labels as cluster_labels
from .components import cluster_masses as cluster_masses
from .components import cluster_sizes as cluster_sizes
from .components import clusters as clusters
from .densities import entropy as entropy
from .densities import free_energy as free_energy
from .densities import free_energy_rate as free_energy_rate
from .densities import largest_density as largest_density
from .densities import of_density as of_density
from .densities import peaks as peaks
from .energies import energy as energy
from .energies import energy_rate as energy_rate
from .energies import scaled_energy as scaled_energy
from .events import MergeEvent as MergeEvent
from .events import merge_events as merge_events
from .geometry import convex_hull_volume as convex_hull_volume
from .geometry import diameter as diameter
from .geometry import effective_rank as effective_rank
from .geometry import mean_radius as mean_radius
from .geometry import min_alignment as min_alignment
from .geometry import order_parameter as order_parameter
from .geometry import speed as speed
from .hardmax import leader_mask as leader_mask
from .hardmax import leaders as leaders
from .identities import dissipation as dissipation
from .pairs import gram_histogram as gram_histogram
from .pairs import pair_fraction as pair_fraction
from .registry import make as make
from .registry import register as register
from .table import OBSERVABLES as OBSERVABLES
from .transport import sinkhorn_divergence as sinkhorn_divergence
from .transport import w2 as w2
