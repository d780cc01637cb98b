"""Figure 5: phase diagrams with random query, key and value matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ....ledger.figure import FigureJob
from ....random_weights import Ginibre, PositiveSemidefinite, Product, RandomWeights, Wigner
from ....space import Sphere
from ....starts import uniform
from ....weights import Weights
from .. import PAPER
from .phases import (
    DELTA,
    collapse_curve,
    label_edges,
    name_the_curve,
    paint,
    phase_diagram,
    share_label,
)

PANELS = {
    "a": "$Q$, $K$, $V$ Ginibre",
    "b": "$Q^TK$ Wigner, $V$ psd",
    "c": "$V = Q^TK$, $Q$, $K$ Ginibre",
    "d": "$V = Q^TK$ Wigner",
}


def ensemble(panel: str, d: int, seed: int) -> Weights:
    """One draw of Q^T K and V; logits of order one at beta = 1, V of operator norm of order one."""
    size = d**-0.5
    laws: dict[str, dict[str, Any]] = {
        "a": {"B": Product(size), "V": Ginibre(size)},
        "b": {"B": Wigner(), "V": PositiveSemidefinite(1 / d)},
        "c": {"B": Product(size), "tied": size},
        "d": {"B": Wigner(), "tied": size},
    }
    return RandomWeights(d, seed, **laws[panel]).at(0.0)


@PAPER.figure(
    "fig-5",
    title="Phase diagrams for random Q, K, V",
    shows="random matrices move the boundary off the curve of Q = K = V = I (dashed): independent "
    "matrices (a) bring all tokens together by t = 11, whatever beta is; with a positive V (b) two "
    "clusters rest at larger beta; where V = Q^T K (c, d) one cluster forms for small beta only",
    quick={
        "n": 32,
        "d": 128,
        "samples": 2,
        "betas": 73,
        "beta_low": 0.1,
        "beta_high": 9.0,
        "times": 121,
        "end": 20.0,
    },
    paper={"samples": 1024, "betas": 90, "times": 200, "end": 30.0},
)
def random_weights(job: FigureJob) -> xr.Dataset:
    """The fraction of pairs closer than delta; one draw of matrices per panel, many starts."""
    betas = np.linspace(job.beta_low, job.beta_high, job.betas)
    x0 = uniform(Sphere(job.d), job.n, job.seed, samples=job.samples)
    panels = []
    for index, panel in enumerate(PANELS):
        panels.append(phase_diagram(job, x0, ensemble(panel, job.d, job.seed)))
        job.report((index + 1) / len(PANELS))
    return xr.Dataset(
        {
            "probability": (("panel", "beta", "time"), np.stack(panels)),
            "collapse_time": ("beta", collapse_curve(job, betas)),
        },
        coords={
            "panel": list(PANELS),
            "beta": betas,
            "time": np.linspace(0.0, job.end, job.times),
        },
        attrs={"n": job.n, "d": job.d, "delta": DELTA, "starts": job.samples},
    )


@random_weights.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(
        2, 2, figsize=(6.4, 4.8), sharex=True, sharey=True, layout="constrained"
    )
    image = None
    for axes, panel in zip(panels.flat, data.panel.values, strict=True):
        image = paint(axes, data, data.probability.sel(panel=panel))
        axes.set_title(f"({panel}) {PANELS[str(panel)]}")
    label_edges(panels)
    setting = f"SA, $n={data.attrs['n']}$, $d={data.attrs['d']}$, {data.attrs['starts']} starts"
    name_the_curve(figure, panels.flat[0], f"{setting}; the curve has $Q=K=V=I$")
    figure.colorbar(image, ax=panels, label=share_label(data), shrink=0.8)
    return figure
