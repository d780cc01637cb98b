"""The noisy equation itself, swept slowly down and up in temperature."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from ...density import Density
from ...dynamics import Dynamics
from ...integrate import Save, solve
from ...observables import order_parameter
from .equation import at_temperature


def sweep_temperature(
    model: Dynamics,
    start: Density,
    temperatures: Sequence[float],
    rest: float,
    *,
    seed: float = 1e-6,
    rtol: float = 1e-6,
    atol: float = 1e-9,
) -> tuple[np.ndarray, list[Density]]:
    """Order parameters and densities after `rest` units of time at each temperature in turn.

    Every run starts from the last density, with `seed` added to its first harmonic: a uniform density is
    an exact equilibrium and would otherwise stay where it has long been unstable. Down and back up over
    the same temperatures shows a loop where two stable states coexist, provided `rest` is long against
    1/|growth rate|; close to a fold or a threshold no rest is.
    """
    density, orders, densities = start, [], []
    for temperature in temperatures:
        seeded = density.at(density.state.at[1].add(seed))
        run = solve(
            at_temperature(model, jnp.asarray(float(temperature))),
            seeded,
            rest,
            rtol=rtol,
            atol=atol,
            save=Save(at=[0.0, rest], observe=[order_parameter]),
        )
        density = start.at(jnp.asarray(run.array("final_state")))
        orders.append(float(run.array("order_parameter")[-1]))
        densities.append(density)
    return np.array(orders), densities
