"""Densities on the sphere in R^3: harmonics, symmetry, zonal starts, noise, and what is refused."""

import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import sph_harm_y

import tokenflock as flock
from tokenflock import theory
from tokenflock.density import Density
from tokenflock.dynamics import Dynamics
from tokenflock.errors import TooLargeError
from tokenflock.meanfield.sphere import Harmonics
from tokenflock.meanfield.zonal import Zonal
from tokenflock.noise import Brownian
from tokenflock.reduce import Dense
from tokenflock.space import Sphere
from tokenflock.terms import Attention, Drift
from tokenflock.terms.perceptron import Perceptron
from tokenflock.weights import Weights

RNG = np.random.default_rng(8)
ON = Harmonics(20)


def skew(x):
    """A law without any symmetry."""
    return jnp.exp(0.6 * x[:, 0] - 0.3 * x[:, 1] + 0.4 * x[:, 1] * x[:, 2] + 0.2 * x[:, 2])


def rotation():
    turn = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    return turn * np.sign(np.linalg.det(turn))


def scipy_harmonic(degree, order, x):
    """Y_lm as the module defines it, from scipy's complex ones (with their Condon-Shortley sign)."""
    theta, phi = np.arccos(x[:, 0]), np.arctan2(x[:, 2], x[:, 1])
    value = sph_harm_y(degree, abs(order), theta, phi) * np.sqrt(4 * np.pi) * (-1) ** order
    if order == 0:
        return value.real
    return np.sqrt(2) * (value.real if order > 0 else value.imag)


# --- the basis ------------------------------------------------------------------------------------


def test_harmonics_are_scipy_s():
    basis = Harmonics(6).scheme().basis
    x = np.asarray(basis.nodes)
    for degree in range(7):
        for order in range(-degree, degree + 1):
            one = jnp.zeros(49).at[degree**2 + degree + order].set(1.0)
            expected = scipy_harmonic(degree, order, x)
            np.testing.assert_allclose(basis.synthesise(one), expected, atol=1e-12)


def test_transforms_are_inverse_and_adjoint():
    basis = ON.scheme().basis
    c = jnp.asarray(RNG.normal(size=ON.shape))
    np.testing.assert_allclose(basis.analyse(basis.synthesise(c)), c, atol=1e-12)
    slope = basis.gradient(c)
    # - div grad multiplies by l(l+1) <= 420.
    np.testing.assert_allclose(basis.against_gradients(slope), basis.eigenvalues * c, atol=1e-10)
    flux = jnp.asarray(RNG.normal(size=slope.shape))
    inner = float(jnp.sum(basis.weights[:, None] * flux * slope))
    assert float(basis.against_gradients(flux) @ c) == pytest.approx(inner, rel=1e-12)


def test_the_gradient_is_tangent_and_right():
    """grad of f = a . x is P_x a."""
    basis = ON.scheme().basis
    a = jnp.asarray([0.3, -1.1, 0.7])
    slope = jnp.einsum("nr,nrd->nd", basis.gradient(basis.analyse(basis.nodes @ a)), basis.frame)
    np.testing.assert_allclose(
        slope, Sphere(3).project(basis.nodes, a + 0 * basis.nodes), atol=1e-13
    )


def test_projection_is_exact_for_polynomials():
    x = np.asarray(ON.scheme().basis.nodes)
    law = lambda y: 2 + y[:, 0] * y[:, 1] + 0.5 * y[:, 2]  # noqa: E731
    density = Density.from_law(ON, law)
    np.testing.assert_allclose(density.values, law(x) / 2, atol=1e-13)
    assert float(density.mass) == pytest.approx(1.0, abs=1e-15)


# --- the field ------------------------------------------------------------------------------------


def derivative(model, law, on=ON):
    scheme = on.scheme().prepared(model)
    return scheme, scheme.transport(model, 0.0, on.project(law))


@pytest.mark.parametrize("model", [flock.SA(3.0), flock.USA(3.0)], ids=["SA", "USA"])
def test_plain_attention_is_the_sum_over_nodes(model):
    """Funk and Hecke against the engine's own sums: B = I as a matrix is summed pair by pair."""
    kind = model.attentions()[0].kind
    summed = Dynamics(Sphere(3), Attention(Weights(B=np.eye(3)), 3.0, kind))
    ours, theirs = derivative(model, skew)[1], derivative(summed, skew)[1]
    assert float(jnp.max(jnp.abs(ours))) > 1e-2
    np.testing.assert_allclose(ours, theirs, atol=1e-9 * float(jnp.max(jnp.abs(theirs))))


def test_means_move_as_the_field_says():
    """d/dt int x dmu = int P_x f dmu for a general perceptron and drift, by quadrature."""
    M = RNG.normal(size=(3, 3))
    perceptron = Perceptron.random(3, 4, seed=1, activation=flock.terms.GELU)
    model = Dynamics(Sphere(3), Drift(M) + perceptron)
    scheme, slope = derivative(model, skew)
    x, w = scheme.basis.nodes, scheme.basis.weights * skew(scheme.basis.nodes)
    force = model.terms.field(0.0, x, scheme.basis.measure(w), Dense())
    moved = (w / jnp.sum(w)) @ Sphere(3).project(x, force)
    # x = (Y_10, Y_11, Y_1-1)/sqrt3.
    np.testing.assert_allclose(np.asarray(slope)[[2, 3, 1]] / np.sqrt(3), moved, atol=1e-9)


# --- runs -----------------------------------------------------------------------------------------


@functools.cache
def flow(law, on=ON):
    save = flock.Save(at=[0.0, 0.5], states=True, observe=[flock.energy, flock.order_parameter])
    start = Density.from_law(on, law)
    return flock.solve(flock.SA(2.0), start, 0.5, rtol=1e-10, atol=1e-13, save=save)


@pytest.mark.slow
def test_rotated_starts_give_rotated_solutions():
    """One program, two runs; values are compared at nodes turned with the start."""
    turn = jnp.asarray(rotation())
    first, second = flow(skew), flow(lambda x: skew(x @ turn))
    assert first.health["mass_drift"] < 1e-12
    assert first.health["dissipation_defect"] < 1e-8
    np.testing.assert_allclose(second.array("energy"), first.array("energy"), rtol=1e-10)
    values = synthesised(np.asarray(first.states)[-1], np.asarray(ON.scheme().basis.nodes @ turn))
    ours = ON.scheme().values(second.states[-1])
    # What degree 20 does not hold of the density at t = 0.5 is some 1e-8.
    np.testing.assert_allclose(ours, values, atol=1e-7)


def synthesised(c, x):
    """sum c_lm Y_lm at any points, by scipy."""
    total = np.zeros(len(x))
    for degree in range(ON.degree + 1):
        for order in range(-degree, degree + 1):
            total += c[degree**2 + degree + order] * scipy_harmonic(degree, order, x)
    return total


@pytest.mark.slow
def test_zonal_starts_stay_those_of_zonal():
    def law(x):
        return jnp.exp(0.8 * x[:, 0])

    sphere, zonal = flow(law), flow(law, Zonal(3, ON.degree))
    c, k = np.asarray(sphere.states)[-1], np.arange(ON.degree + 1)
    np.testing.assert_allclose(c[k * (k + 1)], np.asarray(zonal.states)[-1], atol=1e-10)
    np.testing.assert_allclose(np.delete(c, k * (k + 1)), 0.0, atol=1e-12)
    for name in ("energy", "order_parameter", "free_energy", "lowest"):
        np.testing.assert_allclose(sphere.array(name), zonal.array(name), rtol=1e-3, atol=1e-9)


@pytest.mark.slow
def test_noise_damps_every_degree():
    """The heat equation: c_lm(t) = c_lm(0) e^{-l(l+1) T t}."""
    model = Dynamics(Sphere(3), Drift(0.0), noise=Brownian(0.2))
    run = flock.solve(model, Density.from_law(ON, skew), 0.5, rtol=1e-9, atol=1e-12)
    first, last = np.asarray(run.states)[[0, -1]]
    expected = first * np.exp(-0.1 * np.asarray(ON.scheme().basis.eigenvalues))
    np.testing.assert_allclose(last, expected, atol=1e-8)


@pytest.mark.slow
def test_noisy_usa_relaxes_to_uniform_above_its_threshold():
    """T = 1.2 c_1: degree 1 decays at 2(c_1 - T) in the end; the free energy only rises."""
    temperature = 1.2 * float(theory.critical_temperature(1, 3, 1.0))
    rate = float(theory.noisy_growth_rate(1, 3, 1.0, temperature))
    save = flock.Save(at=[0.0, 20.0, 24.0], observe=[flock.order_parameter])
    run = flock.solve(
        flock.NoisyUSA(1.0, temperature),
        Density.from_law(Harmonics(12), skew),
        24.0,
        rtol=1e-8,
        atol=1e-12,
        save=save,
    )
    order = run.array("order_parameter")
    # The cubic correction is of the relative order |mean|^2 at t = 20.
    assert np.log(order[2] / order[1]) / 4 == pytest.approx(rate, rel=3 * order[1] ** 2 + 1e-4)
    assert np.all(np.diff(run.array("free_energy")) > 0)
    assert run.health["mass_drift"] < 1e-12


@pytest.mark.slow
def test_sharpening_stops_as_unresolved():
    run = flock.solve(
        flock.SA(3.0), Density.from_law(ON, skew), 20.0, rtol=1e-8, atol=1e-11, throw=False
    )
    assert run.outcome == "unresolved"
    assert "use more than degree=20" in run.advice


def test_pairs_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "1")
    model = Dynamics(Sphere(3), Attention(Weights(B=np.diag([1.0, 2.0, 3.0]))))
    Harmonics(16).check(model)
    with pytest.raises(TooLargeError, match=r"Harmonics\(64\) needs .* GiB"):
        Harmonics(64).check(model)
    Harmonics(64).check(flock.SA(1.0))


def test_tables_are_arguments_of_the_program():
    """Compiled code holds no constant of the size of a Legendre table: all come in as leaves."""
    on, model = Harmonics(8), flock.SA(2.0)
    program = eqx.filter_make_jaxpr(lambda scheme, c: scheme.transport(model, 0.0, c))
    closed = program(on.scheme().prepared(model), jnp.zeros(on.shape))[0]
    assert max((np.size(constant) for constant in closed.consts), default=0) <= on.shape[0]
