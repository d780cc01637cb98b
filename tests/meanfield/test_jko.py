"""Minimising movements agree with the flow to first order; the metric of SA makes SA of E."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import tokenflock as flock
from tokenflock.density import Density
from tokenflock.errors import InputError, SolveError
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.jko import entropic_jko_step, jko_flow
from tokenflock.meanfield.laws import cosine
from tokenflock.meanfield.metric import gradient, inner_product, sa_flow, sa_metric
from tokenflock.meanfield.quantiles import Quantiles
from tokenflock.meanfield.transport import w2_on_circle
from tokenflock.terms import Drift
from tokenflock.weights import Weights

LAW = cosine(0.5, 1, 0.2)
B = np.array([[1.0, 0.3], [0.3, -0.5]])
T1 = 0.2


@pytest.mark.parametrize(
    ("model", "movements"),
    [
        (flock.USA(1.5), jko_flow),
        pytest.param(flock.NoisyUSA(1.5, 0.2), jko_flow, marks=pytest.mark.slow),
        pytest.param(flock.SA(1.5), sa_flow, marks=pytest.mark.slow),
    ],
    ids=["USA", "noisy USA", "SA in its own metric"],
)
@pytest.mark.slow
def test_movements_tend_to_the_flow_like_tau(model, movements):
    start = Density.from_law(Quantiles(24), LAW)
    method = flock.Stiff() if model.noise is not None else None
    run = flock.solve(model, start, T1, rtol=1e-10, atol=1e-12, method=method)
    exact = np.asarray(run.array("final_state"))
    paths = {steps: movements(model, start, T1 / steps, steps) for steps in (5, 10)}
    errors = [np.abs(np.asarray(path[-1]) - exact).max() for path in paths.values()]
    # Error = C tau (1 + O(tau)), with tau rates of about 0.05.
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)
    assert errors[1] < 2e-3
    scheme = start.on.scheme()
    energies = [float(scheme.free_energy(model, 0.0, state)) for state in paths[10]]
    assert np.all(np.diff(energies) > 0)


@pytest.mark.slow
def test_a_movement_is_closer_and_lower_than_any_other():
    """The step minimises W2^2/(2 tau) - A, with the exact W2 and any other measure."""
    model, tau = flock.USA(1.5), 0.1
    start = Density.from_law(Quantiles(40), LAW)
    scheme = start.on.scheme()
    step = np.asarray(jko_flow(model, start, tau, 1)[-1])

    def objective(theta):
        moved = start.at(jnp.asarray(theta))
        return w2_on_circle(start, moved) ** 2 / (2 * tau) - float(
            scheme.free_energy(model, 0.0, moved.state)
        )

    least = objective(step)
    rng = np.random.default_rng(3)
    for size in (1e-2, 1e-3):
        for _ in range(5):
            assert objective(step + size * rng.normal(size=40)) > least
    assert objective(np.asarray(start.state)) > least


@pytest.mark.slow
def test_a_root_of_the_gradient_that_is_no_minimum_is_refused():
    """At tau = 3 and 10 Newton's method ends at saddles, above the start; below, at the minimum.

    The minimum is checked against BFGS of scipy, for the objective written out again.
    """
    model, start = flock.USA(1.0), Density.from_law(Quantiles(24), cosine(0.3, 1))
    theta = np.asarray(start.state)

    def objective(phi, tau):
        energy = np.exp(np.cos(phi[:, None] - phi)).mean() / 2
        return ((phi - theta) ** 2).mean() / (2 * tau) - energy

    for tau in (0.3, 1.0):
        found = np.asarray(jko_flow(model, start, tau, 1)[-1])
        other = scipy.optimize.minimize(objective, theta, (tau,), "BFGS", options={"gtol": 1e-8})
        assert objective(found, tau) < objective(theta, tau)
        # Both gradients are below 1e-8, and so is their squared distance times the curvature.
        assert objective(found, tau) == pytest.approx(other.fun, abs=1e-12)
    for tau in (3.0, 10.0):
        with pytest.raises(SolveError, match="not convex on the way"):
            jko_flow(model, start, tau, 1)


@pytest.mark.slow
def test_a_symmetric_drift_is_a_gradient():
    """diag(1, 0) is the gradient of x_1^2/2: a step from quantiles rises along it."""
    model = flock.USA(1.0, plus=Drift(np.diag([1.0, 0.0])))
    start = Density.from_law(Quantiles(24), cosine(0.3, 1))
    step = np.asarray(jko_flow(model, start, 0.01, 1)[-1])
    velocity = np.asarray(start.on.scheme().transport(model, 0.0, start.state))
    # First order in tau, with rates of about one.
    np.testing.assert_allclose(step - start.state, 0.01 * velocity, atol=5e-4)


@pytest.mark.slow
def test_entropic_steps_agree_with_quantiles_and_with_the_flow():
    """One step is off the flow by C tau^2; by Sinkhorn's divergence it is the same step."""
    for model in (flock.USA(1.5), flock.NoisyUSA(1.5, 0.2)):
        start = Density.from_law(Fourier(24), LAW)
        errors = []
        for tau in (0.1, 0.05):
            run = flock.solve(model, start, tau, rtol=1e-10, atol=1e-12)
            step = entropic_jko_step(model, start, tau, epsilon=0.02)
            errors.append(w2_on_circle(step, run.final))
        assert errors[0] / errors[1] == pytest.approx(4, abs=0.6)
        fine = Density.from_law(Quantiles(100), LAW)
        by_quantiles = fine.at(jko_flow(model, fine, 0.05, 1)[-1])
        # Atoms stand off their density by pi/(sqrt 3 n) = 0.018; moments do not.
        found = np.asarray(step.as_measure().weights @ step.as_measure().points)
        known = np.asarray(by_quantiles.as_measure().points.mean(0))
        np.testing.assert_allclose(found, known, atol=2e-4)


@pytest.mark.slow
def test_the_gradient_of_the_energy_in_the_metric_is_the_field_of_sa():
    plain, tied = flock.SA(2.0), flock.SA(2.0, Weights(B=B, V=-0.6 * B))
    tokens = flock.from_angles(np.array([0.1, 0.9, 2.5, -2.0]), np.array([0.1, 0.4, 0.3, 0.2]))
    series, quantiles = (Density.from_law(on, LAW) for on in (Fourier(16), Quantiles(30)))
    for model, mu in ((plain, tokens), (tied, tokens), (plain, series), (tied, quantiles)):
        cloud = mu if isinstance(mu, flock.Measure) else mu.as_measure()
        field = model.field(0.0, cloud.points, cloud)
        np.testing.assert_allclose(gradient(model, mu), field, atol=1e-12)
    # dE/dt = <v, v>_mu along SA: the dissipation of the run's own identity (2312.10794, 3.6).
    scheme = series.on.scheme().prepared(plain)
    field = plain.field(0.0, series.as_measure().points, series.as_measure())
    power = float(scheme.power(plain, 0.0, series.state))
    assert float(inner_product(plain, series, field, field)) == pytest.approx(power, rel=1e-10)
    assert np.all(np.asarray(sa_metric(plain, series)) > 0)


def test_sentences():
    start = Density.from_law(Quantiles(20), LAW)
    with pytest.raises(InputError, match="SA is not a gradient flow in W2"):
        jko_flow(flock.SA(1.0), start, 0.1, 1)
    with pytest.raises(InputError, match="taken in quantiles"):
        jko_flow(flock.USA(1.0), Density.from_law(Fourier(8), LAW), 0.1, 1)
    with pytest.raises(InputError, match="tau must be positive"):
        jko_flow(flock.USA(1.0), start, 0.0, 1)
    with pytest.raises(InputError, match="V = c B and B symmetric"):
        jko_flow(flock.USA(1.0, weights=Weights(V=np.diag([1.0, 2.0]))), start, 0.1, 1)
    with pytest.raises(InputError, match="Drift is not the gradient of a potential"):
        jko_flow(flock.USA(1.0, plus=Drift([[0.0, 1.0], [-1.0, 0.0]])), start, 0.1, 1)
    with pytest.raises(InputError, match="metric is that of SA alone"):
        sa_flow(flock.SA(1.0, plus=Drift(1.0)), start, 0.1, 1)
    with pytest.raises(InputError, match="USA's is Wasserstein's"):
        sa_flow(flock.USA(1.0), start, 0.1, 1)
    with pytest.raises(InputError, match="nodes of Fourier"):
        entropic_jko_step(flock.USA(1.0), start, 0.1, 0.1)
    with pytest.raises(InputError, match="blurs less than the spacing"):
        entropic_jko_step(flock.USA(1.0), Density.from_law(Fourier(8), LAW), 0.1, 1e-4)
    with pytest.raises(SolveError, match="use a smaller tau"):
        jko_flow(flock.USA(5.0), start, 10.0, 1)
