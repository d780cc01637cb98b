"""Statistics of one attention call: how sharply each head looks, at whom, and with which beta.

From the queries and keys that the model itself computed (after rotary positions, as they enter the
softmax). The n x n matrices are visited in blocks of rows and never kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError, require
from .state_statistics import spectrum_rank

if TYPE_CHECKING:
    from torch import Tensor

# A block of scores stays in the cache through the softmax, entropy and sums made of it.
BLOCK_SCORES = 2**19
# Finite, so that 0 times it is 0; no softmax tells it from minus infinity.
INVISIBLE = -1e30


def attention_statistics(
    query: Tensor,
    key: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool,
    scaling: float,
    width: int,
    rank: bool = False,
    rows: int | None = None,
) -> dict[str, np.ndarray]:
    """Statistics of A_ij = softmax_j(s_ij), s_ij = scaling <q_i, k_j> + mask_ij, per head.

    query (H, n, k), key (Hk, n, k) with Hk dividing H (head h reads key head h // (H/Hk)); `mask`
    None, bool (True: visible) or additive, broadcastable to (H, n, n), with leading axes of 1;
    `causal` hides j > i as well. Means run over the rows that see something, but for the entropy:

    attention_entropy       mean_i of -sum_j A_ij log A_ij, nats; 0 for a row that sees nothing, as the
                            engine counts it
    attention_entropy_share mean of entropy/log(visible columns), rows that see more than one
    sink_share, sink_token  max_j and argmax_j of mean_i A_ij;  first_mass: mean_i A_i1
    beta_logits             sqrt(width) * rms of s_ij - mean_j s_ij over visible j, rows that see
                            more than one: the beta with the same spread on isotropic unit tokens
    attention_rank          with `rank`: exp of the entropy of A's singular values
    column_mass (n,)        mean over heads of mean_i A_ij; sums to 1

    NaN where no row counts. O(H n^2 k) time; O(H n + block) memory, O(H n^2) with `rank`.
    """
    return batched_attention_statistics(
        query[None],
        key[None],
        mask=mask,
        causal=causal,
        scaling=scaling,
        width=width,
        rank=rank,
        rows=rows,
    )[0]


def batched_attention_statistics(
    query: Tensor,
    key: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool,
    scaling: float,
    width: int,
    rank: bool = False,
    rows: int | None = None,
) -> list[dict[str, np.ndarray]]:
    """`attention_statistics` of b calls that share mask and scaling: query (b, H, n, k), key (b, Hk, n, k).

    As many calls as fit into one block are read together; their number depends on H and n alone.
    A mask of every head by itself (first axis H) is read call by call.
    """
    query, key = _heads(query, key)
    calls, heads, n, _ = query.shape
    hiding = _Mask.of(mask, causal, heads, n)
    together = 1 if hiding.by_head else max(1, BLOCK_SCORES // (heads * n * n))
    block = max(1, min(n, BLOCK_SCORES // (heads * n) if rows is None else rows))
    found = []
    for start in range(0, calls, together):
        few = slice(start, start + together)
        group = _visit(
            query[few].flatten(0, 1), key[few].flatten(0, 1), hiding, scaling, block, rank
        )
        found += _rows_of_calls(group.means(hiding.visible, width), len(query[few]))
    return found


def _visit(
    query: Tensor, key: Tensor, hiding: _Mask, scaling: float, block: int, rank: bool
) -> _Sums:
    """Blocks of rows of the heads of a few calls, one head after the other."""
    import torch

    heads, n, _ = query.shape
    sums, columns = [], query.new_zeros(heads, n)
    matrix = query.new_zeros(heads, n, n) if rank else None
    for start in range(0, n, block):
        stop = min(n, start + block)
        seen = stop if hiding.causal else n
        scores = _scores(query[:, start:stop], key[:, :seen], scaling)
        row_sums, weights = _read(scores, hiding, start, stop)
        sums.append(row_sums)
        columns[:, :seen] += weights.sum(1)
        if matrix is not None:
            matrix[:, start:stop, :seen] = weights
    return _Sums(sums[0] if len(sums) == 1 else torch.cat(sums, dim=-1), columns, matrix)


def _rows_of_calls(found: dict[str, np.ndarray], calls: int) -> list[dict[str, np.ndarray]]:
    """Split the head axis into calls; the mass of a column is the mean over the heads of a call."""
    parts = {name: value.reshape(calls, -1, *value.shape[1:]) for name, value in found.items()}
    parts["column_mass"] = parts["column_mass"].mean(1)
    return [{name: value[call] for name, value in parts.items()} for call in range(calls)]


def _heads(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """At least float32, and keys with their mean taken off: a row's softmax does not see it.

    Without the common part of the keys (large in trained models) the row's variance is a
    difference of small numbers, and float32 is enough for it.
    """
    import torch

    require(
        query.ndim == 4 and key.ndim == 4 and query.shape[2:] == key.shape[2:],
        f"queries (heads, n, k) and keys (key heads, n, k) are needed, got {tuple(query.shape[1:])} "
        f"and {tuple(key.shape[1:])}; give one text at a time",
    )
    heads, groups = query.shape[1], key.shape[1]
    require(heads % groups == 0, f"{groups} key heads must divide the {heads} query heads")
    kind = torch.promote_types(torch.promote_types(query.dtype, key.dtype), torch.float32)
    query, key = query.detach().to(kind), key.detach().to(kind)
    return query, key - key.mean(2, keepdim=True)


def _scores(query: Tensor, key: Tensor, scaling: float) -> Tensor:
    """scaling <q_i, k_j>, (H, b, m); the queries of a group meet their one key head together."""
    heads, rows, size = query.shape
    grouped = (query * scaling).reshape(len(key), -1, size)
    return (grouped @ key.transpose(1, 2)).reshape(heads, rows, -1)


@dataclass(frozen=True)
class _Mask:
    """Who may look at whom: `hidden` bool and `added` float, (1 or H, 1 or n, 1 or n), or None.

    visible (1 or H, n): how many columns each row sees.
    """

    hidden: Tensor | None
    added: Tensor | None
    causal: bool
    visible: np.ndarray

    @property
    def by_head(self) -> bool:
        """Whether each head has a mask of its own."""
        return len(self.visible) > 1

    @staticmethod
    def of(mask: Tensor | None, causal: bool, heads: int, n: int) -> _Mask:
        import torch

        if mask is None:
            seen = np.arange(1.0, n + 1.0) if causal else np.full(n, float(n))
            return _Mask(None, None, causal, seen[None])
        full, added = _three_axes(mask.detach(), heads, n), None
        if full.dtype == torch.bool:
            hidden = ~full
        else:
            # Models hide with the lowest number of their dtype as often as with minus infinity.
            hidden = full <= torch.finfo(full.dtype).min / 2
            added = torch.where(hidden, 0.0, full)
            added = added if bool(added.any()) else None
        shown = (~hidden).expand(-1, n, n)
        visible = (shown.tril() if causal else shown).sum(-1).cpu().numpy().astype(float)
        return _Mask(hidden, added, causal, visible)

    def block(self, start: int, stop: int, like: Tensor) -> _Hidden | None:
        """Who is hidden from the rows start..stop, in as many columns as `like` has."""
        import torch

        if self.hidden is None and not self.causal:
            return None
        if self.hidden is None:  # columns before `start` are seen by all rows
            square = torch.ones(stop - start, stop - start, dtype=like.dtype, device=like.device)
            return _Hidden(square.triu_(1)[None], start)
        hidden = _rows(self.hidden, start, stop, like.shape[-1]).to(like.dtype)
        if self.causal:
            future = torch.ones(like.shape[1:], dtype=like.dtype, device=like.device)
            hidden = torch.maximum(hidden, future.triu_(start + 1))
        return _Hidden(hidden.expand(-1, stop - start, like.shape[-1]), 0)

    def bias(self, start: int, stop: int, like: Tensor) -> Tensor | None:
        """What the mask adds to the scores of the rows start..stop."""
        if self.added is None:
            return None
        return _rows(self.added, start, stop, like.shape[-1])


@dataclass(frozen=True)
class _Hidden:
    """1 where a row may not look and 0 elsewhere, (1 or H, b, m - first), from column `first` on.

    Numbers, not booleans: products and sums that broadcast over heads run at full speed, a masked
    fill does not.
    """

    pairs: Tensor
    first: int

    def clear(self, scores: Tensor) -> None:
        """Hidden scores become 0, to add nothing to a sum."""
        scores[..., self.first :] *= 1.0 - self.pairs

    def drown(self, scores: Tensor) -> None:
        """Hidden scores (0 so far) become so low that their exponential is 0."""
        scores[..., self.first :] += INVISIBLE * self.pairs


def _three_axes(mask: Tensor, heads: int, n: int) -> Tensor:
    while mask.ndim > 3 and mask.shape[0] == 1:
        mask = mask[0]
    while mask.ndim < 3:
        mask = mask[None]
    fits = mask.ndim == 3 and all(
        size in (1, whole) for size, whole in zip(mask.shape, (heads, n, n), strict=True)
    )
    if not fits:
        raise InputError(
            f"the mask of {heads} heads on {n} tokens must broadcast to ({heads}, {n}, {n}), got "
            f"{tuple(mask.shape)}; give one text at a time"
        )
    return mask


def _rows(mask: Tensor, start: int, stop: int, width: int) -> Tensor:
    return (mask if mask.shape[1] == 1 else mask[:, start:stop])[..., :width]


def _read(scores: Tensor, mask: _Mask, start: int, stop: int) -> tuple[Tensor, Tensor]:
    """Four sums of each row, (4, H, b), and the weights A_ij (0 in rows that see nothing).

    The sums: sum_j s_ij and sqrt(sum_j s_ij^2) over visible j, max_j A_ij, and sum_j A_ij t_ij with
    t = s - max s. The fused softmax is the only exponential: a plain `exp` is several times slower
    where it underflows. The scores are overwritten.
    """
    import torch

    hidden, bias = mask.block(start, stop, scores), mask.bias(start, stop, scores)
    if bias is not None:
        scores += bias
    if hidden is not None:
        hidden.clear(scores)
    total, length = scores.sum(-1), torch.linalg.vector_norm(scores, dim=-1)
    if hidden is not None:
        hidden.drown(scores)
    scores -= scores.amax(-1, keepdim=True)
    weights = scores.softmax(-1)
    sums = torch.stack((total, length, weights.amax(-1), scores.mul_(weights).sum(-1)))
    sees = mask.visible[:, start:stop] > 0
    if not sees.all():
        weights *= torch.as_tensor(sees, device=weights.device)[..., None]
    return sums, weights


@dataclass(frozen=True)
class _Sums:
    """What the blocks gave: four sums of each row (4, H, n), columns (H, n), A itself if asked."""

    rows: Tensor
    columns: Tensor
    matrix: Tensor | None

    def means(self, visible: np.ndarray, width: int) -> dict[str, np.ndarray]:
        """Means over rows, in float64: H = -log max A - sum_j A_j t_j; the rms is about the mean."""
        total, length, peak, tilt = self.rows.double().cpu().numpy()
        count = np.maximum(visible, 1.0)
        entropy = -np.log(peak) - tilt
        variance = np.maximum(length**2 / count - (total / count) ** 2, 0.0)
        share = entropy / np.log(np.where(visible > 1, visible, np.e))
        mass = self.columns.double().cpu().numpy()
        mass /= np.maximum(np.count_nonzero(visible, axis=-1), 1)[:, None]
        found = {
            "attention_entropy": np.where(visible > 0, entropy, 0.0).mean(-1),
            "attention_entropy_share": _mean(share, visible > 1),
            "sink_share": mass.max(-1),
            "sink_token": mass.argmax(-1),
            "first_mass": mass[:, 0],
            "beta_logits": np.sqrt(width * _mean(variance, visible > 1)),
            "column_mass": mass,
        }
        if self.matrix is not None:
            found["attention_rank"] = _rank(self.matrix)
        return found


def _mean(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Mean over the rows that count; NaN where none does."""
    number = np.count_nonzero(counted, axis=-1)
    total = (values * counted).sum(-1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _rank(matrix: Tensor) -> np.ndarray:
    """Effective rank of each head's (n, n) attention matrix. O(H n^3)."""
    import torch

    return spectrum_rank(torch.linalg.svdvals(matrix.to(torch.float64)).cpu().numpy())
