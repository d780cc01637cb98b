"""What the picture of a sweep says of its runs: model, tokens, thresholds, and the curve of theory."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import theory
from ..kinds import Softmax, Unnormalised
from .style import INK
from .sweep_scales import Scale
from .sweep_text import legible, number, words

MODEL, TOKENS = "model", "tokens"
# Models that the curve of large d is known for, and the settings it allows them.
CURVE_MODELS, PLAIN = ("SA", "USA"), {"name", "beta", "convention"}


def setting(dataset: Any, path: str) -> Any:
    """The value of a setting that all selected runs share; None where it varies or is not known."""
    for axis, paths in (dataset.attrs.get("axes") or {}).items():
        if path in paths:
            names = (path, path.replace(".", "_"), *([axis] if len(paths) == 1 else []))
            name = next((name for name in names if name in dataset.coords), None)
            values = np.unique(dataset[name].values) if name is not None else ()
            return values[0].item() if len(values) == 1 else None
    found: Any = dataset.attrs.get("spec")
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def facts(dataset: Any, name: str, told: set[str]) -> list[str]:
    """Model, n, d and the parameters of the statistic, without the axes that the picture tells of itself."""
    said = []
    model = _shared(dataset, "model.name", told)
    if model is not None:
        said.append(legible(model, 24))
    # What the model was given beside its name: numbers only, the rest is in the spec.
    given = setting(dataset, MODEL)
    for key, value in (given if isinstance(given, dict) else {}).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            shared = _shared(dataset, f"{MODEL}.{key}", told)
            said += [f"{words(key)} = {number(shared)}"] if shared is not None else []
    for key in ("n", "d"):
        value = _shared(dataset, f"{TOKENS}.{key}", told)
        said += [f"{key} = {number(value)}"] if value is not None else []
    delta = dataset[name].attrs.get("delta")
    if isinstance(delta, int | float):
        said.append(f"delta = {delta:g}")
    return said


def _shared(dataset: Any, path: str, told: set[str]) -> Any:
    """A setting of the spec that is no axis of the picture."""
    swept = [axis for axis, paths in (dataset.attrs.get("axes") or {}).items() if path in paths]
    return None if set(swept) & told else setting(dataset, path)


def label_of(dataset: Any, name: str) -> str:
    """The name of a statistic with its unit and the threshold that defines it."""
    details = dataset[name].attrs
    units, angle, delta = (details.get(key) for key in ("units", "angle", "delta"))
    if observable(dataset, name) == "pair_fraction" and isinstance(delta, int | float):
        return rf"share of pairs with $\langle x_i, x_j\rangle \geq 1-{delta:g}$"
    unit = f" [{legible(units, 16)}]" if units and units not in ("1", "dimensionless") else ""
    linked = f" (angle {angle:.3g})" if isinstance(angle, int | float) else ""
    return words(name) + unit + linked + (": means nothing" if details.get("note") else "")


def heading_of(dataset: Any) -> str:
    """The sweep's own title; one that is a file's name rather than a sentence, as words."""
    title = legible(dataset.attrs.get("title") or "sweep")
    if " " in title or not title.replace("-", "").replace("_", "").isalnum():
        return title
    spaced = title.replace("-", " ").replace("_", " ").strip()
    return spaced[:1].upper() + spaced[1:]


def large_dimension_curve(dataset: Any, name: str, down: Scale) -> tuple[np.ndarray, str] | None:
    """The time at which gamma_beta(t) = 1 - delta for each beta of a diagram, and how it is called.

    2312.10794, Section 6: from independent uniform tokens, as d grows, all inner products follow the
    solution gamma_beta of (6.9) for SA or (6.10) for USA. None for any other model, start or statistic.
    """
    n, model = setting(dataset, "tokens.n"), setting(dataset, MODEL)
    delta, betas = dataset[name].attrs.get("delta"), down.places[down.order]
    if observable(dataset, name) != "pair_fraction" or down.names or down.labels:
        return None
    if not _is_plain(dataset) or not isinstance(n, int) or n < 2:
        return None
    if not isinstance(delta, int | float) or not 0 < delta < 1 or betas[0] < 0:
        return None
    clock = model.get("convention") or "perspective"
    kind = Softmax() if model["name"] == "SA" else Unnormalised(clock)
    times = theory.equiangular_time(1 - delta, n, betas, kind=kind)
    return np.asarray(times), r"$\gamma_\beta(t)=1-\delta$: the limit of large $d$"


def _is_plain(dataset: Any) -> bool:
    """Whether the runs are the flow of SA or USA with Q = K = V = I from uniform tokens on a sphere."""
    model, tokens = setting(dataset, MODEL), setting(dataset, TOKENS)
    if not isinstance(model, dict) or not isinstance(tokens, dict):
        return False
    names = ("model.name", "tokens.law", "tokens.space", "solve.method")
    kind, law, space, method = (setting(dataset, path) for path in names)
    alone = all(key in PLAIN or value in (None, {}, []) for key, value in model.items())
    at_home = law == "uniform" and space in (None, "sphere") and method != "layers"
    return kind in CURVE_MODELS and model.get("name") == kind and alone and at_home


def observable(dataset: Any, name: str) -> str | None:
    """What was observed under this name."""
    asked = setting(dataset, "save.observe")
    for one in asked if isinstance(asked, list) else []:
        given = {"name": one} if isinstance(one, str) else one
        if (given.get("as") or given.get("name")) == name:
            return given.get("name")
    return None


def draw_curve(axes: Any, down: Scale, curve: tuple[np.ndarray, str]) -> None:
    """A dashed line that can be told from dark and from bright cells."""
    times, label = curve
    limits = axes.get_xlim()
    places = down.places[down.order]
    axes.plot(times, places, color="white", lw=2.2)
    axes.plot(times, places, color=INK, lw=1.2, ls="--", label=label)
    axes.set_xlim(limits)
