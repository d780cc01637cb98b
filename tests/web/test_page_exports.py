"""What leaves the page: pictures, films, specs and replays are files that other programs open."""

import io
import json
import subprocess
import sys

import imageio_ffmpeg
import numpy as np
import pytest
from pages import advance, control, open_page, pause, put, store, tokens, until
from PIL import Image

from tokenflock.lab.files import parse
from tokenflock.lab.job import Job

pytestmark = pytest.mark.xdist_group("browser-exports")


@pytest.fixture
def page(tab, static_page):
    # Films are encoded only where the page is trusted, which a file on disk is.
    open_page(tab, static_page.as_uri())
    pause(tab)
    advance(tab, 30)
    return tab


def saved(page, name, seconds=60):
    """The file that an entry of the export menu gives."""
    with page.expect_download(timeout=1000 * seconds) as download:
        control(page, "export").click()
        control(page, name).click()
    return download.value


def test_a_picture_opens(page):
    download = saved(page, "export-png")
    assert download.suggested_filename.endswith(".png")
    with open(download.path(), "rb") as file:
        picture = Image.open(io.BytesIO(file.read()))
    picture.load()
    assert min(picture.size) >= 400
    assert len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)) > 50, (
        "not blank"
    )


def pictures_of(film):
    frames = imageio_ffmpeg.read_frames(str(film.path()))
    width, height = next(frames)["size"]
    return [np.frombuffer(f, np.uint8).reshape(height, width, 3) for f in frames]


STATE = """[store.position.value, store.length.value, store.n.value, store.frame.value.time,
    store.colouring.value, store.speed.value]"""


def begin_film(page):
    control(page, "export").click()
    control(page, "export-video").click()
    until(page, "store.locked.value")


def test_a_film_has_all_its_frames_whatever_is_pressed_meanwhile(page):
    store(page, "(store.show(12), 1)")
    before = store(page, STATE)
    with page.expect_download(timeout=60_000) as film:
        begin_film(page)
        # By the mouse, which finds nothing to press, and past that.
        box = control(page, "play").bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert store(page, "[store.locked.value, store.message.value]") == [True, None]
        for name in ("play", "restart", "step"):
            control(page, name).dispatch_event("click")
        control(page, "n").evaluate("(n) => { n.value = 9; n.dispatchEvent(new Event('change')); }")
        page.keyboard.press("Space")
        page.keyboard.press("r")
        page.evaluate("location.hash = '#preset=leader'")
        assert store(page, "store.locked.value"), "this ran before the film was done"
        assert "video is being made" in control(page, "message").inner_text()
    assert film.value.suggested_filename.endswith((".mp4", ".webm"))
    pictures = pictures_of(film.value)
    assert len(pictures) == before[1]
    assert np.abs(pictures[0].astype(int) - pictures[-1]).max() > 40, "the tokens move in it"
    until(page, "!store.locked.value && store.busy.value === null")
    assert store(page, STATE) == before


def test_a_cancelled_film_leaves_all_as_it_was(page):
    store(page, "(store.playing.value = true, 1)")
    until(page, "store.length.value > 60")
    begin_film(page)
    length = store(page, "store.length.value")
    page.get_by_role("button", name="Cancel").click()
    until(page, "!store.locked.value && store.busy.value === null && store.playing.value")
    until(page, f"store.length.value > {length}")


def test_a_spec_that_would_give_another_run_is_refused(page):
    """The force of this preset depends on time: no run begins from its tokens at t > 0."""
    control(page, "preset").select_option("polytope")
    pause(page)
    control(page, "export").click()
    assert control(page, "export-toml").is_enabled()
    page.keyboard.press("Escape")
    advance(page, 5)
    put(page, "beta", 0.9)
    control(page, "export").click()
    assert control(page, "export-toml").is_disabled()
    assert "depends on the time" in control(page, "export-toml").inner_text()


def test_escape_closes_what_lies_on_top(page):
    page.set_viewport_size({"width": 390, "height": 800})
    control(page, "tour").click()
    control(page, "settings").click()
    page.keyboard.press("Escape")
    assert control(page, "settings").get_attribute("aria-expanded") == "false"
    assert control(page, "tour-card").is_visible()
    page.keyboard.press("Escape")
    assert control(page, "tour-card").count() == 0


@pytest.mark.slow
def test_the_spec_runs_in_the_engine(page, tmp_path):
    put(page, "beta", 6)
    control(page, "values").select_option("random")
    control(page, "perceptron").check()
    put(page, "n", 24)
    download = saved(page, "export-toml")
    with open(download.path(), encoding="utf-8") as file:
        text = file.read()
    job = Job(parse(text, source="the page"))
    np.testing.assert_allclose(job.x0.points, store_start(page), atol=1e-13)
    spec = tmp_path / "spec.toml"
    spec.write_text(text)
    command = [
        sys.executable,
        "-m",
        "tokenflock",
        "run",
        str(spec),
        "--out",
        str(tmp_path / "run"),
        *("--set", "t1=2.0", "--set", "figure=false"),
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"]


def store_start(page):
    store(page, "(store.playing.value = false, store.restart(), 1)")
    pause(page)
    store(page, "(store.show(0), 1)")
    return tokens(page)


def test_a_replay_is_opened_again(page):
    expected = tokens(page)
    length = store(page, "store.length.value")
    download = saved(page, "export-json")
    control(page, "preset").select_option(index=3)
    control(page, "library").click()
    control(page, "open-file").set_input_files(
        {"name": "run.json", "mimeType": "application/json", "buffer": _bytes(download)}
    )
    until(page, "store.source.value.kind === 'replay'")
    store(page, f"(store.show({length - 1}), 1)")
    np.testing.assert_allclose(tokens(page), expected, atol=1e-6)
    spec = saved(page, "export-toml")
    with open(spec.path(), encoding="utf-8") as file:
        assert Job(parse(file.read(), source="the page")).x0.n == len(expected)
    assert page.get_by_label("Attention matrix of").is_visible()
    store(page, "(store.selected.value = 0, store.colouring.value = 'attention', 1)")
    page.wait_for_function(
        "document.querySelector('[data-testid=scene-legend]').innerText.includes('attention of')"
    )
    control(page, "back-to-live").click()
    assert store(page, "store.source.value.kind") == "live"


def test_a_file_that_is_no_replay_gives_a_sentence(page):
    for content in (b"not json", b"{}", b'{"kind": "run", "points": {"shape": [1e9]}}'):
        store(page, "(store.message.value = null, 1)")
        control(page, "library").click()
        control(page, "open-file").set_input_files(
            {"name": "bad.json", "mimeType": "application/json", "buffer": content}
        )
        until(page, "store.message.value !== null")
        page.keyboard.press("Escape")
    assert store(page, "store.source.value.kind") == "live"


def _bytes(download):
    with open(download.path(), "rb") as file:
        return file.read()
