"""What a retrieval response shows, in numbers and in plain words: primacy, recency, the first token."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..results.strict_json import plain
from .retrieval import independent, standard_error

if TYPE_CHECKING:
    import xarray as xr

LABEL = (
    "a measured response of a trained network (softmax attention, MLPs, its own positions); no check of the "
    "theorem of 2605.09213, which is about unnormalised attention with ALiBi on a circle"
)
# Parts of a prompt by relative position; the first token and the read one are told apart.
QUARTER = 0.25
# Differences outside Student's two-sided interval of this level are called seen.
LEVEL = 0.95
Answer = Literal["yes", "no", "unclear"]


@dataclass(frozen=True)
class PartResponse:
    """Mean response to the positions of one part of the prompts, with its standard error."""

    positions: list[int]
    response: float
    error: float


@dataclass(frozen=True)
class Contrast:
    """Whether a part answers more than the middle: yes, no (less), or unclear.

    Seen is a difference of more than `needed` standard errors: Student's quantile for so few prompts.
    """

    answer: Answer
    ratio: float
    difference: float
    error: float
    needed: float


def parts(data: xr.Dataset) -> dict[str, np.ndarray]:
    """Which positions (a mask) belong to: first, early, middle, recent, own."""
    position, s0 = data.position.values, data.s0.values
    late = int(data.attrs["read"])
    inner = (position > 1) & (position < late)
    return {
        "first": position == 1,
        "early": inner & (s0 <= QUARTER),
        "middle": inner & (s0 > QUARTER) & (s0 <= 1 - QUARTER),
        "recent": inner & (s0 > 1 - QUARTER),
        "own": position == late,
    }


def part_response(data: xr.Dataset, name: str, layer: int) -> PartResponse | None:
    """The response of one part at a layer; None if no position lies in it."""
    mask = parts(data)[name]
    if not mask.any():
        return None
    samples = _samples(data, mask, layer)
    chosen = [int(k) for k in data.position.values[mask]]
    return PartResponse(chosen, float(samples.mean()), float(standard_error(samples[..., None])[0]))


def contrast(data: xr.Dataset, name: str, layer: int) -> Contrast | None:
    """A part against the middle, prompt by prompt."""
    masks = parts(data)
    if not (masks[name].any() and masks["middle"].any()):
        return None
    here, middle = (_samples(data, masks[which], layer) for which in (name, "middle"))
    apart = (here - middle)[..., None]
    difference, error = float(apart.mean()), float(standard_error(apart)[0])
    needed = errors_needed(len(independent(apart)))
    seen = abs(difference) > needed * error
    answer: Answer = ("yes" if difference > 0 else "no") if seen else "unclear"
    level = float(middle.mean())
    ratio = float(here.mean()) / level if level else np.nan
    return Contrast(answer, ratio, difference, error, needed)


def errors_needed(units: int) -> float:
    """Standard errors beyond which a mean of so many independent units differs from 0, at LEVEL.

    Student's t: 12.7 for two units, 2.36 for eight, 1.96 for many; NaN for one, which has no error.
    """
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, units - 1)) if units > 1 else np.nan


def _samples(data: xr.Dataset, mask: np.ndarray, layer: int) -> np.ndarray:
    """(prompt, set): means over the positions of a part."""
    return data.response_samples.values[:, :, layer][..., mask].mean(axis=-1)


def summary(data: xr.Dataset) -> dict[str, Any]:
    """What --json prints: settings, profiles with errors, parts and contrasts by layer."""
    layers = [int(layer) for layer in data.layer.values]
    names = list(parts(data))
    return plain(
        {
            **data.attrs,
            "what": LABEL,
            "positions": data.position.values,
            "s0": data.s0.values,
            **{
                name: data[name].values
                for name in ("response", "response_error", "covariance", "covariance_error")
            },
            "parts": {
                name: [_fields(part_response(data, name, layer)) for layer in layers]
                for name in names
            },
            "primacy": [_fields(contrast(data, "early", layer)) for layer in layers],
            "recency": [_fields(contrast(data, "recent", layer)) for layer in layers],
            "sink": [_fields(contrast(data, "first", layer)) for layer in layers],
            "words": plain_words(data),
        }
    )


def _fields(value: Any) -> dict[str, Any] | None:
    return None if value is None else asdict(value)


def plain_words(data: xr.Dataset) -> list[str]:
    """Sentences about the last layer, and where in depth the shape changes."""
    last = int(data.layer.values[-1])
    said = [
        _levels(data, last),
        _shape(data, "early", "primacy: earlier tokens, the first one aside,", last),
        _shape(data, "recent", "recency: the latest tokens", last),
        _shape(data, "first", "the first token, apart,", last),
        _depth(data),
        f"this is {LABEL}",
    ]
    if np.isnan(data.response_error.values).all():
        said.insert(-1, "one prompt and one set of replacements give no standard error")
    return [sentence[:1].upper() + sentence[1:] + "." for sentence in said if sentence]


def _levels(data: xr.Dataset, layer: int) -> str:
    found = {name: part_response(data, name, layer) for name in ("own", "middle")}
    told = [
        f"{part.response:.2g} to {'its own token' if name == 'own' else 'one in the middle'}"
        for name, part in found.items()
        if part is not None
    ]
    late = int(data.attrs["read"])
    return f"position {late} answers in layer {layer} (variance of its direction) {', '.join(told)}"


def _shape(data: xr.Dataset, name: str, what: str, layer: int) -> str:
    found = contrast(data, name, layer)
    if found is None:
        return ""
    verdicts = {
        "yes": "move it more than the middle does",
        "no": "move it less than the middle does",
        "unclear": "cannot be told from the middle",
    }
    verb = verdicts[found.answer]
    if name == "first":
        verb = verb.replace("move", "moves", 1)
    return (
        f"{what} {verb} in layer {layer}: {found.ratio:.2f} times, a difference of "
        f"{found.difference:.2g} with a standard error of {found.error:.2g}{_room(found)}"
    )


def _room(found: Contrast) -> str:
    """Said where few prompts make it hard to see anything."""
    if np.isnan(found.needed) or found.needed < 3:
        return ""
    return f" ({found.needed:.3g} of them are needed at {LEVEL:.0%} with so few prompts)"


def _depth(data: xr.Dataset) -> str:
    """In how many layers each contrast is seen."""
    told = []
    for name, word in (
        ("early", "primacy"),
        ("recent", "recency"),
        ("first", "a first token apart"),
    ):
        answers = [contrast(data, name, int(layer)) for layer in data.layer.values[1:]]
        count = sum(answer is not None and answer.answer == "yes" for answer in answers)
        told.append(f"{word} in {count}")
    return f"of {data.sizes['layer'] - 1} layers, {', '.join(told)}"
