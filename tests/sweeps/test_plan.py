"""Axes, cells, seeds and blocks of a sweep, from its spec alone."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_sweeps import ADAPTIVE, TEXT, small_sweep

from tokenflock.errors import InputError
from tokenflock.sweeps.api import sweep
from tokenflock.sweeps.cost import cell_seconds
from tokenflock.sweeps.grid import Grid, block_shape
from tokenflock.sweeps.plan import make_sweep, parse_sweep
from tokenflock.sweeps.probe import layout_of

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


@given(SHAPES, st.integers(1, 40))
def test_blocks_cover_every_cell_once(shape, batch):
    grid = Grid(shape, block_shape(shape, batch))
    blocks = [grid.block(number) for number in range(grid.block_count)]
    cells = [cell for block in blocks for cell in block.cells()]
    assert sorted(cells) == list(itertools.product(*map(range, shape)))
    assert all(1 <= block.size <= batch for block in blocks)
    assert all(block.size == len(list(block.cells())) for block in blocks)


def test_every_kind_of_axis():
    sweep = small_sweep(
        """
beta = { from = 0.1, to = 0.9, count = 9 }
n = { from = 4, to = 64, count = 5, scale = "log", whole = true }
pair = { zip = { rtol = [1e-3, 1e-6], atol = [1e-5, 1e-8] } }
trial = { random = 50, over = { t1 = { from = 1.0, to = 9.0 }, perturb = { choices = [0.01, 0.02] } } }
seed = { seeds = 3 }
""",
        ADAPTIVE,
    )
    beta, n, pair, trial, seed = sweep.axes
    assert beta.values.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert n.values.tolist() == [4, 8, 16, 32, 64]
    assert pair.settings == {"solve.rtol": [1e-3, 1e-6], "solve.atol": [1e-5, 1e-8]}
    assert pair.beside["rtol"].tolist() == [1e-3, 1e-6]
    assert set(trial.settings["tokens.perturb"]) == {0.01, 0.02}
    drawn = np.asarray(trial.settings["solve.t1"])
    assert np.all((drawn >= 1) & (drawn <= 9))
    assert 3 < drawn.mean() < 7
    assert [axis.name for axis in sweep.axes if axis.is_seed] == ["seed"]
    assert sweep.grid.shape == (9, 5, 2, 50, 3)
    cell = sweep.cell_spec((2, 1, 0, 0, 1))
    assert (cell.model.beta, cell.tokens.n, cell.solve.rtol) == (0.3, 8, 1e-3)
    assert cell.tokens.seed == seed.settings["tokens.seed"][1]


def test_more_trials_leave_the_earlier_ones_alone():
    few, many = (
        small_sweep(f"trial = {{ random = {count}, over = {{ beta = {{ from = 1, to = 5 }} }} }}")
        for count in (5, 9)
    )
    values = [sweep.axes[0].settings["model.beta"] for sweep in (few, many)]
    assert values[0] == values[1][:5]
    assert len(set(values[1])) == 9


@pytest.mark.parametrize("per", ["seed", "cell"])
def test_seeds_follow_from_coordinates_not_from_order(per):
    axis = f"seed = {{ seeds = 3, per = '{per}' }}"
    one = small_sweep(f"beta = [1.0, 2.0, 3.0]\n{axis}")
    other = small_sweep(f"beta = [3.0, 1.0]\n{axis}")

    def seeds(sweep):
        cells = itertools.product(*map(range, sweep.grid.shape))
        return {
            tuple(sweep.coordinates(cell).values()): sweep.cell_spec(cell).tokens.seed
            for cell in cells
        }

    assert seeds(other).items() <= seeds(one).items()
    different = set(seeds(one).values())
    assert len(different) == (3 if per == "seed" else 9)
    assert all(0 <= seed < 2**53 for seed in different)


NOISY = "pair = { zip = { 'model.noise.kind' = ['brownian'], 'model.noise.temperature' = [0.1] } }"


@pytest.mark.parametrize(
    ("axes", "settings"),
    [
        (
            "a = { values = [1.0], set = 'beta' }",
            ["model.noise={kind='brownian', temperature=0.1}"],
        ),
        (NOISY, []),
        ("'model.name' = ['NoisyUSA']", ["model.temperature=0.1"]),
    ],
)
def test_noise_has_its_own_seed(axes, settings):
    sweep = small_sweep(f"{axes}\nseed = {{ seeds = 2 }}", *settings)
    one, other = (sweep.cell_spec((0, place)) for place in (0, 1))
    assert one.tokens.seed != one.solve.seed != other.solve.seed != 0


@pytest.mark.parametrize(
    "axes",
    [
        "beta = { from = 0.1, to = 9.0, count = 90 }\nseed = { seeds = 4 }",
        "'tokens.n' = [4, 6]",
        "pair = { zip = { beta = [1.0, 2.0], n = [4, 5] } }",
        "b = { from = 1.0, to = 100.0, count = 3, scale = 'log', set = 'model.beta' }",
        "trial = { random = 3, over = { beta = { from = 1, to = 2 }, n = { choices = [4, 8] } } }",
    ],
)
def test_reading_its_own_text_gives_the_same_sweep(axes):
    sweep = small_sweep(axes)
    again = parse_sweep(sweep.text)
    assert (again.text, again.id, again.grid) == (sweep.text, sweep.id, sweep.grid)
    last = tuple(length - 1 for length in sweep.grid.shape)
    assert again.cell_spec(last) == sweep.cell_spec(last)


def test_the_id_is_that_of_the_numbers():
    plain = small_sweep("beta = [1.0, 2.0]")
    assert small_sweep("beta = [1.0, 2.0]", "sweep.batch=1", "title='other'").id == plain.id
    assert small_sweep("beta = [1.0, 2.5]").id != plain.id
    assert small_sweep("beta = [1.0, 2.0]", "sweep.seed=1").id != plain.id
    assert small_sweep("beta = [1.0, 2.0]", "step=0.05").id != plain.id


BAD = {
    "beta = []": "at least 1",
    "beta = 3.0": "must be a list of values, or a table with one of",
    "beta = { from = 1.0, to = 2.0 }": "count is missing",
    "beta = { from = 1.0, to = 2.0, cuont = 3 }": "unknown key cuont; did you mean 'count'",
    "beta = { from = -1.0, to = 2.0, count = 3, scale = 'log' }": "positive ends",
    "beta = { from = 1.0, to = nan, count = 3 }": "finite",
    "beta = [1.0, 1.0]": "must differ",
    "beta = ['hot']": "model.beta must be",
    "n = [16, 1]": "sweep axis n = 1: tokens.n must be at least 2",
    "n = [4.5]": "whole number",
    "title = ['a']": "cannot be swept",
    "frames = [2]": "cannot be swept",
    "betta = [1.0]": "did you mean 'beta'",
    "'../../x' = [1.0]": "cannot name an axis",
    "b = { values = [1.0], set = '../../x' }": "no key",
    "pair = { zip = { beta = [1.0], n = [4, 5] } }": "equally many",
    "a = { values = [1.0], set = 'beta' }\nbeta = [2.0]": "two axes have the setting model.beta",
    "trial = { random = 0, over = { beta = { from = 1, to = 2 } } }": "at least 1",
    "seed = { seeds = 3, of = ['tokens.random_seed'] }": "unknown key tokens.random_seed",
    "beta = { from = 0, to = 1, count = 9000000 }\nseed = { seeds = 9000000 }": "8.1e+13 cells",
    "samples = [2, 3]": "is an axis",
    "beta = [1, 1.0]": "must differ",
    "seed = { seeds = 3, of = [] }": "at least 1",
    "seed = { seeds = 3, of = ['model.beta'] }": "is no seed",
    "n = [4, 1000000000000000000000000000000]": "between -2^63 and 2^63",
    "n = { from = -1e308, to = 1e308, count = 3, whole = true }": "whole numbers go up to",
    "trial = { random = 3, over = { beta = { from = 1.0, to = 2.0, count = 4 } } }": (
        "the sweep: sweep.axes.trial: unknown key over.beta.count"
    ),
    "\n".join(f"a{k} = {{ from = 1.0, to = 2.0, count = 10000000 }}" for k in range(16)): (
        "1e+112 cells"
    ),
    "\n".join(f"a{k} = {{ from = 1.0, to = 2.0, count = 10000000 }}" for k in range(50)): (
        "50 axes; the limit is 16"
    ),
}


@pytest.mark.parametrize("axes", BAD)
def test_a_wrong_axis_is_told_in_a_sentence(axes):
    with pytest.raises(InputError) as told:
        small_sweep(axes)
    assert BAD[axes] in str(told.value)
    assert "\n" not in str(told.value)


def test_a_spec_without_a_sweep_is_no_sweep():
    with pytest.raises(InputError, match="tokenflock run"):
        parse_sweep(TEXT.split("[sweep.axes]")[0])


def test_a_vector_of_betas_is_an_axis():
    with pytest.raises(InputError, match=r"make it an axis"):
        small_sweep("n = [4, 5]", "model.beta=[1.0, 2.0]")


def test_too_many_saves_are_refused_however_many():
    sweep = small_sweep("beta = [1.0]", "t1=1e300", "step=1e299", "every=1e-300")
    assert np.isfinite(cell_seconds(sweep.spec))
    with pytest.raises(InputError, match="is inf saves; the limit is 2000000"):
        layout_of(sweep)


@pytest.mark.parametrize("depth", [40, 900, 3000])
def test_tables_inside_tables_are_refused(depth):
    inner = {}
    for _ in range(depth):
        inner = {"a": inner}
    with pytest.raises(InputError, match="nested too deeply"):
        sweep({"model": inner}, "nowhere")
    with pytest.raises(InputError, match=r"nested too deeply|inside one another"):
        small_sweep("beta = [1.0]", f"model.weights{'.a' * depth}=1")


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
            max_leaves=6,
        ),
        max_size=4,
    )
)
def test_any_table_is_read_or_refused_in_a_sentence(axes):
    base = small_sweep("beta = [1.0]")
    try:
        make_sweep({**base.table, "sweep": {"axes": axes}})
    except InputError as error:
        assert str(error)


def test_a_hundred_thousand_cells_are_planned_without_listing_them():
    small_sweep("beta = [1.0]")  # so that what is loaded once does not count
    tracemalloc.start()
    sweep = small_sweep("beta = { from = 0.1, to = 9.0, count = 400 }\nseed = { seeds = 256 }")
    assert sweep.grid.size == 102_400
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * sweep.grid.size, "ten bytes a cell hold no object for each"
