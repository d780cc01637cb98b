"""The page with the engine behind it: exact runs stream in, stored results are shown."""

import sys
from pathlib import Path

import numpy as np
import pytest
from pages import control, open_page, pause, restart_with, store, tokens, until
from serving import serving

import tokenflock as flock
from tokenflock.web.bundle import BUNDLE

sys.path.append(str(Path(__file__).parent.parent / "tracing"))
pytestmark = [
    pytest.mark.xdist_group("browser-engine"),
    pytest.mark.skipif(not BUNDLE.exists(), reason="the page is not built: make test builds it"),
]
SPEC = {
    "title": "test",
    "says": "",
    "model": {"name": "SA", "beta": 4.0},
    "tokens": {"law": "uniform", "d": 3, "n": 16, "seed": 2},
    "solve": {"t1": 3.0, "method": "fixed", "dt": 0.01, "seed": 0},
}
WORDS = ["the", "quick", "brown", "fox"]
LONG = {
    **SPEC,
    "tokens": {"law": "uniform", "d": 3, "n": 512, "seed": 2},
    "solve": {"t1": 2000.0, "method": "layers", "step": 0.02, "seed": 0},
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder with a run, a trace and a sweep."""
    folder = tmp_path_factory.mktemp("library")
    start = flock.uniform(flock.Sphere(3), n=12, seed=1)
    options = {"t1": 2.0, "rtol": 1e-8, "atol": 1e-10}
    save = flock.Save(every=0.25, observe=[flock.energy], states=True)
    flock.solve(flock.SA(3.0), start, save=save, **options).save(folder / "a-run.zarr")
    many = flock.uniform(flock.Sphere(2), n=8, seed=1, samples=4)
    betas = flock.SA(np.array([0.5, 1.0, 2.0, 4.0]))
    _trace().save(folder / "a-trace.zarr")
    diagram = flock.ensemble(betas, many, 2.0, every=0.5, method=flock.Layers(0.1))
    diagram.save(folder / "a-sweep.zarr")
    return folder


def _trace():
    """A tiny BERT that reads four words."""
    pytest.importorskip("transformers")
    from real_parts import tiny_bert

    from tokenflock.tracing.tokenise import Words

    return flock.trace(tiny_bert(), words=[Words([5, 17, 40, 3], WORDS, " ".join(WORDS))])


@pytest.fixture(scope="module")
def server(library):
    with serving(folders=[library]) as served:
        yield served


@pytest.fixture
def page(tab, server):
    open_page(tab, server.url)
    pause(tab)
    return tab


def test_the_exact_run_streams_in_and_both_agree(page):
    restart_with(page, SPEC)
    control(page, "compute-exactly").click()
    until(page, "store.exact.value && store.exact.value.status === 'done'", seconds=60)
    times = store(page, "store.exact.value.frames.map(frame => frame.time)")
    assert times[0] == 0
    assert times[-1] == pytest.approx(3.0)
    assert len(times) > 20
    start = flock.uniform(flock.Sphere(3), n=16, seed=2)
    run = flock.solve(flock.SA(4.0), start, t1=3.0, rtol=1e-8, atol=1e-10)
    last = store(page, "Array.from(store.exact.value.frames.at(-1).points)")
    np.testing.assert_allclose(np.reshape(last, (16, 3)), run.final.points, atol=1e-7)
    store(page, "(store.speed.value = 50, store.playFromHere(), 1)")
    until(page, "!store.playing.value && store.frame.value.time > 2.99")
    np.testing.assert_allclose(tokens(page), run.final.points, atol=1e-5)
    assert store(page, "store.exactFrame.value !== null")
    assert "differ" in page.get_by_test_id("difference").inner_text()


@pytest.mark.slow
def test_an_exact_run_is_cancelled_and_its_worker_freed(page, server):
    restart_with(page, LONG)
    control(page, "compute-exactly").click()
    until(page, "store.exact.value && store.exact.value.status === 'running'", seconds=60)
    control(page, "cancel-exact").click()
    until(page, "store.exact.value.status === 'cancelled'")
    restart_with(page, SPEC)
    control(page, "compute-exactly").click()
    until(page, "store.exact.value && store.exact.value.status === 'done'", seconds=60)


def opened(page, title):
    control(page, "library").click()
    page.get_by_role("button", name=title).first.click()


def test_a_stored_run_is_replayed(page, library):
    opened(page, "a-run")
    until(page, "store.source.value.kind === 'replay'")
    run = flock.open(library / "a-run.zarr")
    assert store(page, "store.length.value") == 9
    pause(page)
    store(page, "(store.show(8), 1)")
    np.testing.assert_allclose(tokens(page), run.states[-1], atol=1e-6)
    control(page, "back-to-live").click()
    assert store(page, "store.source.value.kind") == "live"


def test_a_cell_of_a_sweep_is_watched(page):
    opened(page, "a-sweep")
    page.get_by_test_id("sweep-map").wait_for()
    page.get_by_test_id("sweep-map").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_by_test_id("sweep-cell").inner_text() != ""
    page.keyboard.press("Enter")
    until(page, "store.spec.value.tokens.law === 'points'")
    beta, end = store(page, "[store.spec.value.model.beta, store.spec.value.solve.t1]")
    assert beta in (0.5, 1.0, 2.0, 4.0)
    assert end in (0.5, 1.0, 1.5, 2.0)
    start = flock.uniform(flock.Sphere(2), n=8, seed=1, samples=4)
    store(page, "(store.playing.value = false, store.show(0), 1)")
    np.testing.assert_allclose(tokens(page), start.points[0], atol=1e-12)


def test_a_trace_shows_words_and_layers(page, library):
    opened(page, "a-trace")
    until(page, "store.source.value.kind === 'replay'")
    pause(page)
    assert store(page, "store.labels.value") == WORDS
    assert store(page, "store.length.value") == 4, "the embedding and three layers"
    assert store(page, "store.d.value") == 3
    control(page, "scrubber").fill("2")
    assert "layer 2" in control(page, "time").inner_text().lower()
    assert "principal axes" in store(page, "store.source.value.replay.projection")
