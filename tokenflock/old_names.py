"""Names that release 0.1 had, at the root and in modules below it, and where they are now."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

# At the root.
MOVED = {
    "ALiBi": "masks.ALiBi",
    "arcs": "starts.arcs",
    "attention_matrix": "observables.attention_matrix",
    "attention_rank": "observables.attention_rank",
    "Auto": "reduce.Auto",
    "box": "starts.box",
    "cap": "starts.cap",
    "Causal": "masks.Causal",
    "cluster_centres": "observables.cluster_centres",
    "cluster_labels": "observables.cluster_labels",
    "cluster_masses": "observables.cluster_masses",
    "cluster_sizes": "observables.cluster_sizes",
    "CommonNoise": "noise.CommonNoise",
    "convex_hull_volume": "observables.convex_hull_volume",
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
    "Lab": "frame.Original",
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
    "pair_fraction": "observables.pair_fraction",
    "peaks": "observables.peaks",
    "open_sweep": "open",
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
    "Sigmoid": "kinds.Sigmoid",
    "Sinkhorn": "kinds.Sinkhorn",
    "sinkhorn_divergence": "observables.sinkhorn_divergence",
    "Snapshot": "observables.Snapshot",
    "Softmax": "kinds.Softmax",
    "SolveError": "errors.SolveError",
    "SqrtScaling": "normalisation.SqrtScaling",
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


def _moved_to(module: str, names: str) -> dict[str, str]:
    """Names that moved and are called as before."""
    return {name: f"{module}.{name}" for name in names.split()}


# In modules below the root; a module of them ends with `__getattr__ = refusing(__name__)`.
MOVED_BELOW = {
    "dynamics": {"Lab": "frame.Original", "Rescaled": "frame.Rescaled"},
    "kinetic": {
        "Layered": "kinetic.LayeredDensity",
        "layered": "kinetic.from_law_by_position",
    },
    "meanfield": {
        "normal": "meanfield.gaussian_density",
        "shape": "meanfield.gaussian_statistics",
    },
    "measure": {
        **_moved_to("starts", "arcs box cap equiangular gaussian hemisphere mixture perturbed"),
        **_moved_to("starts", "uniform with_positions"),
        "LAWS": "starts.STARTS",
    },
    "weights": _moved_to(
        "random_weights", "Ginibre GOE Law PositiveSemidefinite Product RandomWeights Wigner"
    ),
}


def refusing(module: str, look_up: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a module, which answers an old name with the new one.

    Other names are looked up by `look_up`; without it the module has no others.
    """
    below = module.removeprefix("tokenflock").removeprefix(".")
    moved = MOVED_BELOW[below] if below else MOVED

    def look_up_new(name: str) -> Any:
        if name in moved:
            sentence = f"{module}.{name} is now tokenflock.{moved[name]}"
            raise (ImportError if _is_import(sys._getframe(1)) else AttributeError)(sentence)
        if look_up is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return look_up(name)

    return look_up_new


def _is_import(caller: FrameType) -> bool:
    """Whether this is `from module import name`, which replaces an AttributeError by words of its own."""
    return caller.f_code.co_code[caller.f_lasti] == dis.opmap["IMPORT_FROM"]
