"""The arrays of a trace: their axes, what they mean, their units.

A name that is also one of the engine's observables is the same quantity, of tokens with equal masses
1/n: units and long_name are the engine's, and tests/tracing/test_one_definition.py computes both on the
same tokens. A quantity of another definition has another name: the engine's `speed` is the largest
|dx_i/dt| of a drift, `turning_angle` the mean angle between two states.
"""

from __future__ import annotations

from typing import Any

from ..observables import OBSERVABLES, Observable, make
from .state_statistics import CLUSTER_ANGLE

# Axes beyond "time" (per state) and "layer" (per step).
STATE_AXES: dict[str, tuple[str, ...]] = {
    "mean_cosine": (),
    "mean_cosine_rest": (),
    "sphere_cosine": (),
    "cosine_histogram": ("cosine",),
    "cosine_quantiles": ("quantile",),
    "clusters": (),
    "clusters_at": ("angle",),
    "effective_rank": (),
    "anisotropy": (),
    "order_parameter": (),
    "scaled_energy": (),
    "norm": (),
    "norm_median": (),
    "norm_max": (),
    "outlier_share": (),
    "outlier_dimension": (),
    "norms": ("token",),
    "perturbation_growth": (),
    "equiangular_cosine": (),
}
LAYER_AXES: dict[str, tuple[str, ...]] = {
    "attention_entropy": ("head",),
    "attention_entropy_share": ("head",),
    "attention_rank": ("head",),
    "sink_share": ("head",),
    "sink_token": ("head",),
    "first_mass": ("head",),
    "beta_logits": ("head",),
    "column_mass": ("attended",),
    "turning_angle": (),
    "turning_angle_predicted": (),
    "turning_angle_fixed_radius": (),
    "turning_angle_attention": (),
    "turning_angle_attention_predicted": (),
    "cosine_rate": (),
    "cosine_rate_predicted": (),
}
WEIGHT_AXES: dict[str, tuple[str, ...]] = {
    "beta_weights": ("head",),
    "ov_real": ("head", "eigen"),
    "ov_imag": ("head", "eigen"),
    "ov_trace": ("head",),
    "ov_positive_share": ("head",),
    "qk_eigen": ("head", "eigen2"),
    "qk_positive_share": ("head",),
}
PER_TOKEN = {"norms", "column_mass"}
LONG_NAMES = {
    "mean_cosine": "Mean cosine of different tokens, hidden states as they are",
    "mean_cosine_rest": "Mean cosine of different tokens without the first, hidden states as they are",
    "sphere_cosine": "Mean cosine of different tokens on the sphere of the theory",
    "cosine_histogram": "Fraction of pairs of sphere tokens by cosine, per bin",
    "cosine_quantiles": "Quantiles of the cosine of pairs of sphere tokens",
    "clusters_at": "Connected components of sphere tokens closer than each angle",
    "anisotropy": "Largest eigenvalue of the tokens' second moment over its trace",
    "norm": "Mean norm of the hidden states",
    "norm_median": "Median norm of the hidden states",
    "norm_max": "Largest norm of a hidden state",
    "norms": "Norm of each hidden state",
    "outlier_share": "Largest share of the squared norm held by one coordinate",
    "outlier_dimension": "The coordinate that holds the largest share of the squared norm",
    "perturbation_growth": "Growth of a small perturbation of the start",
    "equiangular_cosine": "Cosine of equiangular tokens under the theory of this normalisation",
    "equiangular_distance": "Mean distance of the sphere cosine from the equiangular cosine, over the layers",
    "attention_entropy_share": "Mean entropy of an attention row over the logarithm of the visible tokens",
    "sink_share": "Largest mean attention received by one token",
    "sink_token": "The token that receives the largest mean attention",
    "first_mass": "Mean attention received by the first token",
    "beta_logits": "Inverse temperature that gives the measured spread of the scores",
    "column_mass": "Mean attention received by each token, over heads",
    "turning_angle": "Mean angle a sphere token turns in the layer",
    "turning_angle_predicted": "Mean |P(a + m)|/|x| of the layer's updates: the flow of 2510.22026",
    "turning_angle_fixed_radius": "Mean |P(a + m)|/sqrt(d): the same updates under the clock of post-LN",
    "turning_angle_attention": "Mean angle the attention's update turns a hidden state",
    "turning_angle_attention_predicted": "Mean |P a|/|x| of the attention's update",
    "cosine_rate": "Change of the sphere cosine in the layer",
    "cosine_rate_predicted": "Rate of equiangular tokens with Q = K = V = I at the reference beta",
    "beta_weights": "Inverse temperature of the head's Q and K",
    "ov_real": "Real parts of the eigenvalues of the head's value map",
    "ov_imag": "Imaginary parts of the eigenvalues of the head's value map",
    "ov_trace": "Trace of the head's value map",
    "ov_positive_share": "Share of positive real parts in the spectrum of the value map",
    "qk_eigen": "Eigenvalues of the symmetric part of the head's score matrix",
    "qk_positive_share": "Share of positive eigenvalues of the symmetric part of the score matrix",
}
# What the engine's observables are asked with, where they take parameters.
ENGINE_PARAMETERS: dict[str, dict[str, Any]] = {"clusters": {"angle": CLUSTER_ANGLE}}
UNITS = {name: "rad/layer" for name in LAYER_AXES if name.startswith("turning_angle")}


def axes_of(name: str) -> tuple[str, ...]:
    """All axes of an array of one text: "time" (states) or "layer" (steps, weights) in front."""
    if name in STATE_AXES:
        return ("time", *STATE_AXES[name])
    return ("layer", *(LAYER_AXES | WEIGHT_AXES)[name])


def engine_observable(name: str) -> Observable | None:
    """The engine's observable of that name, as a trace reads it; None for a trace's own quantity."""
    return make(name, **ENGINE_PARAMETERS.get(name, {})) if name in OBSERVABLES else None


def details_of(name: str, reference_beta: float) -> dict[str, Any]:
    """What is written beside an array: units, long_name, parameters; the engine's where it has them."""
    known = engine_observable(name)
    if known is None:
        return {"units": UNITS.get(name, "1"), "long_name": LONG_NAMES.get(name, name)}
    return known.attributes | ({"beta": reference_beta} if name == "scaled_energy" else {})
