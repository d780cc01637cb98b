"""Energies against loops in numpy, closed forms, and the gradient they must have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import iv

from tokenflock.dynamics import Dynamics
from tokenflock.errors import InputError
from tokenflock.kinds import Kernel
from tokenflock.measure import Measure, from_angles
from tokenflock.models import (
    L2SA,
    SA,
    USA,
    CausalSA,
    HardmaxFlow,
    KernelFlow,
    LinearSA,
    RescaledSA,
    SigmoidSA,
    SinkhornSA,
    StochasticSA,
)
from tokenflock.normalisation import PreLN
from tokenflock.observables import Snapshot, energy, energy_rate, scaled_energy
from tokenflock.reduce import Dense, Tiled
from tokenflock.schedule import Piecewise
from tokenflock.space import Euclidean, Sphere
from tokenflock.terms import Attention, Drift, Potential
from tokenflock.terms.perceptron import GELU, RELU, Perceptron
from tokenflock.weights import Weights

RNG = np.random.default_rng(7)
SYMMETRIC = [
    [1.1, 0.3, -0.2, 0.0],
    [0.3, 0.4, 0.1, 0.5],
    [-0.2, 0.1, -0.7, 0.2],
    [0, 0.5, 0.2, 0.9],
]
HEADS = np.stack([SYMMETRIC, np.diag([0.3, -0.6, 1.2, 0.1])])
GENERAL = RNG.normal(size=(2, 3, 4))  # Q of two heads of rank 3


def double_sum(mu, phi, B=None):
    """sum_ij w_i w_j phi(<x_i, B x_j>) term by term."""
    x, w = np.asarray(mu.points), np.asarray(mu.weights)
    B = np.eye(mu.d) if B is None else np.asarray(B)
    return sum(w[i] * w[j] * phi(x[i] @ B @ x[j]) for i in range(mu.n) for j in range(mu.n))


def exponential(beta):
    return lambda s: np.exp(beta * s) / (2 * beta)


@pytest.mark.parametrize("model", [SA, USA, CausalSA, lambda b: USA(b, "metastability")])
def test_energy_is_the_papers_double_sum(model, weighted, read):
    mu = weighted()
    assert read(energy, mu, model(3.0)) == pytest.approx(
        double_sum(mu, exponential(3.0)), rel=1e-13
    )


def test_energy_uses_q_transposed_k_and_sums_heads(weighted, read):
    mu = weighted()
    by_b = read(energy, mu, SA(1.5, Weights(B=HEADS)))
    expected = sum(double_sum(mu, exponential(1.5), B) for B in HEADS)
    assert by_b == pytest.approx(expected, rel=1e-13)
    Q, K = GENERAL, GENERAL[::-1]
    expected = sum(double_sum(mu, exponential(0.7), Q[h].T @ K[h]) for h in range(2))
    assert read(energy, mu, USA(0.7, weights=Weights(Q=Q, K=K))) == pytest.approx(expected)


def test_energies_of_other_kinds(weighted, read):
    mu = weighted()
    cubic = read(energy, mu, KernelFlow(lambda s: s**3 + 2 * s))
    assert cubic == pytest.approx(double_sum(mu, lambda s: (s**3 + 2 * s) / 2), rel=1e-12)
    linear = read(energy, mu, LinearSA(2.5))
    assert linear == pytest.approx(double_sum(mu, lambda s: 2.5 * s**2 / 4), rel=1e-12)
    soft = read(energy, mu, SigmoidSA(2.5, bias=0.4))
    expected = double_sum(mu, lambda s: np.log1p(np.exp(2.5 * s + 0.4)) / 5.0)
    assert soft == pytest.approx(expected, rel=1e-12)


def test_usa_as_a_kernel_has_the_same_energy(weighted, read):
    mu = weighted(seed=3)
    kernel = read(energy, mu, KernelFlow(lambda s: jnp.exp(2.0 * s) / 2.0))
    assert kernel == pytest.approx(read(energy, mu, USA(2.0)), rel=1e-13)


@pytest.mark.parametrize(("beta", "expected"), [(1.0, 0.6330329389), (4.0, 1.4127402440)])
def test_uniform_circle(beta, expected, read):
    """K1.19: the trapezoid rule on a polygon is exact to rounding, E = I_0(beta)/(2 beta)."""
    polygon = from_angles(2 * np.pi * np.arange(80) / 80)
    assert read(energy, polygon, SA(beta)) == pytest.approx(expected, abs=1e-9)
    assert read(energy, polygon, SA(beta)) == pytest.approx(iv(0, beta) / (2 * beta), rel=1e-13)


@pytest.mark.parametrize(("beta", "expected"), [(1.0, 0.5876005968), (4.0, 0.8528099124)])
def test_uniform_sphere_by_weighted_quadrature(beta, expected, read):
    """K1.19: Gauss-Legendre x trapezoid points are weighted tokens; E = sinh(b)/(2 b^2)."""
    height, masses = np.polynomial.legendre.leggauss(16)
    phi = 2 * np.pi * np.arange(32) / 32
    z, longitude = np.repeat(height, 32), np.tile(phi, 16)
    r = np.sqrt(1 - z**2)
    points = np.stack([r * np.cos(longitude), r * np.sin(longitude), z], axis=-1)
    mu = Measure(Sphere(3), points, np.repeat(masses, 32))
    assert read(energy, mu, USA(beta)) == pytest.approx(expected, abs=1e-9)


def test_one_cluster_is_the_maximum(read):
    mu = from_angles(np.full(5, 0.7), weights=np.arange(1.0, 6.0))
    assert read(energy, mu, SA(3.0)) == pytest.approx(np.exp(3.0) / 6.0, rel=1e-14)
    assert read(scaled_energy, mu, SA(3.0)) == pytest.approx(1.0, rel=1e-14)


def test_scaled_energy_survives_large_beta(read):
    """Far clusters of masses p_q sit at sum_q p_q^2 (2410.06833); E itself overflows."""
    mu = from_angles([0.0, 0.0, 1.0, 2.2, 2.2, 2.2], weights=[1, 2, 3, 1, 1, 4])
    masses = np.array([3, 3, 6]) / 12
    assert read(scaled_energy, mu, SA(2000.0)) == pytest.approx(np.sum(masses**2), rel=1e-12)
    assert np.isinf(read(energy, mu, SA(2000.0)))


def test_scaled_energy_is_two_beta_e_minus_beta_times_energy(weighted, read):
    mu, block = weighted(), Perceptron.random(4, 6, seed=1, gradient=True)
    model = USA(1.7, plus=block)
    expected = 2 * 1.7 * np.exp(-1.7) * read(energy, mu, model)
    assert read(scaled_energy, mu, model) == pytest.approx(expected, rel=1e-13)


def test_beta_zero_is_kuramoto_and_the_limit_less_its_constant(weighted, read):
    mu = weighted()
    kuramoto = double_sum(mu, lambda s: s / 2)
    assert read(energy, mu, SA(0.0)) == pytest.approx(kuramoto, rel=1e-13)
    tiny = 1e-6
    assert read(energy, mu, SA(tiny)) - 0.5 / tiny == pytest.approx(kuramoto, abs=1e-6)


def test_beta_zero_of_a_sigmoid_has_its_slope(weighted, read):
    """At beta = 0 every pair weighs sigmoid(bias), so E = sigmoid(bias) times Kuramoto's."""
    mu = weighted()
    expected = double_sum(mu, lambda s: s / 2) / (1 + np.exp(-0.4))
    assert read(energy, mu, SigmoidSA(0.0, bias=0.4)) == pytest.approx(expected, rel=1e-13)
    assert read(energy, mu, LinearSA(0.0)) == 0.0


def test_energy_over_a_batch_of_beta(weighted, read):
    mu, betas = weighted(), jnp.array([0.0, 0.5, 4.0])
    swept = jax.jit(jax.vmap(lambda b: energy(Snapshot(jnp.zeros(()), mu, SA(b), Dense()))))(betas)
    each = [read(energy, mu, SA(float(b))) for b in betas]
    np.testing.assert_allclose(swept, each, rtol=1e-13)


def test_energy_does_not_depend_on_the_reduction(weighted, read):
    mu = weighted(n=41)
    for model in (SA(3.0), KernelFlow(lambda s: s**4)):
        dense = read(energy, mu, model)
        assert read(energy, mu, model, reduction=Tiled(8)) == pytest.approx(dense, rel=1e-13)


@pytest.mark.parametrize("activation", [RELU, GELU])
def test_energy_is_the_potential_of_usa_with_a_gradient_perceptron(activation, weighted, snapshot):
    """P1-1: w_i x_i' = P grad_i E; an extra pdf in the GELU primitive would show here."""
    mu = weighted(seed=2)
    block = Perceptron.random(4, 5, seed=3, gradient=True, activation=activation)
    model = USA(1.3, plus=block + Potential(lambda x: jnp.sin(x[0]) * x[1]))
    gradient = jax.jit(jax.grad(lambda x: energy(snapshot(mu.at(x), model))))(mu.points)
    tangent = mu.space.project(mu.points, gradient)
    field = model.field(0.0, mu.points, mu)
    np.testing.assert_allclose(tangent, mu.weights[:, None] * field, atol=1e-12)


def test_terms_without_a_potential_do_not_enter(weighted, read):
    mu = weighted()
    plain = read(energy, mu, SA(2.0))
    extra = Perceptron.random(4, 5, seed=3) + Drift(0.5)
    assert read(energy, mu, SA(2.0, plus=extra)) == plain


@pytest.mark.parametrize(
    "model", [HardmaxFlow(), SinkhornSA(1.0), L2SA(1.0), StochasticSA(1.0, 0.1)]
)
def test_models_without_an_energy_are_refused(model, weighted, read):
    with pytest.raises(InputError, match="energy"):
        read(energy, weighted(), model)


def test_scaled_energy_refuses_other_kernels(weighted, read):
    with pytest.raises(InputError, match="use energy"):
        read(scaled_energy, weighted(), LinearSA())


# --- energy_rate: central differences of the energy along the flow --------------------------------

BLOCK = Perceptron.random(4, 5, seed=3)


@pytest.mark.parametrize(
    "model",
    [
        SA(3.0),
        CausalSA(2.0),
        USA(1.0, plus=BLOCK + Drift(np.diag([0.1, -0.5, 0.3, 0.9]))),
        SA(2.0, Weights(B=HEADS, V=-HEADS[::-1])),
        SA(1.5, Weights(Q=GENERAL, K=GENERAL[::-1], V=0.5)),
    ],
)
def test_rate_against_central_differences(model, weighted, read):
    mu, h = weighted(), 1e-5
    step = h * model.field(0.0, mu.points, mu)
    ahead, behind = (
        read(energy, mu.at(mu.space.retract(mu.points + sign * step)), model) for sign in (1, -1)
    )
    rate = read(energy_rate, mu, model)
    assert rate == pytest.approx((ahead - behind) / (2 * h), rel=1e-6)
    assert abs(rate) > 1e-3


def test_rate_with_radii(weighted, read):
    """Pre-LN divides the velocity of a token by its radius; post-LN must ignore the radii."""
    bare = weighted()
    mu = bare.at(bare.points, jnp.full(bare.n, 4.0))
    base = read(energy_rate, bare, SA(2.0))
    assert read(energy_rate, mu, SA(2.0)) == pytest.approx(base, rel=1e-13)
    pre = read(energy_rate, mu, SA(2.0, normalisation=PreLN()))
    assert pre == pytest.approx(base / 4.0, rel=1e-12)


def test_rescaled_frame_reads_original_tokens(cloud, read):
    """E and dE/dt of z in the rescaled frame are those of x = e^{tV} z, V not symmetric."""
    z, t = cloud(d=2, n=6), 0.4
    z = z.at(0.3 * z.points)
    weights = Weights(V=[[0.5, 0.3], [-0.2, 0.1]], B=[[0.6, 0.1], [0.1, 0.2]])
    x = z.at(z.points @ expm(t * np.asarray(weights.V[0])).T)
    original = Dynamics(Euclidean(2), Attention(weights, 1.2))
    rescaled = (z, RescaledSA(1.2, weights), t)
    assert read(energy, *rescaled) == pytest.approx(read(energy, x, original, t), rel=1e-13)
    expected = read(energy_rate, x, original, t)
    assert read(energy_rate, *rescaled) == pytest.approx(expected, rel=1e-10)


def test_rate_under_a_schedule(weighted, read):
    """Between switches the weights in force at t are used, and time adds nothing."""
    first, second = Weights(V=-1.0), Weights(V=2.0)
    mu, model = weighted(), SA(2.0, Piecewise([1.0], [first, second]))
    for t, weights in ((0.5, first), (1.5, second)):
        expected = read(energy_rate, mu, SA(2.0, weights))
        assert read(energy_rate, mu, model, t) == pytest.approx(expected, rel=1e-13)


def test_kernel_energy_with_beta(weighted, read):
    """phi sees beta <x, y>: E = (1/(2 beta)) sum phi(beta s), still a potential of the field."""
    mu = weighted()
    model = Dynamics(Sphere(4), Attention(None, 0.5, Kernel(lambda s: s**3)))
    expected = double_sum(mu, lambda s: (0.5 * s) ** 3 / 1.0)
    assert read(energy, mu, model) == pytest.approx(expected, rel=1e-12)
