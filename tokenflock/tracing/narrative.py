"""What happened to the tokens, in plain words with numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from ..trajectory import Trajectory
from .spectra import CLEAR_SHARE
from .trace_values import by_text, chosen_layers, depth, facts, groups, labels, lengths, mean, texts
from .wording import attended_label, count, in_layers, number, percent, shown, token_label

REGIME = "outside the training regime"
# Mean share of attention, over heads, from which a token is called a sink.
SINK_SHARE = 0.3
# A prediction within this factor is said to hold.
FACTOR = 2.0
# Groups of merged tokens that are named, and names in each.
NAMED_GROUPS, NAMED_TOKENS = 4, 6


def plain_words(run: Trajectory) -> list[str]:
    """About ten sentences; what the run did not measure is passed over, what it cannot is said."""
    found = facts(run)
    warnings = [note for note in found["notes"] if note.startswith(REGIME)]
    others = [note for note in found["notes"] if not note.startswith(REGIME)]
    said = [sentence for say in SAYINGS for sentence in [say(run)] if sentence]
    return [_capital(each) for each in (*warnings, *said, *others, *found["missing"])]


def _capital(sentence: str) -> str:
    full = sentence[:1].upper() + sentence[1:]
    return full if full.endswith(".") else full + "."


def _who(run: Trajectory) -> str:
    model, sizes, layers = facts(run)["model"], lengths(run), depth(run)
    many = len(sizes) > 1
    tokens = (
        f"{len(sizes)} texts of {sizes.min()} to {sizes.max()} tokens"
        if many
        else f"{sizes[0]} tokens"
    )
    shared = "one shared layer" if model.get("distinct_layers") == 1 < layers else "layers"
    passes = f"{layers} passes through {shared}" if shared != "layers" else f"{layers} layers"
    scheme = facts(run).get("scheme")
    norms = f", {scheme}-LN" if scheme else ""
    heads = f"{model['heads']} heads, " if model.get("heads") else ""
    return f"{tokens} went through {passes} of {model['name']} ({heads}d = {model['width']}{norms})"


def _cosine(run: Trajectory) -> str:
    plain, sphere = mean(run, "mean_cosine"), mean(run, "sphere_cosine")
    if not np.isfinite(sphere).all():
        return "there is one token only: no pairs, no cosines"
    steps = np.diff(sphere)
    most = int(np.abs(steps).argmax())
    return (
        f"the mean cosine of different tokens goes from {plain[0]:.3f} to {plain[-1]:.3f} in the hidden "
        f"states, and from {sphere[0]:.3f} to {sphere[-1]:.3f} on the sphere; it changes most in "
        f"layer {most + 1} ({steps[most]:+.3f})" + _apart(run, plain[-1])
    )


def _apart(run: Trajectory, plain: float) -> str:
    """The first token often is a sink with a direction of its own."""
    if "mean_cosine_rest" not in run:
        return ""
    rest = mean(run, "mean_cosine_rest")[-1]
    differs = np.isfinite(rest) and abs(rest - plain) >= 0.02
    return f"; without the first token the end is {rest:.3f}" if differs else ""


def _rank(run: Trajectory) -> str:
    rank, top = mean(run, "effective_rank"), mean(run, "anisotropy")
    return (
        f"the tokens' effective rank goes from {rank[0]:.1f} to {rank[-1]:.1f} dimensions; the leading "
        f"direction holds {percent(top[0])} of their second moment at the start, {percent(top[-1])} at "
        "the end"
    )


def _clusters(run: Trajectory) -> str:
    angle, counts = facts(run)["cluster_angle"], mean(run, "clusters")
    if len(np.unique(counts)) == 1:
        return f"{count(counts[0], 'cluster')} within {angle:g} rad at every layer: nothing merges"
    shown_count = ".0f" if texts(run) == 1 else ".1f"
    stops = [f"{counts[at]:{shown_count}} at layer {at}" for at in chosen_layers(len(counts), 5)]
    apart = counts.argmax() > 0 and counts.max() > counts[0]
    why = "; equal tokens start as one point and come apart" if apart else ""
    return f"clusters within {angle:g} rad: {', '.join(stops)}{why}"


def _merged(run: Trajectory) -> str:
    if texts(run) > 1:
        return ""
    found = groups(run, facts(run)["cluster_angle"])
    if not found:
        return ""
    if len(found[0]) == lengths(run)[0]:
        return "at the end all tokens lie in one cluster"
    named = "; ".join(_members(run, each) for each in found[:NAMED_GROUPS])
    more = f"; and {len(found) - NAMED_GROUPS} more groups" if len(found) > NAMED_GROUPS else ""
    total = sum(len(each) for each in found)
    groups_word = "groups" if len(found) > 1 else "group"
    return f"at the end {total} tokens have merged into {len(found)} {groups_word}: {named}{more}"


def _members(run: Trajectory, group: list[int]) -> str:
    """Names with their counts; places where they are few."""
    names = [shown(labels(run)[0][token]) for token in group]
    if len(group) <= NAMED_TOKENS:
        places = ", ".join(str(token) for token in group)
        return f"{' '.join(names)} (tokens {places})"
    counted = Counter(names).most_common(3)
    return f"{len(group)} tokens, mostly " + ", ".join(
        f"{times} x {name}" for name, times in counted
    )


def _norms(run: Trajectory) -> str:
    median, largest = mean(run, "norm_median"), mean(run, "norm_max")
    at = int(largest.argmax())
    times = largest[at] / median[at] if median[at] > 0 else np.nan
    who = ""
    if "norms" in run:
        who = f", {token_label(run, int(np.asarray(run.array('norms'))[at].argmax()))}"
    share, place = mean(run, "outlier_share"), mean(run, "outlier_dimension")
    top = int(np.nanargmax(share)) if np.isfinite(share).any() else 0
    return (
        f"median norms go from {number(median[0])} to {number(median[-1])}; the largest is "
        f"{number(largest[at])} at layer {at}{who}, {number(times)} times the median; coordinate "
        f"{int(place[top])} holds up to {percent(share[top])} of all squared norm (layer {top})"
    )


def _sinks(run: Trajectory) -> str:
    if "sink_share" not in run:
        return ""
    if "column_mass" in run:
        return _sink_of_text(run)
    share, first = mean(run, "sink_share"), mean(run, "first_mass").mean(axis=-1)
    at = int(first.argmax())
    return (
        f"the first token receives {percent(first.mean())} of all attention (mean over layers), most in "
        f"layer {at + 1} ({percent(first[at])}); the strongest single head gives one token "
        f"{percent(share.max())}"
    )


def _sink_of_text(run: Trajectory) -> str:
    mass, share = mean(run, "column_mass"), mean(run, "sink_share")
    token = int(mass.mean(axis=0).argmax())
    held = mass[:, token]
    name, even = attended_label(run, token), 1.0 / mass.shape[1]
    where = [int(layer) + 1 for layer in np.flatnonzero(held >= SINK_SHARE)]
    head_layer, head = np.unravel_index(share.argmax(), share.shape)
    strongest = (
        f"the strongest is head {head + 1} of layer {head_layer + 1} ({percent(share.max())})"
    )
    if where:
        return (
            f"{name} is an attention sink in {in_layers(where)}: it receives up to "
            f"{percent(held.max())} of all attention; {strongest}"
        )
    return (
        f"no token receives {percent(SINK_SHARE)} of all attention: {name} receives most, "
        f"{percent(held.mean())} on average (an even share is {percent(even)}); {strongest}"
    )


def _entropy(run: Trajectory) -> str:
    if "attention_entropy_share" not in run:
        return ""
    share = mean(run, "attention_entropy_share")
    layers = share.mean(axis=-1)
    rank = f"; {_attention_rank(run)}" if "attention_rank" in run else ""
    return (
        f"attention rows use {percent(np.nanmean(share))} of the largest possible entropy (layer 1 "
        f"{percent(layers[0])}, layer {len(layers)} {percent(layers[-1])}; sharpest head "
        f"{percent(np.nanmin(share))}){rank}"
    )


def _attention_rank(run: Trajectory) -> str:
    rank = mean(run, "attention_rank")
    return (
        f"the effective rank of attention matrices runs from {rank.min():.1f} to {rank.max():.1f}"
    )


def _temperatures(run: Trajectory) -> str:
    parts = []
    for name, source in (("beta_weights", "from the weights"), ("beta_logits", "from the scores")):
        if name in run:
            beta = mean(run, name)
            low, middle, high = np.nanmin(beta), np.nanmedian(beta), np.nanmax(beta)
            parts.append(f"{source} {number(low)} to {number(high)} (median {number(middle)})")
    if not parts:
        return ""
    return f"effective beta of the heads: {'; '.join(parts)}"


def _values(run: Trajectory) -> str:
    if "ov_positive_share" not in run:
        return ""
    share = mean(run, "ov_positive_share")
    if facts(run)["model"].get("distinct_layers") == 1:
        share = share[:1]
    attract, repel = int((share >= CLEAR_SHARE).sum()), int((share <= 1 - CLEAR_SHARE).sum())
    real = np.asarray(run.array("ov_real"))
    return (
        f"value maps: {attract} of {share.size} heads attract, {repel} repel, "
        f"{share.size - attract - repel} are mixed (real parts of their eigenvalues from "
        f"{real.min():.2f} to {real.max():.2f}; the theory's V = I attracts)"
    )


def _turning(run: Trajectory) -> str:
    if "turning_angle" not in run:
        return ""
    turned = mean(run, "turning_angle")
    said = f"a token turns by {turned[0]:.2f} rad in layer 1 and {turned[-1]:.2f} rad in layer {len(turned)}"
    if "turning_angle_predicted" not in run:
        return said
    flow = mean(run, "turning_angle_predicted")
    wrong = _off(turned, flow)
    verdict = (
        f"off by more than {FACTOR:g} times in {in_layers(wrong)}"
        if wrong
        else f"within a factor {FACTOR:g} in every layer"
    )
    return (
        f"{said}; the flow of the theory with the layers' own updates gives {flow[0]:.2f} and "
        f"{flow[-1]:.2f}, {verdict}"
    )


def _off(measured: np.ndarray, predicted: np.ndarray) -> list[int]:
    """Layers where the ratio leaves [1/2, 2]."""
    low, high = np.minimum(measured, predicted), np.maximum(measured, predicted)
    return [int(layer) + 1 for layer in np.flatnonzero(high > FACTOR * low)]


def _equiangular(run: Trajectory) -> str:
    if "equiangular_cosine" not in run:
        return ""
    theory, beta = mean(run, "equiangular_cosine"), facts(run)["reference_beta"]
    gaps = np.abs(by_text(run, "sphere_cosine") - by_text(run, "equiangular_cosine"))
    if not np.isfinite(gaps).any():
        return ""
    return (
        f"equiangular tokens with Q = K = V = I at beta = {number(beta)} would end at cosine "
        f"{theory[-1]:.3f}; the measured path lies {np.nanmean(gaps):.3f} away on average"
    )


def _growth(run: Trajectory) -> str:
    if "perturbation_growth" not in run:
        return ""
    growth = mean(run, "perturbation_growth")
    layer = (facts(run).get("rounding") or {}).get("decides_from_layer")
    decided = (
        f"rounding decides from layer {layer} on, and only statistics mean anything there"
        if layer is not None
        else "rounding does not decide anywhere"
    )
    at = int(np.nanargmax(growth)) if np.isfinite(growth).any() else 0
    return (
        f"a small perturbation of the start is {number(growth[-1])} times its size at the end (most "
        f"{number(growth[at])}, layer {at}); {decided}"
    )


SAYINGS: tuple[Callable[[Trajectory], str], ...] = (
    _who,
    _cosine,
    _clusters,
    _merged,
    _rank,
    _norms,
    _sinks,
    _entropy,
    _temperatures,
    _values,
    _turning,
    _equiangular,
    _growth,
)
