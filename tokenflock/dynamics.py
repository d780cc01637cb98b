"""Dynamics: a space, terms, noise, a normalisation scheme and a frame, put together as one model.

Everything physical lives here; tolerances, steps and reductions belong to `solve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .errors import require
from .frame import Frame, Original
from .measure import Measure
from .noise import Noise
from .normalisation import Normalisation, PostLN
from .old_names import refusing
from .reduce import Dense, Reduction
from .runtime import Scalar, is_traced
from .schedule import Schedule, jumps_in, now
from .space import Euclidean, Space
from .terms import Attention, Term


class Clusters(eqx.Module):
    """Bookkeeping of a cluster-reduced run: a merged token hands its mass to its owner and follows it.

    Owners are indices kept as floats, since the solver integrates them (with velocity zero).
    """

    masses: Float[Array, "*batch n"]
    owners: Float[Array, "*batch n"]

    def follow(self, velocity: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Every token moves as its owner does: left alone, it would relax to it at rate one."""
        return velocity[self.owners.astype(int)]

    def at_rest(self) -> Clusters:
        """Zero velocity of the bookkeeping."""
        return jax.tree.map(jnp.zeros_like, self)


class Particles(eqx.Module):
    """The numbers of moving tokens: directions or positions, and radii where the scheme moves them."""

    points: Float[Array, "*batch n d"]
    radii: Float[Array, "*batch n"] | None = None
    clusters: Clusters | None = None


class Dynamics(eqx.Module):
    """A model: v[mu](t, x) on a space, with noise.

    `space=None` takes the space of the initial tokens, so that SA(beta) is one model in every dimension.
    """

    space: Space | None
    terms: Term
    noise: Noise | None
    normalisation: Normalisation | None
    frame: Frame
    label: str = eqx.field(static=True)

    def __init__(
        self,
        space: Space | None,
        terms: Term,
        noise: Noise | None = None,
        normalisation: Normalisation | None = None,
        frame: Frame | None = None,
        label: str = "custom",
    ):
        self.space = space
        self.terms = terms
        self.noise = noise
        self.normalisation = normalisation
        self.frame = Original() if frame is None else frame
        self.label = label

    def field(
        self, t: Scalar, x: Float[Array, "m d"], mu: Measure, reduction: Reduction | None = None
    ) -> Float[Array, "m d"]:
        """The velocity v[mu](t, x), tangent to the space, at any points x (post-LN, original frame)."""
        force = self.terms.field(t, x, mu, reduction or Dense())
        return mu.space.project(x, force)

    def velocity(self, t: Scalar, state: Particles, mu: Measure, reduction: Reduction) -> Particles:
        """Time derivative of the state; points are retracted first, so stages may leave the space."""
        here = self._here(state, mu)
        points, radial = self._rates(t, here, reduction)
        if state.clusters is None:
            return Particles(points, radial)
        return Particles(state.clusters.follow(points), radial, state.clusters.at_rest())

    def _rates(self, t: Scalar, here: Measure, reduction: Reduction) -> tuple[Array, Array | None]:
        """Velocity of the points and of the radii."""
        if isinstance(here.space, Euclidean):
            force = self.frame.force(self.terms, t, here, reduction)
            if self.normalisation is None:
                return force, None
            return self.normalisation.velocity(t, here.points, None, force)
        scheme = self.scheme()
        field = self.terms.tangent_field if scheme.tangent_only else self.terms.field
        force = field(t, here.points, here, reduction)
        push, radial = scheme.velocity(t, here.points, here.radii, force)
        return here.space.project(here.points, push), radial

    def _here(self, state: Particles, mu: Measure) -> Measure:
        """The measure of a state: retracted points, and its masses if tokens have merged."""
        here = mu.at(mu.space.retract(state.points), state.radii)
        if state.clusters is None:
            return here
        return here.weighing(state.clusters.masses)

    def layer(
        self,
        t: Scalar,
        state: Particles,
        mu: Measure,
        step: Scalar,
        reduction: Reduction | None = None,
    ) -> Particles:
        """One layer of the discrete network: x <- N(x + step A(x)), or the scheme's own update.

        The only definition of a layer: runs by `Layers(step)` make it, and so do random chains, the trained
        classifier and the constructions (the kernels of `ensemble` fuse the same layer into one launch, and
        are tested against it). It is pure: jax.grad goes through it and jax.vmap batches it. Space and
        masses are those of mu, places those of the state. On R^d there is no N.
        """
        here = mu.at(state.points, state.radii)
        force = self.frame.force(self.terms, t, here, reduction or Dense())
        if self.normalisation is None and isinstance(mu.space, Euclidean):
            return Particles(state.points + step * force, None)
        return Particles(*self.scheme().layer(t, state.points, state.radii, force, step))

    def displacement(
        self, t: Scalar, state: Particles, mu: Measure, increment: Array, reduction: Reduction
    ) -> Particles:
        """The tangent step made by a Brownian increment."""
        assert self.noise is not None
        here = self._here(state, mu)
        amplitude = self.noise.amplitude(t, here.points, here, reduction)
        step = mu.space.project(here.points, self.noise.apply(amplitude, increment))
        return Particles(step, None if state.radii is None else jnp.zeros_like(state.radii))

    def scheme(self) -> Normalisation:
        """The normalisation scheme in force on a sphere (post-LN unless stated)."""
        return PostLN() if self.normalisation is None else self.normalisation

    def particles(self, mu: Measure) -> Particles:
        """The state at t = 0; radii start at 1 unless the measure brings its own."""
        if isinstance(mu.space, Euclidean) or not self.scheme().moves_radii:
            return Particles(mu.points, None)
        radii = jnp.ones(mu.points.shape[:-1]) if mu.radii is None else mu.radii
        return Particles(mu.points, radii)

    def attentions(self) -> list[Attention]:
        """The attention terms."""
        found = (part.attention() for part in self.parts())
        return [attention for attention in found if attention is not None]

    def parts(self) -> tuple[Term, ...]:
        """The terms of the velocity, one by one."""
        return self.terms.parts()

    @property
    def is_plain_flow(self) -> bool:
        """Whether tokens move by the projected field itself: post-LN, original coordinates."""
        return self.scheme().is_plain and self.frame.is_original

    def temperature(self) -> Float[Array, ""] | None:
        """T of noise that is independent for every token; None without noise, or with shared noise."""
        return None if self.noise is None else self.noise.diffusivity

    def for_sample(self, index: Array) -> Dynamics:
        """The model met by one sample of a batch: schedules drawn per sample change their key."""

        def choose(node: object) -> object:
            return node.for_sample(index) if isinstance(node, Schedule) else node

        return jax.tree.map(choose, self, is_leaf=lambda node: isinstance(node, Schedule))

    def now(self, t: Scalar) -> Dynamics:
        """The model with the numbers in force at time t; schedules of weights stay."""
        return now(self, t)

    def jumps(self, t1: float) -> list[Any]:
        """Times in (0, t1) where the field is discontinuous, and traced ones whatever they are."""
        times = [*self.terms.jumps(t1), *jumps_in(self.noise, t1)]
        if self.normalisation is not None:
            times += self.normalisation.jumps(t1)
        known = sorted({time for time in times if not is_traced(time)})
        return known + [time for time in times if is_traced(time)]

    def check(self, mu: Measure, t1: float) -> None:
        """Refuse tokens this model cannot act on, with a sentence."""
        require(
            self.space is None or self.space == mu.space,
            f"the model lives on {self.space}, the tokens on {mu.space}",
        )
        if self.normalisation is not None:
            self.normalisation.check(mu.space)
            require(
                self.frame.is_original,
                f"{type(self.normalisation).__name__} acts on the tokens as they are: leave out either "
                f"the normalisation or the frame {type(self.frame).__name__}",
            )
        self.terms.check(mu)
        if self.noise is not None:
            self.noise.check(mu)
        self.frame.check(self.terms, mu, t1)


# A type checker sees the names that there are.
if not TYPE_CHECKING:
    __getattr__ = refusing(__name__)
