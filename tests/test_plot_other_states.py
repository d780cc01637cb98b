"""Runs of neither tokens nor a density alone draw their time series, or say what can be drawn."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.errors import InputError

LOOSE = {"rtol": 1e-6, "atol": 1e-8}


class Doubled(flock.states.State):
    """Tokens, kept twice; the start is kept, too."""

    tokens: flock.Measure

    @property
    def sizes(self):
        return {"part": 2, "token": self.tokens.n, "coordinate": self.tokens.d}

    def begin(self, model):
        return jnp.stack([self.tokens.points, self.tokens.points])

    def at_start(self):
        return {"state": self.begin(None)}

    def velocity(self, model, t, y):
        return jax.vmap(lambda x: model.field(t, x, self.tokens.at(x)))(y)

    def snapshot(self, model, t, y):
        return flock.observables.Snapshot(t, self.tokens.at(y[0]), model, flock.Dense())


def doubled(observe, states=True):
    start = Doubled(flock.uniform(flock.Sphere(3), 4, seed=0))
    save = flock.Save(every=0.5, observe=observe, states=states)
    return flock.solve(flock.SA(1.0), start, t1=1.0, save=save, **LOOSE)


def test_a_state_of_ones_own_draws_its_series():
    run = doubled([flock.energy, flock.diameter])
    for kind in (None, "series"):
        figure = run.plot(kind)
        assert [axes.get_ylabel() for axes in figure.axes] == ["diameter", "energy"]
        np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), run.array("diameter"))
        plt.close(figure)
    with pytest.raises(InputError, match=r"this run moved another state.*run\.plot\('series'\)"):
        run.plot("tokens")


def test_without_series_it_says_how_to_have_some():
    with pytest.raises(InputError, match=r"kept no time series.*observe=\[flock\.energy"):
        doubled([]).plot()


@pytest.fixture(scope="module")
def correlated():
    on = flock.kinetic.LayeredDensity(positions=4, modes=12)
    start = flock.Density.from_law(on, flock.laws.uniform())
    return flock.kinetic.correlations(
        flock.KineticFlow(1.0, 1.0), start, lambda x: x[:, 0], 0.5, [0.05, 0.1], **LOOSE
    )


@pytest.mark.parametrize("kind", ["overview", "series", "density"])
def test_correlations_draw_their_density_and_what_is_watched(correlated, kind):
    figure = correlated.plot(kind)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert ("tail" in labels) == (kind != "density")
    figure.canvas.draw()
    plt.close(figure)


def test_what_is_computed_from_states_says_that_there_are_none():
    x0 = flock.uniform(flock.Sphere(3), 4, seed=0, samples=2)
    law = flock.random_depth.HeadLaw.gaussian(3, 1.0)
    runs = [
        doubled([flock.energy], states=False),
        flock.solve(flock.SA(1.0), x0, t1=0.5, save=flock.Save(every=0.5), **LOOSE),
        flock.ensemble(flock.SA(jnp.array([1.0, 2.0])), x0, 0.5, every=0.5, rtol=1e-4, atol=1e-5),
        flock.random_depth.random_chains(law, x0, 2, 0.1),
    ]
    for run in runs:
        with pytest.raises(InputError, match=r"did not keep its states.*save=Save\(states=True\)"):
            run.observe(flock.energy)
