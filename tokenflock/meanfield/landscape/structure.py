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
from jaxtyping import Array, Float

from ...dynamics import Dynamics, Lab
from ...errors import InputError, require
from ...kinds import Softmax, Unnormalised
from ...masks import Full
from ...runtime import Scalar
from ...space import normalise
from ...terms import Attention, Perceptron, Potential, Sum, Term
from ...weights import Weights

# e^beta must not overflow in form A, nor its product with masses and curvatures.
LARGEST_BETA = 600.0
# Activations whose derivative jumps at 0.
KINKED = ("relu",)


class Landscape(eqx.Module):
    """The numbers of a gradient-structured model: attention strength, beta, B, external terms."""

    beta: Float[Array, ""]
    scale: Float[Array, ""]
    B: Float[Array, "d d"] | None
    external: tuple[Perceptron | Potential, ...]
    normalised: bool = eqx.field(static=True)
    shifted: bool = eqx.field(static=True)

    @staticmethod
    def of(model: Dynamics) -> Landscape:
        """The landscape of a model, or a sentence saying why it has none."""
        attention, external = _gradient_terms(model)
        kind = attention.kind
        shifted = isinstance(kind, Softmax) or kind.convention == "metastability"  # type: ignore[union-attr]
        beta = attention.beta
        require(beta.ndim == 0, "a landscape needs one beta, got a vector; take them one at a time")
        require(float(beta) > 0, "at beta = 0 attention has no kernel e^{beta <x,y>}; use beta > 0")
        require(
            shifted or float(beta) < LARGEST_BETA,
            f"e^beta overflows at beta={float(beta):g}; use USA(beta, 'metastability') with the "
            "perceptron's omega times e^{-beta}",
        )
        B = attention.weights.at(0.0).B
        return Landscape(
            beta,
            jnp.ones(()),
            None if B is None else B[0],
            external,
            isinstance(kind, Softmax),
            shifted,
        )

    @property
    def has_energy(self) -> bool:
        """Whether the field is a gradient (in the masses' metric, or SA's own)."""
        return not (self.normalised and self.external)

    def with_parameter(self, name: str, value: Scalar) -> Landscape:
        """The same with another `beta`, or with the external terms multiplied by `scale`."""
        return eqx.tree_at(lambda own: getattr(own, name), self, jnp.asarray(value, dtype=float))

    def potential(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        """f(x): energy per mass of the external terms."""
        total = jnp.zeros(())
        for term in self.external:
            if isinstance(term, Perceptron):
                total += term.potential(x[None])[0] / 2.0
            else:
                total += term.function(x)
        return self.scale * total

    def strength(self) -> Array:
        """s: what multiplies e^{beta (r - 1)}."""
        return jnp.ones(()) if self.shifted else jnp.exp(self.beta)

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
        rows = [
            jnp.abs(x @ normalise(term.inner).T)
            for term in self.external
            if isinstance(term, Perceptron) and term.activation.name in KINKED
        ]
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
    terms = [_reversed(term) for term in _parts(model.terms)]
    total = terms[0] if len(terms) == 1 else Sum(tuple(terms))
    return eqx.tree_at(lambda own: own.terms, model, total)


def _reversed(term: Term) -> Term:
    if isinstance(term, Attention):
        B = term.weights.at(0.0).B
        weights = Weights(B=B, V=-1.0 if B is None else -B)
        return Attention(weights, term.beta, term.kind, term.mask)
    if isinstance(term, Perceptron):
        assert term.omega is not None
        return Perceptron.gradient(-term.omega, term.inner, term.activation)
    assert isinstance(term, Potential)
    function = term.function
    return Potential(lambda x: -function(x))


def _parts(term: Term) -> tuple[Term, ...]:
    return term.terms if isinstance(term, Sum) else (term,)


def _gradient_terms(
    model: Dynamics,
) -> tuple[Attention, tuple[Perceptron | Potential, ...]]:
    """The attention and the external terms of a model that follows a gradient; others are refused."""
    require(
        model.noise is None, f"{model.label} has noise: it has no critical points; leave noise out"
    )
    require(
        model.normalisation is None and isinstance(model.frame, Lab),
        f"{model.label} has a normalisation or frame of its own; the landscape is that of the plain flow",
    )
    attentions = model.attentions()
    require(
        len(attentions) == 1,
        f"a landscape needs one attention term, {model.label} has {len(attentions)}",
    )
    _check_attention(attentions[0])
    external = [part for part in _parts(model.terms) if not isinstance(part, Attention)]
    return attentions[0], tuple(_external(part) for part in external)


def _check_attention(attention: Attention) -> None:
    kind, weights = attention.kind, attention.weights
    exponential = kind == Softmax() or (
        isinstance(kind, Unnormalised) and kind.convention in ("perspective", "metastability")
    )
    require(
        exponential and isinstance(attention.mask, Full),
        f"{type(kind).__name__} attention with a {type(attention.mask).__name__} mask does not follow a "
        "gradient; use SA or USA without a mask",
    )
    advice = (
        "attention follows a gradient only for Q = K = I and V = I, or for one symmetric B with V = B; "
        "for repulsion ask for direction='descent' instead of V=-1"
    )
    if not isinstance(weights, Weights) or weights.Q is not None or weights.K is not None:
        raise InputError(advice)
    if weights.B is None:
        require(weights.V is None or (weights.V.ndim == 0 and float(weights.V) == 1.0), advice)
        return
    V, B = weights.V, weights.B
    fits = V is not None and V.shape == B.shape and B.shape[0] == 1
    require(
        fits and bool(jnp.all(V == B) & jnp.all(jnp.swapaxes(B, -1, -2) == B)),  # type: ignore[arg-type]
        advice,
    )


def _external(term: Term) -> Perceptron | Potential:
    if isinstance(term, Potential):
        return term
    if isinstance(term, Perceptron) and term.omega is not None:
        return term
    raise InputError(
        f"this {type(term).__name__} is not the gradient of a potential; use "
        "Perceptron.gradient(omega, a) or Potential(f)"
    )


def with_parameter(model: Dynamics, name: str, value: float) -> Dynamics:
    """The model with another `beta`, or with the omega of its perceptrons multiplied by `scale`."""
    if name == "beta":
        return eqx.tree_at(lambda own: own.attentions()[0].beta, model, jnp.asarray(float(value)))
    terms = [_scaled(term, value) for term in _parts(model.terms)]
    total = terms[0] if len(terms) == 1 else Sum(tuple(terms))
    return eqx.tree_at(lambda own: own.terms, model, total)


def _scaled(term: Term, factor: float) -> Term:
    if isinstance(term, Perceptron):
        assert term.omega is not None
        return Perceptron.gradient(factor * term.omega, term.inner, term.activation)
    if isinstance(term, Potential):
        function = term.function
        return Potential(lambda x: factor * function(x))
    return term
