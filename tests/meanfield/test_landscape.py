"""The energy of attention with a perceptron, its field and second variation (P1-1, 2, 6, 8, P1.e)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.errors import InputError
from tokenflock.meanfield.landscape import Landscape, certify, critical_near, reversed_model
from tokenflock.meanfield.landscape.structure import moved, tangent_frames
from tokenflock.terms import Potential
from tokenflock.terms.perceptron import GELU, RELU, Activation, Perceptron
from tokenflock.weights import Weights

RNG = np.random.default_rng(5)
# sigma = 1/2 has the primitive phi(s) = s: v(x) = omega a.x, a linear potential.
HALF = Activation("half", lambda s: 0.5 + 0.0 * s, lambda s: s)


def cloud(n=5, d=3):
    x = RNG.normal(size=(n, d))
    masses = RNG.uniform(0.3, 1.7, n)
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return jnp.asarray(x), jnp.asarray(masses / masses.sum())


def perceptron(d=3, activation=RELU):
    return Perceptron.gradient(RNG.normal(size=d), RNG.normal(size=(d, d)), activation)


def models(d=3):
    symmetric = RNG.normal(size=(d, d))
    B = (symmetric + symmetric.T) / 4
    return {
        "A relu": flock.USA(2.0, plus=perceptron(d)),
        "B gelu": flock.USA(2.0, "metastability", plus=perceptron(d, GELU)),
        "B matrix": flock.USA(1.5, weights=Weights(B=B, V=B), plus=perceptron(d, GELU)),
        "SA relu": flock.SA(3.0, plus=perceptron(d)),
        "potential": flock.USA(1.0, plus=Potential(lambda x: x[0] ** 3 - x[1])),
    }


def energy_of_numpy(model_beta, strength, x, masses, omega, a):
    """E by loops, ReLU: phi(s) = s_+^2."""
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            weight = np.exp(model_beta * (x[i] @ x[j] - 1)) * strength
            total += masses[i] * masses[j] * weight / (2 * model_beta)
        for k in range(len(omega)):
            total += masses[i] * omega[k] * max(a[k] @ x[i], 0.0) ** 2 / 2
    return total


def test_energy_is_the_papers():
    x, masses = cloud()
    own = perceptron()
    found = Landscape.of(flock.USA(2.0, plus=own)).energy(x, masses)
    expected = energy_of_numpy(2.0, np.exp(2.0), x, masses, own.omega, own.inner)
    assert float(found) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("name", models())
def test_field_is_the_models(name):
    model = models()[name]
    x, masses = cloud()
    tokens = flock.from_array(flock.Sphere(3), x, masses)
    expected = model.field(0.0, x, tokens)
    np.testing.assert_allclose(Landscape.of(model).field(x, masses), expected, atol=1e-13)
    opposite = reversed_model(model).field(0.0, x, tokens)
    np.testing.assert_allclose(opposite, -expected, atol=1e-13)


@pytest.mark.parametrize("name", ["A relu", "B gelu", "B matrix", "potential"])
def test_P1_1_the_field_is_the_gradient_over_the_masses(name):
    """Central differences of E in random tangent directions: error h^2 = 1e-10, rounding eps/h = 2e-11."""
    landscape = Landscape.of(models()[name])
    x, masses = cloud()
    frames = tangent_frames(x)
    for _ in range(3):
        step = 1e-5 * jnp.asarray(RNG.normal(size=(5, 2)))
        up, down = (landscape.energy(moved(x, frames, s * step), masses) for s in (1, -1))
        field = jnp.einsum("ndt,nd->nt", frames, landscape.field(x, masses))
        expected = float(jnp.sum(masses[:, None] * field * step))
        scale = 1e-5 * float(jnp.linalg.norm(field))
        assert float(up - down) / 2 == pytest.approx(expected, abs=1e-6 * scale)


def test_P1_1_the_public_primitive_of_gelu_is_no_primitive():
    """s^2 Phi + s pdf differs by pdf in its derivative: the gradient check sees it."""
    wrong = Activation(
        "wrong", GELU.sigma, lambda s: GELU.primitive(s) + jax.scipy.stats.norm.cdf(s)
    )
    own = perceptron(activation=GELU)
    other = Perceptron.gradient(own.omega, own.inner, wrong)
    x, masses = cloud()
    frames = tangent_frames(x)
    step = 1e-5 * jnp.asarray(RNG.normal(size=(5, 2)))
    relative = []
    for term in (own, other):
        model = flock.USA(2.0, plus=term)
        tokens = flock.from_array(flock.Sphere(3), x, masses)
        field = jnp.einsum("ndt,nd->nt", frames, model.field(0.0, x, tokens))
        landscape = Landscape.of(model)
        up, down = (landscape.energy(moved(x, frames, s * step), masses) for s in (1, -1))
        slope = float(jnp.sum(masses[:, None] * field * step))
        relative.append(abs(float(up - down) / 2 - slope) / 1e-5)
    assert relative[0] < 1e-7 < 1e-3 < relative[1]


@pytest.mark.parametrize("name", ["A relu", "B gelu", "B matrix", "potential"])
def test_second_variation_against_autodiff_along_geodesics(name):
    landscape = Landscape.of(models()[name])
    x, masses = cloud()
    frames = tangent_frames(x)
    xi = jnp.asarray(RNG.normal(size=(5, 2)))

    def along(t):
        return landscape.energy(moved(x, frames, t * xi), masses)

    expected = jax.grad(jax.grad(along))(0.3)
    # At t = 0.3 the geodesic goes on with a turned velocity: transport the frame by its derivative.
    there = moved(x, frames, 0.3 * xi)
    velocity = jax.jvp(lambda t: moved(x, frames, t * xi), (0.3,), (1.0,))[1]
    new = tangent_frames(there)
    coordinates = jnp.einsum("ndt,nd->nt", new, velocity)
    H = landscape.second_variation(there, masses, new)
    found = jnp.einsum("is,isjt,jt->", coordinates, H, coordinates)
    assert float(found) == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.slow
def test_second_variation_on_the_circle_by_the_papers_formula():
    """J_ij = -(m_j/b) K'', J_ii = (1/b) sum m_j K'' + v''/2, H = diag(m) J (P1.f)."""
    angles, masses = np.array([0.1, 0.9, 2.5, -2.0]), np.array([0.1, 0.4, 0.3, 0.2])
    omega, a, beta = np.array([0.7, -1.2]), RNG.normal(size=(2, 2)), 3.0
    x = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    turned = np.stack([-np.sin(angles), np.cos(angles)], axis=-1)
    difference = angles[:, None] - angles
    curvature = np.exp(beta * np.cos(difference)) * (
        beta**2 * np.sin(difference) ** 2 - beta * np.cos(difference)
    )
    J = -masses * curvature / beta
    s, c = x @ a.T, turned @ a.T
    bend = 2 * ((s > 0) * c**2 - np.maximum(s, 0) * s) @ omega
    np.fill_diagonal(J, 0.0)
    others = curvature * (1 - np.eye(4))
    J += np.diag(others @ masses / beta + bend / 2)
    landscape = Landscape.of(flock.USA(beta, plus=Perceptron.gradient(omega, a)))
    # The frame at x may be the turned vector or its opposite.
    frames = tangent_frames(jnp.asarray(x))
    signs = np.sum(np.asarray(frames)[:, :, 0] * turned, axis=-1)
    H = np.asarray(landscape.second_variation(jnp.asarray(x), jnp.asarray(masses), frames))
    np.testing.assert_allclose(
        H[:, 0, :, 0], masses[:, None] * J * signs[:, None] * signs, rtol=1e-11, atol=1e-13
    )


@pytest.mark.slow
def test_P1_2_the_energy_is_monotone_along_the_flows():
    """Form A, steps 0.1/(1 + b e^b), relative to |E| (eighth order: the method adds nothing visible)."""
    beta = 2.0
    model = flock.USA(beta, plus=perceptron(2))
    tokens = flock.uniform(flock.Sphere(2), 12, seed=3)
    dt = 0.1 / (1 + beta * np.exp(beta))
    for flow, sign in ((model, 1.0), (reversed_model(model), -1.0)):
        run = flock.solve(flow, tokens, 60 * dt, dt=dt, save=flock.Save(every=dt, states=True))
        energies = [
            float(Landscape.of(model).energy(x, tokens.weights)) for x in jnp.asarray(run.states)
        ]
        steps = sign * np.diff(energies)
        assert steps.min() >= -1e-12 * abs(energies[0])
        assert steps[0] > 1e-6


@pytest.mark.parametrize("beta", [0.01, 1.0, 9.0])
def test_P1_6_antipodes_are_SOPD_without_a_perceptron(beta):
    """Eigenvalues in the metric of the masses 1/2: 0 (rotation) and e^{-beta}."""
    point = critical_near(flock.USA(beta), [[0.6, 0.8], [-0.6, -0.8]], [0.5, 0.5])
    found = certify(point)
    assert (found.verdict, found.rotations) == ("SOPD", 1)
    np.testing.assert_allclose(found.eigenvalues, [0.0, np.exp(-beta)], atol=1e-15 * np.exp(beta))


def test_P1_8_one_atom_in_a_linear_potential():
    """kappa = 1/2 and E = e^b/(2b) - cos(t r)/2 along every geodesic."""
    x0 = np.array([2.0, -1.0, 2.0]) / 3
    model = flock.USA(1.7, plus=Perceptron.gradient([1.0], -x0[None], HALF))
    found = certify(critical_near(model, x0[None], [1.0]))
    assert found.verdict == "strict SOPD"
    np.testing.assert_allclose(found.eigenvalues, 0.5, rtol=1e-13)
    landscape, x, one = Landscape.of(model), jnp.asarray(x0[None]), jnp.ones(1)
    for step in ([0.3, 0.4], [1.0, 0.0]):
        there = moved(x, tangent_frames(x), jnp.asarray([step]))
        expected = np.exp(1.7) / 3.4 - np.cos(np.linalg.norm(step)) / 2
        assert float(landscape.energy(there, one)) == pytest.approx(expected, abs=1e-12)


def test_models_without_a_gradient_are_refused():
    general = Perceptron.random(2, 3, seed=0)
    refused = {
        "gradient of a potential": flock.USA(1.0, plus=general),
        "without a mask": flock.CausalSA(1.0),
        "direction='descent'": flock.USA(1.0, weights=Weights(V=-1.0)),
        "noise": flock.NoisyUSA(1.0, 0.1),
        "one beta": flock.USA([1.0, 2.0]),
        "symmetric B": flock.USA(1.0, weights=Weights(B=[[1.0, 2.0], [0.0, 1.0]])),
        "metastability": flock.USA(701.0),
    }
    for words, model in refused.items():
        with pytest.raises(InputError, match=words):
            Landscape.of(model)


def test_P1_e_form_A_and_form_B_are_one_landscape():
    """omega e^{-b} in form B is omega in form A, slower by e^{-b}; form B takes any beta."""
    own = perceptron(2, GELU)
    scaled = Perceptron.gradient(own.omega * np.exp(-30.0), own.inner, GELU)
    x, masses = cloud(4, 2)
    a = Landscape.of(flock.USA(30.0, plus=own)).field(x, masses)
    b = Landscape.of(flock.USA(30.0, "metastability", plus=scaled)).field(x, masses)
    np.testing.assert_allclose(a * np.exp(-30.0), b, rtol=1e-12, atol=1e-18)
    huge = Landscape.of(flock.USA(2000.0, "metastability", plus=own))
    assert bool(jnp.all(jnp.isfinite(huge.field(x, masses))))
