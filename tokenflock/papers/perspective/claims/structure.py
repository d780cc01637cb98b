"""Section 3: the interaction energy, its dissipation, the gradient-flow structure, its extrema."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .... import theory
from ....ledger.claim import Case, Comparison, at_least, at_most, broken, equals, misprint
from ....ledger.measure import MODELS, field, flow, gram, read
from ....models import SA
from ....observables import energy, energy_rate
from ....space import Sphere
from ....starts import cap, hemisphere, uniform
from ....weights import Weights
from .. import PAPER
from .shared import interaction_energy, pulled, read_each, turning

BOTH = {"model": ("SA", "USA")}
FORMS = ("corrected", "printed")
# Identities between derivatives taken exactly: only rounding, amplified by sums of n terms, is left.
ROUNDING = 1e-10


@PAPER.claim(
    "eq-3.6-sa",
    where="Equation (3.6)",
    says="Along SA the energy grows at the mean of the squared speeds, each weighted by the token's "
    "partition function.",
    given={"n": 12, "d": 4, "beta": 3.0, "turn": 0.0},
    at_paper_scale={"n": 32, "d": 128},
    needs={
        "Q = K = V = I": lambda c: c.turn == 0,
        "beta > 0": lambda c: c.beta > 0,
    },
    control=broken("with a rotation in V the velocity is no gradient", turn=1.0),
)
def dissipation_of_sa(case: Case) -> list[Comparison]:
    """dE/dt against (1/n) sum_i Zbar_i |x_i'|^2, Zbar_i = (1/n) sum_k e^{beta <x_i, x_k>}."""
    model = SA(case.beta, Weights(V=turning(case.d, case.turn)))
    x0 = uniform(Sphere(case.d), case.n, case.seed)
    partition = np.exp(case.beta * gram(np.asarray(x0.points))).mean(axis=-1)
    predicted = np.mean(partition * np.sum(field(model, x0) ** 2, axis=-1))
    measured = read(energy_rate, model, x0)
    return [equals("dE/dt", measured, predicted, ROUNDING * predicted)]


@PAPER.claim(
    "eq-3.6-usa",
    where="Section 3, the analogue of (3.6) for USA (not numbered)",
    says="Along USA the energy grows at the plain mean of the squared speeds.",
    given={"n": 12, "d": 4, "beta": 3.0, "model": "USA"},
    at_paper_scale={"n": 32, "d": 128},
    options=BOTH,
    needs={
        "the tokens follow USA": lambda c: c.model == "USA",
        "beta > 0": lambda c: c.beta > 0,
    },
    control=broken("under SA the squares need the partition function as weight", model="SA"),
)
def dissipation_of_usa(case: Case) -> list[Comparison]:
    """dE/dt against (1/n) sum_i |x_i'|^2."""
    model = MODELS[case.model](case.beta)
    x0 = uniform(Sphere(case.d), case.n, case.seed)
    predicted = np.mean(np.sum(field(model, x0) ** 2, axis=-1))
    measured = read(energy_rate, model, x0)
    return [equals("dE/dt", measured, predicted, ROUNDING * predicted)]


@PAPER.claim(
    "eq-3.11",
    where="Equation (3.11)",
    says="USA climbs the interaction energy: its velocity is n times the energy's gradient on the "
    "product of spheres.",
    given={"n": 12, "d": 4, "beta": 2.5, "model": "USA"},
    at_paper_scale={"n": 32, "d": 128},
    options=BOTH,
    needs={
        "the tokens follow USA": lambda c: c.model == "USA",
        "beta > 0": lambda c: c.beta > 0,
    },
    control=broken("SA is a gradient in another metric only", model="SA"),
)
def usa_climbs_the_energy(case: Case) -> list[Comparison]:
    """x_i' against n P_{x_i} dE/dx_i, the derivative of (3.5) taken by autodiff."""
    x0 = uniform(Sphere(case.d), case.n, case.seed)

    def total(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.exp(case.beta * x @ x.T)) / (2 * case.beta * case.n**2)

    slope = np.asarray(x0.space.project(x0.points, jax.grad(total)(x0.points)))
    measured = field(MODELS[case.model](case.beta), x0)
    return [equals("x' against n grad E", measured, case.n * slope, ROUNDING * np.exp(case.beta))]


@PAPER.claim(
    "eq-3.12",
    where="Equation (3.12)",
    says="If V = Q^T K is symmetric, SA is a gradient flow for the metric that weighs each token by "
    "its partition function.",
    given={"n": 12, "d": 4, "beta": 1.5, "skew": 0.0},
    at_paper_scale={"n": 32, "d": 128},
    needs={
        "V = Q^T K is symmetric": lambda c: c.skew == 0,
        "beta > 0": lambda c: c.beta > 0,
    },
    control=broken("V = Q^T K with a skew part", skew=0.5),
)
def sa_climbs_in_its_own_metric(case: Case) -> list[Comparison]:
    """Z_i x_i' against P_{x_i} d/dx_i of (1/2 beta) sum_ij e^{beta <V x_i, x_j>}."""
    rng = np.random.default_rng(case.seed)
    entries = rng.normal(size=(2, case.d, case.d)) / np.sqrt(case.d)
    value = entries[0] + entries[0].T + case.skew * (entries[1] - entries[1].T)
    x0 = uniform(Sphere(case.d), case.n, case.seed)

    def total(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.exp(case.beta * (x @ value.T) @ x.T)) / (2 * case.beta)

    slope = np.asarray(x0.space.project(x0.points, jax.grad(total)(x0.points)))
    points = np.asarray(x0.points)
    partition = np.exp(case.beta * (points @ value.T) @ points.T).sum(axis=-1)
    measured = partition[:, None] * field(SA(case.beta, Weights(B=value, V=value)), x0)
    return [equals("Z_i x_i' against the gradient", measured, slope, ROUNDING * partition.max())]


@PAPER.claim(
    "eq-3.7",
    where="Equations (3.7) and (3.15)",
    says="The field of SA at any point is the gradient of the log partition function divided by beta.",
    given={"n": 12, "d": 4, "beta": 2.5, "model": "SA", "form": "corrected"},
    at_paper_scale={"n": 32, "d": 128},
    options={**BOTH, "form": FORMS},
    needs={
        "the field is that of SA": lambda c: c.model == "SA",
        "the corrected form is used": lambda c: c.form == "corrected",
        "beta > 0": lambda c: c.beta > 0,
    },
    control=broken(
        "the field of USA is the gradient of the partition function itself", model="USA"
    ),
    errata=[
        misprint(
            "(3.7) and (3.15) are printed without the factor 1/beta",
            when=lambda c: c.beta != 1,
            form="printed",
        )
    ],
)
def sa_is_a_logarithmic_gradient(case: Case) -> list[Comparison]:
    """X[mu](y) against beta^{-1} grad log int e^{beta <y, x>} dmu(x) at n points y beside the tokens."""
    sphere = Sphere(case.d)
    tokens = uniform(sphere, case.n, case.seed)
    probes = uniform(sphere, case.n, case.seed + 1000).points

    def log_partition(y: jax.Array) -> jax.Array:
        return jax.nn.logsumexp(case.beta * tokens.points @ y) - jnp.log(case.n)

    slope = np.asarray(sphere.project(probes, jax.vmap(jax.grad(log_partition))(probes)))
    factor = 1 / case.beta if case.form == "corrected" else 1.0
    measured = MODELS[case.model](case.beta).field(0.0, probes, tokens)
    return [equals("X[mu](y)", measured, factor * slope, ROUNDING)]


def _increases(case: Case) -> np.ndarray:
    """E(t_{k+1}) - E(t_k) at nine times of the flow: while it still moves, before it saturates."""
    x0 = uniform(Sphere(case.d), case.n, case.seed, samples=case.samples)
    # The clock of USA runs e^beta times faster near clusters.
    end = case.duration if case.model == "SA" else case.duration * np.exp(-case.beta)
    states = flow(case, pulled(case.model, case.beta, case.sign), x0, np.linspace(0.0, end, 9))
    return np.diff(interaction_energy(states, case.beta), axis=-1)


def _solver_error(case: Case) -> float:
    """What an error of the tokens does to E, at most beta E[delta] times it.

    The tokens are off by the tolerance 1e-8 times some tens of steps: 100 is ample.
    """
    return 100 * 1e-8 * case.beta * float(theory.energy_dirac(case.beta))


MOVING = {"n": 8, "d": 3, "beta": 2.0, "samples": 8, "duration": 4.0}
MOVING_AT_PAPER_SCALE = {"n": 32, "d": 128, "samples": 16}
REPELS = broken("V = -I repels, and the energy falls", sign=-1.0)
ASCENT = {"V = I": lambda c: c.sign == 1, "beta > 0": lambda c: c.beta > 0}
FOLLOWS_SA = {"the tokens follow SA": lambda c: c.model == "SA"}
FOLLOWS_USA = {"the tokens follow USA": lambda c: c.model == "USA"}


@PAPER.claim(
    "sec-3-ascent-sa",
    where="Section 3, consequence of (3.6) (not numbered)",
    says="Along SA the interaction energy never falls.",
    given={**MOVING, "model": "SA", "sign": 1.0},
    at_paper_scale=MOVING_AT_PAPER_SCALE,
    options=BOTH,
    needs={**ASCENT, **FOLLOWS_SA},
    control=REPELS,
)
def energy_never_falls_along_sa(case: Case) -> list[Comparison]:
    """Smallest increase of E between two of nine times."""
    return [at_least("increase of E", _increases(case), 0.0, _solver_error(case))]


@PAPER.claim(
    "sec-3-ascent-usa",
    where="Section 3, consequence of (3.11) (not numbered)",
    says="Along USA the interaction energy never falls.",
    given={**MOVING, "model": "USA", "sign": 1.0},
    at_paper_scale=MOVING_AT_PAPER_SCALE,
    options=BOTH,
    needs={**ASCENT, **FOLLOWS_USA},
    control=REPELS,
)
def energy_never_falls_along_usa(case: Case) -> list[Comparison]:
    """Smallest increase of E between two of nine times."""
    return [at_least("increase of E", _increases(case), 0.0, _solver_error(case))]


@PAPER.claim(
    "sec-3-repulsion",
    where="Section 3, V = -I (not numbered)",
    says="With V = -I the interaction energy never rises.",
    given={**MOVING, "model": "SA", "sign": -1.0},
    at_paper_scale=MOVING_AT_PAPER_SCALE,
    options=BOTH,
    needs={"V = -I": lambda c: c.sign == -1, "beta > 0": lambda c: c.beta > 0},
    control=broken("V = I attracts, and the energy rises", sign=1.0),
)
def energy_never_rises(case: Case) -> list[Comparison]:
    """Largest increase of E between two of nine times."""
    return [at_most("increase of E", _increases(case), 0.0, _solver_error(case))]


@PAPER.claim(
    "prop-3.4",
    where="Proposition 3.4",
    says="Among all measures on the sphere the uniform one has the least interaction energy and a "
    "point mass the most.",
    given={"n": 64, "d": 3, "beta": 2.0, "sign": 1.0},
    at_paper_scale={"n": 512},
    needs={"Q^T K = I": lambda c: c.sign == 1, "beta > 0": lambda c: c.beta > 0},
    control=broken("with Q^T K = -I a point mass has the least energy", sign=-1.0),
    note="Checked on tokens in caps of every size; that the minimiser is unique is not tested. The "
    "bounds are those of all measures, so n tokens need not come close to the lower one.",
)
def energy_lies_between_uniform_and_point_mass(case: Case) -> list[Comparison]:
    """E of tokens in caps of radius r against E[sigma_d] and E[delta]; r -> 0 attains the latter.

    Tokens within r of a centre have <x, y> >= 1 - 2 r^2, so E >= E[delta] e^{-2 beta r^2}.
    """
    model = SA(case.beta, Weights(B=case.sign * np.eye(case.d)))
    radii = np.array([1e-3, 0.3, 1.0, 2.0, np.pi])
    values = np.array(
        [read(energy, model, cap(Sphere(case.d), case.n, case.seed, float(r))) for r in radii]
    )
    least = float(theory.energy_uniform(case.d, case.beta))
    most = float(theory.energy_dirac(case.beta))
    return [
        at_least("E against that of the uniform measure", values, least),
        at_most("E against that of a point mass", values, most, ROUNDING * most),
        at_least(
            "E of a tight cap", values[0], most * np.exp(-2 * case.beta * radii[0] ** 2), ROUNDING
        ),
    ]


@PAPER.claim(
    "prop-3.4-iid",
    where="Proposition 3.4 with (3.5) (not numbered: the mean over independent tokens)",
    says="Independent uniform tokens have on average the energy of the uniform measure plus a share "
    "1/n of what separates it from a point mass.",
    given={"n": 16, "d": 3, "beta": 2.0, "samples": 2000, "law": "uniform"},
    at_paper_scale={"n": 32, "samples": 20000},
    options={"law": ("uniform", "hemisphere")},
    needs={
        "the tokens are uniform on the sphere": lambda c: c.law == "uniform",
        "beta > 0": lambda c: c.beta > 0,
    },
    control=broken("tokens of half a sphere are closer together", law="hemisphere"),
)
def mean_energy_of_independent_tokens(case: Case) -> list[Comparison]:
    """Sample mean of E against (e^beta/n + (1 - 1/n) Z0)/(2 beta), within 3 standard errors."""
    draw = uniform if case.law == "uniform" else hemisphere
    x0 = draw(Sphere(case.d), case.n, case.seed, samples=case.samples)
    values = read_each(energy, SA(case.beta), x0)
    predicted = float(theory.energy_iid(case.n, case.d, case.beta))
    error = float(values.std() / np.sqrt(case.samples))
    return [equals("mean of E", values.mean(), predicted, 3 * error)]
