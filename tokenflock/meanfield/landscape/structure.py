"""The energy behind a model, its field at atoms, and its second variation along geodesics.

For atoms x_i of masses m_i, with r_ij = <x_i, B x_j> (B = I unless the model has a symmetric one),

    E = (s/(2 beta)) sum_ij m_i m_j e^{beta (r_ij - 1)} + sum_i m_i f(x_i),

s = e^beta ("perspective", form A of 2601.21366) or 1 ("metastability", form B); f is half the potential v of
a gradient-structured perceptron, plus any `Potential`. The field F_i = (1/m_i) grad_{x_i} E is the model's
velocity: "ascent" follows it, "descent" its opposite. SA divides the attention by its partition function:
without f its critical points are those of E, with f there is no energy and only the field is left.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...batches import batch_axis
from ...dynamics import Dynamics
from ...errors import require
from ...kinds import Kind
from ...runtime import Scalar
from ...space import normalise
from ...terms import Attention, Sum, Term
from ..checks import require_fixed_numbers

# e^beta must not overflow in form A, nor its product with masses and curvatures.
LARGEST_BETA = 600.0


class Landscape(eqx.Module):
    """The numbers of a gradient-structured model: attention strength, beta, B, external terms."""

    beta: Float[Array, ""]
    scale: Float[Array, ""]
    B: Float[Array, "d d"] | None
    external: tuple[Term, ...]
    kind: Kind

    @staticmethod
    def of(model: Dynamics) -> Landscape:
        """The landscape of a model, or a sentence saying why it has none."""
        _check_gradient(model)
        own = Landscape.unchecked(model)
        beta = own.beta
        require(beta.ndim == 0, "a landscape needs one beta, got a vector; take them one at a time")
        require(
            batch_axis(model) is None,
            "a landscape is that of one model, got a batch of models; take them one at a time",
        )
        require(float(beta) > 0, "at beta = 0 attention has no kernel e^{beta <x,y>}; use beta > 0")
        require(
            float(own.strength()) < np.exp(LARGEST_BETA),
            f"e^beta overflows at beta={float(beta):g}; use USA(beta, 'metastability') with the "
            "perceptron's omega times e^{-beta}",
        )
        return own

    @staticmethod
    def unchecked(model: Dynamics) -> Landscape:
        """The numbers of a model that has a landscape, or of its opposite; also of traced models."""
        attention = model.attentions()[0]
        external = tuple(part for part in model.parts() if not part.interacts)
        B = attention.weights.at(0.0).B
        return Landscape(
            attention.beta, jnp.ones(()), None if B is None else B[0], external, attention.kind
        )

    def check_dimension(self, d: int) -> None:
        """Refuse atoms of another dimension than the weights have."""
        rows = [term.dimension for term in self.external]
        for width in rows if self.B is None else [*rows, self.B.shape[-1]]:
            require(
                width in (None, d),
                f"the atoms have {d} coordinates, the model's weights {width}; use the same number",
            )

    @property
    def normalised(self) -> bool:
        """Whether attention is divided by its partition function."""
        return self.kind.averages

    @property
    def has_energy(self) -> bool:
        """Whether the field is a gradient (in the masses' metric, or SA's own)."""
        return not (self.normalised and self.external)

    def with_parameter(self, name: str, value: Scalar) -> Landscape:
        """The same with another `beta`, or with the external terms multiplied by `scale`."""
        return eqx.tree_at(lambda own: getattr(own, name), self, jnp.asarray(value, dtype=float))

    def potential(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """f(x): energy per mass of the external terms."""
        found = [term.potential(0.0, x[None]) for term in self.external]
        return self.scale * sum((f[0] for f in found if f is not None), jnp.zeros(()))

    def strength(self) -> Array:
        """s: what multiplies e^{beta (r - 1)}."""
        return self.kind.speed(self.beta)

    def keys(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """B x_j."""
        return x if self.B is None else x @ self.B

    def energy(self, x: Float[Array, "n d"], masses: Float[Array, " n"]) -> Float[Array, ""]:
        """E, in the units of the head of this file (for SA with f: a number without a meaning)."""
        pairs = jnp.exp(self.beta * (x @ self.keys(x).T - 1.0))
        interaction = self.strength() * masses @ pairs @ masses / (2.0 * self.beta)
        return interaction + masses @ jax.vmap(self.potential)(x)

    def field(self, x: Float[Array, "n d"], masses: Float[Array, " n"]) -> Float[Array, "n d"]:
        """F_i: the model's velocity at its atoms, tangent to the sphere."""
        keys = self.keys(x)
        scores = self.beta * (x @ keys.T - 1.0)
        # The own value of a token has no tangent part where B = I; rounding it would hide small pulls.
        others = 1.0 - jnp.eye(x.shape[0]) if self.B is None else 1.0
        if self.normalised:
            shift = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
            weights = masses * jnp.exp(scores - shift)
            pull = ((weights * others) @ keys) / jnp.sum(weights, axis=-1, keepdims=True)
        else:
            pull = self.strength() * (masses * jnp.exp(scores) * others) @ keys
        force = pull + jax.vmap(jax.grad(self.potential))(x)
        return force - jnp.sum(force * x, axis=-1, keepdims=True) * x

    def force_scales(
        self, x: Float[Array, "n d"], masses: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """What a vanishing field is small against at every atom: the weaker kind of force that holds it.

        A_i = s sum_{j != i} m_j e^{beta (r_ij - 1)} |B x_j| are the pulls of the others, U_i = |grad f| +
        |Hess f| the external forces (with the curvature, since the slope may vanish where the atom rests).
        Form A has A_i ~ e^beta, to which any U_i may be nothing: the scale is max(U_i, min(A_i, max U)), so
        that U has to be balanced too. An atom out of reach of the neurons is measured against A_i; without
        external forces all are. Atoms without mass, and a lone atom that nothing moves, have scale 1.
        """
        attention = self._pulls(x, masses)
        external = jnp.where(masses > 0, jax.vmap(self._external_force)(x), 0.0)
        strongest = jnp.max(external)
        held = jnp.maximum(external, jnp.minimum(attention, strongest))
        scales = jnp.where(strongest > 0, held, attention)
        return jax.lax.stop_gradient(jnp.where((masses > 0) & (scales > 0), scales, 1.0))

    def _pulls(self, x: Float[Array, "n d"], masses: Float[Array, " n"]) -> Float[Array, " n"]:
        keys = self.keys(x)
        scores = self.beta * (x @ keys.T - 1.0)
        others = 1.0 - jnp.eye(x.shape[0]) if self.B is None else 1.0
        weights = masses * jnp.exp(scores)
        total = jnp.sum(weights, axis=-1) if self.normalised else 1.0 / self.strength()
        return (weights * others) @ jnp.linalg.norm(keys, axis=-1) / total

    def rounding(self, x: Float[Array, "n d"], masses: Float[Array, " n"]) -> Float[Array, ""]:
        """How far `relative_field` may be off by the rounding of the pulls: max eps A_i over `force_scales`.

        Above 1 it says nothing of the external forces, also where the pulls happen to cancel to the last bit.
        """
        hidden = self._pulls(x, masses) / self.force_scales(x, masses)
        return jnp.finfo(x.dtype).eps * jnp.max(jnp.where(masses > 0, hidden, 0.0))

    def _external_force(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        slope, bend = jax.grad(self.potential)(x), jax.hessian(self.potential)(x)
        return jnp.linalg.norm(slope) + jnp.linalg.norm(bend)

    def relative_field(self, x: Float[Array, "n d"], masses: Float[Array, " n"]) -> Array:
        """F_i over `force_scales`."""
        return self.field(x, masses) / self.force_scales(x, masses)[:, None]

    def second_variation(
        self, x: Float[Array, "n d"], masses: Float[Array, " n"], frames: Float[Array, "n d t"]
    ) -> Float[Array, "n t n t"]:
        """H with d^2 E/dt^2 = sum xi_i H_ij xi_j along the geodesics exp_{x_i}(t frames_i xi_i).

        2601.21366 in any dimension: with r' = xi_i.B x_j + x_i.B xi_j and r'' = 2 xi_i.B xi_j - (|xi_i|^2 +
        |xi_j|^2) r, the pair (i, j) contributes (s/2) m_i m_j e^{beta (r-1)} (beta r'^2 + r'').
        """
        keys = self.keys(x)
        scores = x @ keys.T
        pairs = self.strength() * masses[:, None] * masses * jnp.exp(self.beta * (scores - 1.0))
        if self.B is None:
            pairs = pairs * (1.0 - jnp.eye(x.shape[0]))
        toward = jnp.einsum("ids,jd->ijs", frames, keys)
        along = jnp.einsum("ids,jdt->ijst", frames, jax.vmap(self.keys, 2, 2)(frames))
        identity = jnp.eye(frames.shape[-1])
        cross = self.beta * jnp.einsum("ijs,jit->ijst", toward, toward) + along
        own = self.beta * jnp.einsum("ijs,ijt->ijst", toward, toward)
        own = own - scores[:, :, None, None] * identity
        diagonal = jnp.einsum("ij,ijst->ist", pairs, own)
        diagonal += masses[:, None, None] * self.external_curvature(x, frames)
        blocks = pairs[:, :, None, None] * cross
        blocks += jnp.eye(x.shape[0])[:, :, None, None] * diagonal[:, None]
        return jnp.transpose(blocks, (0, 2, 1, 3))

    def external_curvature(self, x: Array, frames: Array) -> Float[Array, "n t t"]:
        """Hess f along geodesics: <xi, D^2 f xi> - <x, grad f> |xi|^2."""

        def one(point: Array, frame: Array) -> Array:
            slope, bend = jax.grad(self.potential)(point), jax.hessian(self.potential)(point)
            return frame.T @ bend @ frame - (point @ slope) * jnp.eye(frame.shape[-1])

        return jax.vmap(one)(x, frames)

    def splitting_curvature(self, x: Array, masses: Array, frames: Array) -> Float[Array, "n t t"]:
        """Hess of dE/dmu at every atom, mu held: negative where its mass would split in descent."""

        def first_variation(point: Array) -> Array:
            sum_of_pulls = masses @ jnp.exp(self.beta * (self.keys(x) @ point - 1.0))
            # SA with external terms has no energy: its field is the gradient of (1/beta) log w + f.
            pull = self.strength() * sum_of_pulls if self.has_energy else jnp.log(sum_of_pulls)
            return pull / self.beta + self.potential(point)

        def one(point: Array, frame: Array) -> Array:
            slope, bend = jax.grad(first_variation)(point), jax.hessian(first_variation)(point)
            return frame.T @ bend @ frame - (point @ slope) * jnp.eye(frame.shape[-1])

        return jax.vmap(one)(x, frames)

    def kink_distances(self, x: Float[Array, "n d"]) -> Float[Array, "n neuron"]:
        """|a_j . x_i|/|a_j| of the neurons whose activation has a kink: sine of the angle to it."""
        found = [term.kinks() for term in self.external]
        rows = [jnp.abs(x @ normalise(kinks.inner).T) for kinks in found if kinks is not None]
        return jnp.concatenate(rows, axis=-1) if rows else jnp.zeros((x.shape[0], 0))


def tangent_frames(x: Float[Array, "n d"]) -> Float[Array, "n d t"]:
    """Orthonormal bases of the tangent spaces: columns 2 to d of the reflection that takes e_1 to -+x."""

    def one(point: Array) -> Array:
        axis = point.at[0].add(jnp.where(point[0] >= 0, 1.0, -1.0))
        reflection = jnp.eye(point.size) - 2.0 * jnp.outer(axis, axis) / (axis @ axis)
        return reflection[:, 1:]

    return jax.vmap(one)(x)


def moved(x: Array, frames: Array, coordinates: Float[Array, "n t"]) -> Float[Array, "n d"]:
    """exp_{x_i}(frames_i coordinates_i): the atoms moved along geodesics."""
    step = jnp.einsum("ndt,nt->nd", frames, coordinates)
    length = jnp.sqrt(jnp.sum(step**2, axis=-1, keepdims=True) + 1e-300)
    return jnp.cos(length) * x + jnp.sinc(length / jnp.pi) * step


def reversed_model(model: Dynamics) -> Dynamics:
    """The model whose velocity is the opposite: descent of the energy."""
    return _with_terms(model, [term.opposite() for term in model.parts()])


def _with_terms(model: Dynamics, terms: list[Term]) -> Dynamics:
    total = terms[0] if len(terms) == 1 else Sum(tuple(terms))
    return eqx.tree_at(lambda own: own.terms, model, total)


def _check_gradient(model: Dynamics) -> None:
    """Refuse models that do not follow a gradient."""
    require(
        model.noise is None, f"{model.label} has noise: it has no critical points; leave noise out"
    )
    require(
        model.normalisation is None and model.frame.is_original,
        f"{model.label} has a normalisation or frame of its own; the landscape is that of the plain flow",
    )
    require_fixed_numbers(model, "critical points")
    attentions = model.attentions()
    require(
        len(attentions) == 1,
        f"a landscape needs one attention term, {model.label} has {len(attentions)}",
    )
    _check_attention(attentions[0])
    for part in model.parts():
        require(
            part.interacts or part.is_gradient,
            f"this {type(part).__name__} is not the gradient of a potential; use "
            "Perceptron.gradient(omega, a) or Potential(f)",
        )


def _check_attention(attention: Attention) -> None:
    kind = attention.kind
    require(
        kind.exponential and attention.mask.sees_all,
        f"{kind.name} attention with a {type(attention.mask).__name__} mask does not follow a "
        "gradient; use SA or USA without a mask",
    )
    advice = (
        "attention follows a gradient only for Q = K = I and V = I, or for one symmetric B with V = B; "
        "for repulsion ask for direction='descent' instead of V=-1"
    )
    weights = attention.weights.at(0.0)
    require(weights.Q is None and weights.K is None, advice)
    if weights.B is None:
        require(weights.V is None or (weights.V.ndim == 0 and float(weights.V) == 1.0), advice)
        return
    V, B = weights.V, weights.B
    fits = V is not None and V.shape == B.shape and B.shape[0] == 1
    require(
        fits and bool(jnp.all(V == B) & jnp.all(jnp.swapaxes(B, -1, -2) == B)),  # type: ignore[arg-type]
        advice,
    )


def with_parameter(model: Dynamics, name: str, value: float) -> Dynamics:
    """The model with another `beta`, or with the omega of its perceptrons multiplied by `scale`."""
    if name == "beta":
        return eqx.tree_at(lambda own: own.attentions()[0].beta, model, jnp.asarray(float(value)))
    return _with_terms(model, [term.scaled(value) for term in model.parts()])
