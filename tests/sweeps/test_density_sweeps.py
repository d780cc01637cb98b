"""Sweeps of densities: every cell is what `solve` gives, and their limit is known in closed form."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ive

import tokenflock as flock
from tokenflock.sweeps.block import compute_block
from tokenflock.sweeps.catalogue import sweep_example_text as example_text
from tokenflock.sweeps.plan import parse_sweep

SMALL = ["modes=[16, 20]", "sweep.axes.beta=[1e-6, 0.5]", "solve.t1=60.0", "save.every=60.0"]
SETTINGS = [setting.replace("modes=", "sweep.axes.modes=", 1) for setting in SMALL]


@pytest.fixture(scope="module")
def found():
    sweep = parse_sweep(example_text("density-modes"), SETTINGS)
    cells = {}
    for number in range(sweep.grid.block_count):
        block = compute_block(sweep.text, number)
        assert block.failures == {}
        for place, index in enumerate(sweep.grid.block(number).cells()):
            cells[index] = {name: values[place] for name, values in block.arrays.items()}
    return cells


def test_the_order_parameter_of_weak_attention_is_kuramotos(found):
    """beta -> 0: r = I_1(r/T)/I_0(r/T) at rest, T = 0.2 (2512.01868)."""
    exact = brentq(lambda r: ive(1, r / 0.2) / ive(0, r / 0.2) - r, 0.5, 1.0)
    for modes in range(2):
        assert found[modes, 0]["order_parameter"][-1] == pytest.approx(exact, rel=2e-6)


def test_more_modes_change_nothing(found):
    for beta in range(2):
        few, many = (found[modes, beta]["order_parameter"] for modes in range(2))
        np.testing.assert_allclose(few, many, rtol=1e-7)


def test_a_cell_is_what_solve_gives(found):
    start = flock.Density.from_law(flock.meanfield.Fourier(16), flock.laws.cosine(0.1))
    model = flock.NoisyUSA(0.5, temperature=0.2, convention="metastability")
    save = flock.Save(every=60.0, observe=[flock.order_parameter, flock.entropy])
    run = flock.solve(model, start, 60.0, rtol=1e-8, atol=1e-10, save=save)
    for name in ("order_parameter", "entropy"):
        np.testing.assert_allclose(found[0, 1][name], run[name], rtol=1e-12)


def test_a_cell_that_is_not_resolved_says_so():
    sweep = parse_sweep(example_text("density-modes"), [*SETTINGS, "sweep.axes.modes=[8]"])
    block = compute_block(sweep.text, 0)
    assert block.failures[0].startswith("unresolved at t = ")
    assert "use more than modes=8" in block.failures[0]
