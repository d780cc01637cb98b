"""Runs of every discretisation are drawn, stored and opened again."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import tokenflock as flock
from tokenflock.density import Discretisation
from tokenflock.errors import InputError
from tokenflock.serialise import describe, rebuild

STARTS = {
    "fourier": lambda: flock.Density.from_law(flock.meanfield.Fourier(12), flock.laws.cosine(0.3)),
    "quantiles": lambda: flock.Density.from_law(
        flock.meanfield.Quantiles(30), flock.laws.cosine(0.3)
    ),
    "zonal": lambda: flock.Density.from_law(
        flock.meanfield.Zonal(5, 12), flock.laws.von_mises(0.5)
    ),
    "harmonics": lambda: flock.Density.from_law(
        flock.meanfield.Harmonics(12), flock.laws.von_mises(0.5, [0.0, 1.0, 1.0])
    ),
    "moments": lambda: flock.meanfield.gaussian_density([1.0, 0.0], [[1.0, 0.3], [0.3, 0.5]]),
}


def small_run(name):
    model = flock.SA(0.5, flock.Weights(V=-1.0)) if name == "moments" else flock.SA(0.5)
    save = flock.Save(every=0.1, states=True)
    return flock.solve(model, STARTS[name](), 0.2, rtol=1e-5, atol=1e-7, save=save)


# The others are drawn and stored by the same code.
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ("zonal", "harmonics", "quantiles")))
        for name in STARTS
    ],
)
def test_every_density_is_drawn_stored_and_opened(name, tmp_path):
    run = small_run(name)
    for kind in ("overview", "density", "series"):
        figure = run.plot(kind)
        assert figure.axes
        plt.close(figure)
    with pytest.raises(InputError, match="drawn as one of overview, density, series"):
        run.plot("gram")
    run.save(tmp_path / "run.zarr")
    again = flock.open(tmp_path / "run.zarr")
    assert again.is_density
    assert again.final.on == run.final.on
    assert np.array_equal(np.asarray(again.final.state), np.asarray(run.final.state))
    figure = again.plot()
    plt.close(figure)


def test_every_discretisation_can_be_rebuilt_from_a_store():
    known = [make().on for make in STARTS.values()] + [
        flock.kinetic.LayeredDensity(positions=8, modes=4)
    ]
    assert {kind.__name__ for kind in Discretisation.__subclasses__()} == {
        type(on).__name__ for on in known
    }
    for on in known:
        assert rebuild(describe(on)) == on


def test_the_picture_of_a_density_shows_its_last_values():
    run = small_run("fourier")
    figure = run.plot("density", at=[0.2])
    (line,) = figure.axes[0].lines
    assert np.max(line.get_ydata()) == pytest.approx(float(np.max(run.densities[-1])), rel=1e-12)
    plt.close(figure)


def test_tokens_have_no_densities():
    tokens = flock.uniform(flock.Sphere(2), 4, seed=0)
    run = flock.solve(flock.SA(1.0), tokens, 0.1, rtol=1e-4, atol=1e-6)
    assert not run.is_density
    with pytest.raises(InputError, match="moved tokens, which have no density"):
        _ = run.densities
