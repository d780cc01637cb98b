"""The layered mean-field equation: oracles, orders of convergence, and what a run keeps."""

import itertools

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import kinetic, theory
from tokenflock.kinetic.graphon import Averages

BETA, SLOPE, END = 1.1, 1.3, 0.8
CELLS, MODES = 24, 20
PLACES = np.arange(CELLS + 1) / CELLS


def start_law(s, x):
    """A start that differs from place to place, without symmetry."""
    return 1 + 0.4 * jnp.cos(2 * s) * x[:, 0] + 0.3 * s * x[:, 1] + 0.2 * x[:, 0] * x[:, 1]


def same_law(x):
    return start_law(0.0, x)


@pytest.fixture(scope="module")
def on():
    return flock.kinetic.LayeredDensity(CELLS, MODES)


def go(on, law, model=None, **numerics):
    model = flock.KineticFlow(BETA, SLOPE) if model is None else model
    numerics = numerics or {"rtol": 1e-10, "atol": 1e-12}
    return flock.solve(model, kinetic.from_law_by_position(on, law), END, **numerics)


@pytest.fixture(scope="module")
def run(on):
    return go(on, start_law)


@pytest.fixture(scope="module")
def alone_run():
    """The circle without positions: every token sees all, in the same units."""
    model = flock.USA(BETA, "kinetic")
    start = flock.Density.from_law(flock.meanfield.Fourier(MODES), same_law)
    return flock.solve(model, start, END, rtol=1e-10, atol=1e-12)


@pytest.fixture(scope="module")
def alone(alone_run):
    return np.asarray(alone_run.final.state)


@pytest.mark.parametrize("slope", [-30.0, -2.0, 0.0, 1.0, 30.0])
def test_averages_are_markov_and_second_order(slope):
    """Rows sum to one, straight lines are exact, and parabolas are off by at most h^2/8 |u''| = h^2/4."""
    averages = Averages.of(flock.masks.ALiBi(slope, False), CELLS)
    matrix, s = np.asarray(averages.matrix()), np.arange(CELLS + 1) / CELLS
    nodes, weights = np.polynomial.legendre.leggauss(60)
    inner = s[1:, None] * (nodes + 1) / 2
    mass = theory.graphon(s[1:, None], inner, slope) * weights * s[1:, None] / 2
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose((matrix @ s)[1:], (mass * inner).sum(axis=1), atol=1e-13)
    off = np.abs((matrix @ s**2)[1:] - (mass * inner**2).sum(axis=1))
    assert off.max() <= 1 / (4 * CELLS**2)
    assert np.all(np.triu(matrix, 1) == 0)


@pytest.mark.parametrize("slope", [-1e5, -1e4, -150.0, 150.0, 1e4, 1e5])
def test_averages_of_steep_biases(slope):
    """The mean of s' under k(s, s'): s - 1/slope + s/(e^{slope s} - 1), or 1/|slope| from the first token."""
    matrix, s = np.asarray(Averages.of(flock.masks.ALiBi(slope, False), CELLS).matrix()), PLACES
    exact = s[1:] - 1 / slope if slope > 0 else np.full(CELLS, -1 / slope)
    far = np.abs(slope) * s[1:]
    exact = exact + np.sign(slope) * s[1:] * np.exp(-far) / -np.expm1(-far)
    np.testing.assert_allclose((matrix @ s)[1:], exact, rtol=1e-13)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-14)


@pytest.mark.parametrize("slope", [-2.0, 0.0, 1.0])
def test_averages_from_a_position_on_split_the_whole(slope):
    averages = Averages.of(flock.masks.ALiBi(slope, False), CELLS)
    s, first = np.arange(CELLS + 1) / CELLS, 6
    late = np.asarray(averages.since(first))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    width = s[first:, None] - s[first]
    inner = s[first] + width * (nodes + 1) / 2
    mass = theory.graphon(s[first:, None], inner, slope) * weights * width / 2
    np.testing.assert_allclose(late.sum(axis=1), mass.sum(axis=1), atol=1e-13)
    exact = theory.graphon(s[first + 1 :], s[first], slope)
    np.testing.assert_allclose(np.asarray(averages.at(first))[1:], exact, rtol=1e-12)


def test_the_uniform_law_is_stationary(on):
    """f = 1 (its field is 0 at every position), for the rates that `solve` integrates."""
    model = flock.KineticFlow(BETA, SLOPE)
    uniform = flock.Density.from_law(on, flock.laws.uniform())
    rate = on.scheme().prepared(model).transport(model, 0.0, uniform.state)
    assert float(jnp.max(jnp.abs(rate))) < 1e-14


@pytest.mark.slow
def test_the_first_position_sees_only_itself(run, alone):
    """V at s = 0 is (w' * f)(0): the limit s -> 0 of the averages."""
    np.testing.assert_allclose(run.final.state[0], alone, atol=1e-9)


@pytest.mark.slow
def test_equal_layers_stay_equal_and_follow_the_equation_without_positions(on, alone):
    """Averages of equal densities are that density, whatever the slope."""
    final = np.asarray(go(on, lambda s, x: same_law(x)).final.state)
    np.testing.assert_allclose(final, np.broadcast_to(alone, final.shape), atol=1e-9)


def test_a_run_reports_its_health_and_goes_to_disk(run, tmp_path):
    assert run.health["mass_drift"] == 0.0
    assert run.health["lowest_density"] > 0
    assert run.health["largest_tail"] < 1e-6
    assert run.health["dissipation_defect"] is None
    again = flock.open(run.save(tmp_path / "layers.zarr"))
    layers = kinetic.by_position(again)
    assert layers.dims == ("time", "position", "angle")
    assert again.blank_density.on == flock.kinetic.LayeredDensity(CELLS, MODES)
    np.testing.assert_allclose(layers.mean("angle"), 1.0, atol=1e-14)
    trapezoid = np.full(CELLS + 1, 1 / CELLS)
    trapezoid[[0, -1]] /= 2
    whole = np.tensordot(layers.values[-1], trapezoid, (0, 0))
    np.testing.assert_allclose(again.densities.values[-1], whole, atol=1e-13)
    first = np.abs(np.fft.fft(whole)[1]) / whole.size
    assert float(again.observe(flock.order_parameter)[-1]) == pytest.approx(first, abs=1e-12)
    assert again.plot() is not None


@pytest.mark.slow
def test_order_in_time(run, on):
    """Fixed steps of Bosh3 against the tight run: order 3."""
    exact = np.asarray(run.final.state)
    errors = []
    for dt in (0.1, 0.05):
        coarse = go(on, start_law, dt=dt, method=diffrax.Bosh3())
        errors.append(np.abs(np.asarray(coarse.final.state) - exact).max())
    assert errors[1] > 1e-8  # far above the tight run's own error
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3.0, abs=0.3)


@pytest.mark.slow
def test_order_in_position(run):
    """Halving the cells: differences shrink by 4."""
    finals = [np.asarray(go(flock.kinetic.LayeredDensity(6, MODES), start_law).final.state)]
    finals.append(
        np.asarray(go(flock.kinetic.LayeredDensity(12, MODES), start_law).final.state)[::2]
    )
    finals.append(np.asarray(run.final.state)[::4])
    steps = [np.abs(b - a).max() for a, b in itertools.pairwise(finals)]
    assert np.log2(steps[0] / steps[1]) == pytest.approx(2.0, abs=0.2)


def golden(n):
    """Angles of the start's law at every position, spread by the golden ratio instead of at random."""
    from tokenflock.meanfield.cdf import distribution_of_law

    shares = np.mod(0.5 + 0.6180339887498949 * np.arange(1, n + 1), 1.0)
    positions = np.arange(1, n + 1) / n
    return np.array(
        [
            distribution_of_law(lambda x, s=s: start_law(s, x)).quantiles(np.array([share]))[0]
            for s, share in zip(positions, shares, strict=True)
        ]
    )


@pytest.mark.slow
def test_tokens_follow_the_equation(run):
    """A fixed non-uniform start of 1000 well spread tokens: sums over tokens are within O(log n/n).

    A golden-ratio sequence has discrepancy at most 3 log(n)/n; the means of e^{i m theta} and of
    s e^{i theta} have variation at most 2 pi m along the circle.
    """
    n = 1000
    tokens = flock.from_angles(golden(n))
    found = flock.solve(flock.KineticFlow(BETA, SLOPE), tokens, END, dt=0.1, save=flock.Save())
    points = np.asarray(found.final.points)
    wave = points[:, 0] - 1j * points[:, 1]
    c = kinetic.fourier_coefficients(run.final.state)
    s = np.arange(CELLS + 1) / CELLS
    limit = [np.trapezoid(c[:, 1], s), np.trapezoid(c[:, 2], s), np.trapezoid(s * c[:, 1], s)]
    means = [wave.mean(), (wave**2).mean(), (np.arange(1, n + 1) / n * wave).mean()]
    assert np.abs(np.subtract(means, limit)).max() < 3 * np.log(n) / n
    assert abs(limit[0]) > 0.2


@pytest.mark.slow
def test_by_position_reads_layers_only(alone_run):
    with pytest.raises(flock.errors.InputError, match=r"LayeredDensity\(positions, modes\)"):
        kinetic.by_position(alone_run)


def test_softmax_layers_follow_the_equation_without_positions(on):
    """CausalSA from equal layers is SA on the circle."""
    model = flock.CausalSA(BETA, slope=SLOPE)
    scheme = on.scheme().prepared(model)
    start = kinetic.from_law_by_position(on, lambda s, x: same_law(x))
    one = flock.meanfield.Fourier(MODES)
    plain = flock.SA(BETA)
    row = flock.Density.from_law(one, same_law)
    expected = one.scheme().prepared(plain).transport(plain, 0.0, row.state)
    rates = scheme.transport(model, 0.0, start.state)
    np.testing.assert_allclose(rates, np.broadcast_to(expected, rates.shape), atol=1e-12)


def test_noise_damps_every_layer_alike(on):
    model = flock.Dynamics(None, flock.KineticFlow(BETA, SLOPE).terms, noise=flock.Brownian(0.3))
    on.check(model)
    rates = on.scheme().damping(model)
    assert rates is not None
    assert rates[3] == pytest.approx(0.3 * 9)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (flock.SA(1.0), "later ones"),
        (flock.USA(1.0), "later ones"),
        (flock.SinkhornSA(1.0), "one softmax or unnormalised"),
        (flock.CausalSA(1.0, flock.Weights(V=-1.0, B=np.diag([1.0, 2.0]))), "Q = K = I"),
        (flock.StochasticSA(1.0, 0.1), "noise shared"),
    ],
)
def test_models_without_such_a_limit_are_refused(on, model, words):
    with pytest.raises(flock.errors.InputError, match=words):
        on.check(model)


def test_states_that_are_no_probabilities_are_refused(on):
    state = np.zeros(on.shape)
    state[:, 0] = 1.0
    state[3, 0] = 1.1
    with pytest.raises(flock.errors.InputError, match="every position has mass 1"):
        flock.Density(on, state)
    state[3, 0], state[5, 1] = 1.0, 2.0
    with pytest.raises(flock.errors.InputError, match="not negative"):
        flock.Density(on, state)
    with pytest.raises(flock.errors.InputError, match="positions"):
        flock.kinetic.LayeredDensity(0, 5)
