"""How a run is cut: every save time exactly once, one shape of program, whole fixed steps."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenflock as flock
from tokenflock.integrate import LogTime, Physical
from tokenflock.lab.parts import PARTS, cut


def check(times, parts):
    assert len({len(part.times) for part in parts}) == 1
    kept = np.concatenate([part.times[part.keep] for part in parts])
    np.testing.assert_array_equal(kept, times)
    assert parts[0].times[0] == 0.0
    for before, after in itertools.pairwise(parts):
        assert before.times[-1] == after.times[0]
    assert all(np.all(np.diff(part.times) >= 0) for part in parts)
    assert all(part.times[-1] > part.times[0] for part in parts)


increments = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=300)


@settings(deadline=None, max_examples=60)
@given(increments, st.sampled_from([Physical(), LogTime(), LogTime(1e-3)]))
def test_every_save_time_once_in_parts_of_one_length(gaps, clock):
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    parts = cut(times, clock, None)
    check(times, parts)
    assert len(parts) <= PARTS + 1


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 400), st.integers(1, 40), st.floats(1e-3, 10.0))
def test_fixed_steps_are_cut_between_steps(saves, stride, step):
    times = step * stride * np.arange(saves + 1)
    parts = cut(times, Physical(), step)
    check(times, parts)
    for part in parts:
        steps = part.times / step
        np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)


def test_few_saves_are_cut_finer_and_many_are_grouped():
    few = cut(np.array([0.0, 1.0, 2.0]), Physical(), None)
    many = cut(np.linspace(0.0, 1.0, 1001), Physical(), None)
    assert len(few) == PARTS
    assert len(many) == PARTS
    assert sum(part.keep.sum() for part in few) == 3


def test_parts_of_other_ends_and_saves_have_the_same_shape():
    """One compiled program serves them all: 3 and 2 saves a part."""
    longer, shorter = (cut(np.arange(saves + 1) / 4, Physical(), None) for saves in (120, 80))
    assert {part.times.size for part in (*longer, *shorter)} == {4}


def test_a_log_clock_is_cut_in_its_own_time():
    parts = cut(np.array([0.0, 1e6]), LogTime(), None)
    ends = np.array([part.times[-1] for part in parts])
    assert ends[len(ends) // 2] == pytest.approx(np.expm1(np.log1p(1e6) / 2), rel=0.5)


@pytest.mark.parametrize(("t1", "step"), [(10.0, 1 / 3), (1.1, 0.1), (4.8, 0.01)])
def test_a_cut_network_has_as_many_layers_as_an_uncut_one(t1, step):
    """Rounding of the cuts must not add a layer."""
    from tokenflock.lab.files import parse
    from tokenflock.lab.job import Job

    spec = parse(
        f"""
        [model]
        name = "SA"
        beta = 1.0
        [tokens]
        law = "uniform"
        d = 2
        n = 3
        seed = 0
        [solve]
        t1 = {t1}
        step = {step}
        [save]
        every = {step}
        observe = []
        states = false
        """
    )
    job = Job(spec)
    job.compile()
    state, layers = job.start(), 0
    for part in job.parts:
        segment = job.advance(state, part)
        state, layers = segment.final, layers + int(segment.stats["num_steps"])
    assert layers == round(t1 / step)
    whole = flock.solve(job.model, job.x0, t1=t1, method=flock.Layers(step))
    np.testing.assert_allclose(state.moving.points, whole.final.points, rtol=0, atol=1e-13)
