"""Figures and animations: every kind and space draws, shows what it should, and needs no TeX."""

import functools
import subprocess

import imageio_ffmpeg
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import tokenflock as flock
from tokenflock.trajectory import Trajectory

# The runs that are drawn are made once.
pytestmark = pytest.mark.xdist_group("plot")

SAVE = flock.Save(every=0.5, states=True, observe=[flock.energy, flock.clusters(angle=0.1)])
OPTIONS = {"t1": 2.0, "rtol": 1e-6, "atol": 1e-8, "save": SAVE}


@pytest.fixture(scope="module")
def sphere():
    return flock.solve(flock.SA(4.0), flock.uniform(flock.Sphere(3), 12, seed=0), **OPTIONS)


@functools.cache
def drawn(name):
    if name in ("circle", "high"):
        space = flock.Sphere({"circle": 2, "high": 5}[name])
        return flock.solve(flock.SA(4.0), flock.uniform(space, 12, seed=0), **OPTIONS)
    if name == "plane":
        save = flock.Save(every=0.5, states=True, observe=[flock.clusters(distance=0.1)])
        box = flock.starts.box(flock.Euclidean(2), 8, seed=0, half_width=1.0)
        return flock.solve(flock.RescaledSA(1.0), box, **{**OPTIONS, "save": save})
    tokens = flock.uniform(flock.Sphere(3), 6, seed=0, samples=2)
    return flock.solve(flock.SA(np.array([1.0, 4.0])), tokens, **OPTIONS)


# The circle is drawn in every example, and five dimensions as three.
@pytest.mark.parametrize(
    "name",
    [
        "sphere",
        "plane",
        "batch",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("circle", "high")),
    ],
)
@pytest.mark.parametrize("kind", ["overview", "tokens", "series", "gram"])
def test_every_kind_draws_every_space(sphere, name, kind):
    run = sphere if name == "sphere" else drawn(name)
    figure = run.plot(kind, **({"sample": (1, 0)} if name == "batch" else {}))
    assert figure.axes
    figure.canvas.draw()
    plt.close(figure)


def test_series_show_the_data(sphere):
    figure = sphere.plot("series", names=["energy"])
    line = figure.axes[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), sphere.array("energy"))
    np.testing.assert_allclose(line.get_xdata(), sphere.time)
    assert "energy" in figure.axes[0].get_ylabel()
    plt.close(figure)


def test_cluster_axis_says_its_angle(sphere):
    figure = sphere.plot("overview")
    assert any("angle 0.1" in axes.get_ylabel() for axes in figure.axes)
    plt.close(figure)


def test_the_attention_of_a_head_names_it(sphere):
    figure = sphere.plot("attention", head=0)
    assert "head" not in figure.axes[0].get_title()  # there is only one
    plt.close(figure)
    with pytest.raises(flock.errors.InputError, match="head is an index from 0 to 0, got 1"):
        sphere.plot("attention", head=1)


def test_attention_matrix_is_the_models(sphere):
    figure = sphere.plot("attention", time=0.0)
    picture = np.asarray(figure.axes[0].images[0].get_array())
    np.testing.assert_allclose(picture.sum(axis=1), 1.0)
    expected = flock.SA(4.0).attentions()[0].matrix(0.0, sphere.initial)[0]
    np.testing.assert_allclose(picture, expected)
    plt.close(figure)


def test_runs_without_states_show_their_ends(sphere):
    kept = {name: values for name, values in sphere.arrays.items() if name != "states"}
    light = Trajectory(kept, sphere.axes, sphere.coords, sphere.attributes, sphere.details)
    figure = light.plot("tokens")
    assert len(figure.axes) == 2
    plt.close(figure)
    with pytest.raises(flock.errors.InputError, match="saved states"):
        light.animate("nowhere.gif")


def test_of_many_tokens_some_are_shown():
    """All pairs of a hundred thousand tokens would be 80 GB."""
    start = flock.uniform(flock.Sphere(2), 100_000, seed=0)
    run = flock.solve(
        flock.KineticFlow(1.0, 1.0),
        start,
        0.1,
        method=flock.Layers(0.1),
        reduction=flock.Spectral(1e-6),
        save=flock.Save(observe=[flock.order_parameter]),
    )
    figure = run.plot()
    assert "(2000 shown)" in figure.get_suptitle()


def test_wrong_requests_get_a_sentence(sphere, tmp_path):
    with pytest.raises(flock.errors.InputError, match="kind must be one of"):
        sphere.plot("pie")
    with pytest.raises(flock.errors.InputError, match=r"ends in \.mp4 or \.gif"):
        sphere.animate(tmp_path / "film.avi")
    with pytest.raises(flock.errors.StoreError, match="cannot write"):
        sphere.animate(tmp_path / "missing" / "film.gif")
    assert list(tmp_path.iterdir()) == []


def test_gif_has_a_frame_per_saved_time(sphere, tmp_path):
    path = sphere.animate(tmp_path / "film.gif")
    with Image.open(path) as film:
        assert film.n_frames == len(sphere.time)
        first = np.asarray(film.convert("RGB"))
        film.seek(film.n_frames - 1)
        assert np.any(first != np.asarray(film.convert("RGB")))


def test_mp4_decodes(sphere, tmp_path):
    path = sphere.animate(tmp_path / "film.mp4", rate=5)
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(path), "-f", "null", "-"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    frames = imageio_ffmpeg.read_frames(str(path))
    width, height = next(frames)["size"]
    for frame in frames:
        picture = np.frombuffer(frame, np.uint8).reshape(height, width, 3)[: height // 2]
        # Colours above the curve of clusters are tokens.
        assert np.sum(np.ptp(picture.astype(int), axis=-1) > 60) > 20
