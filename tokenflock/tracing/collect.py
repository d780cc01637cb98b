"""One pass of one text: a listener that turns what it hears into rows of statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .cloud import Affine, cloud, sphere_tokens
from .looks import look as attention_statistics
from .watch import Listener, Look

if TYPE_CHECKING:
    from torch import Tensor, nn

Row = dict[str, Any]


@dataclass
class Collector(Listener):
    """Statistics per state and per layer of one text; only two states are in memory at a time.

    `keep_states` also keeps the sphere tokens of every layer; `without_first` leaves the first token
    out of the cloud (not out of the attention, where it may be the sink). `progress` is told the
    number of each state.
    """

    width: int
    reference_beta: float
    keep_states: bool = False
    without_first: bool = False
    attention_rank: bool = False
    progress: Callable[[int], None] | None = None
    states: list[Row] = field(default_factory=list)
    layers: list[Row] = field(default_factory=list)
    tokens: list[np.ndarray] = field(default_factory=list)
    ends: list[np.ndarray] = field(default_factory=list)
    order: list[nn.Module] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._before: Tensor | None = None
        self._entered: Tensor | None = None
        self._total: Tensor | None = None

    @property
    def count(self) -> int:
        """Number of tokens in the cloud."""
        return (self.tokens or self.ends)[0].shape[0]

    def _cut(self, hidden: Tensor) -> Tensor:
        return hidden[0, 1:] if self.without_first else hidden[0]

    def state(self, index: int, hidden: Tensor, affine: Affine | None) -> None:
        if self.progress is not None:
            self.progress(index)
        here = self._cut(hidden)
        points = sphere_tokens(here, affine)
        statistics = cloud(here, affine, reference_beta=self.reference_beta, tokens=points)
        self.states.append(statistics)
        if index > 0:
            self._turned(index, points)
        self._before = points
        if self.keep_states:
            self.tokens.append(points.double().numpy(force=True))
        else:
            self.ends = [*self.ends[:1], points.double().numpy(force=True)]

    def _row(self, layer: int) -> Row:
        """The row of a layer, counted from 1."""
        while len(self.layers) < layer:
            self.layers.append({})
        return self.layers[layer - 1]

    def _turned(self, layer: int, points: Tensor) -> None:
        """The angle each token turned in this layer, beside |P_theta (a + m)|/|x| of its updates."""
        assert self._before is not None
        row = self._row(layer)
        row["speed"] = float(angles(self._before, points).mean())
        if self._entered is not None and self._total is not None:
            turned = tangential(self._entered, self._total)
            row["speed_predicted"] = float(turned.mean())
            radii = self._entered.double().norm(dim=-1) / self.width**0.5
            row["speed_fixed_radius"] = float((turned * radii).mean())
        self._entered = self._total = None

    def enter(self, layer: int, module: nn.Module) -> None:
        self.order.append(module)

    def attention(self, layer: int, look: Look) -> None:
        self._row(layer).update(
            attention_statistics(
                look.query[0],
                look.key[0],
                mask=look.mask,
                causal=look.causal,
                scaling=look.scaling,
                width=self.width,
                rank=self.attention_rank,
            )
        )

    def update(self, layer: int, part: str, residual: Tensor, update: Tensor) -> None:
        here, push = self._cut(residual), self._cut(update)
        if part == "attention":
            self._entered, self._total = here, push
            row = self._row(layer)
            row["speed_attention"] = float(angles(here, here + push).mean())
            row["speed_attention_predicted"] = float(tangential(here, push).mean())
        elif self._total is not None:
            self._total = self._total + push


def angles(x: Tensor, y: Tensor) -> Tensor:
    """Angle between rows, 2 atan2(|u - v|, |u + v|) of the directions: accurate near 0 and pi."""
    import torch

    u, v = (a.double() / a.double().norm(dim=-1, keepdim=True).clamp_min(1e-300) for a in (x, y))
    return 2.0 * torch.atan2((u - v).norm(dim=-1), (u + v).norm(dim=-1))


def tangential(x: Tensor, push: Tensor) -> Tensor:
    """|P_theta a|/|x|, theta = x/|x|: what the flow theta' = P_theta A/s turns in one layer.

    2510.22026: s = r for pre-LN, and for post-LN s = 1 in units of the fixed radius; both read |x|.
    """
    x, push = x.double(), push.double()
    size = x.norm(dim=-1, keepdim=True).clamp_min(1e-300)
    theta = x / size
    along = (theta * push).sum(dim=-1, keepdim=True)
    return (push - along * theta).norm(dim=-1) / size[:, 0]
