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


def test_a_film_opens_with_all_its_frames(page):
    download = saved(page, "export-video", seconds=120)
    assert download.suggested_filename.endswith((".mp4", ".webm"))
    frames = imageio_ffmpeg.read_frames(str(download.path()))
    width, height = next(frames)["size"]
    pictures = [np.frombuffer(f, np.uint8).reshape(height, width, 3) for f in frames]
    assert len(pictures) >= store(page, "store.length.value") - 1
    assert np.abs(pictures[0].astype(int) - pictures[-1]).max() > 40, "the tokens move in it"


def test_the_spec_runs_in_the_engine(page, tmp_path):
    put(page, "beta", 6)
    control(page, "values").select_option("random")
    control(page, "perceptron").check()
    put(page, "n", 24)
    download = saved(page, "export-toml")
    with open(download.path(), encoding="utf-8") as file:
        text = file.read()
    job = Job(parse(text, source="the page"))
    np.testing.assert_allclose(job.tokens.points, store_start(page), atol=1e-13)
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
