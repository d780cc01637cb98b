"""The conformance suites over every implementation of the library, and over wrong ones, which must fail."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import tokenflock as flock
from tokenflock import kinds, masks, observables, terms
from tokenflock.observables import OBSERVABLES
from tokenflock.testing import (
    check_discretisation,
    check_kind,
    check_mask,
    check_observable,
    check_state,
    check_term,
)

RANDOM = np.random.default_rng(0)
GELU_ROWS = [[0.6, 0.2, -0.3], [-0.1, 0.9, 0.4]]
KINDS = {
    "Softmax": kinds.Softmax(),
    "L2": kinds.L2(),
    "Unnormalised": kinds.Unnormalised(),
    "Unnormalised-metastability": kinds.Unnormalised("metastability"),
    "Unnormalised-kinetic": kinds.Unnormalised("kinetic"),
    "Sigmoid": kinds.Sigmoid(-0.3),
    "Linear": kinds.Linear(),
    "Kernel": kinds.Kernel(kinds.as_function([0.1, 0.5, 0.3, 0.2])),
    "Hardmax": kinds.Hardmax(),
    "Sinkhorn": kinds.Sinkhorn(),
}
MASKS = {
    "Full": masks.Full(),
    "Causal": masks.Causal(),
    "Causal-others": masks.Causal(self_term=False),
    "ALiBi": masks.ALiBi(1.5),
    "ALiBi-others": masks.ALiBi(-0.7, self_term=False),
}
TERMS = {
    "Attention": terms.Attention(flock.Weights.gaussian(3, seed=1, heads=2), 0.8),
    "Attention-plain": terms.Attention(None, 1.4, kinds.Unnormalised()),
    "Drift": terms.Drift([[0.1, 0.5, 0.0], [-0.2, 0.3, 0.1], [0.4, 0.0, -0.6]]),
    "Drift-number": terms.Drift(-0.4),
    "Potential": terms.Potential(lambda x: jnp.sin(x[0]) * x[1] + x[2] ** 3, 0.7),
    "Perceptron": terms.Perceptron.random(3, 5, seed=2, bias=0.3),
    "Perceptron-gradient": terms.Perceptron.gradient([1.0, -0.7], GELU_ROWS, flock.terms.GELU),
}
# What each kind can do beside its sums; everything else is refused with a sentence.
CAUSAL = "Tiled, causal|Spectral, causal"
WANTED = {
    "Softmax": f"Spectral|GpuKernel|{CAUSAL}|GpuKernel, causal|energy|dissipation|densities|Gaussians",
    "L2": f"Spectral|GpuKernel|{CAUSAL}|GpuKernel, causal|densities|Gaussians",
    "Unnormalised": f"Spectral|GpuKernel|{CAUSAL}|energy|dissipation|densities",
    "Unnormalised-metastability": f"Spectral|GpuKernel|{CAUSAL}|energy|dissipation|densities",
    "Unnormalised-kinetic": f"Spectral|GpuKernel|{CAUSAL}|energy|dissipation|densities",
    "Sigmoid": f"Spectral|{CAUSAL}|energy|dissipation|densities",
    "Linear": f"Spectral|{CAUSAL}|energy|dissipation|densities|Gaussians",
    "Kernel": f"Spectral|{CAUSAL}|energy|dissipation|densities",
    "Hardmax": "Tiled, causal|densities",
    "Sinkhorn": "densities|Gaussians",
}
OPTIONAL = {option for row in WANTED.values() for option in row.split("|")}


def all_of(package, base):
    return {
        name
        for name, item in vars(package).items()
        if isinstance(item, type) and issubclass(item, base)
    }


def test_every_class_is_tried():
    """A new class in a slot must be tried here."""
    abstract = {"Kind", "Fold", "Weighted"}
    tried = {type(kind).__name__ for kind in KINDS.values()}
    assert all_of(kinds, kinds.Kind) - abstract == tried
    assert all_of(masks, masks.Mask) - {"Mask"} == {type(mask).__name__ for mask in MASKS.values()}
    tried = {type(term).__name__ for term in TERMS.values()}
    assert all_of(terms, terms.Term) - {"Term", "Sum"} == tried


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name):
    found = check_kind(KINDS[name])
    holds = {check for check, said in found.items() if said == "holds"}
    assert holds & OPTIONAL == set(WANTED[name].split("|"))


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    assert set(check_mask(MASKS[name]).values()) == {"holds"}


@pytest.mark.parametrize("name", TERMS)
def test_terms(name):
    check_term(TERMS[name])


THINGS = {
    "clusters": flock.clusters(angle=0.3),
    "cluster_labels": flock.observables.cluster_labels(angle=0.3),
    "cluster_sizes": flock.observables.cluster_sizes(angle=0.3, largest=3),
    "cluster_masses": flock.observables.cluster_masses(angle=0.3, largest=3),
    "cluster_centres": flock.observables.cluster_centres(angle=0.3, largest=3),
    "gram_histogram": flock.observables.gram_histogram(8),
    "pair_fraction": flock.observables.pair_fraction(0.5),
    "min_alignment": flock.observables.min_alignment([0.0, 0.6, 0.8]),
    "renyi_centres": observables.renyi_centres(0.4),
    "renyi_centre_mask": observables.renyi_centre_mask(0.4),
    "strong_centres": observables.strong_centres(0.4),
    "strong_centre_mask": observables.strong_centre_mask(0.4),
}
# Read off densities, which have no tokens; their schemes are tried below.
OF_DENSITIES = {"entropy", "free_energy", "free_energy_rate", "largest_density", "peaks"}
# SciPy computes it, outside of compiled code.
MODELS = {
    "fourier_moments": flock.SA(1.7),
    "leaders": flock.HardmaxFlow(),
    "leader_mask": flock.HardmaxFlow(),
}
STARTS = {
    "fourier_moments": flock.uniform(flock.Sphere(2), 6, seed=1),
    "leaders": flock.gaussian(flock.Euclidean(3), 6, seed=1, scale=0.4),
    "leader_mask": flock.gaussian(flock.Euclidean(3), 6, seed=1, scale=0.4),
    "convex_hull_volume": flock.gaussian(flock.Euclidean(3), 6, seed=1, scale=0.4),
}


# One of every sort in the default suite: a number, a count, one per token, a matrix, on the circle, on R^d.
QUICK = {"energy", "clusters", "cluster_labels", "attention_matrix", "fourier_moments", "leaders"}


def quick_or_slow(names, quick):
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", quick_or_slow(sorted(set(OBSERVABLES) - OF_DENSITIES), QUICK))
def test_observables(name):
    """Every observable of the registry, made with parameters where it needs some."""
    made = OBSERVABLES[name]
    if not isinstance(made, flock.observables.Observable):
        made = flock.observables.fourier_moments(3) if name == "fourier_moments" else THINGS[name]
    flat = name == "convex_hull_volume"
    model = flock.Dynamics(None, flock.Attention(beta=0.7)) if flat else MODELS.get(name)
    found = check_observable(made, model, STARTS.get(name))
    assert found["in a run, and from its states"] == "holds"


def cosines(x):
    return 1.0 + 0.3 * x[:, 0] + 0.1 * x[:, 0] ** 3


DENSITIES = {
    "Fourier": (flock.Density.from_law(flock.meanfield.Fourier(24), cosines), flock.SA(1.5)),
    "Quantiles": (flock.Density.from_law(flock.meanfield.Quantiles(64), cosines), flock.USA(1.5)),
    "Zonal": (flock.Density.from_law(flock.meanfield.Zonal(4, 24), cosines), flock.SA(1.5)),
    "Harmonics": (flock.Density.from_law(flock.meanfield.Harmonics(8), cosines), flock.USA(1.5)),
    "Moments": (
        flock.meanfield.gaussian_density([0.1, 0.2], [[0.2, 0.05], [0.05, 0.1]]),
        flock.LinearSA(0.5),
    ),
}


@pytest.mark.parametrize("name", quick_or_slow(DENSITIES, {"Fourier", "Quantiles", "Moments"}))
def test_discretisations(name):
    start, model = DENSITIES[name]
    found = check_discretisation(start, model)
    assert found["mass is one and stays one"] == "holds"
    assert found["a run is healthy"] == "holds"


STATES = {
    "tokens": (flock.uniform(flock.Sphere(3), 5, seed=1), flock.SA(2.0), None),
    "radii": (
        flock.uniform(flock.Sphere(3), 5, seed=1),
        flock.SA(2.0, normalisation=flock.normalisation.PreLN()),
        None,
    ),
    "noisy": (
        flock.uniform(flock.Sphere(3), 5, seed=1),
        flock.NoisyUSA(2.0, temperature=0.1),
        1 / 64,
    ),
    **{name: (*pair, None) for name, pair in DENSITIES.items()},
}


@pytest.mark.parametrize("name", quick_or_slow(STATES, {"tokens", "noisy", "Fourier"}))
def test_states(name):
    start, model, dt = STATES[name]
    check_state(start, model, dt)


class Flipped(flock.kinds.Weighted):
    """A primitive whose derivative is not the weight."""

    def weight(self, scores, beta):
        return (1.0 + scores) ** 3

    def primitive(self, scores):
        return -((1.0 + scores) ** 4) / 4.0


class Cubic(Flipped):
    def primitive(self, scores):
        return (1.0 + scores) ** 4 / 4.0


class Boastful(kinds.Softmax):
    """Says that its weights do not average."""

    averages: ClassVar[bool] = False


class Peeking(masks.Causal):
    """Says that it hides later tokens, and shows one."""

    def log_factor(self, rows, columns, n):
        return jnp.where(columns[None, :] <= rows[:, None] + 1, 0.0, -jnp.inf)


class Crooked(terms.Drift):
    """Says a potential that is not its own."""

    def potential(self, t, x):
        return jnp.sum(x**4, axis=-1)


class Lonely(terms.Term):
    """Says that it does not look at the measure, and does."""

    def field(self, t, x, mu, reduction):
        return x - mu.weights @ mu.points


class Shrinking(flock.states.State):
    """A velocity of another shape than the numbers."""

    size: int = eqx.field(static=True, default=3)

    @property
    def sizes(self):
        return {"entry": self.size}

    def begin(self, model):
        return jnp.ones(self.size)

    def velocity(self, model, t, y):
        return y[:-1]

    def snapshot(self, model, t, y):
        raise NotImplementedError


def test_a_kind_of_a_users_own_reaches_parity():
    found = check_kind(Cubic())
    for check in ("Tiled", "Spectral", "energy", "dissipation", "health", "densities"):
        assert found[check] == "holds", check
    assert found["GpuKernel"].startswith("refused: GpuKernel sums exponentials")
    assert found["Gaussians"].startswith("refused: Cubic attention leaves the Gaussian family")


@pytest.mark.parametrize(
    ("check", "wrong", "named"),
    [
        (check_kind, Flipped(), "the primitive has the weight as derivative"),
        (check_kind, Boastful(), "Spectral"),
        (check_mask, Peeking(), "needs_order hides later tokens"),
        (check_term, Crooked(0.3), "the potential has the field as gradient"),
        (check_term, Lonely(), "interacts"),
        (lambda state: check_state(state, flock.SA(1.0)), Shrinking(), "velocity has the shape"),
        (check_observable, lambda s: jnp.sum(s.measure.points) + RANDOM.random(), "compiled"),
    ],
    ids=["primitive", "averages", "mask", "potential", "interacts", "state", "observable"],
)
def test_wrong_ones_fail_by_name(check, wrong, named):
    with pytest.raises(AssertionError, match=named):
        check(wrong)
