"""Blocks as plain data, the network they make as a model of the engine, and its forward pass.

A block of 2502.02270 is x_i <- rho x_i + (1/|C_i|) sum_{j in C_i} V x_j, C_i = argmax_j <Q x_i, K x_j>, or
x <- eta x + W relu(U x + b). Here Q and K have one row, V is a number and rho = 0 (`Attend`); U and W have
one row and one column, and eta = 1 (`Push`). Several blocks are one `Dynamics` whose weights change from
layer to layer: block k is its layer of step 1 at depth k.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from ..dynamics import Dynamics, Particles
from ..errors import require
from ..integrate import Layers, Save, solve
from ..kinds import Hardmax, Softmax
from ..measure import from_array, padded
from ..normalisation import Residual
from ..runtime import Number
from ..schedule import Piecewise
from ..space import Euclidean
from ..terms import Attention
from ..terms.neurons import Neurons
from ..terms.perceptron import Perceptron
from ..trajectory import Trajectory
from ..weights import Weights

# The depth of one block.
STEP = 1.0


class Block(abc.ABC):
    """The weights of one layer of a network on R^d: x <- keep x + attention + perceptron."""

    keep: ClassVar[float]

    @abc.abstractmethod
    def head(self) -> Weights:
        """Q and K of one row, and the number V: 0 where the block has no attention."""

    @abc.abstractmethod
    def neuron(self) -> Neurons:
        """The one neuron, with outer weights 0 where the block has none."""


@dataclass(frozen=True)
class Attend(Block):
    """x_i <- value times the mean of the x_j with the largest score <query, x_i> <key, x_j>: 2d + 1 numbers.

    A temperature > 0 replaces the mean by softmax weights of score/temperature (exact ties aside, the
    limit of temperature 0 is the hardmax).
    """

    query: np.ndarray
    key: np.ndarray
    value: float = 1.0
    temperature: float = 0.0
    keep: ClassVar[float] = 0.0

    def head(self) -> Weights:
        return Weights(Q=self.query[None], K=self.key[None], V=self.value)

    def neuron(self) -> Neurons:
        return Neurons(np.zeros((1, self.key.size)), np.zeros((self.key.size, 1)))


@dataclass(frozen=True)
class Push(Block):
    """x <- x + outer relu(<inner, x> - threshold), one neuron: 2d + 1 numbers."""

    inner: np.ndarray
    outer: np.ndarray
    threshold: float
    keep: ClassVar[float] = 1.0

    def head(self) -> Weights:
        nothing = np.zeros((1, self.inner.size))
        return Weights(Q=nothing, K=nothing, V=0.0)

    def neuron(self) -> Neurons:
        return one_neuron(self.inner, self.outer, self.threshold)


def one_neuron(inner: ArrayLike, outer: ArrayLike, threshold: Number) -> Neurons:
    """outer relu(<inner, x> - threshold)."""
    return Neurons(jnp.asarray(inner)[None], jnp.asarray(outer)[:, None], [-threshold])


def network(blocks: Sequence[Block]) -> Dynamics:
    """The blocks as one model on R^d; `Layers(1)` runs it, one block a layer."""
    require(len(blocks) > 0, "there is no block; give at least one Attend or Push")
    switches = STEP * np.arange(1, len(blocks))

    def scheduled(values: Sequence[Any]) -> Piecewise:
        return Piecewise(switches, values)

    temperature = _temperature(blocks)
    attention = Attention(
        scheduled([block.head() for block in blocks]),
        1 / temperature if temperature > 0 else 1.0,
        Softmax() if temperature > 0 else Hardmax(),
    )
    perceptron = Perceptron(weights=scheduled([block.neuron() for block in blocks]))
    keep = Residual(scheduled([block.keep for block in blocks]))
    return Dynamics(None, attention + perceptron, normalisation=keep, label="construction")


def _temperature(blocks: Sequence[Block]) -> float:
    """The one temperature of all attention; 0 is hardmax."""
    found = {block.temperature for block in blocks if isinstance(block, Attend)}
    require(
        len(found) <= 1,
        f"all Attend blocks of a network need the same temperature, got {sorted(found)}; replace some",
    )
    return found.pop() if found else 0.0


def run_blocks(blocks: Sequence[Block], tokens: np.ndarray) -> Trajectory:
    """One sequence (n, d), n >= 2, through the blocks, as a run: `run.states` has every layer."""
    start = from_array(Euclidean(_checked(tokens).shape[1]), tokens)
    end = STEP * len(blocks)
    return solve(
        network(blocks), start, end, method=Layers(STEP), save=Save(every=STEP, states=True)
    )


def forward(blocks: Sequence[Block], tokens: np.ndarray) -> np.ndarray:
    """The tokens (n, d) of one sequence after all blocks, in double precision."""
    return forward_all(blocks, [tokens])[0]


def forward_all(blocks: Sequence[Block], sequences: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The same for many sequences of any lengths at once: one program, short ones are filled up."""
    tokens = [_checked(sequence) for sequence in sequences]
    lengths = np.array([len(sequence) for sequence in tokens])
    # Powers of two, so that few lengths are compiled.
    longest = 1 << int(np.max(lengths) - 1).bit_length()
    filled = [np.pad(x, ((0, longest - len(x)), (0, 0)), mode="edge") for x in tokens]
    present = np.arange(longest) < lengths[:, None]
    points = jnp.asarray(np.stack(filled))
    ends = np.asarray(_all_layers(network(blocks), points, jnp.asarray(present), len(blocks)))
    return [end[:length] for end, length in zip(ends, lengths, strict=True)]


@eqx.filter_jit
def _all_layers(
    model: Dynamics,
    points: Float[Array, "sequences n d"],
    present: Bool[Array, "sequences n"],
    count: int,
) -> Float[Array, "sequences n d"]:
    """The last of `count` layers of step 1, for every sequence."""

    def one(x: Float[Array, "n d"], there: Bool[Array, " n"]) -> Float[Array, "n d"]:
        mu = padded(Euclidean(x.shape[-1]), x, there)

        def layer(state: Particles, t: Array) -> tuple[Particles, None]:
            return model.layer(t, state, mu, STEP), None

        return jax.lax.scan(layer, Particles(x), STEP * jnp.arange(count))[0].points

    return jax.vmap(one)(points, present)


def _checked(tokens: np.ndarray) -> np.ndarray:
    tokens = np.asarray(tokens, dtype=float)
    require(
        tokens.ndim == 2 and len(tokens) > 0,
        f"a sequence is an array of tokens (n, d), got shape {tokens.shape}",
    )
    return tokens
