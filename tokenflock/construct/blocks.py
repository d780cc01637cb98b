"""Blocks as plain data, and the forward pass, which knows nothing of how they were found.

A block of 2502.02270 is x_i <- rho x_i + (1/|C_i|) sum_{j in C_i} V x_j, C_i = argmax_j <Q x_i, K x_j>, or
x <- eta x + W relu(U x + b). Here Q and K have rank one, V is a number and rho = 0 (`Attend`); U and W have
one row and one column, and eta = 1 (`Push`).
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..dynamics import Dynamics
from ..errors import require
from ..kinds import Hardmax, Softmax
from ..terms import Attention, Drift
from ..terms.perceptron import Perceptron
from ..weights import Weights


class Block(abc.ABC):
    """One layer of a network on R^d: all tokens of one sequence in, all tokens out."""

    @abc.abstractmethod
    def apply(self, tokens: np.ndarray) -> np.ndarray:
        """The tokens (n, d) after this block."""

    @abc.abstractmethod
    def dynamics(self) -> Dynamics:
        """The block as a model of the engine: one layer of step 1 of it is this block."""


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

    def apply(self, tokens: np.ndarray) -> np.ndarray:
        scores = np.outer(tokens @ np.asarray(self.query), tokens @ np.asarray(self.key))
        behind = scores - np.max(scores, axis=1, keepdims=True)
        weights = np.exp(behind / self.temperature) if self.temperature > 0 else behind == 0
        return self.value * (weights @ tokens / np.sum(weights, axis=1, keepdims=True))

    def dynamics(self) -> Dynamics:
        weights = Weights(B=np.outer(self.query, self.key), V=self.value)
        soft = self.temperature > 0
        beta, kind = (1 / self.temperature, Softmax()) if soft else (1.0, Hardmax())
        return Dynamics(None, Attention(weights, beta, kind) + Drift(-1.0))


@dataclass(frozen=True)
class Push(Block):
    """x <- x + outer relu(<inner, x> - threshold), one neuron: 2d + 1 numbers."""

    inner: np.ndarray
    outer: np.ndarray
    threshold: float

    def apply(self, tokens: np.ndarray) -> np.ndarray:
        beyond = np.maximum(tokens @ np.asarray(self.inner) - self.threshold, 0.0)
        return tokens + beyond[:, None] * np.asarray(self.outer)

    def dynamics(self) -> Dynamics:
        return Dynamics(None, Perceptron(self.inner[None], self.outer[:, None], [-self.threshold]))


def forward(blocks: Iterable[Block], tokens: np.ndarray) -> np.ndarray:
    """The tokens (n, d) of one sequence after all blocks, in double precision."""
    tokens = np.asarray(tokens, dtype=float)
    require(tokens.ndim == 2, f"a sequence is an array of tokens (n, d), got shape {tokens.shape}")
    for block in blocks:
        tokens = block.apply(tokens)
    return tokens
