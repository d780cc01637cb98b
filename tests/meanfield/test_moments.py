"""Gaussian measures on R^d: fields against the engine's sums, runs against closed forms and tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.density import Density
from tokenflock.errors import InputError, SolveError
from tokenflock.kinds import gaussian_coupling
from tokenflock.meanfield import affine, gaussian_statistics
from tokenflock.meanfield.moments import LARGEST_NUMBER, Moments, as_gaussian, gaussian_density
from tokenflock.papers.gaussian import closed_forms

MEAN = np.array([0.6, -0.4])
COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.5]])
SCORE = np.array([[-0.5, 0.2], [0.2, -0.3]])
SKEWED = np.array([[0.3, -0.5], [0.1, 0.2]])
VALUE = np.array([[0.7, -0.4], [0.2, 1.1]])
SEEN = [
    gaussian_statistics.mean,
    gaussian_statistics.covariance,
    gaussian_statistics.variances,
    gaussian_statistics.variance_ratio,
    gaussian_statistics.covariance_rank,
    gaussian_statistics.top_angle("A"),
    flock.order_parameter,
    flock.effective_rank,
]


def solve(model, start, t1, throw=True):
    """Runs of equal structure share one program: five times, everything observed."""
    save = flock.Save(at=np.linspace(0, t1, 5), states=True, observe=SEEN)
    return flock.solve(model, start, t1, rtol=1e-11, atol=1e-13, save=save, throw=throw)


def softmax(A, beta=1.0):
    """Softmax attention with V = I and scores y^T A x, that is B = A^T."""
    return flock.SA(beta, weights=flock.Weights(B=np.transpose(A)))


def quadrature(nodes=28):
    """The Gaussian as tokens at Gauss-Hermite points, and which of them lie in its bulk."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), -1).reshape(-1, 2)
    points = MEAN + grid @ np.linalg.cholesky(COVARIANCE).T
    inner = np.linalg.norm(grid, axis=-1) < 2.0
    return flock.Measure(flock.Euclidean(2), points, np.outer(w, w).ravel()), inner


# --- the field ------------------------------------------------------------------------------------

TWO = {"B": np.stack([SCORE, SKEWED]), "V": np.stack([VALUE, np.eye(2)])}
LOW = {"Q": [[0.3, 0.8]], "K": [[1.0, -0.4]], "V": VALUE}
MODELS = {
    "softmax": flock.SA(0.8, weights=flock.Weights(B=SKEWED, V=VALUE)),
    "softmax, two heads": flock.SA(0.8, weights=flock.Weights(**TWO)),
    "softmax, low rank": flock.SA(0.8, weights=flock.Weights(**LOW)),
    "l2": flock.L2SA(0.4, weights=flock.Weights(Q=SKEWED, K=VALUE, V=-0.5)),
    "l2, low rank": flock.L2SA(0.4, weights=flock.Weights(**LOW)),
    "l2 with B": flock.L2SA(0.4, weights=flock.Weights(B=SKEWED)),
    "Sinkhorn": flock.SinkhornSA(0.8, weights=flock.Weights(B=SKEWED, V=VALUE)),
    "Sinkhorn, two heads": flock.SinkhornSA(0.8, weights=flock.Weights(**TWO)),
    "linear": flock.LinearSA(0.8, weights=flock.Weights(B=SKEWED, V=VALUE)),
    "sum": flock.SA(
        0.8, plus=flock.Drift(VALUE) + flock.Attention(beta=0.3, kind=flock.kinds.Linear())
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_field_is_the_engine_s_at_a_gaussian(name):
    """Integrands are entire: 28 Gauss-Hermite nodes a side reach 1e-8 where |x| is moderate."""
    mu, inner = quadrature()
    model = MODELS[name]
    exact = affine.field(model, 0.0, as_gaussian(gaussian_density(MEAN, COVARIANCE).state))
    measured = model.field(0.0, mu.points, mu)
    expected = exact.offset + mu.points @ exact.slope.T
    np.testing.assert_allclose(measured[inner], expected[inner], atol=2e-8)


def test_a_kind_that_leaves_the_family_is_not_affine_and_is_refused():
    mu, inner = quadrature()
    model = flock.USA(0.8)
    points, values = (
        np.asarray(mu.points)[inner],
        np.asarray(model.field(0.0, mu.points, mu))[inner],
    )
    design = np.concatenate([np.ones((len(points), 1)), points], axis=1)
    rest = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    assert np.abs(rest).max() > 0.1
    with pytest.raises(InputError, match="Unnormalised attention leaves the Gaussian family"):
        solve(model, gaussian_density(MEAN, COVARIANCE), 1.0)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (flock.SigmoidSA(1.0), "Sigmoid attention leaves the Gaussian family"),
        (flock.HardmaxFlow(), "Hardmax attention leaves the Gaussian family"),
        (flock.SA(1.0, plus=flock.Perceptron.random(2, 3, 0)), "Perceptron does not keep"),
        (flock.SA(1.0, normalisation=flock.normalisation.PreLN()), "radius"),
        (
            flock.SA(1.0, normalisation=flock.normalisation.PostLN()),
            "layer norm puts tokens on a sphere",
        ),
        (flock.CausalSA(1.0), "order of the tokens"),
        (flock.RescaledSA(1.0), "rescaled frame"),
        (flock.StochasticSA(1.0, 1.0), "noise shared by all tokens"),
        (flock.SA(1.0, weights=flock.Weights(B=np.eye(3))), "its last axis must be 2"),
        (flock.SA(1.0, plus=flock.Drift(np.eye(3))), r"drift matrix must be \(2, 2\)"),
    ],
)
def test_models_that_are_refused(model, says):
    with pytest.raises(InputError, match=says):
        gaussian_density(MEAN, COVARIANCE).on.check(model)


def test_covariances_that_are_refused():
    for covariance, says in (
        ([[1.0, 0.2], [0.0, 1.0]], "symmetric, got entries that differ by 0.2"),
        ([[1.0, 2.0], [2.0, 1.0]], "semidefinite, got the eigenvalue -1"),
        (np.eye(3), r"must be \(2, 2\)"),
        ([[np.nan, 0.0], [0.0, 1.0]], "finite"),
    ):
        with pytest.raises(InputError, match=says):
            gaussian_density(MEAN, covariance)
    with pytest.raises(InputError, match="gaussian_density"):
        Density.from_law(Moments(2), lambda x: jnp.ones(x.shape[0]))
    with pytest.raises(InputError, match="tokens"):
        gaussian_density(MEAN, COVARIANCE).as_measure()


# --- Sinkhorn's coupling --------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.5, 50.0])
def test_the_coupling_is_that_of_the_closed_form(strength):
    A = strength * SKEWED
    slope = gaussian_coupling.coupling_slope(jnp.asarray(COVARIANCE), jnp.asarray(A))
    np.testing.assert_allclose(slope, closed_forms.sinkhorn_slope(COVARIANCE, A), rtol=1e-11)


def test_the_coupling_of_a_gaussian_that_has_lost_rank():
    """On a line in the plane it is the one-dimensional coupling along the line."""
    along = np.array([0.6, 0.8])
    slope = gaussian_coupling.coupling_slope(
        jnp.asarray(2.0 * np.outer(along, along)), jnp.asarray(SKEWED)
    )
    inside = closed_forms.sinkhorn_correlation(2.0 * along @ SKEWED @ along)
    assert along @ slope @ along == pytest.approx(float(inside), rel=1e-7)


@pytest.mark.parametrize("covariance", [COVARIANCE, np.eye(2)])
def test_derivatives_of_the_coupling_survive_equal_eigenvalues(covariance):
    """Against central differences, whose error is step^2 + rounding/step: 1e-9 at step 1e-5."""
    direction = jnp.asarray([[0.3, -0.2], [-0.2, 0.5]])
    of = lambda S: gaussian_coupling.coupling_slope(S, jnp.asarray(SKEWED))  # noqa: E731
    slope = jax.jvp(of, (jnp.asarray(covariance),), (direction,))[1]
    h = 1e-5
    central = (of(covariance + h * direction) - of(covariance - h * direction)) / (2 * h)
    np.testing.assert_allclose(slope, central, atol=1e-8)


@pytest.mark.slow
def test_the_energy_is_that_of_ott_s_plan():
    """(1/2) (int s dpi - KL(pi | mu x mu)) of the plan between Gauss-Hermite tokens."""
    from ott.geometry import geometry

    mu, _ = quadrature()
    scores = np.asarray(mu.points) @ (0.8 * SKEWED) @ np.asarray(mu.points).T
    costs = geometry.Geometry(cost_matrix=jnp.asarray(-scores), epsilon=1.0)
    found = flock.kinds.Sinkhorn().potentials(costs, mu.weights)
    product = np.outer(mu.weights, mu.weights)
    matrix = np.exp(scores + np.asarray(found.f)[:, None] + np.asarray(found.g))
    np.testing.assert_allclose(matrix.sum(axis=0), mu.weights, atol=1e-9)
    bulk = product > 1e-30
    relative = np.sum(matrix[bulk] * np.log(matrix[bulk] / product[bulk]))
    expected = (np.sum(matrix * scores) - relative) / 2
    energy = gaussian_coupling.coupling_energy(
        jnp.asarray(MEAN), jnp.asarray(COVARIANCE), jnp.asarray(0.8 * SKEWED.T)
    )
    assert float(energy) == pytest.approx(expected, abs=1e-7)


# --- softmax --------------------------------------------------------------------------------------


def test_P6b_1_softmax_is_the_closed_form():
    run = solve(softmax(SCORE), gaussian_density(MEAN, COVARIANCE), 2.0)
    np.testing.assert_allclose(
        run.array("covariance"),
        closed_forms.softmax_covariance(run.time, COVARIANCE, SCORE),
        atol=1e-10,
    )
    # Steps of 0.1 to rtol = 1e-11: between their ends the interpolant is one order lower, and 6e-10 off.
    means = closed_forms.softmax_mean(run.time, MEAN, COVARIANCE, SCORE)
    np.testing.assert_allclose(run.array("mean"), means, rtol=1e-9)
    np.testing.assert_allclose(run.array("mean")[-1], means[-1], rtol=1e-11)
    assert run.health["lowest_density"] > 0
    assert run.health["mass_drift"] == 0
    assert run.health["dissipation_defect"] < 1e-9
    assert run.health["blow_up_time"] == np.inf
    final = np.asarray(run.final.state)
    np.testing.assert_array_equal(final[1:], final[1:].T)


def test_readings_of_a_run():
    run = solve(softmax(SCORE), gaussian_density(MEAN, COVARIANCE), 2.0)
    values = np.linalg.eigvalsh(run.array("covariance"))
    np.testing.assert_allclose(run.array("variances"), values, rtol=1e-12)
    np.testing.assert_allclose(run.array("variance_ratio"), values[:, 0] / values[:, 1], rtol=1e-12)
    shares = values / values.sum(axis=1, keepdims=True)
    ranks = np.exp(-np.sum(shares * np.log(shares), axis=1))
    np.testing.assert_allclose(run.array("covariance_rank"), ranks, rtol=1e-12)
    np.testing.assert_allclose(
        run.array("order_parameter"), np.linalg.norm(run.array("mean"), axis=1), rtol=1e-12
    )
    top = [np.linalg.eigh(matrix)[1][:, -1] for matrix in run.array("covariance")]
    weak = np.linalg.eigh(SCORE)[1][:, -1]
    np.testing.assert_allclose(run.array("top_angle"), np.arccos(np.abs(top @ weak)), atol=1e-7)
    np.testing.assert_allclose(
        run.observe(gaussian_statistics.covariance), run.array("covariance"), rtol=1e-12
    )
    assert run["covariance"].dims == ("time", "coordinate", "other_coordinate")


def test_P6b_4_blow_up_is_told_with_its_time():
    """Sigma = 1/(1 - 2t) to 1e-6 until t = .49; the run ends within 1e-8 t* of t* = .5."""
    start = gaussian_density(MEAN, np.eye(2))
    before = solve(softmax(np.eye(2)), start, 0.49)
    np.testing.assert_allclose(
        before.array("covariance")[:, 0, 0], 1 / (1 - 2 * before.time), rtol=1e-8
    )
    run = solve(softmax(np.eye(2)), start, 1.0, throw=False)
    assert run.outcome == "blow-up"
    assert run.health["blow_up_time"] == pytest.approx(0.5, abs=1e-9)
    assert run.reached == pytest.approx(0.5, abs=1.01e-8)
    assert run.health["steps"] < 1000
    assert run.health["finite"]
    assert run.health["dissipation_defect"] < 1e-9
    assert "blow_up_time" in run.advice
    with pytest.raises(SolveError, match=r"stopped at t=0\.5 of 1"):
        solve(softmax(np.eye(2)), start, 1.0)


def test_growth_at_a_bounded_rate_is_no_blow_up():
    """The mean reaches e^300 and the run goes on; where numbers end, it says so and not "blow-up"."""
    A = -np.eye(2)
    assert solve(softmax(A), gaussian_density(MEAN, COVARIANCE), 300.0).outcome == "finished"
    run = solve(softmax(A), gaussian_density(MEAN, COVARIANCE), 900.0, throw=False)
    assert run.outcome == "non-finite"
    assert np.abs(run.final.state).max() == pytest.approx(LARGEST_NUMBER, rel=1e-6)
    assert run.health["finite"]
    assert run.health["dissipation_defect"] < 1e-9
    assert run.health["blow_up_time"] == np.inf


@pytest.mark.slow
def test_sinkhorn_is_followed_through_the_range_of_doubles():
    """Isotropic, s' = sqrt(1 + 4 s^2) - 1: t = asinh(2s)/2 - (sqrt(1 + 4 s^2) + 1)/(4 s), less that at 1.

    At t = 300 s = 2e260, whose square is no number; past 1e300 the run ends by name.
    """

    def clock(s):
        return np.arcsinh(2 * s) / 2 - (np.hypot(1, 2 * s) + 1) / (4 * s)

    model, start = flock.SinkhornSA(1.0), gaussian_density(np.zeros(2), np.eye(2))
    for t1, outcome in ((300.0, "finished"), (2000.0, "non-finite")):
        run = flock.solve(model, start, t1, rtol=1e-9, atol=1e-12, throw=False)
        assert run.outcome == outcome
        spread = float(run.final.state[1, 0])
        # Some thousand steps of relative error 1e-9 in s are at most 1e-6 in t.
        assert clock(spread) - clock(1.0) == pytest.approx(run.reached, abs=1e-6)
        assert run.health["dissipation_defect"] < 1e-9
    assert 1e299 < spread < 1e301


def test_couplings_of_large_gaussians():
    """Of s I the regression is n = (sqrt(1 + 4 s^2) - 1)/(2 s), of slope (1 - 1/sqrt(1 + 4 s^2))/(2 s^2).

    F = (s n + log(n/s)/2)/2 a direction.
    """
    A, one = jnp.eye(2), jnp.ones(())
    for s in (1e-3, 1.0, 1e5, 1e170, 1e290):
        of = lambda x, s=s: gaussian_coupling.coupling_slope(x * s * jnp.eye(2), A)[0, 0]  # noqa: E731
        n = 2 * s / (1 + np.hypot(1, 2 * s))
        assert float(of(one)) == pytest.approx(n, rel=1e-13)
        # d n/d log s = n/sqrt(1 + 4 s^2): below rounding of n, 1e-16, it is 0 to rounding.
        assert float(jax.grad(of)(one)) == pytest.approx(
            n / np.hypot(1, 2 * s), rel=1e-8, abs=1e-15
        )
        energy = gaussian_coupling.coupling_energy(jnp.zeros(2), s * jnp.eye(2), A)
        known = s * n + np.log(2 / (1 + np.hypot(1, 2 * s))) / 2
        assert float(energy) == pytest.approx(known, rel=1e-9)


def test_blow_up_of_one_direction_while_the_other_vanishes():
    A = np.diag([0.4, -3.0])
    run = solve(softmax(A), gaussian_density(MEAN, COVARIANCE), 9.0, throw=False)
    expected = closed_forms.softmax_blow_up_time(COVARIANCE, A)
    assert run.outcome == "blow-up"
    assert run.health["blow_up_time"] == pytest.approx(expected, rel=1e-8)


def test_P6b_5_the_limit_has_the_rank_of_the_kernel():
    """A <= 0 of rank 1 in the plane: Sigma(t) - limit = O(1/t), and alpha grows like e^t on the kernel."""
    away = np.array([0.6, 0.8])
    A = -1.5 * np.outer(away, away)
    run = solve(softmax(A), gaussian_density(MEAN, COVARIANCE), 300.0)
    limit = closed_forms.softmax_limit(COVARIANCE, A)
    assert closed_forms.limit_rank(COVARIANCE, A) == 1
    gaps = np.linalg.norm(run.array("covariance") - limit, axis=(1, 2))
    np.testing.assert_allclose(run.time[2:] * gaps[2:], run.time[1] * gaps[1], rtol=2e-2)
    assert run.array("covariance_rank")[-1] == pytest.approx(1.0, abs=0.02)
    means = closed_forms.softmax_mean(run.time, MEAN, COVARIANCE, A)
    np.testing.assert_allclose(run.array("mean"), means, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 3])
def test_P6b_5_in_five_dimensions(rank):
    rng = np.random.default_rng(rank)
    frame = np.linalg.qr(rng.normal(size=(5, 5)))[0][:, :rank]
    factor, mean = rng.normal(size=(5, 5)), rng.normal(size=5)
    covariance = factor @ factor.T / 5 + 0.3 * np.eye(5)
    A = -frame @ np.diag(rng.uniform(0.5, 2, rank)) @ frame.T
    run = solve(softmax(A), gaussian_density(mean, covariance), 300.0)
    np.testing.assert_allclose(
        run.array("covariance"), closed_forms.softmax_covariance(run.time, covariance, A), atol=1e-8
    )
    # (I - 2tA~)^{-1} is 1/(2t lambda) up to 1/(2t lambda)^2, and 2 t lambda > 2 x 75 x .5 x .3.
    limit = closed_forms.softmax_limit(covariance, A)
    assert (
        np.linalg.matrix_rank(limit, tol=1e-8) == closed_forms.limit_rank(covariance, A) == 5 - rank
    )
    gaps = np.linalg.norm(run.array("covariance") - limit, axis=(1, 2))
    assert run.time[-1] * gaps[-1] == pytest.approx(run.time[1] * gaps[1], rel=0.1)


@pytest.mark.slow
def test_one_dimension_with_a_value_and_a_batch_of_beta():
    """sigma(t) = sigma/(1 - 2 v beta sigma t), alpha(t) = alpha e^{vt} (1 - 2 v beta sigma t)^{-1/2}."""
    v, sigma, alpha, betas = 0.6, 1.4, 0.5, np.array([0.3, 0.7, 4.0])
    model = flock.SA(betas, weights=flock.Weights(V=v))
    run = flock.solve(
        model, gaussian_density([alpha], [[sigma]]), 0.5, rtol=1e-11, atol=1e-13, throw=False,
        save=flock.Save(every=0.25, observe=[gaussian_statistics.mean, gaussian_statistics.covariance]),
    )  # fmt: skip
    left = 1 - 2 * v * betas[:2, None] * sigma * np.array([0.0, 0.25, 0.5])
    np.testing.assert_allclose(run.array("covariance")[:2, :, 0, 0], sigma / left, rtol=1e-9)
    means = alpha * np.exp(v * np.array([0.0, 0.25, 0.5])) / np.sqrt(left)
    np.testing.assert_allclose(run.array("mean")[:2, :, 0], means, rtol=1e-9)
    assert run.outcomes.values.tolist() == ["finished", "finished", "blow-up"]
    assert run.outcome == "1 blow-up, 2 finished"
    assert run.health["blow_up_time"][2] == pytest.approx(1 / (2 * v * 4.0 * sigma), rel=1e-8)


# --- the other kinds, noise -----------------------------------------------------------------------


@pytest.mark.slow
def test_sinkhorn_s_energy_rises_and_its_mean_obeys_V():
    """V = c A: a gradient flow. The mean is e^{tV} alpha; growth stays below e^{2 |V| t}: no blow-up."""
    A = np.array([[0.9, 0.3], [0.3, -0.6]])
    model = flock.SinkhornSA(1.0, weights=flock.Weights(B=A, V=0.7 * A))
    run = solve(model, gaussian_density(MEAN, COVARIANCE), 3.0)
    assert np.all(np.diff(run.array("free_energy")) > 0)
    assert run.health["dissipation_defect"] < 1e-9
    np.testing.assert_allclose(
        run.array("mean")[-1], jax.scipy.linalg.expm(2.1 * A) @ MEAN, rtol=1e-9
    )
    fastest = 2 * 0.7 * np.abs(np.linalg.eigvalsh(A)).max()
    largest = run.array("variances")[:, 1]
    assert np.all(largest[1:] <= largest[0] * np.exp(fastest * run.time[1:]))


@pytest.mark.slow
def test_the_identity_holds_along_flows_that_are_no_gradients():
    """dF/dt from the field against F itself: Sinkhorn with other V, drift, noise, softmax beside it."""
    model = flock.Dynamics(
        None,
        flock.Attention(flock.Weights(B=SKEWED, V=VALUE), 1.3, flock.kinds.Sinkhorn())
        + flock.Attention(flock.Weights(B=SCORE), 1.0)
        + flock.Drift(-VALUE),
        flock.Brownian(0.2),
    )
    run = solve(model, gaussian_density(MEAN, COVARIANCE), 2.0)
    assert np.ptp(run.array("free_energy")) > 0.1
    assert run.health["dissipation_defect"] < 1e-9


@pytest.mark.slow
def test_l2_attention_blows_up_only_without_injective_keys():
    low = flock.Weights(Q=[[0.0, 1.0]], K=[[1.0, 0.0]], V=np.diag([0.0, 1.0]))
    run = solve(flock.L2SA(0.7, weights=low), gaussian_density(MEAN, COVARIANCE), 9.0, throw=False)
    assert run.outcome == "blow-up"
    expected = closed_forms.l2_blow_up_time(0.7, COVARIANCE[0, 0], COVARIANCE[0, 1])
    # Sigma_22 goes like (t* - t)^{-2}: half the time left is missed.
    assert run.health["blow_up_time"] == pytest.approx(expected, rel=2e-8)
    whole = flock.Weights(Q=[[0.0, 1.0], [1.0, 0.0]], K=np.eye(2), V=np.eye(2))
    run = solve(flock.L2SA(0.7, weights=whole), gaussian_density(MEAN, COVARIANCE), 9.0)
    assert run.array("variances")[-1, 1] < 1.12 * np.exp(2 * 9.0)
    assert run.health["dissipation_defect"] < 1e-9


def test_noise_and_drift_are_ornstein_and_uhlenbeck():
    """Sigma(t) = e^{-2 theta t} Sigma_0 + (T/theta)(1 - e^{-2 theta t}), also from a point."""
    theta, T = 0.8, 0.3
    model = flock.Dynamics(None, flock.Drift(-theta), flock.Brownian(T))
    for start in (COVARIANCE, np.zeros((2, 2))):
        run = solve_quietly(model, gaussian_density(MEAN, start))
        decay = np.exp(-2 * theta * run.time)[:, None, None]
        expected = decay * start + T / theta * (1 - decay) * np.eye(2)
        np.testing.assert_allclose(run.array("covariance"), expected, atol=1e-10)
        assert run.health["dissipation_defect"] < 1e-9


def solve_quietly(model, start):
    save = flock.Save(every=0.5, observe=[gaussian_statistics.mean, gaussian_statistics.covariance])
    return flock.solve(model, start, 1.5, rtol=1e-11, atol=1e-13, save=save)


@pytest.mark.slow
def test_eigenvalues_below_atol_are_lost_within_atol():
    model = flock.Dynamics(None, flock.Drift(np.diag([-2.0, 0.1])), flock.Brownian(0.0))
    save = flock.Save(every=0.5, observe=[gaussian_statistics.mean, gaussian_statistics.covariance])
    run = flock.solve(
        model, gaussian_density(MEAN, COVARIANCE), 1.5, rtol=1e-3, atol=1e-3, save=save
    )
    assert run.health["lowest_density"] > -1e-3


# --- tokens, stores -------------------------------------------------------------------------------


@pytest.mark.slow
def test_P6b_3_tokens_follow_the_equations():
    """||Sigma_n - Sigma|| <= 5/sqrt n at t = .5, with the same observables of tokens and density."""
    n, start = 2000, gaussian_density(MEAN, COVARIANCE)
    save = flock.Save(
        at=[0.5],
        observe=[
            gaussian_statistics.mean,
            gaussian_statistics.covariance,
            gaussian_statistics.covariance_rank,
        ],
    )
    model = softmax(SCORE)
    run = flock.solve(model, start.sample(n, 3), 0.5, rtol=1e-8, atol=1e-10, save=save)
    expected = closed_forms.softmax_covariance(0.5, COVARIANCE, SCORE)
    assert np.linalg.norm(run.array("covariance")[-1] - expected) < 5 / np.sqrt(n)
    mean = closed_forms.softmax_mean(0.5, MEAN, COVARIANCE, SCORE)
    assert np.linalg.norm(run.array("mean")[-1] - mean) < 5 / np.sqrt(n)
    values = np.linalg.eigvalsh(run.array("covariance")[-1])
    shares = values / values.sum()
    expected_rank = np.exp(-np.sum(shares * np.log(shares)))
    assert run.array("covariance_rank")[-1] == pytest.approx(expected_rank, rel=1e-10)


def test_tokens_have_the_moments_also_without_full_rank():
    """Sample moments of 10^5 tokens, standard errors about 1/sqrt n."""
    along = np.array([0.6, 0.8])
    drawn = np.asarray(gaussian_density(MEAN, 2 * np.outer(along, along)).sample(100_000, 1).points)
    np.testing.assert_allclose(drawn.mean(axis=0), MEAN, atol=0.02)
    np.testing.assert_allclose(np.cov(drawn.T), 2 * np.outer(along, along), atol=0.04)
    # The lost eigenvalue is 1e-16 by rounding, its root 1e-8, times five standard deviations.
    np.testing.assert_allclose((drawn - MEAN) @ [-0.8, 0.6], 0.0, atol=2e-7)


def test_a_stored_run_is_read_again(tmp_path):
    run = solve(softmax(SCORE), gaussian_density(MEAN, COVARIANCE), 2.0)
    back = flock.open(run.save(tmp_path / "run"))
    assert back.final.on == Moments(2)
    np.testing.assert_array_equal(back.final.state, run.final.state)
