"""Fourier series on the circle: accuracy in modes and steps, growth rates, identities, sentences."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from named_kinds import named_kind
from scipy.special import iv

import tokenflock as flock
from tokenflock import theory
from tokenflock.density import Density
from tokenflock.dynamics import Dynamics
from tokenflock.errors import InputError, SolveError
from tokenflock.kinds import Kernel, Unnormalised
from tokenflock.meanfield.circle import Fourier
from tokenflock.meanfield.kernel import kernel_series
from tokenflock.meanfield.laws import cosine, uniform
from tokenflock.meanfield.quantiles import Quantiles
from tokenflock.meanfield.stationary.equation import stationary_equation
from tokenflock.states.diagonal import DiagonalSolve
from tokenflock.terms import Attention, Drift, Potential
from tokenflock.terms.perceptron import GELU, Perceptron
from tokenflock.weights import Weights

TIGHT = {"rtol": 1e-11, "atol": 1e-14}


def skewed(x):
    """A positive law with all phases, analytic in a strip, so that sign errors show."""
    theta = jnp.arctan2(x[:, 1], x[:, 0])
    return jnp.exp(0.6 * jnp.cos(theta) + 0.4 * jnp.sin(2 * theta) - 0.3 * jnp.cos(3 * theta + 1))


def density_at(state, theta):
    """The density of Fourier coefficients at any angles."""
    k = np.arange(1, state.size // 2 + 1)
    cos, sin = state[1 : k.size + 1], state[k.size + 1 :]
    wave = np.outer(theta, k)
    return state[0] + np.sqrt(2) * (np.cos(wave) @ cos + np.sin(wave) @ sin)


def rates_of_change(model, on, states):
    """d/dt of every state in a batch, by the scheme alone."""
    scheme = on.scheme().prepared(model)
    return np.asarray(jax.jit(jax.vmap(lambda c: scheme.transport(model, 0.0, c)))(states))


# --- The scheme -----------------------------------------------------------------------------------


def test_kernel_numbers_are_bessel_functions_in_any_dimension():
    """a_l = Gamma(d/2)(2/beta)^{d/2-1} I_{l+d/2-1}(beta) e^{-beta}: scipy's Bessel functions."""
    for d, beta in ((2, 0.3), (2, 9.0), (3, 4.0), (8, 5.0), (64, 20.0)):
        series = kernel_series(jnp.asarray(beta), d, 12)
        order = np.arange(13) + d / 2 - 1
        gamma = np.prod([j / 2 for j in range(d - 2, 0, -2)]) * (np.sqrt(np.pi) if d % 2 else 1.0)
        known = gamma * (2 / beta) ** (d / 2 - 1) * iv(order, beta) * np.exp(-beta)
        np.testing.assert_allclose(series.partition, known, rtol=2e-13)
        np.testing.assert_allclose(series.potential[1:], known[1:] / beta, rtol=2e-13)


def by_small_steps(model, modes, t1):
    """The state at t1 by 400 classical Runge-Kutta steps: their error is below rounding here."""
    on, step = Fourier(modes, tail=10.0), t1 / 400

    @jax.jit
    def integrate(state):
        scheme = on.scheme().prepared(model)

        def advance(c, _):
            first = scheme.transport(model, 0.0, c)
            second = scheme.transport(model, 0.0, c + step / 2 * first)
            third = scheme.transport(model, 0.0, c + step / 2 * second)
            fourth = scheme.transport(model, 0.0, c + step * third)
            return c + step / 6 * (first + 2 * second + 2 * third + fourth), None

        return jax.lax.scan(advance, state, None, length=400)[0]

    return np.asarray(integrate(on.project(skewed)))


@pytest.mark.parametrize(
    ("model", "t1"),
    [pytest.param(flock.USA(3.0), 0.05, marks=pytest.mark.slow), (flock.SA(3.0), 0.5)],
)
def test_errors_fall_faster_than_any_power_of_the_modes(model, t1):
    """Against 128 modes the error of M modes falls like e^{-cM}, on a law analytic in a strip."""
    theta = np.linspace(0, 2 * np.pi, 301)
    exact = density_at(by_small_steps(model, 128, t1), theta)
    errors = np.array(
        [np.abs(density_at(by_small_steps(model, M, t1), theta) - exact).max() for M in (8, 16, 32)]
    )
    ratios = errors[:-1] / errors[1:]
    assert ratios[0] > 2**4
    # A power M^{-p} has equal ratios; e^{-cM} squares them. Ask for three quarters of that.
    assert ratios[1] > ratios[0] ** 1.5
    assert errors[2] < 1e-7


def orders(errors):
    return np.log2(np.asarray(errors)[:-1] / np.asarray(errors)[1:])


def errors_of_steps(model, start, t1, method, counts, exact, states=False):
    """Largest errors of the final state, or the states themselves, at numbers of fixed steps."""
    found = []
    for count in counts:
        run = flock.solve(model, start, t1, dt=t1 / count, method=method)
        found.append(np.asarray(run.array("final_state")))
    return found if states else [np.abs(state - exact).max() for state in found]


@pytest.mark.slow
def test_order_of_explicit_steps():
    model, start = flock.SA(2.0), Density.from_law(Fourier(24, tail=1.0), cosine(0.5, 1, 0.3))
    exact = errors_of_steps(model, start, 1.0, diffrax.Dopri5(), (64,), 0.0, states=True)[0]
    found = orders(errors_of_steps(model, start, 1.0, diffrax.Dopri5(), (4, 8, 16), exact))
    assert found[-1] == pytest.approx(5, abs=0.25)


@pytest.mark.slow
def test_order_of_steps_with_noise():
    """KenCarp4 keeps order 4 although the diffusion is implicit and its rates are stiff."""
    model, start = flock.NoisyUSA(1.0, 0.4), Density.from_law(Fourier(32), cosine(0.5, 1, 0.3))
    method = diffrax.KenCarp4(root_finder=DiagonalSolve())
    exact = errors_of_steps(model, start, 2.0, method, (640,), 0.0, states=True)[0]
    found = orders(errors_of_steps(model, start, 2.0, method, (20, 40, 80), exact))
    # The reference has (80/640)^4 = 0.02 % of the last error.
    assert found[-1] >= 3.9
    # Stiff indeed: an explicit step is stable up to about 3 over the largest rate.
    assert 0.4 * 32**2 * 2.0 / 80 > 3 * 3


@pytest.mark.parametrize("label", ["USA", "SA"])
def test_growth_rates_of_all_modes(label):
    """A mode k of size 1e-6 feeds back on itself in the third order only: its rate is exact (K5.1)."""
    golden = {
        ("USA", 5.0): [4.86713, 14.00449, 18.59607, 16.34635, 10.78987],
        ("USA", 7.0): [22.2913, 70.86361, 109.51134, 116.58, 96.01959],
        ("SA", 5.0): [None, None, 0.6826783336],
        ("SA", 7.0): [None, None, None, 0.6914840633],
    }
    on, size = Fourier(24), 1e-6
    modes = np.arange(1, 13)
    states = jnp.asarray(np.eye(49)[0] + size * np.eye(49)[modes])
    for beta in (0.0, 1.0, 5.0, 7.0):
        changes = rates_of_change(getattr(flock, label)(beta), on, states)
        found = changes[modes - 1, modes] / size
        known = [theory.growth_rate(k, 2, beta, named_kind(label)) for k in modes]
        # Rounding of the products, some 1e-17, is divided by the size.
        np.testing.assert_allclose(found, known, rtol=1e-6, atol=1e-9 * max(known))
        for value, rate in zip(golden.get((label, beta), []), found, strict=False):
            assert value is None or rate == pytest.approx(value, rel=1e-5)


@pytest.mark.slow
def test_growth_of_all_modes_in_time_for_a_batch_of_beta():
    betas = np.array([1.0, 5.0, 7.0])
    rates = np.array(
        [[theory.growth_rate(k, 2, b, named_kind("USA")) for k in range(1, 7)] for b in betas]
    )

    def bumps(x):
        theta = jnp.arctan2(x[:, 1], x[:, 0])
        return 1 + 1e-8 * sum(jnp.cos(k * theta + k) for k in range(1, 7))

    t1 = 2.0 / rates.max()
    watch = flock.Save(every=t1, observe=[flock.observables.fourier_moments(6)])
    start = Density.from_law(Fourier(24), bumps)
    run = flock.solve(flock.USA(betas), start, t1, save=watch, rtol=1e-12, atol=1e-18)
    moments = run.array("fourier_moments")
    found = np.log(moments[:, -1] / moments[:, 0]) / t1
    # Products of two modes are 1e-8 of one, rounding 1e-17/1e-8: both below 1e-7 of a growth e^2.
    np.testing.assert_allclose(found, rates, rtol=1e-4, atol=1e-6 * rates.max())
    assert run.health["mass_drift"] <= 1e-12


def test_softmax_at_large_beta_is_nearly_the_backward_heat_equation():
    """K5.7: mode 1 of 1 + 0.1 cos at beta = 50 grows by I_1/(50 I_0) = 0.0198, the heat's is 0.02."""
    on, beta = Fourier(24), 50.0
    start = np.asarray(on.project(cosine(0.1, 1)))
    rate = rates_of_change(flock.SA(beta), on, jnp.asarray(start[None]))[0, 1] / start[1]
    known = iv(1, beta) / iv(0, beta) / beta
    # The amplitude enters in the second order: a relative 0.1^2/2 at most.
    assert rate == pytest.approx(known, rel=5e-3)
    assert known == pytest.approx(0.0198, abs=5e-5)


# --- Noise ----------------------------------------------------------------------------------------


def noisy(strength, beta=1.0, temperature=0.4):
    """Noisy USA with V = strength: one compiled program for all numbers."""
    return flock.USA(beta, weights=Weights(V=strength), noise=flock.Brownian(temperature))


def followed(model, law, t1):
    watch = flock.Save(every=t1 / 4, observe=[flock.observables.fourier_moments(3)])
    start = Density.from_law(Fourier(32), law)
    return flock.solve(model, start, t1, save=watch, rtol=1e-10, atol=1e-16)


@pytest.mark.slow
def test_heat_alone_is_exact():
    """Noise without a field: c_k e^{-T k^2 t}, to the tolerance of the solver."""
    run = followed(noisy(0.0), skewed, 2.0)
    k = np.concatenate([[0], np.arange(1, 33), np.arange(1, 33)])
    start = np.asarray(run.array("initial_state"))
    np.testing.assert_allclose(
        run.array("final_state"), start * np.exp(-0.4 * k**2 * 2.0), rtol=1e-8, atol=1e-11
    )
    assert run.health["dissipation_defect"] < 1e-8
    assert run.health["lowest_density"] > 0


@pytest.mark.slow
def test_noisy_usa_around_uniform_and_its_free_energy():
    """P6d (1): cos theta grows at lambda_1 - T within 1e-4; (2): the free energy is monotone."""
    t1 = 2.0
    moments = followed(noisy(1.0), cosine(1e-5, 1), t1).array("fourier_moments")[:, 0]
    rate = np.log(moments[-1] / moments[0]) / t1
    assert rate == pytest.approx(iv(1, 1.0) - 0.4, rel=1e-4)
    run = followed(noisy(1.0), skewed, t1)
    assert np.all(np.diff(run.array("free_energy")) > 0)
    assert run.health["dissipation_defect"] < 1e-8
    assert run.health["mass_drift"] <= 1e-12


# --- Models with matrices and further terms -------------------------------------------------------

SYMMETRIC = np.array([[[1.0, 0.3], [0.3, -0.5]], [[0.4, -0.2], [-0.2, 0.8]]])
RATIOS = np.array([0.7, -0.4])[:, None, None]
PULLS = (
    Perceptron.gradient([0.5, -0.3], [[1.0, 0.2], [-0.4, 0.9]], GELU)
    + Drift([[0.3, 0.2], [0.2, -0.1]])
    + Potential(lambda x: 0.2 * jnp.sin(x[0] + 2 * x[1]))
)
TIED = "two tied heads, perceptron, drift, potential"
MODELS = {
    TIED: Attention(Weights(B=SYMMETRIC, V=RATIOS * SYMMETRIC), 1.5, Unnormalised("metastability"))
    + PULLS,
    "softmax with V = c B": Attention(Weights(B=SYMMETRIC[0], V=0.7 * SYMMETRIC[0]), 1.5),
    "nothing tied": Attention(Weights(B=SYMMETRIC[0], V=[[0.0, 1.0], [-1.0, 0.3]]), 1.5)
    + Perceptron([[1.0, 0.2]], [[0.3], [0.5]], [0.1], GELU)
    + Drift([[0.0, 0.5], [-0.1, 0.0]]),
    "another kernel": Attention(None, 1.0, Kernel(lambda s: s**3 / 3 + s)),
}


@pytest.mark.parametrize(
    ("name", "temperature"),
    [
        pytest.param(
            name, temperature, marks=[pytest.mark.slow] * (name != TIED or temperature == 0.0)
        )
        for name in MODELS
        for temperature in (0.0, 0.3)
    ],
)
def test_any_terms_act_alike_on_series_and_quantiles(name, temperature):
    """Two discretisations that share no formula: the same motion, energy and dissipation.

    The error of quantiles is of second order in their gaps with noise (whose differences are central)
    and of no power without it: sums over equal masses of smooth periodic functions.
    """
    noise = flock.Brownian(temperature) if temperature else None
    model, n = Dynamics(None, MODELS[name], noise), 400
    allowed = 60 * temperature * (2 * np.pi / n) ** 2 + 1e-11
    series, quantiles = Fourier(48).scheme().prepared(model), Quantiles(n).scheme()
    state, theta = Fourier(48).project(skewed), Quantiles(n).project(skewed)

    @jax.jit
    def look(scheme, state):
        moving = scheme.transport(model, 0.0, state)
        damping = scheme.damping(model)
        moving = moving if damping is None else moving - damping * state
        along = jax.jvp(lambda y: scheme.free_energy(model, 0.0, y), (state,), (moving,))
        return moving, *along, scheme.power(model, 0.0, state)

    change, energy, rate, power = look(series, state)
    velocity, tokens_energy, tokens_rate, tokens_power = look(quantiles, theta)
    # The identity is the derivative of the free energy along the motion, by automatic differentiation.
    np.testing.assert_allclose(power, rate, atol=1e-11)
    np.testing.assert_allclose(tokens_power, tokens_rate, atol=1e-11)
    np.testing.assert_allclose(tokens_energy, energy, atol=allowed)
    np.testing.assert_allclose(tokens_power, power, atol=allowed)
    k = np.arange(1, 4)
    wave = np.outer(k, theta)
    motion = np.sqrt(2) * np.stack([-np.sin(wave) @ velocity, np.cos(wave) @ velocity]) * k / n
    pulled = np.stack([change[1:4], change[49:52]])
    np.testing.assert_allclose(motion, pulled, atol=allowed)
    if name == TIED:
        assert power > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_any_terms_move_series_and_quantiles_alike(name):
    model = Dynamics(None, MODELS[name])
    watch = flock.Save(every=0.15, observe=[flock.energy, flock.observables.fourier_moments(4)])
    found = [
        flock.solve(model, Density.from_law(on, skewed), 0.3, save=watch, rtol=1e-10, atol=1e-12)
        for on in (Fourier(64), Quantiles(400))
    ]
    for run in found:
        # Work and energy are both good to the tolerance per step, of which there are some ten.
        assert run.health["dissipation_defect"] < 1e-8
        assert run.health["mass_drift"] <= 1e-12
    for what in ("fourier_moments", "energy", "free_energy"):
        np.testing.assert_allclose(found[0].array(what), found[1].array(what), atol=1e-8)


# --- Ends and sentences ---------------------------------------------------------------------------


def test_a_run_stops_where_its_modes_no_longer_hold_the_density():
    start = Density.from_law(Fourier(16), cosine(0.01, 3))
    with pytest.raises(
        SolveError, match=r"its highest modes have grown to 1e-06: use more than modes=16"
    ):
        flock.solve(flock.USA(5.0), start, 3.0, **TIGHT)
    run = flock.solve(flock.USA(5.0), start, 3.0, throw=False, **TIGHT)
    assert run.outcome == "unresolved"
    assert "Quantiles(n)" in run.advice
    assert run.reached < 0.5
    moments = run.observe(flock.observables.fourier_moments(3)).values[0]
    assert moments == pytest.approx([0, 0, 0.005], abs=1e-14)
    # Positivity is not enforced: what a resolved run may undershoot is its tail.
    assert run.health["lowest_density"] > -16 * run.health["largest_tail"]


def test_sentences():
    start = Density.from_law(Fourier(8), uniform())
    with pytest.raises(InputError, match="Fourier needs 1 to 1048576 modes, got 0"):
        Fourier(0)
    with pytest.raises(InputError, match="the tail at which to stop must be positive"):
        Fourier(8, tail=0.0)
    with pytest.raises(InputError, match="state of shape \\(17,\\), got \\(3,\\)"):
        Density(Fourier(8), np.ones(3))
    with pytest.raises(InputError, match="finite and non-negative"):
        Density.from_law(Fourier(8), lambda x: x[:, 0])
    with pytest.raises(InputError, match="one number per point"):
        Density.from_law(Fourier(8), lambda x: x)
    with pytest.raises(InputError, match="Causal masks need an order"):
        flock.solve(flock.CausalSA(1.0), start, 1.0, **TIGHT)
    with pytest.raises(InputError, match="d=2"):
        flock.solve(flock.SA(1.0, Weights(B=np.eye(3))), start, 1.0, **TIGHT)
    with pytest.raises(InputError, match="Brownian"):
        flock.solve(flock.StochasticSA(1.0, 0.1), start, 1.0, **TIGHT)
    with pytest.raises(InputError, match="reduction has no meaning"):
        flock.solve(flock.SA(1.0), start, 1.0, reduction=flock.Dense(), **TIGHT)


def test_the_strength_of_a_potential_counts_in_the_energy():
    """strength f is the function strength f: the same runs, free energies and dissipation."""
    start = flock.Density.from_law(Fourier(32), flock.laws.cosine(0.3))

    def run(potential):
        model = flock.SA(2.0, plus=potential)
        return flock.solve(model, start, 0.3, rtol=1e-7, atol=1e-9)

    strong = run(flock.Potential(lambda x: x[0] * x[1] ** 2, 0.5))
    scaled = run(flock.Potential(lambda x: 0.5 * x[0] * x[1] ** 2))
    assert strong.health["dissipation_defect"] < 1e-9
    np.testing.assert_allclose(strong["free_energy"], scaled["free_energy"], rtol=1e-13)


@pytest.mark.parametrize("changing", ["beta", "weights"])
def test_one_equation_is_asked_of_critical_points_and_stationary_states(changing):
    """Where numbers change with time there is none."""
    beta = flock.Piecewise([1.0], [1.0, 2.0]) if changing == "beta" else 1.0
    weights = (
        None if changing == "beta" else flock.Piecewise([1.0], [Weights(V=1.0), Weights(V=2.0)])
    )
    model = flock.USA(beta, weights=weights, noise=flock.Brownian(0.3))
    bare = flock.USA(beta, weights=weights)
    tokens = flock.uniform(flock.Sphere(2), 4, seed=0)
    density = flock.Density.from_law(flock.meanfield.Quantiles(32), flock.laws.cosine(0.3))
    with pytest.raises(flock.errors.InputError, match="change with time"):
        stationary_equation(model, Fourier(16))
    with pytest.raises(flock.errors.InputError, match="change with time"):
        flock.meanfield.landscape.find_critical(bare, tokens, "ascent")
    with pytest.raises(flock.errors.InputError, match="change with time"):
        flock.meanfield.jko_flow(bare, density, tau=0.1, steps=1)
