"""Weights of a perceptron, and schedules that change them with depth.

A perceptron is u(x) = w sigma(a x + b) with `width` neurons. Its weights are a schedule of `Neurons`;
a `Neurons` is the constant one, `Piecewise(times, [Neurons, ...])` switches between some, `RandomNeurons`
draws them, anew in every layer when asked to.
"""

from __future__ import annotations

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from ..errors import require
from ..runtime import ArrayLike, Number, Scalar, as_array, known
from ..schedule import Per, Schedule, check_draws, layer_key, switches


class NeuronSchedule(Schedule):
    """Weights of a perceptron as a function of time."""

    @abc.abstractmethod
    def at(self, t: Scalar) -> Neurons:
        """The weights in force at time t."""


def dimension_of(schedule: Schedule) -> int:
    """The d of the tokens that the neurons of a schedule act on."""
    return jax.eval_shape(lambda: schedule.at(0.0).inner).shape[-1]


def is_gradient(schedule: Schedule) -> bool:
    """Whether the field of a schedule of neurons is a gradient at every time."""
    return jax.eval_shape(lambda: schedule.at(0.0)).omega is not None


class Neurons(NeuronSchedule):
    """Constant weights: inner a (width, d), outer w (d, width), bias b (width,).

    `omega` is given where w_j = omega_j a_j, so that the field is a gradient (2601.21366). One axis more in
    front of any of them is a batch of models: see `solve`. Those without it are shared.
    """

    inner: Float[Array, "*model width d"]
    outer: Float[Array, "*model d width"]
    bias: Float[Array, "*model width"]
    omega: Float[Array, "*model width"] | None = None
    ranks: ClassVar[dict[str, tuple[int, ...]]] = {
        "inner": (2,),
        "outer": (2,),
        "bias": (1,),
        "omega": (1,),
    }

    def __init__(
        self,
        inner: ArrayLike,
        outer: ArrayLike,
        bias: ArrayLike | None = None,
        omega: ArrayLike | None = None,
    ):
        self.inner = as_array(inner)
        self.outer = as_array(outer)
        require(
            self.inner.ndim in (2, 3)
            and self.outer.ndim in (2, 3)
            and self.outer.shape[-2:] == self.inner.shape[:-3:-1],
            "a perceptron needs inner (width, d) and outer (d, width) weights, and for a batch of models "
            f"one axis more in front, got {self.inner.shape} and {self.outer.shape}",
        )
        width = self.inner.shape[-2]
        self.bias = as_array(np.zeros(width) if bias is None else bias)
        self.omega = None if omega is None else as_array(omega)
        _check_per_neuron("bias", self.bias, width)
        if self.omega is not None:
            _check_per_neuron("omega", self.omega, width)
        _check_lengths(self)

    @staticmethod
    @known()
    def gradient(omega: ArrayLike, a: ArrayLike) -> Neurons:
        """Gradient-structured: w_j = omega_j a_j, no bias; one axis more in front of either is a batch."""
        scale, inner = as_array(omega), as_array(a)
        require(
            inner.ndim in (2, 3)
            and scale.ndim in (1, 2)
            and scale.shape[-1] == inner.shape[-2]
            and (scale.ndim == 1 or inner.ndim == 2 or len(scale) == len(inner)),
            "omega must have one number per row of a, and for a batch of models one axis more in front of "
            f"one of them or, of the same length, of both; got {scale.shape} and {inner.shape}",
        )
        return Neurons(inner, along(scale, inner), None, scale)

    def at(self, t: Scalar) -> Neurons:
        return self

    @property
    def is_fixed(self) -> bool:
        return True


def along(omega: Array, inner: Array) -> Array:
    """The outer weights w_j = omega_j a_j, of one perceptron or of a batch."""
    return jnp.swapaxes(omega[..., None] * inner, -1, -2)


def _check_per_neuron(name: str, value: Array, width: int) -> None:
    require(
        value.ndim in (1, 2) and value.shape[-1] == width,
        f"{name} must have shape ({width},), and for a batch of models one axis more in front, "
        f"got {value.shape}",
    )


def _check_lengths(neurons: Neurons) -> None:
    """Refuse weights that are batches of different lengths."""
    given = {name: getattr(neurons, name) for name in neurons.ranks}
    lengths = {
        name: len(value)
        for name, value in given.items()
        if value is not None and value.ndim - 1 in neurons.ranks[name]
    }
    require(
        len(set(lengths.values())) <= 1,
        "weights of a perceptron that have one axis more change together, so they need one length; "
        f"got {lengths}",
    )


class RandomNeurons(NeuronSchedule):
    """Independent draws, and fresh ones in every layer [m period, (m+1) period) when `period` is given.

    The law keeps the velocity of a token independent of the width, and for general (not gradient)
    ReLU neurons of the dimension. a_j is uniform on the unit sphere of R^d, the entries of w are
    N(0, scale^2/width), b_j is N(0, bias^2/d). At |x| = 1 the input a_j.x + b_j then has mean 0 and
    variance (1 + bias^2)/d, and E relu(.)^2 is half of it, so

        E |u(x)|^2 = d (scale^2/width) width (1 + bias^2)/(2 d) = scale^2 (1 + bias^2)/2.

    The covariance of two tokens is that of the arc-cosine kernel: orthogonal tokens share 1/pi of the
    variance at bias = 0, and all of it as bias -> infinity. What is shared moves all tokens alike.
    With gradient=True, omega_j is N(0, scale^2/width) instead, w_j = omega_j a_j, b = 0, and
    E |u|^2 = scale^2/(2 d).

    `per` chooses what a batch shares: "run" (all samples meet the same weights) or "sample".
    """

    d: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    gradient: bool = eqx.field(static=True)
    period: float | None = eqx.field(static=True)
    per: Per = eqx.field(static=True)
    scale: Float[Array, ""]
    bias: Float[Array, ""]
    key: Array

    @known()
    def __init__(
        self,
        d: int,
        width: int,
        seed: int,
        scale: Number = 1.0,
        gradient: bool = False,
        bias: Number = 0.0,
        period: float | None = None,
        per: Per = "run",
    ):
        for name, size in (("d", d), ("width", width)):
            whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
            require(whole and size >= 1, f"{name} must be a whole number, at least 1, got {size!r}")
        for name, number in (("scale", scale), ("bias", bias)):
            require(
                np.ndim(number) == 0,
                f"{name} of random neurons must be one number, got shape {np.shape(number)}; for a batch of "
                "models draw one perceptron for each and stack their weights: "
                "Perceptron(jnp.stack([p.inner for p in drawn]), jnp.stack([p.outer for p in drawn]))",
            )
        require(
            not gradient or bool(bias == 0),
            f"a gradient-structured perceptron has no bias, got bias={bias}; leave it out",
        )
        check_draws(period, per)
        self.d, self.width, self.gradient = d, width, gradient
        self.period, self.per = period, per
        self.scale, self.bias = as_array(scale), as_array(bias)
        self.key = jr.key(seed)

    def at(self, t: Scalar) -> Neurons:
        first, second, third = jr.split(layer_key(self.key, self.period, t), 3)
        inner = jr.normal(first, (self.width, self.d), dtype=jnp.float64)
        inner = inner / jnp.linalg.norm(inner, axis=-1, keepdims=True)
        size = self.scale * self.width**-0.5
        if self.gradient:
            return Neurons.gradient(size * jr.normal(second, (self.width,), jnp.float64), inner)
        outer = size * jr.normal(second, (self.d, self.width), dtype=jnp.float64)
        bias = self.bias * self.d**-0.5 * jr.normal(third, (self.width,), dtype=jnp.float64)
        return Neurons(inner, outer, bias)

    @property
    def is_fixed(self) -> bool:
        return self.period is None and self.per == "run"

    def jumps(self, t1: float) -> list[float]:
        return switches(self.period, t1)

    def for_sample(self, index: Array) -> Schedule:
        if self.per == "run":
            return self
        return eqx.tree_at(lambda s: s.key, self, jr.fold_in(self.key, index))
