"""Spectral in dimension 4 and above: products of coordinates, and refusal where they are too many."""

import jax
import pytest
from spectral_problems import error, make, pulled, rng

import tokenflock as flock
from tokenflock.kinds import as_function
from tokenflock.kinds.base import PairPotential
from tokenflock.reduce.spectral.fallback import series_rows

TOL = 1e-6
MANY = 900


def test_softmax_at_small_beta_with_general_queries():
    queries = pulled(4, MANY, seed=1) * rng().uniform(0.5, 1.0, (MANY, 1))
    problem = make(pulled(4, MANY), beta=0.4, queries=queries)
    assert error(problem, TOL) < TOL
    assert flock.Spectral(TOL).settle([problem.task()]).terms == 210


@pytest.mark.slow
@pytest.mark.parametrize("mask", [flock.masks.Full(), flock.masks.ALiBi(3.0)])
def test_a_cubic_kernel_is_exact(mask):
    kernel = flock.kinds.Kernel(as_function([0.0, 1.0, -0.5, 0.25]))
    assert error(make(pulled(5, MANY), kernel, mask, beta=1.0, drop=True), TOL) < 1e-13


def test_linear_attention_is_exact_in_any_dimension_for_any_queries():
    queries = 3.0 * rng().normal(size=(90, 40))
    assert error(make(pulled(40), flock.kinds.Linear(), beta=2.0, queries=queries), TOL) < 1e-11


def test_refusals_name_the_terms_and_the_way_out():
    with pytest.raises(flock.errors.InputError, match=r"needs \d+ terms here.* d=4.*Tiled"):
        flock.Spectral(1e-10)(make(pulled(4, MANY), beta=9.0))
    with pytest.raises(flock.errors.InputError, match=r"for n=90 tokens it takes up to 64"):
        flock.Spectral(1e-6)(make(pulled(4), beta=0.5))
    tokens = flock.uniform(flock.Sphere(8), 2000, seed=0)
    with pytest.raises(flock.errors.InputError, match=r"needs \d+ terms here"):
        flock.solve(flock.SA(4.0), tokens, t1=1.0, dt=0.1, reduction=flock.Spectral(1e-8))


@pytest.mark.parametrize(
    "kind", [flock.kinds.Linear(), flock.kinds.Kernel(as_function([0.0, 1.0, -0.5, 0.25]))]
)
def test_the_energy_of_a_kind_is_within_its_degree(kind):
    """Sums of the primitive must not fall back to O(n^2), though `settle` sees the kind alone."""
    for queries in (None, 1.2 * pulled(2, seed=1)):
        settled = flock.Spectral(TOL).settle(
            [make(pulled(2), kind, beta=1.0, queries=queries).task()]
        )
        energy = make(pulled(2), PairPotential(kind), beta=1.0, queries=queries)
        _, good = jax.jit(lambda p, plan: series_rows(p, plan), static_argnums=1)(
            energy, settled._plan(energy)
        )
        assert bool(good.all())
