"""Zonal densities: tables, native functionals, axial weights, refusals, and runs in several dimensions."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_gegenbauer, ive, roots_jacobi

import tokenflock as flock
from tokenflock import theory
from tokenflock.density import Density
from tokenflock.dynamics import Dynamics
from tokenflock.errors import InputError
from tokenflock.kinds import Unnormalised
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.legendre import gauss, gegenbauer, gegenbauer_slopes
from tokenflock.meanfield.sphere import Harmonics
from tokenflock.meanfield.zonal import Zonal
from tokenflock.noise import Brownian
from tokenflock.space import Sphere
from tokenflock.terms import Attention, Drift, Potential
from tokenflock.terms.perceptron import Perceptron
from tokenflock.weights import Weights


def exponential(kappa):
    """e^{kappa <x, e_1>}: the von Mises-Fisher law, whose mean is I_{d/2}(kappa)/I_{d/2-1}(kappa)."""
    return lambda x: jnp.exp(kappa * x[:, 0])


def axial(first, other, d):
    return np.diag([first, *[other] * (d - 1)])


# --- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "degree"), [(2, 60), (3, 60), (8, 60), (64, 200)])
def test_polynomials_are_orthonormal_on_the_nodes(d, degree):
    """Also where weights fall to 1e-61: products of two of degree 200, to rounding of 300 terms."""
    u, w = gauss(d, 3 * degree // 2 + 2)
    values = gegenbauer(d, degree, u)
    np.testing.assert_allclose((values * w) @ values.T, np.eye(degree + 1), atol=1e-12)
    slopes = gegenbauer_slopes(d, degree, u)
    k = np.arange(degree + 1)
    scale = np.sqrt(np.maximum(k * (k + d - 2), 1))
    grams = (slopes * w * (1 - u**2)) @ slopes.T / np.outer(scale, scale)
    np.testing.assert_allclose(grams, np.diag((k > 0).astype(float)), atol=1e-12)


@pytest.mark.parametrize("d", [3, 8, 64])
def test_tables_against_scipy(d):
    """Gauss-Jacobi nodes, and Gegenbauer polynomials up to their norms."""
    u, w = gauss(d, 40)
    nodes, weights = roots_jacobi(40, (d - 3) / 2, (d - 3) / 2)
    np.testing.assert_allclose(u, nodes, atol=1e-14)
    np.testing.assert_allclose(w, weights / weights.sum(), atol=1e-14)
    ours = gegenbauer(d, 12, u)
    for k in range(13):
        theirs = eval_gegenbauer(k, d / 2 - 1, u)
        np.testing.assert_allclose(
            ours[k], theirs / np.sqrt(w @ theirs**2), atol=1e-11 * abs(ours[k]).max()
        )


# --- native functionals ---------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 8, 64])
def test_functionals_in_closed_form(d):
    """von Mises-Fisher: mean A_d(k), int rho log rho = k A_d - log Z0(k); uniform: E = Z0/(2 beta)."""
    kappa, beta = 1.5, 2.0
    on, model = Zonal(d, 40), flock.SA(beta)
    state = on.project(exponential(kappa))
    scheme = on.scheme().prepared(model)
    mean = ive(d / 2, kappa) / ive(d / 2 - 1, kappa)
    assert float(scheme.order_parameter(state)) == pytest.approx(mean, abs=1e-13)
    entropy = kappa * mean - float(theory.log_partition(d, kappa))
    assert float(scheme.entropy(state)) == pytest.approx(entropy, abs=1e-12)
    flat = jnp.zeros(on.shape).at[0].set(1.0)
    energy = float(theory.energy_uniform(d, beta))
    assert float(scheme.energy(model, flat)) == pytest.approx(energy, rel=1e-13)
    scaled = 2 * beta * np.exp(-beta) * energy
    assert float(scheme.scaled_energy(model, 0.0, flat)) == pytest.approx(scaled, rel=1e-13)


@pytest.mark.parametrize(
    "model", [flock.SA(2.0), flock.USA(2.0, "metastability")], ids=["SA", "USA"]
)
def test_energy_rate_is_the_dissipation(model):
    """(3.6) of 2312.10794: two ways to the same number, by derivative and by squares."""
    on = Zonal(8, 40)
    scheme, state = on.scheme().prepared(model), on.project(exponential(1.5))
    rate = float(scheme.energy_rate(model, 0.0, state))
    assert rate > 0
    assert float(scheme.dissipation(model, 0.0, state)) == pytest.approx(rate, rel=1e-12)
    assert float(scheme.power(model, 0.0, state)) == pytest.approx(
        rate * (1 if model.label == "SA" else np.exp(-2.0)), rel=1e-12
    )


def test_sampled_tokens_have_the_law():
    """Means of u, u^2, u^3 within 4 standard errors; the other coordinates are centred."""
    density = Density.from_law(Zonal(8, 40), exponential(3.0))
    tokens = np.asarray(density.sample(20_000, 5).points)
    np.testing.assert_allclose(np.linalg.norm(tokens, axis=-1), 1.0, atol=1e-12)
    u, w = gauss(8, 60)
    law = w * np.exp(3 * u) / (w @ np.exp(3 * u))
    for power in (1, 2, 3):
        error = np.std(tokens[:, 0] ** power) / np.sqrt(20_000)
        assert np.mean(tokens[:, 0] ** power) == pytest.approx(law @ u**power, abs=4 * error)
    assert np.max(np.abs(tokens[:, 1:].mean(axis=0))) < 4 / np.sqrt(20_000)


# --- fields ---------------------------------------------------------------------------------------


def transports(model, on, law):
    state = on.project(law)
    return np.asarray(on.scheme().prepared(model).transport(model, 0.0, state))


ATTENTIONS = {
    "softmax": Attention(Weights(B=axial(0.7, -0.4, 3), V=axial(1.1, 0.3, 3)), 3.0),
    "two heads": Attention(
        Weights(
            Q=np.stack([axial(0.5, 1.2, 3), axial(1.0, 0.2, 3)]),
            K=np.stack([axial(-0.5, 0.4, 3), axial(0.9, 0.7, 3)]),
        ),
        2.0,
    ),
    "unnormalised": Attention(Weights(B=axial(0.6, 0.9, 3), V=-0.5), 2.0, Unnormalised()),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "softmax")) for name in ATTENTIONS],
)
def test_axial_weights_against_sums_over_the_whole_sphere(name):
    """d = 3: the reduced kernel and the engine's sums over 1352 nodes of S^2 give one derivative."""
    model = Dynamics(Sphere(3), ATTENTIONS[name])
    reduced = transports(model, Zonal(3, 16), exponential(0.8))
    whole = transports(model, Harmonics(16), exponential(0.8))
    degree = np.arange(17)
    assert np.max(np.abs(reduced)) > 1e-2
    np.testing.assert_allclose(whole[degree * (degree + 1)], reduced, atol=1e-11)
    np.testing.assert_allclose(np.delete(whole, degree * (degree + 1)), 0.0, atol=1e-12)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_axial_energies_against_sums_over_the_whole_sphere(name):
    """Of every head, also at beta = 0, where the energy is that of Kuramoto."""
    zonal, whole = Zonal(3, 16), Harmonics(16)
    for beta in (ATTENTIONS[name].beta, jnp.zeros(())):
        term = eqx.tree_at(lambda term: term.beta, ATTENTIONS[name], beta)
        energies = [
            np.asarray(basis.head_energies(term, basis.weights * exponential(0.8)(basis.nodes)))
            for basis in (zonal.scheme().basis, whole.scheme().basis)
        ]
        # The engine's measures have mass one.
        masses = zonal.scheme().basis.weights @ exponential(0.8)(zonal.scheme().basis.nodes)
        np.testing.assert_allclose(energies[0] / masses**2, energies[1], rtol=1e-11)


@pytest.mark.parametrize("d", [2, 8, 64])
def test_identity_weights_are_plain_attention(d):
    """B = V = I as matrices goes through the reduced kernel, SA through Funk and Hecke."""
    model = Dynamics(Sphere(d), Attention(Weights(B=np.eye(d), V=np.eye(d)), 4.0))
    on = Zonal(d, 40)
    np.testing.assert_allclose(
        transports(model, on, exponential(1.0)),
        transports(flock.SA(4.0), on, exponential(1.0)),
        atol=1e-12,
    )


def test_external_terms_on_the_meridian():
    """d/dt int u dmu = int (1-u^2) f'(u) dmu for a potential f(u), a perceptron and a drift."""
    d, on = 5, Zonal(5, 24)
    u, w = gauss(d, 60)
    law = w * np.exp(0.7 * u) / (w @ np.exp(0.7 * u))
    e = np.eye(d)[0]
    perceptron = Perceptron.gradient([1.3, -0.4], np.stack([e, 2 * e]))
    slopes = [
        (Potential(lambda x: jnp.sin(2 * x[0])), 2 * np.cos(2 * u)),
        (perceptron, 1.3 * np.maximum(u, 0) - 0.8 * np.maximum(2 * u, 0)),
        (Drift(axial(0.9, 0.2, d)), 0.7 * u),
    ]
    for term, slope in slopes:
        moved = transports(Dynamics(Sphere(d), term), on, exponential(0.7))[1] / np.sqrt(d)
        expected = law @ ((1 - u**2) * slope)
        # The kink of ReLU is resolved to second order in the 38 nodes.
        assert moved == pytest.approx(expected, abs=1e-3 if term is perceptron else 1e-12)


REFUSED = {
    "B = Q\\^T K": Attention(Weights(B=np.diag([1.0, 1.0, 2.0, 1.0]))),
    "V = diag": Attention(Weights(V=np.ones((4, 4)))),
    "needs softmax or unnormalised": Attention(kind=flock.kinds.Linear()),
    "this Drift": Drift(np.diag([1.0, 2.0, 3.0, 4.0])),
    "this Perceptron": Perceptron.gradient([1.0], [[1.0, 0.5, 0.0, 0.0]]),
}


@pytest.mark.parametrize("says", REFUSED)
def test_models_that_leave_the_axis_are_refused(says):
    with pytest.raises(InputError, match=says):
        Zonal(4, 8).check(Dynamics(Sphere(4), REFUSED[says]))


def test_refusals_say_what_to_do():
    with pytest.raises(InputError, match="not symmetric about the first axis"):
        Density.from_law(Zonal(3, 8), lambda x: 1 + 0.5 * x[:, 1])
    with pytest.raises(InputError, match=r"density.sample\(n, seed\)"):
        Density.from_law(Zonal(3, 8), exponential(1.0)).as_measure()
    with pytest.raises(InputError, match="d >= 2"):
        Zonal(1, 8)
    with pytest.raises(InputError, match="degree from 1"):
        Zonal(3, 0)


# --- runs -----------------------------------------------------------------------------------------


def run_of(model, on, law, t1, **more):
    tolerances = {"rtol": 1e-10, "atol": 1e-13, **more}
    return flock.solve(model, Density.from_law(on, law), t1, **tolerances)


@pytest.mark.slow
def test_a_run_keeps_mass_and_the_dissipation_identity():
    run = run_of(flock.SA(2.0), Zonal(8, 64), exponential(1.5), 1.0)
    assert run.health["mass_drift"] < 1e-12
    assert run.health["dissipation_defect"] < 1e-8
    assert run.health["lowest_density"] > 0
    assert run.outcome == "finished"


@pytest.mark.slow
def test_two_dimensions_are_the_even_densities_of_the_circle():
    zonal = run_of(flock.SA(3.0), Zonal(2, 48), exponential(0.5), 0.6)
    circle = run_of(flock.SA(3.0), Fourier(48), exponential(0.5), 0.6)
    ours, theirs = np.asarray(zonal.states)[-1], np.asarray(circle.states)[-1]
    # p_k(cos theta) = sqrt2 cos(k theta), the sines are zero.
    np.testing.assert_allclose(ours, theirs[:49], atol=1e-9)


@pytest.mark.slow
def test_sampled_tokens_follow_the_density():
    """d = 8: the means of 3000 tokens and of the density differ by the noise of the draw, 3/sqrt(n)."""
    on, model = Zonal(8, 48), flock.SA(2.0)
    start = Density.from_law(on, exponential(1.5))
    save = flock.Save(every=0.5, observe=[flock.order_parameter])
    run = flock.solve(model, start, 1.0, rtol=1e-8, atol=1e-10, save=save)
    tokens = start.sample(3000, 1)
    moved = flock.solve(model, tokens, 1.0, rtol=1e-6, atol=1e-8, save=save)
    np.testing.assert_allclose(
        moved.array("order_parameter"), run.array("order_parameter"), atol=3 / np.sqrt(3000)
    )


@pytest.mark.slow
def test_sharpening_stops_as_unresolved():
    run = run_of(flock.SA(2.0), Zonal(3, 32), exponential(1.0), 20.0, throw=False)
    assert run.outcome == "unresolved"
    assert "use more than degree=32" in run.advice
    assert run.health["largest_tail"] == pytest.approx(1e-6, rel=1e-3)


@pytest.mark.slow
def test_noise_alone_is_the_heat_equation():
    """c_l(t) = c_l(0) e^{-l(l+d-2) T t}, d = 5, to the solver's tolerance."""
    model = Dynamics(Sphere(5), Drift(0.0), noise=Brownian(0.3))
    run = run_of(model, Zonal(5, 24), exponential(2.0), 0.4, rtol=1e-9, atol=1e-12)
    first, last = np.asarray(run.states)[[0, -1]]
    k = np.arange(25)
    np.testing.assert_allclose(last, first * np.exp(-k * (k + 3) * 0.12), atol=1e-8)
    assert run.health["mass_drift"] < 1e-12


@pytest.mark.slow
def test_a_perceptron_beside_axial_attention_keeps_the_identity_of_its_potential():
    term = Attention(Weights(B=axial(0.7, 0.4, 4), V=axial(0.7, 0.4, 4)), 2.0)
    bump = Perceptron.gradient([0.5], np.eye(4)[:1], flock.terms.GELU)
    run = run_of(Dynamics(Sphere(4), term + bump), Zonal(4, 32), exponential(0.5), 0.5)
    assert run.health["mass_drift"] < 1e-12
    assert run.health["dissipation_defect"] < 1e-8


def test_describes_itself():
    assert eqx.tree_equal(Zonal(3, 8), Zonal(3, 8))
    assert str(Zonal(3, 8)) == "Zonal(d=3, degree=8)"
