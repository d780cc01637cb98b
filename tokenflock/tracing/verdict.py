"""The verdict on a trace, and its summary as strict JSON.

Collapse, metastable clusters or spread are read off the last layer, by two numbers with fixed
thresholds. The theory's collapse is a limit of infinite depth; a finite network only gets near it, so
the verdict always comes with its numbers and with whether the count of clusters still changes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from ..results.strict_json import plain
from ..trajectory import Trajectory
from .narrative import plain_words
from .spectra import CLEAR_SHARE
from .trace_values import band, by_text, depth, facts, labels, lengths, mean, texts
from .wording import changes, count, number, percent

# Mean cosine of sphere tokens from which they count as one.
COLLAPSE_COSINE = 0.9
# Clusters left, of the most there were on the way, up to which tokens have merged group by group.
MERGED_SHARE = 0.8
# A mean cosine from which tokens that stay apart are said to share a direction.
COMMON_COSINE = 0.5

Word = Literal["collapse", "metastable clusters", "spread", "undecided"]
LAYER_SERIES = (
    "turning_angle",
    "turning_angle_predicted",
    "turning_angle_attention",
    "turning_angle_attention_predicted",
    "cosine_rate",
    "cosine_rate_predicted",
)
STATE_SERIES = (
    "mean_cosine",
    "mean_cosine_rest",
    "sphere_cosine",
    "equiangular_cosine",
    "clusters",
    "effective_rank",
    "anisotropy",
    "order_parameter",
    "scaled_energy",
    "norm",
    "norm_median",
    "norm_max",
    "outlier_share",
    "outlier_dimension",
    "perturbation_growth",
)
HEAD_SERIES = (
    "attention_entropy",
    "attention_entropy_share",
    "attention_rank",
    "sink_share",
    "sink_token",
    "first_mass",
    "beta_logits",
    "beta_weights",
    "ov_positive_share",
    "ov_trace",
    "qk_positive_share",
)


@dataclass(frozen=True)
class Verdict:
    """One word, the criterion it meets with its numbers, and what it must be read with."""

    word: Word
    criterion: str
    numbers: dict[str, Any]
    caveats: tuple[str, ...] = ()


def verdict(run: Trajectory) -> Verdict:
    """Collapse, metastable clusters, or spread, at the last layer.

    collapse -- mean cosine of different sphere tokens >= 0.9;
    metastable clusters -- not collapsed, and clusters within 0.1415 rad <= 0.8 of the most there
        were at any layer: equal words that start as one point and come apart are not a merger;
    spread -- neither. undecided -- no text has two tokens.
    Several texts: means over texts, with the count of texts by word beside them.
    """
    cosines, shares = _ends(run)
    if not np.isfinite(cosines).any():
        return Verdict("undecided", "no text has two tokens, so there is no pair", {}, ())
    cosine, share = float(np.nanmean(cosines)), float(np.nanmean(shares))
    word = _word(cosine, share)
    numbers = _numbers(run, cosine, share)
    if texts(run) > 1:
        each = [_word(*pair) for pair in zip(cosines, shares, strict=True) if pair[0] == pair[0]]
        numbers["texts"] = {name: each.count(name) for name in sorted(set(each))}
    return Verdict(word, _criterion(word, numbers), numbers, tuple(_caveats(run)))


def _ends(run: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Of each text: sphere cosine at the end, clusters at the end over the most there were."""
    counts = np.asarray(by_text(run, "clusters"), dtype=float)
    return by_text(run, "sphere_cosine")[:, -1], counts[:, -1] / counts.max(axis=1)


def _word(cosine: float, share: float) -> Word:
    if cosine >= COLLAPSE_COSINE:
        return "collapse"
    return "metastable clusters" if share <= MERGED_SHARE else "spread"


def _numbers(run: Trajectory, cosine: float, share: float) -> dict[str, Any]:
    counts = mean(run, "clusters")
    late = depth(run) - max(1, depth(run) // 4)
    return {
        "sphere_cosine": cosine,
        "clusters": float(counts[-1]),
        "clusters_most": float(counts.max()),
        "clusters_left": share,
        "clusters_before_last_quarter": float(counts[late]),
        "last_quarter_from_layer": late,
        "still_changing": bool(counts[late] != counts[-1]),
        "collapsed_from_layer": _since(mean(run, "sphere_cosine") >= COLLAPSE_COSINE),
        "tokens": float(lengths(run).mean()),
        "cluster_angle": facts(run)["cluster_angle"],
        "collapse_cosine": COLLAPSE_COSINE,
        "merged_share": MERGED_SHARE,
    }


def _since(holds: np.ndarray) -> int | None:
    """First layer from which on a condition holds to the end."""
    if not holds[-1]:
        return None
    return int(len(holds) - np.argmin(holds[::-1])) if not holds.all() else 0


def _criterion(word: Word, numbers: dict[str, Any]) -> str:
    cosine, angle = numbers["sphere_cosine"], numbers["cluster_angle"]
    counted = (
        f"{count(numbers['clusters'], 'cluster')} within {angle:g} rad of "
        f"{number(numbers['clusters_most'])} left ({percent(numbers['clusters_left'])})"
    )
    moving = (
        f"the count still changes in the last quarter of the depth "
        f"({number(numbers['clusters_before_last_quarter'])} to {number(numbers['clusters'])})"
        if numbers["still_changing"]
        else "the count no longer changes in the last quarter of the depth"
    )
    if word == "collapse":
        said = (
            f"the mean cosine of different sphere tokens is {cosine:.3f} at the end, at least "
            f"{COLLAPSE_COSINE:g}, from layer {numbers['collapsed_from_layer']} on; {counted}"
        )
    elif word == "metastable clusters":
        said = (
            f"the mean cosine stays below {COLLAPSE_COSINE:g} ({cosine:.3f}) while tokens have merged: "
            f"{counted}, at most {percent(MERGED_SHARE)}"
        )
    else:
        common = " though they share a direction" if cosine >= COMMON_COSINE else ""
        said = (
            f"the mean cosine stays below {COLLAPSE_COSINE:g} ({cosine:.3f}) and tokens stay apart"
            f"{common}: {counted}, more than {percent(MERGED_SHARE)}"
        )
    return f"{said}; {moving}"


def _caveats(run: Trajectory) -> list[str]:
    """What the word must be read with: interventions, rounding, a start that was already there."""
    found, said = facts(run), []
    if found["interventions"]:
        said.append(f"this is the model outside its training regime ({changes(run)})")
    layer = (found.get("rounding") or {}).get("decides_from_layer")
    if layer is not None:
        said.append(
            f"rounding decides from layer {layer} on: which tokens meet is luck there, only statistics "
            "mean anything"
        )
    if float(mean(run, "sphere_cosine")[0]) >= COLLAPSE_COSINE:
        said.append("the tokens start as close as that: the layers did not bring them together")
    if run.outcome != "finished":
        said.append(run.advice)
    return said


def summary(run: Trajectory) -> dict[str, Any]:
    """Everything a script wants of a trace, as strict JSON (null where there is no number).

    `layers` holds lists over the states 0..L, or over the steps 1..L for rates and attention (heads
    averaged; the largest head for sink_share); `heads` holds lists of lists (layer, head), the first
    entry of each being layer 1 or head 1; `bands` 5 % and 95 % over texts.
    """
    found = facts(run)
    return plain(
        {
            "model": found["model"],
            "texts": texts(run),
            "tokens": labels(run)[0],
            "lengths": lengths(run),
            "interventions": found["interventions"],
            "reference_beta": found["reference_beta"],
            "layers": layer_lists(run),
            "equiangular_distance": mean(run, "equiangular_distance")
            if "equiangular_distance" in run
            else None,
            "heads": _heads(run),
            "bands": _bands(run),
            "verdict": asdict(verdict(run)),
            "words": plain_words(run),
            "notes": found["notes"],
            "missing": found["missing"],
            "rounding": found.get("rounding"),
            "seconds": found.get("seconds"),
        }
    )


def layer_lists(run: Trajectory) -> dict[str, Any]:
    """Means over texts of what has one number per state (0..L) or per step (1..L)."""
    known = [name for name in (*STATE_SERIES, *LAYER_SERIES) if name in run]
    lists: dict[str, Any] = {name: mean(run, name) for name in known}
    lists["cluster_angle"] = facts(run)["cluster_angle"]
    if "clusters_at" in run:
        counts = mean(run, "clusters_at")
        lists["clusters_at"] = {
            f"{angle:g}": counts[:, index] for index, angle in enumerate(run.coords["angle"])
        }
    for name in ("attention_entropy", "attention_entropy_share", "attention_rank", "first_mass"):
        if name in run:
            lists[name] = mean(run, name).mean(axis=-1)
    if "sink_share" in run:
        lists["sink_share"] = mean(run, "sink_share").max(axis=-1)
    return lists


def _heads(run: Trajectory) -> dict[str, Any]:
    heads: dict[str, Any] = {name: mean(run, name) for name in HEAD_SERIES if name in run}
    if "ov_positive_share" in run:
        heads["attraction"] = [
            [attraction_word(share) for share in layer] for layer in mean(run, "ov_positive_share")
        ]
    return heads


def attraction_word(share: float) -> str:
    """`spectra.attraction` from the share of positive real parts that is already there."""
    if share >= CLEAR_SHARE:
        return "attractive"
    return "repulsive" if share <= 1.0 - CLEAR_SHARE else "mixed"


def _bands(run: Trajectory) -> dict[str, Any]:
    if texts(run) == 1:
        return {}
    named = [
        name
        for name in (*STATE_SERIES, *LAYER_SERIES)
        if name in run and run.axes[name][:1] == ("sample",) and name != "outlier_dimension"
    ]
    return {name: dict(zip(("low", "high"), band(run, name), strict=True)) for name in named}
