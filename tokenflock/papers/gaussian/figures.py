"""2501.18322: A unified perspective on the dynamics of deep Transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...dynamics import Dynamics
from ...integrate import Save, solve
from ...kinds import L2, Kind, Sinkhorn, Softmax
from ...ledger.figure import FigureJob
from ...meanfield import gaussian_statistics
from ...meanfield.moments import gaussian_density
from ...plot.key import mark, stroke
from ...plot.style import FAINT, INK, PALETTE, REST
from ...terms import Attention
from ...weights import Weights
from . import PAPER, closed_forms

COVARIANCE = np.array([[1.0, 0.45], [0.45, 0.6]])
# One eigenvalue 0 and one -1.2; two positive ones, 0.5 and 0.2, in another frame.
FLATTENING = -1.2 * np.outer([0.6, 0.8], [0.6, 0.8])
GROWING = np.array([[0.4, 0.14], [0.14, 0.3]])
CASES = {
    "softmax-negative": "softmax, $A\\leq 0$: rank is lost",
    "softmax-positive": "softmax, $A>0$: blow-up",
    "sinkhorn": "Sinkhorn, the same $A$: no blow-up",
    "l2": "$\\ell^2$, the same $A$: no blow-up",
}


def model(case: str, c: float) -> Dynamics:
    """V = I and the cross term y^T A x of each case; l2 has it with K = I, Q = A/(2c)."""
    kinds: dict[str, Kind] = {"sinkhorn": Sinkhorn(), "l2": L2()}
    A = FLATTENING if case == "softmax-negative" else GROWING
    weights = Weights(Q=A / (2 * c), K=np.eye(2)) if case == "l2" else Weights(B=A)
    return Dynamics(
        None, Attention(weights, c if case == "l2" else 1.0, kinds.get(case, Softmax()))
    )


@PAPER.figure(
    "covariances",
    title="What four attentions make of the same Gaussian",
    shows="one-deviation ellipses of N(0, Sigma(t)) under V = I, later ones darker, and the eigenvalues of "
    "Sigma in the insets: softmax with A <= 0 of rank one flattens the Gaussian onto the kernel of A "
    "(dashed), at the rate 1/t; with A > 0 it blows up at the t* of the formula (dotted line); Sinkhorn "
    "and l2 attention with the same A grow at most exponentially. Dots on the softmax curves are the "
    "closed form",
    quick={"saves": 49, "late": 40.0, "share": 0.98, "beyond": 3.0, "c": 0.25},
    paper={"saves": 97},
)
def covariances(job: FigureJob) -> xr.Dataset:
    """Covariances (case, save, 2, 2) at each case's own times, with closed forms and t*.

    Softmax with A > 0 is followed to `share` of its t*, Sinkhorn and l2 to `beyond` times it.
    """
    blow_up = closed_forms.softmax_blow_up_time(COVARIANCE, GROWING)
    ends = {
        "softmax-negative": job.late,
        "softmax-positive": job.share * blow_up,
        "sinkhorn": job.beyond * blow_up,
        "l2": job.beyond * blow_up,
    }
    pieces = []
    for index, (case, end) in enumerate(ends.items()):
        pieces.append(_one_case(job, case, end))
        job.report((index + 1) / len(ends))
    joined: Any = xr.concat(pieces, xr.IndexVariable("case", list(ends)))
    return joined.assign(blow_up_time=blow_up, kernel=("coordinate", [0.8, -0.6]))


def _one_case(job: FigureJob, case: str, end: float) -> xr.Dataset:
    times = end * np.linspace(0.0, 1.0, job.saves) ** (2 if case == "softmax-negative" else 1)
    run = solve(
        model(case, job.c),
        gaussian_density(np.zeros(2), COVARIANCE),
        end,
        rtol=1e-9,
        atol=1e-11,
        save=Save(
            at=times, observe=[gaussian_statistics.covariance, gaussian_statistics.variances]
        ),
    )
    exact = np.full((job.saves, 2), np.nan)
    if case.startswith("softmax"):
        A = FLATTENING if case == "softmax-negative" else GROWING
        exact = np.linalg.eigvalsh(closed_forms.softmax_covariance(times, COVARIANCE, A))
    return xr.Dataset(
        {
            "time": ("save", times),
            "covariance": (("save", "coordinate", "other"), np.asarray(run.array("covariance"))),
            "variances": (("save", "rank"), np.asarray(run.array("variances"))),
            "exact": (("save", "rank"), exact),
        }
    )


def ellipse(covariance: np.ndarray, points: int = 200) -> np.ndarray:
    """The curve {Sigma^{1/2} u : |u| = 1}, (points, 2)."""
    angles = np.linspace(0.0, 2 * np.pi, points)
    values, vectors = np.linalg.eigh(covariance)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return ((vectors * np.sqrt(np.maximum(values, 0.0))) @ circle).T


@covariances.drawing
def _(plt: Any, data: xr.Dataset) -> Any:
    figure, panels = plt.subplots(2, 2, figsize=(6.8, 6.9), layout="constrained")
    for axes, case in zip(panels.ravel(), data.case.values, strict=True):
        one = data.sel(case=case)
        _draw_ellipses(plt, axes, one)
        axes.set(title=CASES[str(case)], xlabel="$x_1$", ylabel="$x_2$")
        if case == "softmax-negative":
            line = 0.75 * np.outer([-1, 1], one.kernel.values)
            axes.plot(*line.T, color=REST, lw=0.9, ls="--", zorder=0)
        _draw_variances(axes.inset_axes((0.6, 0.08, 0.38, 0.25)), one, float(data.blow_up_time))
    key = [
        stroke("-", "largest eigenvalue", PALETTE[1]),
        stroke("-", "smallest", PALETTE[0]),
        mark("o", "exact", INK, ms=2.5),
        stroke(":", r"blow-up time of softmax, $A>0$", INK),
        stroke("--", "limit: the kernel of $A$", REST),
    ]
    figure.legend(handles=key, loc="outside lower center", ncols=5, fontsize=7.5)
    return figure


def _draw_ellipses(plt: Any, axes: Any, one: xr.Dataset) -> None:
    """Six ellipses, from light to dark."""
    chosen = np.linspace(0, one.sizes["save"] - 1, 6).astype(int)
    colours = plt.get_cmap("viridis_r")(np.linspace(0.12, 1.0, chosen.size))
    reach = 0.0
    for index, colour in zip(chosen, colours, strict=True):
        curve = ellipse(one.covariance.values[index])
        reach = max(reach, float(np.abs(curve).max()))
        axes.plot(*curve.T, color=colour, lw=1.2, label=f"$t={float(one.time.values[index]):.2g}$")
    # Room below for the inset.
    axes.set(xlim=(-1.15 * reach, 1.15 * reach), ylim=(-1.75 * reach, 1.15 * reach), aspect="equal")
    axes.legend(loc="lower left", fontsize=6.5, handlelength=1.2, labelspacing=0.2)


def _draw_variances(axes: Any, one: xr.Dataset, blow_up: float) -> None:
    for rank in range(one.sizes["rank"]):
        colour = PALETTE[rank]
        axes.plot(one.time, one.variances[:, rank], color=colour, lw=1.3)
        axes.plot(one.time[::6], one.exact[::6, rank], "o", color=INK, ms=2.2)
    if str(one.case.values) != "softmax-negative":
        axes.axvline(blow_up, color=INK, lw=0.9, ls=":")
    axes.set(yscale="log", xlim=(0, float(one.time.max()) * 1.06))
    axes.set_xlabel("$t$", fontsize=6, labelpad=0)
    axes.set_ylabel("$\\lambda_k$", fontsize=6, labelpad=0)
    axes.tick_params(labelsize=6, length=2)
    axes.grid(color=FAINT, lw=0.5)
    axes.set_title("eigenvalues of $\\Sigma(t)$", fontsize=7)
