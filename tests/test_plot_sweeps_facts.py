"""The picture of a sweep says what was run, and draws the curve of theory where there is one."""

import numpy as np
import pytest
from made_pictures import BETAS, SIZES, TIMES, drawn, sweep
from scipy.integrate import solve_ivp

SPEC = {
    "model": {"name": "SA", "beta": 1.0},
    "tokens": {"law": "uniform", "n": 32, "d": 2, "space": "sphere"},
    "solve": {"method": "adaptive"},
    "save": {"observe": [{"name": "pair_fraction", "delta": 1e-3}, "order_parameter"]},
}


def diagram(axes=None, **changes):
    """A sweep over beta and starts as `phase-small` stores it; `changes` replace tables of the spec."""
    made = sweep(axes or {"beta": BETAS}, names=("pair_fraction", "order_parameter"))
    made["pair_fraction"].attrs |= {"delta": 1e-3}
    spec = {key: {**table, **changes.get(key, {})} for key, table in SPEC.items()}
    homes = {"beta": "model.beta", "n": "tokens.n", "seed": "tokens.seed"}
    paths = {axis: [homes[axis]] for axis in made.attrs["axes"]}
    return made.assign_attrs(title="phase-small", spec=spec, axes=paths)


def curve_of(figure):
    dashed = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    return (dashed[0].get_xdata(), dashed[0].get_ydata()) if dashed else None


def test_the_title_is_for_people_and_names_model_tokens_threshold_and_starts():
    title = drawn(diagram()).get_suptitle()
    assert title == "Phase small: SA, n = 32, d = 2, delta = 0.001, mean of 8 starts"
    own = drawn(diagram().assign_attrs(title="My-phases, take 2")).get_suptitle()
    assert own.startswith("My-phases, take 2")


def test_what_the_axes_show_is_not_told_twice():
    figure = drawn(diagram({"beta": BETAS, "n": SIZES}))
    assert "SA, d = 2, delta = 0.001" in figure.get_suptitle()
    assert "n = " not in figure.get_suptitle()


def test_the_colour_bar_states_its_threshold():
    bar = drawn(diagram()).axes[-1]
    assert bar.get_ylabel() == r"share of pairs with $\langle x_i, x_j\rangle \geq 1-0.001$"


@pytest.mark.parametrize("model", ["SA", "USA"])
def test_the_curve_is_the_time_at_which_orthogonal_tokens_have_met(model):
    """Eq. (6.9) and (6.10) of 2312.10794 solved by scipy, in the gap u = 1 - gamma."""
    figure = drawn(diagram(model={"name": model}))
    times, betas = curve_of(figure)
    np.testing.assert_allclose(betas, BETAS)
    n, end = 32, float(TIMES[-1])
    assert figure.axes[0].get_xlim()[1] < 2 * end  # long times do not stretch the diagram
    for at in (0, 5):
        beta = BETAS[at]

        def rate(_, gap, beta=beta):
            gamma = 1 - gap
            weight = 2 * np.exp(beta * gamma) * gap * ((n - 1) * gamma + 1)
            total = np.exp(beta) + (n - 1) * np.exp(beta * gamma) if model == "SA" else n
            return -weight / total

        def met(_, gap):
            return gap[0] - 1e-3

        met.terminal = True
        found = solve_ivp(rate, (0, 1e4), [1.0], events=met, rtol=1e-10, atol=1e-13)
        assert times[at] == pytest.approx(found.t_events[0][0], rel=1e-6)
    (label,) = [text.get_text() for text in figure.legends[0].texts]
    assert "limit of large $d$" in label


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": {"law": "hemisphere"}},
        {"tokens": {"space": "euclidean"}},
        {"model": {"name": "SinkhornSA"}},
        {"model": {"weights": {"V": "random"}}},
        {"model": {"noise": {"temperature": 0.1}}},
        {"solve": {"method": "layers", "step": 0.1}},
        {"save": {"observe": [{"name": "order_parameter", "as": "pair_fraction"}]}},
    ],
)
def test_no_curve_where_its_hypotheses_fail(changes):
    assert curve_of(drawn(diagram(**changes))) is None


def test_no_curve_for_another_statistic_or_other_axes():
    assert curve_of(drawn(diagram(), "order_parameter")) is None
    assert curve_of(drawn(diagram({"n": SIZES}))) is None
    assert curve_of(drawn(diagram({"beta": BETAS, "n": SIZES}))) is None
