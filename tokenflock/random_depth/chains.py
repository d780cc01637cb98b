"""Chains of random layers: x_i <- N(x_i + (eta/H) sum_h B_{theta_h}[mu](x_i)), fresh heads per layer.

A random network is a model like any other: its term draws its heads anew in every layer, and
`solve(..., method=Layers(eta))` runs it. Thousands of chains of thousands of layers are one compiled
program, which keeps observables at the saved layers and no states.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..errors import require, require_whole
from ..integrate import Layers, Save, solve
from ..measure import Measure
from ..memory import require_bytes
from ..observables.base import Observable, Snapshot
from ..observables.plain import Observed
from ..reduce import Reduction
from ..runtime import Scalar
from ..schedule import Schedule, layer_key
from ..space import Sphere
from ..terms import Term
from ..trajectory import Trajectory
from .laws import HeadLaw


def _mean_overlap(snapshot: Snapshot) -> Float[Array, ""]:
    mu = snapshot.measure
    return jnp.sum((mu.weights @ mu.points) ** 2)


def _overlaps(snapshot: Snapshot) -> Float[Array, " pair"]:
    return _pairs(snapshot.measure.points @ snapshot.measure.points.T)


def _gaps(snapshot: Snapshot) -> Float[Array, " pair"]:
    x = snapshot.measure.points
    return _pairs(jnp.sum((x[:, None] - x[None]) ** 2, axis=-1) / 2)


def _pairs(matrix: Float[Array, "n n"]) -> Float[Array, " pair"]:
    return matrix[jnp.triu_indices(matrix.shape[0], 1)]


mean_overlap = Observable(
    "mean_overlap", "1", _mean_overlap, says="m = sum_ij w_i w_j <x_i, x_j> = |mean|^2"
)
overlaps = Observable(
    "overlaps", "1", _overlaps, axes=("pair",), says="<x_i, x_j> of the pairs i < j, row by row"
)
gaps = Observable(
    "gaps",
    "1",
    _gaps,
    axes=("pair",),
    says="1 - <x_i, x_j> = |x_i - x_j|^2/2, without cancellation",
)


class LayerKeys(Schedule):
    """A key for the draws of every layer, of length `step`, and of every sample unless `shared`."""

    key: Array
    step: Float[Array, ""]
    shared: bool = eqx.field(static=True)

    def at(self, t: Scalar) -> Array:
        return layer_key(self.key, self.step, t)

    def for_sample(self, index: Array) -> LayerKeys:
        key = jr.fold_in(self.key, 0 if self.shared else index)
        return eqx.tree_at(lambda keys: keys.key, self, key)


class RandomHeads(Term):
    """(1/H) sum_h V_h m_h with H heads of a law, drawn anew in every layer.

    `projected` moves by P_x B, the update that the printed limit equations belong to. Where all samples
    share their weights (`quenched`), V and A are drawn; else what they make of the tokens is.
    """

    law: HeadLaw
    keys: LayerKeys
    heads: int = eqx.field(static=True)
    projected: bool = eqx.field(static=True)

    def field(self, t: Scalar, x: Array, mu: Measure, reduction: Reduction) -> Array:
        key, log_weights = self.keys.at(t), jnp.log(mu.weights)
        if self.keys.shared:
            drawn = self.law.draw(key, mu.d, self.heads)
            push = self.law.moved_by(drawn, x, log_weights)
        else:
            push = self.law.displacement(key, x, log_weights, self.heads)
        return mu.space.project(x, push) if self.projected else push

    def check(self, mu: Measure) -> None:
        self.law.check(mu.d)


def random_chains(
    law: HeadLaw,
    x0: Measure,
    layers: int,
    step: float,
    *,
    heads: int = 1,
    chains: int | None = None,
    seed: int = 0,
    every: int | None = None,
    observe: Sequence[Observed] = (mean_overlap,),
    projected: bool = False,
    quenched: bool = False,
    progress: bool = False,
) -> Trajectory:
    """Random-depth chains of 2604.01978 from the tokens x0, all in one compiled call.

    `chains` copies of one configuration x0, or one chain per sample of a batch x0. The run has the axis
    `sample` of the chains, observables every `every` layers (default: at the end only) at the paper's
    times t = eta layer, and the tokens at the end in `run.final`; `diffusive_time(run)` is the clock
    tau = (eta^2/H) layer. The weights of chain c at layer l depend on (seed, c, l) only; with `quenched` on
    (seed, l). `progress=True` shows a bar on stderr.
    """
    x0 = _batch(x0, chains)
    every = layers if every is None else every
    _check(x0, layers, step, heads, every)
    law.check(x0.d)
    save = Save(every=every * step, observe=observe)
    _check_memory(x0, layers // every, heads, save.observe)
    keys = LayerKeys(jr.key(seed), jnp.asarray(step, dtype=float), quenched)
    model = Dynamics(None, RandomHeads(law, keys, heads, projected), label="random depth")
    run = solve(
        model,
        x0,
        layers * step,
        method=Layers(step),
        save=save,
        max_steps=layers + 1,
        progress=progress,
    )
    run.attributes["random_depth"] = {"step": step, "heads": heads, "seed": seed}
    return run


def diffusive_time(run: Trajectory) -> np.ndarray:
    """tau = (eta^2/H) layer at the saved layers of random chains."""
    told = run.attributes["random_depth"]
    return np.asarray(run.time) * told["step"] / told["heads"]


def layers_of(run: Trajectory) -> np.ndarray:
    """The saved layers of random chains."""
    return np.rint(np.asarray(run.time) / run.attributes["random_depth"]["step"]).astype(int)


def _batch(x0: Measure, chains: int | None) -> Measure:
    batch = len(x0.batch_shape)
    require(
        (batch == 1) == (chains is None) and batch <= 1,
        f"give chains=... copies of one configuration, or a batch of starts and no chains; got "
        f"x0 with the batch shape {x0.batch_shape} and chains={chains}",
    )
    if chains is None:
        return x0
    require(chains >= 1, f"chains must be at least 1, got {chains}")
    return x0.at(jnp.broadcast_to(x0.points, (chains, *x0.points.shape)))


def _check(x0: Measure, layers: int, step: float, heads: int, every: int) -> None:
    require(isinstance(x0.space, Sphere), f"random layers normalise: need a sphere, got {x0.space}")
    require(0 < step < np.inf, f"the step eta must be positive and finite, got {step}")
    for name, count in (("heads", heads), ("layers", layers), ("every", every)):
        require_whole(name, count, 1)
    require(layers % every == 0, f"layers={layers} must be a multiple of every={every}")


def _check_memory(x0: Measure, looks: int, heads: int, observe: Sequence[Observable]) -> None:
    """What all chains hold at once; an observable has at most n entries along each axis."""
    count, n, d = x0.points.shape
    kept = (looks + 1) * sum(n ** max(1, len(thing.axes)) for thing in observe)
    size = 8.0 * count * (n**2 * (heads + 2) + 8 * n * d * heads + 2 * kept)
    require_bytes(size, f"{count} chains of n={n} tokens", "use fewer chains or look less often")
