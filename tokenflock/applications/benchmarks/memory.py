"""memory: what attention over many tokens takes above a process that has done nothing yet.

Every number comes from a fresh process (`python -m tokenflock.applications.benchmarks.memory ours forward N
D`): the peak of its resident memory during the evaluation, less what it held after the same evaluation of
few tokens.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .core import BenchJob, Row, benchmark
from .peers import torch_sdpa
from .sums import evaluation, sphere_tokens

BETA = 9.0
WARM_UP = 512
LARGEST = 1.0
STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


@benchmark(
    "memory",
    says="peak memory above baseline of attention and of its gradient by Tiled, float32",
    quick={
        "d": 3,
        "cases": (
            ("forward", 200_000, ()),
            ("forward", 30_000, ("torch",)),
            ("gradient", 8192, ("torch",)),
        ),
    },
    full={
        "cases": (
            ("forward", 200_000, ("torch",)),
            ("gradient", 30_000, ("torch",)),
        )
    },
)
def memory(job: BenchJob) -> list[Row]:
    """One row per task; a peer whose time does not fit has no number there."""
    rows = []
    for index, (what, n, measured) in enumerate(job.cases):
        job.report(index / len(job.cases), f"{what}, n = {n}")
        rows.append(_row(what, n, job.d, measured))
    return rows


def _row(what: str, n: int, d: int, measured: tuple[str, ...]) -> Row:
    peers, missing = {"the n x n matrix in float32 (computed)": 4e-9 * n * n}, []
    for library in measured:
        try:
            peers[f"{library} SDPA"] = peak(library, what, n, d)["gigabytes"]
        except ImportError:
            missing.append(f"{library} SDPA: not installed")
    ours = peak("ours", what, n, d)
    row = Row(f"{what}, n={n}, d={d}, float32", ours["gigabytes"], "GB", peers=peers)
    row.missing = missing
    return row.bar_below(LARGEST) if (what, n) == ("forward", 200_000) else row


def peak(library: str, what: str, n: int, d: int) -> dict[str, float]:
    """Gigabytes above the baseline in a fresh process, and the seconds of the evaluation."""
    return fresh_process(__name__, library, what, n, d)


def fresh_process(module: str, *words: object) -> dict[str, float]:
    """What `python -m module words` prints as JSON; its exit status 3 says that a package is missing."""
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    asked = " ".join(map(str, words))
    if done.returncode == 3:
        raise ImportError(asked)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["killed"])[-1]
        raise RuntimeError(f"{asked}: {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def probe(make: Callable[[np.ndarray], Callable[[], object]], n: int, d: int) -> dict[str, float]:
    """Warm up at a few tokens, then evaluate at n and compare with what the process held before."""
    make(sphere_tokens(WARM_UP, d, "float32"))()
    return {"gigabytes": taken_by(make(sphere_tokens(n, d, "float32")))}


def taken_by(evaluate: Callable[[], object]) -> float:
    """Gigabytes of the peak of a call, above what the process held before."""
    before = _held_and_peak_forgotten()
    evaluate()
    return max(0.0, _peak() - before) / 1e9


def _held_and_peak_forgotten() -> float:
    """Bytes held now. Linux can forget an earlier peak (of an import); elsewhere that peak counts."""
    try:
        RESET.write_text("5")
    except OSError:
        return _peak()
    return _field("VmRSS")


def _peak() -> float:
    """Largest number of bytes held so far."""
    if STATUS.exists():
        return _field("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _field(name: str) -> float:
    """An entry of /proc/self/status, in bytes."""
    lines = STATUS.read_text().splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def tiled_forward(x: np.ndarray) -> Callable[[], object]:
    """Attention at every token."""
    from ...reduce import Tiled

    return evaluation(Tiled(), x, BETA)


def tiled_gradient(x: np.ndarray) -> Callable[[], object]:
    """The gradient of sum |out|^2 with respect to the tokens."""
    import jax
    import jax.numpy as jnp

    from ...reduce import Tiled
    from .sums import attention_problem

    def loss(tokens: jax.Array) -> jax.Array:
        problem = attention_problem(tokens, BETA)  # pyright: ignore[reportArgumentType]
        return jnp.sum(Tiled()(problem) ** 2)

    tokens = jnp.asarray(x)
    gradient = jax.jit(jax.grad(loss)).lower(tokens).compile()
    return lambda: jax.block_until_ready(gradient(tokens))


def sdpa_forward(x: np.ndarray) -> Callable[[], object]:
    """As ours, in torch."""
    return torch_sdpa(x, BETA)


def sdpa_gradient(x: np.ndarray) -> Callable[[], object]:
    """As ours, in torch."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    tokens = torch.from_numpy(x)[None, None].requires_grad_()

    def gradient() -> object:
        out = scaled_dot_product_attention(tokens, tokens, tokens, scale=BETA)
        return torch.autograd.grad((out**2).sum(), tokens)

    return gradient


PROBES = {
    ("ours", "forward"): tiled_forward,
    ("ours", "gradient"): tiled_gradient,
    ("torch", "forward"): sdpa_forward,
    ("torch", "gradient"): sdpa_gradient,
}

if __name__ == "__main__":
    library, what, n, d = sys.argv[1:]
    try:
        print(json.dumps(probe(PROBES[library, what], int(n), int(d))))
    except ImportError:
        sys.exit(3)
