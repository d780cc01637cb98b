"""A finished training and an explained review as lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .plainly import aligned

NETWORK, BASELINE = "network", "bag of words"
PARTS = ("train", "validation", "test")
SHOWN = 10
# Leaders nearer to the plane say little; the paper lists those with |<v, z> + b| above 2.
SPEAKS = 2.0


def report_lines(result: Mapping[str, Any]) -> list[str]:
    """The report for a terminal."""
    return [*_accuracy_lines(result), "", *_leader_lines(result), "", *_closing_lines(result)]


def _accuracy_lines(result: Mapping[str, Any]) -> list[str]:
    names = {
        NETWORK: f"hardmax, depth {result[NETWORK]['depth']}",
        BASELINE: "bag of words, depth 0",
    }
    rows = [["accuracy", *PARTS, "best epoch"]]
    for name, shown in names.items():
        shares = (result[name]["accuracy"][part] for part in PARTS)
        cells = [f"{s['share']:.4f} ({s['low']:.4f} to {s['high']:.4f})" for s in shares]
        rows.append([shown, *cells, str(result[name]["best_epoch"])])
    return aligned(rows)


def _leader_lines(result: Mapping[str, Any]) -> list[str]:
    words = result["leaders"]["words"]
    negative, positive = result["data"]["labels"]
    sides = {
        positive: [w for w in words if w["sentiment"] > SPEAKS][:SHOWN],
        negative: [w for w in words if w["sentiment"] < -SPEAKS][:SHOWN],
    }
    rows = [["leader", "leads in", "of reviews", "from layer 0", "sentiment", "norm", "for"]]
    for label, chosen in sides.items():
        for w in chosen:
            numbers = [f"{w['from_layer_0']:.0%}", f"{w['sentiment']:+.2f}", f"{w['norm']:.2f}"]
            rows.append([w["word"], str(w["leads"]), str(w["occurs"]), *numbers, label])
    return aligned(rows)


def _closing_lines(result: Mapping[str, Any]) -> list[str]:
    network, leaders, seconds = result[NETWORK], result["leaders"], result["seconds"]
    ours, bag = (result[n]["accuracy"]["test"]["share"] for n in (NETWORK, BASELINE))
    winner = "the bag of words" if bag > ours else "the network" if ours > bag else "nobody"
    return [
        f"On the test reviews {winner} wins, {max(ours, bag):.4f} against {min(ours, bag):.4f}.",
        f"alpha = {network['alpha']:.3g}: {network['depth']} layers shrink a follower's distance to "
        f"{network['contraction']:.2g} of what it was.",
        f"Test loss {network['loss']['test']:.4f} with hardmax, "
        f"{network['test_loss_of_the_softmax_surrogate']:.4f} with the softmax it was trained with.",
        f"{leaders['mean']:.1f} leaders per review ({leaders['min']} to {leaders['max']}), "
        f"{leaders['share_from_layer_0']:.0%} of them from layer 0; their vote gives the network's answer in "
        f"{leaders['vote_agrees']:.1%} of {leaders['reviews']} reviews.",
        f"{seconds['wall']:.0f} s on the clock, {seconds['processor']:.0f} s of processor time.",
    ]


def explanation_lines(found: Mapping[str, Any]) -> list[str]:
    """Who led, who followed, and what came of it."""
    rows = [["leader", "sentiment", "share of the vote", "from layer", "followers"]]
    for leader in found["leaders"]:
        followers = ", ".join(leader["followers"]) or "none"
        numbers = [f"{leader['sentiment']:+.2f}", f"{leader['share']:.0%}"]
        rows.append([leader["word"], *numbers, str(leader["led_from_layer"]), followers])
    unknown = ", ".join(found["words_unknown"])
    return [
        f"{found['label']}: probability {found['probability']:.3f} of {found['positive_label']}, logit "
        f"{found['logit']:+.2f}",
        "",
        *aligned(rows),
        "",
        f"The leaders vote {found['vote']:+.2f}; the network says {found['logit']:+.2f}: its followers end "
        f"{found['left']:.0%} of their way from their leaders.",
        f"{found['words_read']} words read" + (f"; not known: {unknown}" if unknown else "."),
    ]
