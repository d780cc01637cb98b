"""How fast a small error grows with depth, and from which layer on rounding decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .hooks import Listener

if TYPE_CHECKING:
    from torch import Tensor

# Precision, and the size of a perturbation of each token: well above rounding, well below the token.
SIZES = {"float64": 1e-10, "float32": 1e-5, "bfloat16": 1e-2, "float16": 1e-2}
# From this share of a token on, rounding errors decide where it goes.
DECIDES = 1e-3


@dataclass
class Growth(Listener):
    """|h'_l - h_l| / |h'_0 - h_0| over all tokens, of two copies of one text in one batch."""

    values: list[float] = field(default_factory=list)
    relative: list[float] = field(default_factory=list)

    def state(self, index: int, hidden: Tensor, affine: Any) -> None:
        difference = float((hidden[1].double() - hidden[0].double()).norm())
        self.values.append(difference)
        self.relative.append(difference / float(hidden[0].double().norm()))

    def growth(self) -> list[float]:
        """Growth at every state, 1 at the start."""
        first = self.values[0]
        return [value / first if first > 0 else float("nan") for value in self.values]

    def agrees(self, other: Growth) -> bool:
        """Whether both grow alike in the first layer: then neither drowned in rounding."""
        mine, theirs = self.growth()[1], other.growth()[1]
        return abs(mine - theirs) <= 0.5 * max(mine, theirs)

    def rounding(self, precision: str) -> dict[str, Any]:
        """Where rounding errors of that precision, grown alike, reach a thousandth."""
        import torch

        epsilon = torch.finfo(getattr(torch, precision)).eps
        first = self.relative[0]
        errors = [epsilon * value / first if first > 0 else 0.0 for value in self.relative]
        layer = next((index for index, error in enumerate(errors) if error >= DECIDES), None)
        return {
            "precision": precision,
            "perturbation": first,
            "machine_epsilon": epsilon,
            "decides_from_layer": layer,
            "criterion": f"rounding errors grown to {DECIDES:g} of the tokens",
        }


def moved_copy(hidden: Tensor, size: float, seed: int) -> Tensor:
    """A batch of two copies with the second moved by a random vector of relative size per token."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(hidden[1].shape, generator=generator, dtype=torch.float64)
    scale = size * hidden[1].double().norm(dim=-1, keepdim=True)
    push = scale * noise / noise.norm(dim=-1, keepdim=True)
    moved = hidden.clone()
    moved[1] += push.to(hidden.dtype)
    return moved
