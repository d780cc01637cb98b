"""Names that release 0.1 had at the root, and where they are now."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

MOVED = {
    "ALiBi": "masks.ALiBi",
    "arcs": "starts.arcs",
    "attention_matrix": "observables.attention_matrix",
    "attention_rank": "observables.attention_rank",
    "Auto": "reduce.Auto",
    "box": "starts.box",
    "cap": "starts.cap",
    "Causal": "masks.Causal",
    "Checkpointed": "integrate.Checkpointed",
    "cluster_centres": "observables.cluster_centres",
    "cluster_labels": "observables.cluster_labels",
    "cluster_masses": "observables.cluster_masses",
    "cluster_sizes": "observables.cluster_sizes",
    "CommonNoise": "noise.CommonNoise",
    "convex_hull_volume": "observables.convex_hull_volume",
    "Direct": "integrate.Direct",
    "dissipation": "observables.dissipation",
    "energy_rate": "observables.energy_rate",
    "Fourier": "meanfield.Fourier",
    "fourier_moments": "observables.fourier_moments",
    "free_energy_rate": "observables.free_energy_rate",
    "Full": "masks.Full",
    "GELU": "terms.GELU",
    "Ginibre": "random_weights.Ginibre",
    "GOE": "random_weights.GOE",
    "gram_histogram": "observables.gram_histogram",
    "Hardmax": "kinds.Hardmax",
    "Harmonics": "meanfield.Harmonics",
    "HeadLaw": "random_depth.HeadLaw",
    "hemisphere": "starts.hemisphere",
    "InputError": "errors.InputError",
    "interpolate_sequences": "construct.interpolate_sequences",
    "Interventions": "tracing.Interventions",
    "Kernel": "kinds.Kernel",
    "Kind": "kinds.Kind",
    "Kinetic": "KineticFlow",
    "L2": "kinds.L2",
    "largest_density": "observables.largest_density",
    "Layered": "kinetic.LayeredDensity",
    "leader_mask": "observables.leader_mask",
    "leaders": "observables.leaders",
    "Linear": "kinds.Linear",
    "Mask": "masks.Mask",
    "mean_radius": "observables.mean_radius",
    "merge_events": "observables.merge_events",
    "min_alignment": "observables.min_alignment",
    "MixLN": "normalisation.MixLN",
    "mixture": "starts.mixture",
    "Moments": "meanfield.Moments",
    "NGPT": "normalisation.NGPT",
    "normal": "meanfield.gaussian_density",
    "Observable": "observables.Observable",
    "Original": "frame.Original",
    "pair_fraction": "observables.pair_fraction",
    "peaks": "observables.peaks",
    "PeriLN": "normalisation.PeriLN",
    "Physical": "integrate.Physical",
    "PositiveSemidefinite": "random_weights.PositiveSemidefinite",
    "PostLN": "normalisation.PostLN",
    "PreLN": "normalisation.PreLN",
    "Product": "random_weights.Product",
    "Quantiles": "meanfield.Quantiles",
    "random_chains": "random_depth.random_chains",
    "RandomWeights": "random_weights.RandomWeights",
    "RELU": "terms.RELU",
    "renyi_centre_mask": "observables.renyi_centre_mask",
    "renyi_centres": "observables.renyi_centres",
    "Rescaled": "frame.Rescaled",
    "retrieval_response": "tracing.retrieval_response",
    "scaled_energy": "observables.scaled_energy",
    "Schedule": "schedule.Schedule",
    "Sigmoid": "kinds.Sigmoid",
    "Sinkhorn": "kinds.Sinkhorn",
    "sinkhorn_divergence": "observables.sinkhorn_divergence",
    "Snapshot": "observables.Snapshot",
    "Softmax": "kinds.Softmax",
    "SolveError": "errors.SolveError",
    "SqrtScaling": "normalisation.SqrtScaling",
    "State": "states.State",
    "Stop": "integrate.Stop",
    "StoreError": "errors.StoreError",
    "strong_centre_mask": "observables.strong_centre_mask",
    "strong_centres": "observables.strong_centres",
    "Term": "terms.Term",
    "TokenflockError": "errors.TokenflockError",
    "training": "applications.sentiment",
    "Unnormalised": "kinds.Unnormalised",
    "w2": "observables.w2",
    "Weighted": "kinds.Weighted",
    "Wigner": "random_weights.Wigner",
    "with_positions": "starts.with_positions",
    "Zonal": "meanfield.Zonal",
}


def refusing(look_up: Callable[[str], Any]) -> Callable[[str], Any]:
    """The `__getattr__` of the package, which answers an old name with the new one."""

    def look_up_new(name: str) -> Any:
        if name in MOVED:
            _refuse(name)
        return look_up(name)

    return look_up_new


def _refuse(name: str) -> NoReturn:
    sentence = f"tokenflock.{name} is now tokenflock.{MOVED[name]}"
    # `from tokenflock import name` replaces an AttributeError by a sentence of its own.
    if sys._getframe(2).f_code.co_name == "_handle_fromlist":
        raise ImportError(sentence)
    raise AttributeError(sentence)
