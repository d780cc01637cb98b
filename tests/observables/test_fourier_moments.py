"""Fourier moments on the circle."""

import numpy as np
import pytest

from tokenflock.errors import InputError
from tokenflock.measure import from_angles
from tokenflock.observables import fourier_moments, order_parameter


def test_moments_by_loops(read):
    theta, w = np.array([0.1, 1.7, 2.0, 5.5]), np.array([0.1, 0.4, 0.3, 0.2])
    expected = [abs(sum(w * np.exp(-1j * k * theta))) for k in range(1, 12)]
    observable = fourier_moments(modes=11)
    moments = read(observable, from_angles(theta, w))
    np.testing.assert_allclose(moments, expected, rtol=1e-12)
    np.testing.assert_array_equal(observable.coords["moment"], np.arange(1, 12))


def test_polygon_has_moments_at_its_multiples(read):
    moments = read(fourier_moments(modes=9), from_angles(0.3 + 2 * np.pi * np.arange(3) / 3))
    np.testing.assert_allclose(moments, [0, 0, 1, 0, 0, 1, 0, 0, 1], atol=1e-14)


def test_first_moment_is_the_order_parameter_and_rotation_changes_nothing(read):
    theta, w = np.array([0.1, 1.7, 2.0, 5.5]), np.array([1.0, 4.0, 3.0, 2.0])
    here, turned = from_angles(theta, w), from_angles(theta + 1.234, w)
    assert read(fourier_moments(1), here)[0] == pytest.approx(
        read(order_parameter, here), rel=1e-14
    )
    moments = read(fourier_moments(), turned)
    np.testing.assert_allclose(read(fourier_moments(), here), moments, rtol=1e-12)


def test_only_on_the_circle(weighted, cloud, read):
    for mu in (weighted(d=3), cloud(d=2)):
        with pytest.raises(InputError, match="circle"):
            read(fourier_moments(), mu)
    with pytest.raises(InputError, match="modes"):
        fourier_moments(0)
