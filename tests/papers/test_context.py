import numpy as np
import pytest

from tokenflock.papers.survey import closed_forms


def test_K6_9_finite_n_golden():
    gamma = 2 * np.array([0.5, 0.9, 1, 1.1, 1.5])
    value = closed_forms.long_context_correlation(0.5, gamma, 100)
    expected = [0.993295, 0.872974, 0.802797, 0.728985, 0.547986]
    np.testing.assert_allclose(value, expected, rtol=0, atol=5.1e-7)


@pytest.mark.parametrize("rho", [-0.12, 0.0, 0.4])
@pytest.mark.parametrize("beta", [-1.0, 0.0, 3.0])
def test_one_attention_layer_by_brute_force(particles, rho, beta):
    n = 7
    a = particles.attention(particles.equiangular(n, rho), beta)
    theta = a / np.linalg.norm(a, axis=1, keepdims=True)
    inner = (theta @ theta.T)[np.triu_indices(n, 1)]
    np.testing.assert_allclose(inner, closed_forms.attention_correlation(rho, n, beta), atol=1e-12)


def test_three_limits():
    rho = np.array([0.2, 0.5, 0.8])
    critical = closed_forms.critical_gamma(rho)
    np.testing.assert_allclose(critical, [1.25, 2, 5])
    for factor, limit in [(0.8, np.ones(3)), (1.0, 4 * rho / (1 + 3 * rho)), (1.2, rho)]:
        np.testing.assert_allclose(closed_forms.long_context_limit(rho, factor * critical), limit)
        finite = closed_forms.long_context_correlation(rho, factor * critical, 1e60)
        np.testing.assert_allclose(finite, limit, atol=1e-9)


def test_rates_of_convergence():
    rho = 0.5  # critical at gamma = 2
    for gamma, n, exponent in [(1.8, 1e40, -0.2), (2.0, 1e4, -1.0), (2.3, 1e40, -0.15)]:
        n = np.array([n, 10 * n])
        gap = np.abs(
            closed_forms.long_context_correlation(rho, gamma, n)
            - closed_forms.long_context_limit(rho, gamma)
        )
        slope = np.diff(np.log(gap)) / np.diff(np.log(n))
        assert slope[0] == pytest.approx(exponent, abs=2e-3)


def test_extreme_sizes_do_not_overflow():
    assert closed_forms.long_context_correlation(0.3, 0.01, 1e300) == 1
    assert closed_forms.long_context_correlation(0.3, 900.0, 1e300) == pytest.approx(0.3)
    assert closed_forms.attention_correlation(0.3, 3, -1e4) == pytest.approx(
        closed_forms.attention_correlation(0.3, 3, -100.0), rel=1e-12
    )


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="rho must lie in"):
        closed_forms.attention_correlation(-0.5, 4, 1.0)
    with pytest.raises(ValueError, match="0 < rho < 1"):
        closed_forms.long_context_limit(0.0, 1.0)
