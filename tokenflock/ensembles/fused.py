"""One launch for all systems: the segment that `integrate.core` would compute step by step."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics import Particles
from ..integrate.core import Plan, Segment
from ..measure import Measure
from ..memory import require_bytes
from ..outcomes import OUTCOMES
from ..states import Carried
from .lanes import integrate_lanes
from .launch import Launch
from .tiles import integrate_tiles

# Above this dimension coordinates no longer fit a lane's registers and tensor cores win.
WIDEST_LANE = 8
STATISTICS = ("pair_fraction", "order_parameter")


def integrate_fused(
    launch: Launch, plan: Plan, x0: Measure, betas: Float[Array, " betas"], times: np.ndarray
) -> Segment:
    """The rows and the end of a plan that observes `STATISTICS`, in float32, by the kernels.

    Large arrays stay on the device until somebody asks for them.
    """
    points = x0.points.reshape(-1, x0.n, x0.d)
    systems = betas.size * points.shape[0]
    numbers = systems * (4.0 * (launch.saves + 1) + 8.0 * x0.n * x0.d)
    require_bytes(4 * numbers, f"the {systems} systems", "save less often or use fewer samples")
    saved, last, reached = _launched(launch, points, betas, plan.lead_shape)
    reached = np.asarray(reached)
    final_time = np.asarray(times)[reached]
    lost = np.where(reached < launch.saves, OUTCOMES.index("step-limit"), 0)
    return Segment(
        times=_times_reached(times, reached),
        saved=saved,
        final=Carried(Particles(last["points"], None), {}),
        final_time=final_time,
        final_saved={name: last[name] for name in STATISTICS},
        outcome=lost,
        stats=_counts(launch, reached.shape),
    )


@functools.partial(jax.jit, static_argnums=(0, 3))
def _launched(
    launch: Launch,
    points: Float[Array, "samples n d"],
    betas: Float[Array, " betas"],
    lead: tuple[int, ...],
) -> tuple[dict[str, Array], dict[str, Array], Array]:
    """Rows, last values, and the number of the last save that every system reached."""
    samples, n, d = points.shape
    integrate = integrate_lanes if d <= WIDEST_LANE else integrate_tiles
    copies = jnp.tile(points, (betas.size, 1, 1))
    values, tokens = integrate(launch, copies, jnp.repeat(betas, samples))
    rows = jnp.moveaxis(values, 1, -1).reshape(2, *lead, launch.saves + 1)
    reached = jnp.full(lead, launch.saves)
    if launch.adaptive:
        # From where a flow is lost on, its statistics are NaN.
        reached = jnp.sum(jnp.isfinite(rows[1]), axis=-1) - 1
    ends = jnp.take_along_axis(rows, reached[None, ..., None], axis=-1)[..., 0]
    lost = (reached < launch.saves)[..., None, None]
    last = {"points": jnp.where(lost, jnp.nan, tokens.reshape(*lead, n, d))}
    last |= dict(zip(STATISTICS, ends, strict=True))
    return dict(zip(STATISTICS, rows, strict=True)), last, reached


def _times_reached(times: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The save times, shared by all; where a system of a batch was lost, infinite after its end."""
    if reached.ndim == 0 or np.all(reached == len(times) - 1):
        return times
    return np.where(np.arange(len(times)) <= reached[..., None], times, np.inf)


def _counts(launch: Launch, shape: tuple[int, ...]) -> dict[str, Any]:
    """Layers are counted beforehand; the kernels do not tell how many steps a flow took."""
    if launch.adaptive:
        return {}
    layers, none = np.full(shape, launch.layers), np.zeros(shape, int)
    return {"num_steps": layers, "num_accepted_steps": layers, "num_rejected_steps": none}
