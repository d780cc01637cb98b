"""Spectra of the value-output and query-key maps of trained heads, read from the weights alone.

Head h moves a token by W_O W_V x_j (d x d, rank k) and scores <x_i, W_Q^T W_K x_j>: the V and B of
the theory (2305.05465, ALBERT figure). Both have at most 2k non-zero eigenvalues, found here from
k x k and 2k x 2k problems; no d x d matrix is formed.

What the weights alone leave out: the gain of the norm before the layer (multiply it into the
columns of query, key and value for a pre-LN model), biases, and rotary positions (the query-key
spectrum is that of two tokens at the same place).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..errors import InputError, require

if TYPE_CHECKING:
    from torch import Tensor

# Share of one sign from which a head is said to attract or to repel.
CLEAR_SHARE = 0.9


@dataclass(frozen=True, eq=False)
class Projections:
    """The weights of one layer's attention: query (H, k, d), key and value (Hk, k, d), output (d, H, k).

    `scaling` multiplies <q, k> before the softmax (usually k^{-1/2}); Hk divides H.
    """

    query: Tensor | np.ndarray
    key: Tensor | np.ndarray
    value: Tensor | np.ndarray
    output: Tensor | np.ndarray
    scaling: float

    @property
    def heads(self) -> int:
        """Number of query heads H."""
        return self.query.shape[0]


def head_maps(layer: Projections) -> dict[str, np.ndarray]:
    """Spectra of one layer, per head (first axis H), float64.

    ov_real, ov_imag (H, k)  eigenvalues of W_O W_V, largest real part first (its other d - k are 0)
    ov_trace (H,)            tr W_O W_V
    ov_positive_share (H,)   sum of positive real parts / sum of |real parts|: 1 attracts, 0 repels
    qk_eigen (H, min(2k, d)) eigenvalues of B = scaling sym(W_Q^T W_K), largest first
    qk_positive_share (H,)   the same share of qk_eigen
    beta_weights (H,)        sqrt(d) scaling |W_Q^T W_K|_F: the beta that gives isotropic tokens of
                             norm sqrt(d) the same rms of the scores

    O(H (k^3 + d k^2)).
    """
    query, key, value, output = _per_head(layer)
    spectrum = _sorted(np.linalg.eigvals(value @ output))
    symmetric = _symmetric_spectrum(query, key) * layer.scaling
    return {
        "ov_real": np.real(spectrum),
        "ov_imag": np.imag(spectrum),
        "ov_trace": np.einsum("hkd,hdk->h", value, output),
        "ov_positive_share": positive_share(np.real(spectrum)),
        "qk_eigen": symmetric[:, ::-1],
        "qk_positive_share": positive_share(symmetric),
        "beta_weights": _beta(query, key, layer.scaling),
    }


def layer_values(layer: Projections) -> np.ndarray:
    """Eigenvalues of sum_h W_O W_V of all heads, largest real part first, (min(d, H k),) complex.

    The value map when every head looks alike; its spectrum is not the union of the heads'.
    O(d^3): a quarter of a second at d = 576, so not a part of `head_maps`.
    """
    _, _, value, output = _per_head(layer)
    flat = value.reshape(-1, value.shape[2])
    out = output.swapaxes(0, 1).reshape(output.shape[1], -1)
    return _sorted(np.linalg.eigvals(out @ flat if len(out) <= len(flat) else flat @ out))


def spectra(layers: Sequence[Projections]) -> dict[str, np.ndarray]:
    """`head_maps` of every layer, stacked on a first axis; a shared layer is computed once."""
    known: dict[int, dict[str, np.ndarray]] = {}
    for layer in layers:
        if id(layer) not in known:
            known[id(layer)] = head_maps(layer)
    maps = [known[id(layer)] for layer in layers]
    require(bool(maps), "spectra need at least one layer, got none")
    shapes = {found["qk_eigen"].shape + found["ov_real"].shape for found in maps}
    if len(shapes) > 1:
        raise InputError("the layers differ in their heads; read head_maps layer by layer")
    return {name: np.stack([found[name] for found in maps]) for name in maps[0]}


def positive_share(values: np.ndarray) -> np.ndarray:
    """sum of positive values / sum of |values| on the last axis; 1/2 (neither sign) where all are 0."""
    total = np.abs(values).sum(-1)
    positive = np.maximum(values, 0.0).sum(-1)
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), 0.5)


def attraction(ov: np.ndarray) -> Literal["attractive", "repulsive", "mixed"]:
    """What a head's value map does to tokens that look at each other, from its eigenvalues.

    "attractive" where at least 0.9 of sum |Re lambda| is positive (V = I in the theory),
    "repulsive" where at least 0.9 is negative (V = -I), "mixed" otherwise.
    """
    share = float(positive_share(np.real(ov)))
    if share >= CLEAR_SHARE:
        return "attractive"
    return "repulsive" if share <= 1.0 - CLEAR_SHARE else "mixed"


def _per_head(layer: Projections) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """query, key, value (H, k, d) and output (H, d, k); key heads repeated for their group."""
    query, key, value = _array(layer.query), _array(layer.key), _array(layer.value)
    output = np.swapaxes(_array(layer.output), 0, 1)
    shapes = (
        f"query {query.shape}, key {key.shape}, value {value.shape}, output {layer.output.shape}"
    )
    require(
        all(part.ndim == 3 for part in (query, key, value, output))
        and len(query) == len(output)
        and len(key) == len(value)
        and len(query) % len(key) == 0
        and query.shape[1:] == key.shape[1:]
        and value.shape[1:] == output.shape[:0:-1],
        "projections need query (H, k, d), key and value (Hk, k, d) with Hk dividing H, output "
        f"(d, H, k); got {shapes}",
    )
    group = len(query) // len(key)
    return query, np.repeat(key, group, axis=0), np.repeat(value, group, axis=0), output


def _array(part: Tensor | np.ndarray) -> np.ndarray:
    """float64 numpy, from numpy or from torch in any precision (numpy has no bfloat16)."""
    if not isinstance(part, np.ndarray):
        part = part.detach().cpu().double().numpy()
    return np.asarray(part, dtype=np.float64)


def _sorted(values: np.ndarray) -> np.ndarray:
    """By falling real part, then falling imaginary part."""
    order = np.lexsort((-np.imag(values), -np.real(values)), axis=-1)
    return np.take_along_axis(values, order, axis=-1)


def _symmetric_spectrum(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Eigenvalues of sym(Q^T K) = U^T J U, U = [Q; K], J = [[0, I], [I, 0]]/2, smallest first.

    With U^T = Z R (QR, Z orthonormal columns) they are those of R J R^T, and zeros.
    """
    import torch

    size = query.shape[1]
    both = torch.as_tensor(np.concatenate([query, key], axis=1)).mT
    triangle = torch.linalg.qr(both, mode="r").R.numpy()  # numpy's takes three times as long
    product = triangle[..., :size] @ triangle[..., size:].swapaxes(1, 2)
    return np.linalg.eigvalsh((product + product.swapaxes(1, 2)) / 2.0)


def _beta(query: np.ndarray, key: np.ndarray, scaling: float) -> np.ndarray:
    """sqrt(d) scaling |Q^T K|_F, by |Q^T K|_F^2 = tr(Q Q^T K K^T) with k x k products.

    Scores <Q x, K y> of independent isotropic tokens of norm sqrt(d) have the rms |Q^T K|_F, those of
    the theory, beta <x, y> of unit tokens, beta/sqrt(d).
    """
    full = np.sum((query @ query.swapaxes(1, 2)) * (key @ key.swapaxes(1, 2)), axis=(1, 2))
    return np.sqrt(query.shape[2] * np.maximum(full, 0.0)) * abs(scaling)
