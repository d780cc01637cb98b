"""2405.18273: for which interactions phi(<x, y>) do all tokens meet, on the circle and on spheres."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ... import theory
from ...dynamics import Dynamics
from ...kinds import Kernel
from ...ledger.claim import Case, Comparison, at_least, at_most, broken, equals
from ...ledger.measure import field, flow, largest_chord, read, unit
from ...measure import Measure, from_angles
from ...models import SA, USA, KernelFlow, SigmoidSA
from ...observables import energy_rate
from ...space import Sphere
from ...starts import uniform
from ...terms import Attention
from . import PAPER

POLYGONS = (3, 5, 8, 13, 21)
OWN_EXAMPLE = "This counterexample is derived here; the paper's own was not seen."
ONLY_POLYGONS = (
    "Regular polygons are the critical points known in closed form; others are not visited."
)
COMPLETE = "Only complete graphs are simulated; the paper allows any connected one."


@dataclass(frozen=True)
class Exponential:
    """phi(u) = factor e^{beta u}."""

    beta: float
    factor: float

    def __call__(self, u: jax.Array) -> jax.Array:
        return self.factor * jnp.exp(self.beta * u)


@dataclass(frozen=True)
class Softplus:
    """phi(u) = w log(1 + e^{u/w}): smooth, increasing, convex."""

    width: float

    def __call__(self, u: jax.Array) -> jax.Array:
        return self.width * jax.nn.softplus(u / self.width)


def _softplus(width: float) -> Dynamics:
    """The flow of `Softplus(width)`, with the width as data, so that all widths share a program."""
    return Dynamics(None, Attention(None, 1 / width, Kernel(jax.nn.softplus)), label="KernelFlow")


def _random_tokens(case: Case) -> Measure:
    """Random tokens with random masses."""
    random = np.random.default_rng(case.seed)
    points = uniform(Sphere(case.d), case.n, case.seed).points
    return Measure(Sphere(case.d), points, random.uniform(0.2, 1.8, case.n))


@PAPER.claim(
    "special-kernels",
    where="the model (not numbered here)",
    says="The flow of phi contains known ones: phi(t) = t is USA at beta = 0, e^{beta t}/beta is "
    "USA, and a softplus of beta t over beta is sigmoid attention.",
    given={"n": 8, "d": 3, "beta": 3.0, "factor": "1/beta"},
    at_paper_scale={"n": 64, "d": 16},
    options={"factor": ("1/beta", "1")},
    needs={
        "phi is divided by beta": lambda c: c.factor == "1/beta",
        "beta > 0": lambda c: c.beta > 0,
    },
    control=broken("without 1/beta the flow of e^{beta t} is beta times faster", factor="1"),
)
def special_kernels(case: Case) -> list[Comparison]:
    """Fields of both sides at random tokens with random masses, up to rounding of e^beta."""
    tokens = _random_tokens(case)
    exponential = Exponential(case.beta, 1.0 if case.factor == "1" else 1 / case.beta)
    pairs = {
        "phi = t against USA(0)": (KernelFlow([0.0, 1.0]), USA(0.0)),
        "phi = e^{beta t}/beta against USA": (KernelFlow(exponential), USA(case.beta)),
        "softplus against sigmoid attention": (
            KernelFlow(Softplus(1 / case.beta)),
            SigmoidSA(case.beta),
        ),
    }
    return [
        equals(what, field(left, tokens), field(right, tokens), 1e-13 * np.exp(case.beta))
        for what, (left, right) in pairs.items()
    ]


@PAPER.claim(
    "gradient-ascent",
    where="the model (not numbered here)",
    says="The flow climbs f = (1/2) sum_ij w_i w_j phi(<x_i, x_j>) along its gradient, at the rate "
    "sum_i w_i |x_i'|^2.",
    given={"n": 8, "d": 3, "width": 0.3, "model": "kernel"},
    at_paper_scale={"n": 64, "d": 16},
    options={"model": ("kernel", "SA")},
    needs={"the field is that of phi": lambda c: c.model == "kernel"},
    control=broken("SA is a gradient only in a metric with its partition function", model="SA"),
)
def gradient_ascent(case: Case) -> list[Comparison]:
    """d f/dt, differentiated along the field, against sum_i w_i |x_i'|^2; rounding only."""
    tokens = _random_tokens(case)
    model = _softplus(case.width) if case.model == "kernel" else SA(1 / case.width)
    squares = np.sum(field(model, tokens) ** 2, axis=-1)
    climbed = read(energy_rate, model, tokens)
    return [equals("df/dt", climbed, np.asarray(tokens.weights) @ squares, 1e-12)]


def _near_pentagon(case: Case, planes: np.ndarray, size: float = 0.03) -> Measure:
    """n tokens shared out among the vertices of a pentagon, disturbed by N(0, size^2) in its space.

    `planes` (samples, d, k) are orthonormal columns: the pentagon lies in the first two. Every vertex
    has the mass 1/5: with unequal ones the pentagon is not even stationary.
    """
    random = np.random.default_rng(case.seed)
    angles = 2 * np.pi * (np.arange(case.n) % 5) / 5
    flat = np.zeros((case.samples, case.n, planes.shape[-1]))
    flat[..., 0], flat[..., 1] = np.cos(angles), np.sin(angles)
    flat += size * random.normal(size=flat.shape)
    points = np.einsum("snk,sdk->snd", flat, planes)
    points = unit(points)
    vertex = np.arange(case.n) % 5
    return Measure(Sphere(case.d), points, 1 / np.bincount(vertex)[vertex])


def _frames(case: Case) -> np.ndarray:
    """Random orthonormal frames of R^d, one per sample."""
    random = np.random.default_rng(case.seed + 1)
    return np.linalg.qr(random.normal(size=(case.samples, case.d, case.d)))[0]


@PAPER.claim(
    "spheres-synchronise",
    where="theorem for d >= 3 (not numbered here)",
    says="On spheres of dimension two or more every increasing convex interaction brings almost all "
    "starts to one point.",
    given={"n": 5, "d": 3, "samples": 4, "width": 0.05, "start": "generic"},
    at_paper_scale={"d": 8, "samples": 64},
    options={"start": ("generic", "planar")},
    needs={
        "d >= 3": lambda c: c.d >= 3,
        "phi is increasing and convex (softplus)": lambda c: c.width > 0,
        "the start is generic": lambda c: c.start == "generic",
        "every vertex has a token": lambda c: c.n >= 5,
    },
    control=broken(
        "in a plane, as on the circle, a pentagon keeps its tokens apart", start="planar"
    ),
    note=COMPLETE + " Starts lie 0.03 from the regular pentagon, where the circle fails.",
)
def spheres_synchronise(case: Case) -> list[Comparison]:
    """Largest distance at t = 200.

    The pentagon tilts out of its plane at (2/5)(1 - cos 72) = 0.28 and tokens then meet at rate 1.
    A plane of two coordinates is kept to the last bit: the others stay exactly zero.
    """
    plane = np.broadcast_to(np.eye(case.d)[:, :2], (case.samples, case.d, 2))
    start = _near_pentagon(case, plane if case.start == "planar" else _frames(case))
    states = flow(case, _softplus(case.width), start, [200.0])
    return [at_most("largest distance at the end", largest_chord(states[:, -1]), 0.0, 1e-4)]


def _polygon_jacobian(model: Dynamics, n: int, turn: float) -> np.ndarray:
    """d theta_i'/d theta_j at the regular n-gon, by central differences of the field."""
    angles, step = turn + 2 * np.pi * np.arange(n) / n, 1e-5

    def speed(shift: np.ndarray) -> np.ndarray:
        tokens = from_angles(angles + shift)
        points, velocity = np.asarray(tokens.points), field(model, tokens)
        return points[:, 0] * velocity[:, 1] - points[:, 1] * velocity[:, 0]

    return np.stack([speed(s) - speed(-s) for s in step * np.eye(n)], axis=-1) / (2 * step)


def _leading(jacobian: np.ndarray) -> np.ndarray:
    """Eigenvalues from the largest down, without the 0 of rotations of the whole."""
    values = np.sort(np.linalg.eigvals(jacobian).real)[::-1]
    return np.delete(values, np.argmin(np.abs(values)))


def _closed_form(slope: Callable[[np.ndarray], np.ndarray], n: int) -> np.ndarray:
    """Those eigenvalues: -(1/n) sum_j h'(a_j)(1 - cos(m a_j)), h(a) = phi'(cos a) sin a.

    a_j = 2 pi j/n and m = 1..n-1; h' by central differences (relative error 1e-10).
    """
    angle, step = 2 * np.pi * np.arange(1, n) / n, 1e-5

    def pull(a: np.ndarray) -> np.ndarray:
        return slope(np.cos(a)) * np.sin(a)

    kernel = (pull(angle + step) - pull(angle - step)) / (2 * step)
    modes = np.arange(1, n)
    return np.sort(-(1 - np.cos(np.outer(modes, angle))) @ kernel / n)[::-1]


def _turn(seed: int) -> float:
    return float(np.random.default_rng(seed).uniform(0, 2 * np.pi))


@PAPER.claim(
    "pentagon-is-stable",
    where="counterexample for d = 2 (not numbered here)",
    says="On the circle increasing and convex is not enough: for a sharp softplus the regular "
    "pentagon is a strict local maximum up to rotation.",
    given={"n": 5, "width": 0.05},
    at_paper_scale={"width": 0.02},
    needs={
        "the tokens form a pentagon": lambda c: c.n == 5,
        "phi is sharp (the pentagon turns unstable near 0.09)": lambda c: c.width <= 0.06,
    },
    control=broken("for the width 0.1 the pentagon is unstable", width=0.1),
    note=OWN_EXAMPLE,
)
def pentagon_is_stable(case: Case) -> list[Comparison]:
    """Eigenvalues of the linearised field: all negative, and as in closed form.

    Central differences leave step^2/w^2 = 4e-8.
    """
    found = _leading(_polygon_jacobian(_softplus(case.width), case.n, _turn(case.seed)))
    expected = _closed_form(lambda u: 1 / (1 + np.exp(-u / case.width)), case.n)
    return [
        equals("eigenvalues", found, expected, 1e-6),
        at_most("largest eigenvalue", found[0], 0.0),
    ]


@PAPER.claim(
    "pentagon-attracts",
    where="counterexample for d = 2 (not numbered here)",
    says="On the circle tokens near a regular pentagon return to one and never meet, under an "
    "increasing convex interaction.",
    given={"n": 5, "samples": 4, "width": 0.05, "d": 2},
    at_paper_scale={"n": 20, "samples": 64},
    needs={
        "the tokens are on a circle": lambda c: c.d == 2,
        "every vertex has a token": lambda c: c.n >= 5,
        "phi is sharp (the pentagon turns unstable near 0.09)": lambda c: c.width <= 0.06,
    },
    control=broken("for the width 0.1 the tokens leave the pentagon", width=0.1),
    note=OWN_EXAMPLE,
)
def pentagon_attracts(case: Case) -> list[Comparison]:
    """Inner products of neighbouring vertices at t = 200 against cos 72.

    The slowest eigenvalue is -0.075: what remains of 0.03 is below 1e-7.
    """
    start = _near_pentagon(case, _frames(case))
    states = flow(case, _softplus(case.width), start, [200.0])[:, -1]
    vertices = np.stack([states[:, v::5].mean(axis=1) for v in range(5)], axis=1)
    neighbours = np.sum(vertices * np.roll(vertices, -1, axis=1), axis=-1)
    return [equals("<x, y> of neighbours", neighbours, np.cos(2 * np.pi / 5), 1e-5)]


@PAPER.claim(
    "small-beta-synchronises",
    where="theorem for d = 2, decreasing Taylor coefficients (not numbered here)",
    says="On the circle e^{beta t} with 0 < beta <= 1 brings almost all starts to one point, those "
    "near a pentagon included.",
    given={"n": 5, "d": 2, "samples": 4, "beta": 1.0, "kernel": "exponential"},
    at_paper_scale={"n": 64, "samples": 16},
    options={"kernel": ("exponential", "softplus")},
    needs={
        "0 < beta <= 1": lambda c: 0 < c.beta <= 1,
        "the Taylor coefficients of phi' decrease": lambda c: c.kernel == "exponential",
    },
    control=broken(
        "a sharp softplus, whose coefficients grow, keeps the pentagon", kernel="softplus"
    ),
    note=COMPLETE,
)
def small_beta_synchronises(case: Case) -> list[Comparison]:
    """Largest distance at t = 200, from 0.03 off a pentagon.

    The pentagon is left at about I_1(beta)/beta >= 1/2, and tokens then meet at e^beta.
    """
    model = USA(case.beta) if case.kernel == "exponential" else _softplus(0.05)
    states = flow(case, model, _near_pentagon(case, _frames(case)), [200.0])
    return [at_most("largest distance at the end", largest_chord(states[:, -1]), 0.0, 1e-4)]


@PAPER.claim(
    "polygons-are-unstable",
    where="theorem for d = 2, decreasing Taylor coefficients (not numbered here)",
    says="For e^{beta t} with 0 < beta <= 1 a critical point where the tokens have not met is not a "
    "local maximum: every regular polygon can be left uphill.",
    given={"most": 8, "beta": 1.0, "kernel": "exponential"},
    at_paper_scale={"most": 21},
    options={"kernel": ("exponential", "softplus")},
    needs={
        "0 < beta <= 1": lambda c: 0 < c.beta <= 1,
        "the Taylor coefficients of phi' decrease": lambda c: c.kernel == "exponential",
        "the pentagon is among the polygons": lambda c: c.most >= 5,
    },
    control=broken("for a sharp softplus the pentagon is stable", kernel="softplus"),
    note=ONLY_POLYGONS,
)
def polygons_are_unstable(case: Case) -> list[Comparison]:
    """Largest eigenvalue of the linearised field at the regular n-gon, n = 3, 5, 8, ...

    It is n times that of the Hessian of the mean energy (closed form); differences leave 1e-9.
    """
    sizes = [n for n in POLYGONS if n <= case.most]
    model = USA(case.beta) if case.kernel == "exponential" else _softplus(0.05)
    found = [_leading(_polygon_jacobian(model, n, _turn(case.seed)))[0] for n in sizes]
    expected = [n * theory.ngon_hessian_eigenvalues(n, case.beta).max() for n in sizes]
    return [
        at_least("largest eigenvalue at the polygons", found, 0.0),
        equals("largest eigenvalue against its closed form", found, expected, 1e-6),
    ]


@PAPER.claim(
    "decreasing-coefficients",
    where="theorem for d = 2, decreasing Taylor coefficients (not numbered here)",
    says="On the circle no regular polygon is a local maximum if the Taylor coefficients of phi' "
    "decrease.",
    given={"most": 8, "degree": 4, "kernel": "polynomial"},
    at_paper_scale={"most": 21, "degree": 12},
    options={"kernel": ("polynomial", "softplus")},
    needs={
        "the Taylor coefficients of phi' decrease": lambda c: c.kernel == "polynomial",
        "the pentagon is among the polygons": lambda c: c.most >= 5,
    },
    control=broken("for a sharp softplus the pentagon is stable", kernel="softplus"),
    note=ONLY_POLYGONS,
)
def decreasing_coefficients(case: Case) -> list[Comparison]:
    """Largest eigenvalue at regular n-gons for random coefficients c_0 > c_1 > ... > 0 of phi'."""
    sizes = [n for n in POLYGONS if n <= case.most]
    drawn = np.random.default_rng(case.seed).uniform(0.1, 1.0, case.degree + 1)
    coefficients = np.sort(drawn)[::-1]
    integrated = [0.0, *(coefficients / np.arange(1, case.degree + 2))]
    model = KernelFlow(integrated) if case.kernel == "polynomial" else _softplus(0.05)
    found = [_leading(_polygon_jacobian(model, n, _turn(case.seed)))[0] for n in sizes]
    expected = [_closed_form(np.polynomial.Polynomial(coefficients), n)[0] for n in sizes]
    return [
        at_least("largest eigenvalue at the polygons", found, 0.0),
        equals("largest eigenvalue against its closed form", found, expected, 1e-6),
    ]
