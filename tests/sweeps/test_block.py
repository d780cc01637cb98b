"""Cells are computed as `solve` computes them, whatever else is in their block."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from small_sweeps import ADAPTIVE, cells_of, equal_bits, small_sweep

from tokenflock.errors import InputError
from tokenflock.integrate import solve
from tokenflock.lab.spec import build_model
from tokenflock.lab.tokens import build_tokens
from tokenflock.outcomes import OUTCOMES
from tokenflock.sweeps.block import compute_block
from tokenflock.sweeps.estimate import estimate, refuse_too_much
from tokenflock.sweeps.layout import ERROR, MISSING
from tokenflock.sweeps.probe import layout_of

AXES = "beta = [0.5, 2.0, 6.0]\nseed = { seeds = 5 }"


@pytest.fixture(scope="module")
def whole():
    sweep = small_sweep(AXES, ADAPTIVE, "sweep.batch=15")
    return sweep, cells_of(sweep)


def solved(spec):
    """The same cell through the engine's front door."""
    model, tokens = build_model(spec.model, spec.tokens.d), build_tokens(spec.tokens)
    save = spec.save.build()
    asked = spec.solve
    return solve(
        model,
        tokens,
        asked.t1,
        **asked.accuracy()._asdict(),
        merge=asked.merge(),
        clock=asked.clock(),
        reduction=asked.build_reduction(),
        seed=asked.seed,
        save=save,
        stop=spec.stop.build(),
        throw=False,
    )


@pytest.mark.parametrize("batch", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_the_size_of_a_batch_changes_no_bit(whole, batch):
    _, cells = whole
    found = cells_of(small_sweep(AXES, ADAPTIVE, f"sweep.batch={batch}"))
    assert found.keys() == cells.keys()
    assert all(equal_bits(found[index][0], cells[index][0]) for index in cells)


def test_a_cell_is_what_solve_gives(whole):
    sweep, cells = whole
    for index in [(0, 0), (2, 3)]:
        run, arrays = solved(sweep.cell_spec(index)), cells[index][0]
        for name in ("order_parameter", "clusters"):
            assert np.array_equal(np.asarray(run.arrays[name], float), arrays[name])
        assert arrays["steps"] == run.arrays["steps"]
        assert OUTCOMES[arrays["outcome"]] == run.outcome


def test_single_cells_of_a_block_are_the_same(whole):
    sweep, cells = whole
    result = compute_block(sweep.text, 0, only=(3, 7))
    for position, index in enumerate(sweep.grid.block(0).cells()):
        arrays = {name: values[position] for name, values in result.arrays.items()}
        if position in (3, 7):
            assert equal_bits(arrays, cells[index][0])
        else:
            assert arrays["outcome"] == MISSING
            assert np.all(np.isnan(arrays["order_parameter"]))


def test_cells_that_fail_are_told_and_the_others_go_on():
    sweep = small_sweep(
        "pair = { zip = { beta = [4.0, -1.0, 4.0], max_steps = [100000, 100000, 3] } }",
        ADAPTIVE,
        "sweep.batch=3",
    )
    cells = cells_of(sweep)
    good, wrong, short = (cells[index,] for index in range(3))
    assert good[1] is None
    assert OUTCOMES[good[0]["outcome"]] == "finished"
    assert "beta must be finite and >= 0, got -1.0" in wrong[1]
    assert wrong[0]["outcome"] == ERROR
    assert np.all(np.isnan(wrong[0]["order_parameter"]))
    assert "step limit" in short[1]
    assert OUTCOMES[short[0]["outcome"]] == "step-limit"
    assert np.isnan(short[0]["order_parameter"][-1])
    assert short[0]["final_time"] < 2.0


def test_non_finite_tokens_are_a_failure():
    sweep = small_sweep(
        "V = { values = [1.0, 1e308], set = 'model.weights.V' }",
        "solve={t1=2.0, step=2.0}",
        "every=2.0",
    )
    cells = cells_of(sweep)
    assert cells[0,][1] is None
    assert "non-finite at t = 2: the tokens became NaN or infinite" in cells[1,][1]
    assert OUTCOMES[cells[1,][0]["outcome"]] == "non-finite"


@pytest.mark.slow
def test_cells_of_different_shapes_share_a_store():
    sweep = small_sweep("n = [4, 6]\nseed = { seeds = 2 }", "save.states=true")
    layout = {variable.name: variable for variable in layout_of(sweep).variables}
    assert layout["states"].dims == ("time", "token", "coordinate")
    assert layout["states"].shape == (5, 6, 2)
    cells = cells_of(sweep)
    small, large = cells[0, 1][0]["states"], cells[1, 1][0]["states"]
    assert np.all(np.isnan(small[:, 4:]))
    assert np.allclose(np.linalg.norm(small[:, :4], axis=-1), 1)
    assert np.allclose(np.linalg.norm(large, axis=-1), 1)
    assert np.array_equal(small[:, :4], np.asarray(solved(sweep.cell_spec((0, 1))).states))


@pytest.mark.slow
def test_cells_with_clocks_of_their_own():
    sweep = small_sweep('pair = { zip = { beta = [1.0, 3.0], "solve.t1" = [1.0, 2.0] } }')
    layout = {variable.name: variable for variable in layout_of(sweep).variables}
    assert layout["order_parameter"].dims == ("save",)
    cells = cells_of(sweep)
    assert np.array_equal(cells[0,][0]["time"], [0, 0.5, 1, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(cells[1,][0]["time"], [0, 0.5, 1, 1.5, 2])


@pytest.mark.slow
def test_the_clock_of_one_cell_among_many_is_its_own():
    ends, steps = [2.0] * 40, [1.0] * 40
    ends[23], steps[23] = 1.0, 0.5
    sweep = small_sweep(f"pair = {{ zip = {{ t1 = {ends}, every = {steps} }} }}", "sweep.batch=40")
    cells = cells_of(sweep)
    assert cells[23,][0]["time"].tolist() == [0.0, 0.5, 1.0]
    assert cells[22,][0]["time"].tolist() == [0.0, 1.0, 2.0]
    # The same tokens: what both have at t = 1 is the same number.
    assert cells[23,][0]["order_parameter"][2] == cells[22,][0]["order_parameter"][1]


def test_room_for_the_cell_that_is_looked_at_most_often():
    layout = layout_of(small_sweep("t1 = [1.0, 4.0]\nevery = [1.0, 0.1]"))
    assert {v.shape for v in layout.variables if v.dims} == {(41,)}
    many = "t1 = { from = 1.0, to = 4.0, count = 31 }\nevery = { from = 0.1, to = 1.0, count = 91 }"
    layout = layout_of(small_sweep(many))
    assert {v.shape for v in layout.variables if v.dims} == {(41,)}


def test_a_cell_that_does_not_fit_its_store_is_a_failure():
    sweep = small_sweep("beta = [1.0, 2.0]", "sweep.batch=2")
    layout = layout_of(sweep)
    for times in ([0.0, 0.5, 1.0, 1.5, 1.9], [0.0, 1.0, 2.0]):
        wrong = dataclasses.replace(layout, coordinates={"time": np.array(times)})
        result = compute_block(sweep.text, 0, None, wrong)
        assert all("other times" in told for told in result.failures.values())
        assert np.all(np.isnan(result.arrays["order_parameter"]))


def test_workers_share_the_memory_of_a_machine(monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "1")
    sweep = small_sweep("n = [4, 4000]")
    layout = layout_of(sweep)
    assert 3 * 8 * 4000**2 <= layout.working_bytes < 2**29
    refuse_too_much(estimate(sweep, layout, 2), Path())
    with pytest.raises(InputError, match="use fewer --workers"):
        refuse_too_much(estimate(sweep, layout, 8), Path())


@pytest.mark.parametrize("n", [60_000, 100_000_000])
def test_more_tokens_than_memory_are_refused_wherever_they_stand(n, monkeypatch):
    monkeypatch.setenv("TOKENFLOCK_MEMORY_GIB", "8")
    sweep = small_sweep(f"n = [4, {n}, 6]\nbeta = [1.0, 2.0]")
    with pytest.raises(
        InputError, match=rf"n={n} tokens of the cell n = {n}.*GiB, the limit is 8 GiB"
    ):
        layout_of(sweep)


@pytest.mark.parametrize(
    ("axes", "settings"),
    [
        pytest.param(
            "temperature = { values = [0.1, 0.4], set = 'model.noise.temperature' }\n"
            "seed = { seeds = 2 }",
            ["model.noise={kind='brownian', temperature=0.1}", "solve={t1=2.0, dt=0.05}"],
            id="noise",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "scale = { values = [0.1, 0.6], set = 'model.weights.Q.scale' }\n"
            "seed = { seeds = 2, of = ['tokens.seed', 'model.weights.seed'] }",
            [
                "model.weights={Q={law='Ginibre', scale=0.5}, V={law='Ginibre', scale=0.5}, "
                "period=0.5}",
                ADAPTIVE,
            ],
            id="drawn weights",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "beta = [2.0, 5.0]\nseed = { seeds = 2, per = 'cell' }",
            [ADAPTIVE, "merge_radius=0.05", "stop.clusters={count=2, angle=0.1}", "t1=20.0"],
            id="merging and stopping",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "step = [0.1, 0.25]",
            ["solve={t1=2.0, step=0.1}"],
            id="layers",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_other_sorts_of_cells_are_what_solve_gives(axes, settings):
    sweep = small_sweep(axes, *settings)
    cells = cells_of(sweep)
    last = tuple(length - 1 for length in sweep.grid.shape)
    run, (arrays, failure) = solved(sweep.cell_spec(last)), cells[last]
    assert failure is None
    assert arrays["final_time"] == run.arrays["final_time"]
    rows = len(run.arrays["order_parameter"]) if run.outcome == "finished" else None
    if rows is None:
        assert arrays["final_order_parameter"] == run.arrays["final_order_parameter"]
        rows = len(run.time) - 1
    expected = np.asarray(run.arrays["order_parameter"], float)[:rows]
    assert np.array_equal(arrays["order_parameter"][:rows], expected)
    numbers = {cells[index][0]["order_parameter"].tobytes() for index in cells}
    assert len(numbers) == len(cells), "every cell has numbers of its own"


def test_seeds_of_single_cells_are_kept_with_their_numbers():
    sweep = small_sweep("beta = [1.0, 2.0]\nseed = { seeds = 2, per = 'cell' }")
    for index, (arrays, _) in cells_of(sweep).items():
        assert arrays["tokens_seed"] == sweep.cell_spec(index).tokens.seed


def test_an_axis_named_like_an_array_is_refused():
    sweep = small_sweep(
        "energy = { values = [1.0, 2.0], set = 'model.beta' }", "save.observe=['energy']"
    )
    with pytest.raises(ValueError, match="rename it"):
        layout_of(sweep)
