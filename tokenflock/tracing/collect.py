"""One pass of one text: a listener that turns what it hears into rows of statistics.

A small model spends less on a layer than Python spends on the calls that read it. What is heard of a
few layers is therefore kept and read together, as long as it stays below a fixed size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .attention_statistics import batched_attention_statistics
from .hooks import AttentionCall, Listener
from .state_statistics import NormAffine, batched_state_statistics, working_precision

if TYPE_CHECKING:
    from torch import Tensor, nn

Row = dict[str, Any]
# Tensors are kept until they have so many bytes, then read together: states with updates, queries with
# keys and values. A layer is read when it is complete, so that memory is O(n d) plus this.
BUFFER_BYTES = 2**22
# Arrays computed from a full buffer are about four times as large.
LARGEST_FREED_BLOCK = 4 * BUFFER_BYTES


@dataclass
class _PendingState:
    """A hidden state (n, d) that waits, and the norm it left."""

    index: int
    hidden: Tensor
    affine: NormAffine | None


@dataclass
class _PendingUpdate:
    """A residual x (n, d) that waits, and what attention and MLP add to it."""

    layer: int
    residual: Tensor
    attention: Tensor
    mlp: Tensor | None = None


@dataclass
class Collector(Listener):
    """Statistics per state and per layer of one text, complete when the pass has finished.

    `keep_states` also keeps the sphere tokens of every layer; `without_first` leaves the first token
    out of the states (not out of the attention, where it may be the sink). `progress` is told the
    number of each state. What is heard waits until it has `buffer_bytes` bytes, which changes no number
    beyond rounding: layers of transformers return new tensors and do not write into those heard.
    """

    width: int
    reference_beta: float
    keep_states: bool = False
    without_first: bool = False
    attention_rank: bool = False
    progress: Callable[[int], None] | None = None
    buffer_bytes: int = BUFFER_BYTES
    states: list[Row] = field(default_factory=list)
    layers: list[Row] = field(default_factory=list)
    tokens: list[np.ndarray] = field(default_factory=list)
    ends: list[np.ndarray] = field(default_factory=list)
    order: list[nn.Module] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._before: Tensor | None = None
        self._states: list[_PendingState] = []
        self._updates: list[_PendingUpdate] = []
        self._calls: list[tuple[int, AttentionCall]] = []
        self._state_bytes = self._call_bytes = 0
        _keep_freed_memory()

    @property
    def count(self) -> int:
        """Number of tokens in the states that are read."""
        return (self.tokens or self.ends)[0].shape[0]

    # --- what is heard ---

    def enter(self, layer: int, module: nn.Module) -> None:
        self.order.append(module)

    def state(self, index: int, hidden: Tensor, affine: NormAffine | None) -> None:
        if self.progress is not None:
            self.progress(index)
        here = self._cut(hidden)
        if self._states and not _alike(self._states[0].hidden, here):
            self._read_states()
        self._states.append(_PendingState(index, here, affine))
        self._state_bytes += here.nbytes
        # Only here: a layer is complete, with the updates of both its halves.
        if self._state_bytes >= self.buffer_bytes:
            self._read_states()

    def update(self, layer: int, part: str, residual: Tensor, update: Tensor) -> None:
        push = self._cut(update)
        self._state_bytes += push.nbytes
        if part == "attention":
            self._updates.append(_PendingUpdate(layer, self._cut(residual), push))
        elif self._updates and self._updates[-1].layer == layer:
            self._updates[-1].mlp = push

    def attention(self, layer: int, call: AttentionCall) -> None:
        if self._calls and not _comparable(self._calls[0][1], call):
            self._read_calls()
        self._calls.append((layer, call))
        self._call_bytes += sum(part.nbytes for part in (call.query, call.key, call.value))
        if self._call_bytes >= self.buffer_bytes:
            self._read_calls()

    def finish(self) -> None:
        self._read_states()
        self._read_calls()

    # --- what is read ---

    def _cut(self, hidden: Tensor) -> Tensor:
        return hidden[0, 1:] if self.without_first else hidden[0]

    def _row(self, layer: int) -> Row:
        """The row of a layer, counted from 1."""
        while len(self.layers) < layer:
            self.layers.append({})
        return self.layers[layer - 1]

    def _read_states(self) -> None:
        """Statistics of the states that wait, and the angle between each and the one before."""
        import torch

        waiting, self._states, self._state_bytes = self._states, [], 0
        if waiting:
            affines, kind = [each.affine for each in waiting], waiting[0].hidden.dtype
            states = _together([each.hidden for each in waiting], torch.float64)
            rows, points = batched_state_statistics(states, affines, self.reference_beta, kind)
            if self.without_first:  # the states are without it already
                rows = [{k: v for k, v in row.items() if k != "mean_cosine_rest"} for row in rows]
            self.states += rows
            if waiting[0].index == 0:
                self._before = None
            for each, turned in zip(waiting, self._turning_angles(points), strict=True):
                if each.index > 0:
                    self._row(each.index)["turning_angle"] = turned
            self._keep(points)
        self._read_updates()

    def _turning_angles(self, points: Tensor) -> list[float]:
        """Mean angle turned since the state before; that of the first state means nothing."""
        before = points[:1] if self._before is None else self._before
        self._before = points[-1:].clone()
        first = unit_angles(before, points[:1]).mean(1).tolist()
        return first + unit_angles(points[:-1], points[1:]).mean(1).tolist()

    def _keep(self, points: Tensor) -> None:
        if self.keep_states:
            self.tokens += list(points.numpy(force=True))
        else:
            kept = self.ends[:1] or [points[0].numpy(force=True).copy()]
            self.ends = [*kept, points[-1].numpy(force=True).copy()]

    def _read_updates(self) -> None:
        """The angle each half and the whole layer should turn, |P_theta a|/|x| with theta = x/|x|."""
        waiting, self._updates = self._updates, []
        if not waiting:
            return
        kind = working_precision(waiting[0].residual.dtype)
        residual = _together([each.residual for each in waiting], kind)
        push = _together([each.attention for each in waiting], kind)
        size, across, along = split(residual, push)
        turned = across.atan2(size + along)
        found = {
            "turning_angle_attention": turned,
            "turning_angle_attention_predicted": across / size,
        }
        for each, extra in zip(waiting, push, strict=True):
            if each.mlp is not None:
                extra += each.mlp
        _, across, _ = split(residual, push, size)
        found["turning_angle_predicted"] = across / size
        found["turning_angle_fixed_radius"] = across / self.width**0.5
        for name, values in found.items():
            for each, value in zip(waiting, values.mean(1).tolist(), strict=True):
                self._row(each.layer)[name] = value

    def _read_calls(self) -> None:
        import torch

        waiting, self._calls, self._call_bytes = self._calls, [], 0
        if not waiting:
            return
        shared = waiting[0][1]
        found = batched_attention_statistics(
            torch.cat([call.query[:1] for _, call in waiting]),
            torch.cat([call.key[:1] for _, call in waiting]),
            mask=shared.mask,
            causal=shared.causal,
            scaling=shared.scaling,
            width=self.width,
            rank=self.attention_rank,
        )
        for (layer, _), row in zip(waiting, found, strict=True):
            self._row(layer).update(row)


def split(x: Tensor, push: Tensor, size: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """|x|, |P_theta a| and <theta, a> with theta = x/|x|, of rows.

    2510.22026: theta' = P_theta A/s turns |P_theta A|/s in one layer, with s = r for pre-LN and,
    for post-LN, s = 1 in units of the fixed radius; both read |x|. The layer itself turns x into
    x + a, by the angle atan2(|P_theta a|, |x| + <theta, a>).
    """
    if size is None:
        size = x.norm(dim=-1).double().clamp_min_(1e-150)  # its square is not zero
    along = (x * push).sum(dim=-1).double() / size
    share = (along / size).to(x.dtype)
    return size, push.addcmul(x, share[..., None], value=-1.0).norm(dim=-1).double(), along


def unit_angles(u: Tensor, v: Tensor) -> Tensor:
    """Angle between unit rows, 2 asin(|u - v|/2): accurate near 0, and to 1e-8 near pi."""
    return (u - v).norm(dim=-1).div_(2.0).clamp_(max=1.0).asin_().mul_(2.0)


def _together(parts: Sequence[Tensor], kind: Any) -> Tensor:
    """One new array (b, ...) of the dtype `kind`."""
    whole = parts[0].new_empty(len(parts), *parts[0].shape, dtype=kind)
    for place, part in zip(whole, parts, strict=True):
        place.copy_(part)
    return whole


def _keep_freed_memory() -> None:
    """Let glibc use freed blocks again instead of giving each back to the system.

    It does so up to the largest block that was ever freed (mallopt(3), dynamic threshold): one that
    nobody wrote into is enough. Otherwise the pages of every temporary array are made anew, at a
    microsecond each: a tenth of a trace of a small model.
    """
    import torch

    torch.empty(LARGEST_FREED_BLOCK, dtype=torch.uint8)


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.device == other.device


def _comparable(one: AttentionCall, other: AttentionCall) -> bool:
    """Whether two calls differ in their queries and keys alone."""
    return (
        one.mask is other.mask
        and (one.causal, one.scaling) == (other.causal, other.scaling)
        and _alike(one.query, other.query)
        and _alike(one.key, other.key)
    )
