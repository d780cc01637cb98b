"""Spread-out stationary states: which there could be, and that they rest where nothing refuses them."""

import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.papers.perceptron.claims.circle import Neurons, unit
from tokenflock.papers.perceptron.claims.spread import density_wave, refusal
from tokenflock.terms.perceptron import Perceptron
from tokenflock.theory.perceptron import strict_spacing

ANGLES = 2 * np.pi * np.arange(256) / 256


def opposite_neurons(sizes, turns):
    """Every neuron with its opposite: (a.x)_+^2 + (-a.x)_+^2 = (a.x)^2 is analytic."""
    a = unit(np.asarray(turns))
    return Neurons(np.concatenate([sizes, sizes]), np.concatenate([a, -a]))


def largest_speed(model, density):
    """The field of a density on 256 points: sums of analytic functions, exact to rounding at beta = 3."""
    tokens = flock.from_array(flock.Sphere(2), unit(ANGLES), density / density.sum())
    return float(jnp.max(jnp.abs(model.field(0.0, tokens.points, tokens))))


def term(neurons):
    return Perceptron.gradient(neurons.omega, neurons.a)


def test_an_analytic_potential_has_a_stationary_density():
    beta, neurons = 3.0, opposite_neurons([0.04, -0.02], [0.3, 1.1])
    z = neurons.waves(neurons.active_sets())
    np.testing.assert_allclose(z, z[0], atol=1e-15)
    density = 1 + np.real(density_wave(z[0], beta) * np.exp(2j * ANGLES))
    assert density.min() > 0
    assert density.max() > 1.05
    model = flock.USA(beta, "metastability", plus=term(neurons))
    assert largest_speed(model, density) < 1e-14
    assert largest_speed(model, np.ones(256)) > 1e-3
    assert refusal(neurons, beta, False) < 1e-12


def test_a_strong_analytic_potential_has_none():
    """The same potential ten times larger asks for a negative density."""
    neurons = opposite_neurons([0.4, -0.2], [0.3, 1.1])
    z = neurons.waves(neurons.active_sets())[0]
    assert refusal(neurons, 3.0, False) == pytest.approx(abs(density_wave(z, 3.0)) - 1, rel=1e-12)
    assert refusal(neurons, 3.0, False) > 0


def test_softmax_keeps_the_uniform_measure_only_where_v_is_constant():
    """omega (|e_1.x|^2 + |e_2.x|^2) = omega; unequal weights refuse every spread-out state."""
    constant, unequal = (
        opposite_neurons(sizes, [0.4, 0.4 + np.pi / 2]) for sizes in ([0.7, 0.7], [0.7, 0.6])
    )
    assert refusal(constant, 3.0, True) < 1e-12
    assert largest_speed(flock.SA(3.0, plus=term(constant)), np.ones(256)) < 1e-14
    assert refusal(unequal, 3.0, True) > 1
    assert largest_speed(flock.SA(3.0, plus=term(unequal)), np.ones(256)) > 1e-3


def test_active_sets_are_those_between_the_kinks():
    neurons = Neurons(np.ones(2), unit(np.array([0.0, 0.5])))
    found = {tuple(row) for row in neurons.active_sets().tolist()}
    assert found == {(True, True), (True, False), (False, True), (False, False)}
    half = neurons.potential(ANGLES)
    slope = np.gradient(half, ANGLES)[1:-1]
    np.testing.assert_allclose(neurons.slope(ANGLES)[1:-1], slope, atol=0.03)


def test_the_spacing_solves_its_quadratic():
    for kappa, third, fourth in ((0.1, 2.0, 7.0), (3.0, 0.5, 40.0)):
        delta = strict_spacing(kappa, third, fourth)
        assert third * delta + fourth * delta**2 / 4 == pytest.approx(kappa, rel=1e-14)
    assert strict_spacing(0.0, 1.0, 1.0) == 0
