"""gpu-phase: the published phase diagram of 2312.10794, Fig. 3, one panel of it.

`batch` systems of n tokens at each of 90 betas, 300 layers x <- N(x + 0.1 softmax(beta x x^T) x), and
the fraction of pairs with <x_i, x_j> > 0.999 after every layer, averaged over the systems. A panel
is an array (betas, layers + 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .core import OURS, BenchJob, Row, benchmark
from .gpu_dense import finished, torch_device
from .peers import Maker, gather
from .sums import sphere_tokens
from .timing import Contestant

DELTA = 1e-3
# The published script looks at this many equally spaced times, not at every layer.
CHECKPOINTS = 200
PROMISED = 0.07
REFERENCE = "one jnp scan, float64"


@benchmark(
    "gpu-phase",
    says="seconds of one panel of the published phase diagram: 90 betas x 2048 systems x 300 layers",
    quick={
        "batch": 2048,
        "n": 32,
        "dimensions": (2, 128),
        "betas": 90,
        "step": 0.1,
        "t1": 30.0,
        "timed_betas": 1,
        "repeats": 3,
        "budget": 12.0,
    },
    full={"timed_betas": 90, "repeats": 7, "budget": 300.0},
    device="gpu",
)
def gpu_phase(job: BenchJob) -> list[Row]:
    """One row per dimension of the tokens."""
    return job.row_per_dimension(_row)


def _row(job: BenchJob, d: int) -> Row:
    steps = round(job.t1 / job.step)
    betas = np.linspace(0.1, 9.0, job.betas)
    x0 = sphere_tokens(job.batch * job.n, d, "float32").reshape(job.batch, job.n, d)
    few = betas[np.linspace(0, job.betas - 1, job.timed_betas).round().astype(int)]
    part = "" if len(few) == len(betas) else f" ({len(few)} of {len(betas)} betas, scaled)"
    peers: dict[str, Maker] = {
        f"published script, torch float64{part}": lambda: published_panel(few, x0, steps, job.step),
        f"torch loop, float32{part}": lambda: torch_panel(few, x0, steps, job.step),
        "one jnp scan, float32": lambda: scan_panel(betas, x0, steps, job.step),
        REFERENCE: lambda: scan_panel(betas, x0.astype(float), steps, job.step),
    }
    field = gather(job, lambda: ours_panel(betas, x0, steps, job.step), peers)
    samples = job.race(field.contestants)
    seconds = {
        name: taken.median * (len(betas) / len(few) if name.endswith("scaled)") else 1.0)
        for name, taken in samples.items()
    }
    row = Row(
        f"d={d}, batch {job.batch}, n={job.n}, {job.betas} betas, {steps} layers, float32",
        seconds.pop(OURS),
        "s",
        _error(field.outputs),
        peers=seconds,
        missing=field.missing,
        spread=samples[OURS].spread,
    )
    # The largest standard error that a mean of `batch` fractions can have.
    row.bar_error(0.5 / job.batch**0.5, "statistic within Monte-Carlo error")
    return row.bar_below(PROMISED) if d == 2 else row


def _error(panels: Mapping[str, np.ndarray]) -> float | None:
    """Largest difference of our statistic from the float64 panel with the same starts."""
    exact = panels.get(REFERENCE)
    return None if exact is None else float(np.max(np.abs(panels[OURS] - exact)))


def ours_panel(betas: np.ndarray, x0: np.ndarray, steps: int, step: float) -> Contestant:
    """`flock.ensemble`: on a GPU the whole time loop of all systems in one launch."""
    from ... import SA, Layers, Sphere, from_array
    from ...ensembles import ensemble, mean_and_error

    model, tokens = SA(betas), from_array(Sphere(x0.shape[-1]), x0)
    method = Layers(step)

    def panel() -> np.ndarray:
        run = ensemble(model, tokens, steps * step, every=step, method=method, delta=DELTA)
        return mean_and_error(run, "pair_fraction")[0].values

    return panel


def scan_panel(betas: np.ndarray, x0: np.ndarray, steps: int, step: float) -> Contestant:
    """All betas and systems in one jitted lax.scan of jax.numpy, statistics inside."""
    import jax
    import jax.numpy as jnp

    n = x0.shape[1]

    def met(x: Any) -> Any:
        close = x @ jnp.swapaxes(x, -1, -2) > 1 - DELTA
        return (jnp.mean(jnp.sum(close, axis=(-1, -2)), axis=-1) - n) / (n * (n - 1))

    def layer(x: Any, beta: Any) -> Any:
        scores = beta[:, None, None, None] * (x @ jnp.swapaxes(x, -1, -2))
        moved = x + step * jax.nn.softmax(scores, axis=-1) @ x
        return moved / jnp.linalg.norm(moved, axis=-1, keepdims=True)

    @jax.jit
    def panel(x: Any, beta: Any) -> Any:
        start = jnp.broadcast_to(x, (beta.size, *x.shape))

        def advance(state: Any, _: Any) -> tuple[Any, Any]:
            state = layer(state, beta)
            return state, met(state)

        _, history = jax.lax.scan(advance, start, length=steps)
        return jnp.concatenate([met(start)[None], history]).T

    tokens, all_betas = jnp.asarray(x0), jnp.asarray(betas, x0.dtype)
    return lambda: jax.block_until_ready(panel(tokens, all_betas))


def published_panel(betas: np.ndarray, x0: np.ndarray, steps: int, step: float) -> Contestant:
    """The way of the published script: one beta after another, float64, n x n softmax.

    Its statistic indexes the matrix with a mask made on the host at every checkpoint; the panel has
    the checkpoints' columns.
    """
    import torch

    tokens = torch.from_numpy(x0.astype(np.float64)).to(torch_device())
    looks = checkpoints(steps)
    n = x0.shape[1]

    def density(x: Any) -> float:
        inner = x @ x.transpose(1, 2)
        different = ~torch.eye(n).bool().expand(len(x), -1, -1)
        products = inner[different]
        return float((products > 1 - DELTA).sum() / len(products))

    return lambda: _torch_panel(betas, tokens, steps, step, density, looks)


def torch_panel(betas: np.ndarray, x0: np.ndarray, steps: int, step: float) -> Contestant:
    """The same loop written with care: float32, the statistic on the device at every layer."""
    import torch

    tokens = torch.from_numpy(x0).to(torch_device())
    n = x0.shape[1]

    def density(x: Any) -> Any:
        close = (x @ x.transpose(1, 2) > 1 - DELTA).sum(dim=(1, 2))
        return (close.double().mean() - n) / (n * (n - 1))

    return lambda: _torch_panel(betas, tokens, steps, step, density, np.arange(steps + 1))


def checkpoints(steps: int) -> np.ndarray:
    """Layers after which the published script looks: it meets time 0 after the first layer."""
    times = np.linspace(0.0, steps, CHECKPOINTS)
    return np.unique(np.maximum(1, np.ceil(times - 1e-9).astype(int)))


def _torch_panel(
    betas: np.ndarray,
    tokens: Any,
    steps: int,
    step: float,
    density: Callable[[Any], Any],
    looks: np.ndarray,
) -> np.ndarray:
    import torch

    wanted, columns = set(looks.tolist()), []
    with torch.no_grad():
        for beta in betas.tolist():
            x, column = tokens, []
            for layer in range(steps + 1):
                if layer:
                    weights = torch.softmax(beta * (x @ x.transpose(1, 2)), dim=-1)
                    x = torch.nn.functional.normalize(x + step * (weights @ x), dim=-1)
                if layer in wanted:
                    column.append(density(x))
            columns.append(column)
        finished(x)
    return np.asarray([[float(value) for value in column] for column in columns])
