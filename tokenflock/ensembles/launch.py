"""What the fused kernels are told, and the embedded Runge-Kutta pair of the adaptive one."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..kinds import Kind
from ..measure import Measure
from ..serialise import describe

# Bogacki and Shampine's pair of orders 3 and 2: stages, weights (also the last stage), error.
BOSH_STAGES = ((0.5,), (0.0, 0.75), (2 / 9, 1 / 3, 4 / 9))
BOSH_ERROR = (-5 / 72, 1 / 12, 1 / 9, -1 / 8)
SAFETY, SMALLEST, LARGEST = 0.9, 0.2, 5.0
# An accepted step may not end so close before a save that float32 cannot tell the rest.
SLIVER = 1e-5


@dataclasses.dataclass(frozen=True)
class Launch:
    """Static facts of one launch; times are of the flow, `per_save` layers of length `step` otherwise."""

    kind: Kind
    value: float
    delta: float
    saves: int
    interval: float
    per_save: int = 1
    step: float = 0.0
    rtol: float | None = None
    atol: float | None = None
    # Steps between two saves after which a system counts as lost: nobody can interrupt a kernel.
    max_steps: int = 100_000
    interpret: bool = False

    @property
    def adaptive(self) -> bool:
        """Whether steps follow an error estimate."""
        return self.rtol is not None

    @property
    def layers(self) -> int:
        """How many layers a network has until the last save."""
        return self.saves * self.per_save

    @property
    def tolerance(self) -> float:
        """Largest error of a step: tokens have length one."""
        return float(self.rtol or 0.0) + float(self.atol or 0.0)

    def spec_of_first(self, x0: Measure, beta: float) -> dict[str, Any]:
        """The run of the first sample at one beta, as `tokenflock run` and the page read it."""
        d = x0.d
        said = describe(self.kind)
        model = {key: said[key] for key in ("convention",) if key in said}
        model["name"] = "SA" if self.kind.averages else "USA"
        solve: dict[str, Any] = {"t1": self.saves * self.interval}
        solve |= {"rtol": self.rtol, "atol": self.atol} if self.adaptive else {"step": self.step}
        points = np.asarray(x0.points, dtype=float).reshape(-1, x0.n, d)[0]
        return {
            "model": {**model, "beta": beta, "weights": {"V": self.value}},
            "tokens": {"law": "points", "d": d, "points": points.tolist()},
            "solve": solve,
        }

    def force_scale(self, partition: Array, beta: Array, n: int) -> Array:
        """What multiplies sum_j e^{beta(<x,y> - 1)} y_j to give V times the attention output."""
        if not self.kind.averages:
            return self.value * self.kind.speed(beta) / n
        return self.value / partition


def next_step(step: Any, taken: Any, error: Any) -> Array:
    """The step after one of length `taken` with `error` in units of the tolerance.

    A step cut short by a save says nothing against the longer one.
    """
    growth = jnp.clip(
        SAFETY * jnp.exp(-jnp.log(jnp.maximum(error, 1e-10)) / 3.0), SMALLEST, LARGEST
    )
    proposed = taken * growth
    return jnp.where((error <= 1.0) & (taken < step), jnp.maximum(step, proposed), proposed)
