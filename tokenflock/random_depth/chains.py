"""Chains of random layers: x_i <- N(x_i + (eta/H) sum_h B_{theta_h}[mu](x_i)), fresh heads per layer.

Thousands of chains of thousands of layers are one compiled program: a scan over layers of a batch of
chains, which keeps observables at the saved layers and no states.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..errors import require, require_whole
from ..integrate.progress import RichProgressMeter
from ..measure import Measure
from ..memory import require_bytes
from ..observables.base import Observable, Snapshot
from ..observables.naming import check_names
from ..observables.settle import Observed, as_observables
from ..provenance import provenance
from ..reduce import Dense
from ..space import Sphere
from ..states import TokenState, settle_on
from ..terms import Drift
from .laws import HeadLaw

if TYPE_CHECKING:
    import xarray as xr


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


@functools.cache
def _bystander() -> Dynamics:
    """What observables see for a model: heads are drawn anew in every layer."""
    return Dynamics(None, Drift(0.0), label="random depth")


class Chain(eqx.Module):
    """One random network: its law, step eta, heads H, and the layers between two looks.

    `projected` moves by P_x B, the update that the printed limit equations belong to. `quenched`
    gives every chain the same weights: the chains then differ by their tokens only.
    """

    law: HeadLaw
    step: Float[Array, ""]
    heads: int = eqx.field(static=True)
    projected: bool = eqx.field(static=True)
    quenched: bool = eqx.field(static=True)

    def layer(self, key: Array, mu: Measure) -> Measure:
        """One layer with fresh heads."""
        x, log_weights = mu.points, jnp.log(mu.weights)
        if self.quenched:
            drawn = self.law.draw(key, mu.d, self.heads)
            push = self.law.moved_by(drawn, x, log_weights)
        else:
            push = self.law.displacement(key, x, log_weights, self.heads)
        push = mu.space.project(x, push) if self.projected else push
        return mu.at(mu.space.retract(x + self.step * push))

    def look(self, index: Array, mu: Measure, observe: Sequence[Observable]) -> dict[str, Array]:
        """The observables after so many layers."""
        snapshot = Snapshot(self.step * index, mu, _bystander(), Dense())
        return {thing.name: thing(snapshot) for thing in observe}


@eqx.filter_jit
def _run_all(
    chain: Chain,
    keys: Array,
    x0: Measure,
    looks: int,
    every: Array,
    observe: tuple[Observable, ...],
    meter: diffrax.AbstractProgressMeter,
) -> tuple[Array, dict[str, Array]]:
    """The whole experiment: tokens after looks * every layers, observables at layers 0, every, 2 every, ...

    Chains are on the leading axis. `every` is a number, not a constant of the program: deeper chains
    compile nothing.
    """
    layers = looks * every
    Moving = tuple[Array, Any]

    def layer(index: Array, moving: Moving) -> Moving:
        points, told = moving
        move = jax.vmap(lambda key, x: chain.layer(jr.fold_in(key, index), x0.at(x)).points)
        return move(keys, points), meter.step(told, index / layers)

    def look(points: Array, index: Array) -> dict[str, Array]:
        return jax.vmap(lambda x: chain.look(index, x0.at(x), observe))(points)

    def block(moving: Moving, first: Array) -> tuple[Moving, dict[str, Array]]:
        return jax.lax.fori_loop(first, first + every, layer, moving), look(moving[0], first)

    (points, told), seen = jax.lax.scan(block, (x0.points, meter.init()), every * jnp.arange(looks))
    meter.close(told)
    last = look(points, layers)
    seen = jax.tree.map(lambda all_, one: jnp.concatenate([all_, one[None]]), seen, last)
    return points, jax.tree.map(lambda values: jnp.moveaxis(values, 0, 1), seen)


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
    states: bool = False,
    projected: bool = False,
    quenched: bool = False,
    progress: bool = False,
) -> xr.Dataset:
    """Random-depth chains of 2604.01978 from the tokens x0, all in one compiled call.

    `chains` copies of one configuration x0, or one chain per sample of a batch x0. Observables are
    kept every `every` layers (default: at the end only), with the coordinates `layer`, the paper's time
    `t` = eta layer, and the diffusive time `tau` = (eta^2/H) layer. `states=True` keeps the last tokens.
    The weights of chain c at layer l depend on (seed, c, l) only; with `quenched` on (seed, l).
    `progress=True` shows a bar on stderr.
    """
    x0 = _batch(x0, chains)
    count = x0.points.shape[0]
    every = layers if every is None else every
    _check(x0, layers, step, heads, every)
    asked = as_observables(observe)
    check_names(asked, taken=("chain", "layer", "t", "tau", "tokens"))
    observe = settle_on(TokenState(x0), asked, _bystander())
    law.check(x0.d)
    looks = layers // every
    chain = Chain(law, jnp.asarray(step, dtype=float), heads, projected, quenched)
    kept = (looks + 1) * _numbers(chain, x0, observe)
    size = 8.0 * count * (x0.n**2 * (heads + 2) + 8 * x0.n * x0.d * heads + 2 * kept)
    require_bytes(size, f"{count} chains of n={x0.n} tokens", "use fewer chains or look less often")
    key = jr.key(seed)
    labels = jnp.zeros(count, int) if quenched else jnp.arange(count)
    keys = jax.vmap(lambda label: jr.fold_in(key, label))(labels)
    meter = RichProgressMeter() if progress else diffrax.NoProgressMeter()
    end, seen = _run_all(chain, keys, x0, looks, jnp.asarray(every), tuple(observe), meter)
    facts = {"step": step, "heads": heads, "seed": seed, "n": x0.n, "d": x0.d, **provenance()}
    return _dataset(x0, end if states else None, seen, observe, every * np.arange(looks + 1), facts)


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


def _numbers(chain: Chain, x0: Measure, observe: Sequence[Observable]) -> int:
    """How many numbers one look at one chain keeps."""
    one = jax.eval_shape(lambda x: chain.look(jnp.zeros(()), x0.at(x), observe), x0.points[0])
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(one))


def _dataset(
    x0: Measure,
    end: Array | None,
    seen: dict[str, Array],
    observe: Sequence[Observable],
    layers: np.ndarray,
    facts: dict,
) -> xr.Dataset:
    import xarray as xr

    data = {
        thing.name: (
            ("chain", "layer", *thing.axes),
            np.asarray(seen[thing.name]),
            thing.attributes_on(x0),
        )
        for thing in observe
    }
    if end is not None:
        data["tokens"] = (("chain", "token", "coordinate"), np.asarray(end), {})
    tau = facts["step"] ** 2 / facts["heads"] * layers
    coords = {"layer": layers, "t": ("layer", facts["step"] * layers), "tau": ("layer", tau)}
    return xr.Dataset(data, coords, facts)
