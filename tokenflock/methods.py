"""Methods: how time is discretised. The physics does not know."""

from __future__ import annotations

import diffrax
import equinox as eqx
import numpy as np

from .errors import require


class Layers(eqx.Module):
    """Run the model as a discrete network of residual layers: x <- N(x + step A(x)).

    Its clock is not the flow's: near clusters the normalisation slows it down by 1/(1 + step), so a
    time read off a Layers run is about (1 + step) times that of the flow.
    """

    step: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        require(
            np.isfinite(self.step) and self.step > 0,
            f"a layer's step must be positive, got {self.step}",
        )


class Stiff(eqx.Module):
    """Implicit solver (Kvaerno5) for large beta, where tight clusters relax much faster than they move."""


Method = Layers | Stiff | diffrax.AbstractSolver | None
