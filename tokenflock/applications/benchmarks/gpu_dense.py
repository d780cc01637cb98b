"""gpu-dense: all pairs of n tokens on one NVIDIA GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from .core import OURS, BenchJob, Row, benchmark
from .peers import Maker, gather
from .sums import chosen_rows, direct_rows, errors_of, evaluation, sphere_tokens
from .timing import Contestant, again

SDPA = "torch SDPA float32"
# Rows of a tile of torch's matrix: 2 GB of scores at n = 131072.
TORCH_ROWS = 4096
XLA_ROWS = 256
# Head dimensions that the fused kernels take are multiples of this.
HEAD_MULTIPLE = 8


@benchmark(
    "gpu-dense",
    says="one softmax attention over all pairs of tokens on a GPU, float32, by GpuKernel",
    quick={
        "n": 131_072,
        "dimensions": (3, 64),
        "beta": 9.0,
        "rows": 512,
        "reduction": "GpuKernel",
        "calls": 10,
        "repeats": 7,
        "budget": 15.0,
    },
    full={"repeats": 25, "budget": 60.0},
    device="gpu",
)
def gpu_dense(job: BenchJob) -> list[Row]:
    """One row per dimension."""
    return job.row_per_dimension(_row)


def _row(job: BenchJob, d: int) -> Row:
    from ... import reduce

    x = sphere_tokens(job.n, d, "float32")
    peers: dict[str, Maker] = {
        SDPA: lambda: torch_sdpa(x, job.beta, "float32"),
        "torch SDPA bf16, cuDNN": lambda: torch_sdpa(x, job.beta, "bfloat16", "CUDNN_ATTENTION"),
        "torch SDPA bf16, flash": lambda: torch_sdpa(x, job.beta, "bfloat16", "FLASH_ATTENTION"),
        "torch softmax in row tiles": lambda: torch_tiles(x, job.beta),
        "jnp in row tiles": lambda: jnp_tiles(x, job.beta),
    }
    field = gather(job, lambda: evaluation(getattr(reduce, job.reduction)(), x, job.beta), peers)
    some = chosen_rows(job.n, job.rows)
    errors = errors_of(field.outputs, some, direct_rows(x, job.beta, some))
    samples = job.race({name: again(call, job.calls) for name, call in field.contestants.items()})
    speeds = {name: job.calls * job.n**2 / taken.median for name, taken in samples.items()}
    row = Row(
        f"d={d}, n={job.n}, beta={job.beta:g}, float32",
        speeds.pop(OURS),
        "pairs/s",
        errors.pop(OURS),
        peers=speeds,
        peer_errors=errors,
        missing=field.missing,
        spread=samples[OURS].spread,
    )
    if d == 3:
        return row.bar_above(2.0e12).bar_error(2e-6, "relative error at most 2e-6")
    return row.bar_against(SDPA, 2.5).bar_error(1e-5, "relative error at most 1e-5")


def torch_device() -> Any:
    """The GPU, or the CPU where a test runs without one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def finished(tensor: Any) -> Any:
    """The tensor on the host side of a synchronisation, still on its device."""
    import torch

    if tensor.is_cuda:
        torch.cuda.synchronize()
    return tensor


class OnDevice:
    """A device tensor that turns into a NumPy array only when it is asked to."""

    def __init__(self, tensor: Any):
        self.tensor = tensor

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.tensor.detach().float().cpu().numpy(), dtype=dtype)


def torch_sdpa(x: np.ndarray, beta: float, dtype: str, backend: str | None = None) -> Contestant:
    """scaled_dot_product_attention on padded heads; bfloat16 by one named fused kernel."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import pad, scaled_dot_product_attention

    d = x.shape[1]
    # Without this torch would fall back to the n x n matrix in float32, and refuse bfloat16.
    tokens = pad(torch.from_numpy(x).to(torch_device()), (0, -d % HEAD_MULTIPLE))[None, None]
    tokens = tokens.to(getattr(torch, dtype))

    def attend() -> Any:
        with torch.no_grad():
            out = scaled_dot_product_attention(tokens, tokens, tokens, scale=beta)
        return OnDevice(finished(out)[0, 0, :, :d])

    if backend is None:
        return attend
    chosen = getattr(SDPBackend, backend)

    def attend_by_one_kernel() -> Any:
        with sdpa_kernel(chosen):
            return attend()

    return attend_by_one_kernel


def torch_tiles(x: np.ndarray, beta: float) -> Contestant:
    """softmax of the matrix in tiles of rows, in torch."""
    import torch

    tokens = torch.from_numpy(x).to(torch_device())

    def attend() -> Any:
        with torch.no_grad():
            tiles = [
                torch.softmax(beta * (rows @ tokens.T), dim=-1) @ tokens
                for rows in tokens.split(TORCH_ROWS)
            ]
        return OnDevice(finished(torch.cat(tiles)))

    return attend


def jnp_tiles(x: np.ndarray, beta: float) -> Contestant:
    """softmax of the matrix in tiles of rows, left to XLA."""
    import jax
    import jax.numpy as jnp

    tokens = jnp.asarray(x)
    rows = min(XLA_ROWS, len(x))

    def tile(start: Any, y: Any) -> Any:
        queries = jax.lax.dynamic_slice_in_dim(y, start, rows)
        return jax.nn.softmax(beta * (queries @ y.T), axis=-1) @ y

    @jax.jit
    def attend(y: Any) -> Any:
        out = jax.lax.map(lambda start: tile(start, y), jnp.arange(0, len(x), rows))
        return out.reshape(-1, x.shape[1])

    return lambda: jax.block_until_ready(attend(tokens))
