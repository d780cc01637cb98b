"""The shape checks are really on: a wrong shape fails at the annotation, not later."""

import jax.numpy as jnp
import jaxtyping
import pytest

import tokenflock as flock
from tokenflock.connected_components import component_labels


def test_a_wrong_shape_is_refused_at_the_call():
    with pytest.raises(jaxtyping.TypeCheckError):
        component_labels(jnp.ones((3, 4), dtype=bool))


def test_a_right_shape_passes():
    assert component_labels(jnp.eye(3, dtype=bool)).tolist() == [0, 1, 2]
    assert flock.Sphere(3).d == 3
