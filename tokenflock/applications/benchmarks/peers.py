"""The peers: how else the same sums are evaluated. A maker returns a call that is ready and warm."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .core import OURS, BenchJob
from .timing import Contestant

Maker = Callable[[], Contestant]


@dataclass
class Field:
    """Contestants that are warm, what each returned on its first call, and who is missing and why."""

    contestants: dict[str, Contestant] = field(default_factory=dict)
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def enter(self, name: str, make: Maker) -> None:
        """Make a contestant and warm it up."""
        contestant = make()
        self.outputs[name] = np.asarray(contestant())
        self.contestants[name] = contestant


def gather(job: BenchJob, ours: Maker, peers: Mapping[str, Maker]) -> Field:
    """Ours, which must run, and the peers that do run here."""
    ready = Field()
    ready.enter(OURS, ours)
    for name, make in peers.items():
        job.pulse()
        try:
            ready.enter(name, make)
        except ImportError:
            ready.missing.append(f"{name}: not installed")
        except (RuntimeError, ValueError, MemoryError, OSError) as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            ready.missing.append(f"{name}: {reason[:120]}")
    return ready


def numpy_published(x: np.ndarray, beta: float) -> Contestant:
    """The n x n matrix as the authors' scripts write it: float64, exp without a shift."""
    return numpy_matrix(x.astype(np.float64), beta)


def numpy_matrix(x: np.ndarray, beta: float) -> Contestant:
    """The n x n matrix, in the precision of the tokens."""

    def attend() -> np.ndarray:
        kernel = np.exp(beta * (x @ x.T))
        return (kernel / kernel.sum(axis=1)[:, None]) @ x

    return attend


def numpy_causal(x: np.ndarray, beta: float, block: int = 512) -> Contestant:
    """Causal attention in blocks of rows, each against the tokens it sees."""

    def rows(start: int) -> np.ndarray:
        stop = min(start + block, len(x))
        kernel = np.exp(beta * (x[start:stop] @ x[:stop].T))
        kernel = np.tril(kernel, start)
        return (kernel / kernel.sum(axis=1)[:, None]) @ x[:stop]

    return lambda: np.concatenate([rows(start) for start in range(0, len(x), block)])


def torch_sdpa(x: np.ndarray, beta: float, causal: bool = False) -> Contestant:
    """torch's scaled_dot_product_attention with scale beta, in the precision of the tokens."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    tokens = torch.from_numpy(x)[None, None]

    def attend() -> Any:
        with torch.no_grad():
            out = scaled_dot_product_attention(tokens, tokens, tokens, is_causal=causal, scale=beta)
        return out[0, 0]

    return attend


def torch_naive(x: np.ndarray, beta: float) -> Contestant:
    """softmax of the whole matrix in torch."""
    import torch

    tokens = torch.from_numpy(x)

    def attend() -> Any:
        with torch.no_grad():
            return torch.softmax(beta * (tokens @ tokens.T), dim=-1) @ tokens

    return attend


def keops(x: np.ndarray, beta: float, rows: int) -> Contestant:
    """KeOps' fused softmax reduction for the first `rows` tokens; it is compiled for another few."""
    with _silent():
        import torch
        from pykeops.torch import LazyTensor

        tokens = torch.from_numpy(x)

        def attend(count: int) -> Any:
            query = LazyTensor(tokens[:count, None, :].contiguous())
            key = LazyTensor(tokens[None, :, :])
            return (beta * (query | key)).sumsoftmaxweight(key, dim=1)

        attend(min(rows, 8))
    return lambda: attend(rows)


def plain_jnp(x: np.ndarray, beta: float) -> Contestant:
    """The whole matrix in one jitted line of jax.numpy."""
    import jax
    import jax.numpy as jnp

    tokens = jnp.asarray(x)
    attend = jax.jit(lambda y: jax.nn.softmax(beta * (y @ y.T), axis=-1) @ y)
    return lambda: jax.block_until_ready(attend(tokens))


def finufft_circle(x: np.ndarray, beta: float, tol: float) -> Contestant:
    """Fourier on the circle by hand: two transforms of degree K to the tokens' moments and back.

    e^{beta cos(a - b)} = sum_k I_k(beta) e^{ik(a - b)}; coordinates travel as one complex number.
    """
    import jax
    import jax.numpy as jnp
    from jax_finufft import nufft1, nufft2
    from scipy.special import ive

    orders = np.arange(1, 200)
    degree = int(orders[ive(orders, beta) < tol * ive(0, beta)][0])
    weights = jnp.asarray(ive(np.abs(np.arange(-degree, degree + 1)), beta))
    angles = jnp.asarray(np.arctan2(x[:, 1], x[:, 0]))
    values = jnp.stack([jnp.ones(len(x), complex), jnp.asarray(x[:, 0] + 1j * x[:, 1])])

    @jax.jit
    def attend(theta: Any, carried: Any) -> Any:
        moments = nufft1(2 * degree + 1, carried, theta, iflag=-1, eps=tol)
        sums = nufft2(weights * moments, theta, iflag=1, eps=tol)
        mean = sums[1] / jnp.real(sums[0])
        return jnp.stack([jnp.real(mean), jnp.imag(mean)], axis=-1)

    return lambda: jax.block_until_ready(attend(angles, values))


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Send what a library and its compiler print to nowhere: stdout belongs to the result."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        with open(os.devnull, "w") as text, contextlib.redirect_stdout(text):
            os.dup2(nowhere, 1)
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
