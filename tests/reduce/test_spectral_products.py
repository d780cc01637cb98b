"""Spectral in dimension 4 and above: products of coordinates, and refusal where they are too many."""

import pytest
from spectral_problems import RNG, error, make, pulled

import tokenflock as flock
from tokenflock.kinds import as_function

TOL = 1e-6
MANY = 900


def test_softmax_at_small_beta_with_general_queries():
    queries = pulled(4, MANY) * RNG.uniform(0.5, 1.0, (MANY, 1))
    problem = make(pulled(4, MANY), beta=0.4, queries=queries)
    assert error(problem, TOL) < TOL
    assert flock.Spectral(TOL).settle([problem.task()]).terms == 210


@pytest.mark.slow
@pytest.mark.parametrize("mask", [flock.Full(), flock.ALiBi(3.0)])
def test_a_cubic_kernel_is_exact(mask):
    kernel = flock.Kernel(as_function([0.0, 1.0, -0.5, 0.25]))
    assert error(make(pulled(5, MANY), kernel, mask, beta=1.0, drop=True), TOL) < 1e-13


def test_linear_attention_is_exact_in_any_dimension_for_any_queries():
    queries = 3.0 * RNG.normal(size=(90, 40))
    assert error(make(pulled(40), flock.Linear(), beta=2.0, queries=queries), TOL) < 1e-11


def test_refusals_name_the_terms_and_the_way_out():
    with pytest.raises(flock.InputError, match=r"needs \d+ terms here.* d=4.*Tiled"):
        flock.Spectral(1e-10)(make(pulled(4, MANY), beta=9.0))
    with pytest.raises(flock.InputError, match=r"n/4=22.5"):
        flock.Spectral(1e-6)(make(pulled(4), beta=0.5))
    tokens = flock.uniform(flock.Sphere(8), 2000, seed=0)
    with pytest.raises(flock.InputError, match=r"needs \d+ terms here"):
        flock.solve(flock.SA(4.0), tokens, t1=1.0, dt=0.1, reduction=flock.Spectral(1e-8))
