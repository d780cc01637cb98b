"""Take the pictures of docs/play.md: the page in its main states, in the browser of the tests.

Usage: make test (once, for the browser and the page), then python docs/build_page.py
"""

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import tokenflock as flock

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images" / "page"
sys.path += [str(ROOT / "tests" / "web"), str(ROOT / "tests" / "tracing")]

from conftest import FLAGS, UNPACKED, environment  # noqa: E402
from pages import control, open_page, pause, store, until  # noqa: E402
from real_parts import minilm_folder  # noqa: E402
from serving import serving  # noqa: E402

Act = Callable[[Any], None]
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
COLOURS = 256
TEXT = "The river bank was muddy, so she went to the bank in town to pay in her savings."


def main() -> None:
    """All pictures, one after the other."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        library = Path(folder)
        fill(library)
        browser = driver.chromium.launch(
            executable_path=str(UNPACKED / "chromium"), args=FLAGS, env=environment()
        )
        with serving(folders=[library]) as server:
            for name, (options, act) in PICTURES.items():
                take(browser, server.url, name, options, act)
        browser.close()


def fill(library: Path) -> None:
    """A trace of a real model and a phase diagram."""
    flock.trace(minilm_folder(), TEXT).save(library / "MiniLM reads two banks.zarr")
    x0 = flock.uniform(flock.Sphere(2), n=32, seed=1, samples=64)
    betas = flock.SA(np.geomspace(0.5, 16.0, 40))
    diagram = flock.ensemble(betas, x0, 12.0, every=0.3, method=flock.Layers(0.1))
    diagram.save(library / "phase diagram on the circle.zarr")


def take(browser: Any, url: str, name: str, options: dict[str, Any], act: Act) -> None:
    """One state of the page as a PNG."""
    page = browser.new_page(**options)
    open_page(page, url)
    act(page)
    page.wait_for_timeout(700)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.close()
    # Smaller, and with the few pixels of every token in their own colour, which the median cut loses.
    small = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(IMAGES / f"{name}.png", optimize=True)


def preset(name: str, until_time: float) -> Act:
    """A preset at a time."""

    def act(page: Any) -> None:
        control(page, "preset").select_option(name)
        until(page, f"store.preset.value === '{name}'")
        until(page, f"store.frame.value.time >= {until_time} || !store.playing.value", seconds=120)
        pause(page)

    return act


def exact(page: Any) -> None:
    """The live run and the engine's, one over the other."""
    preset("sphere", 0)(page)
    control(page, "compute-exactly").click()
    until(page, "store.exact.value && store.exact.value.status === 'done'", seconds=120)
    store(page, "(store.playFromHere(), 1)")
    until(page, "store.frame.value.time >= 2", seconds=120)
    pause(page)


def opened(title: str, then: Act = lambda page: None) -> Act:
    """Something from the library."""

    def act(page: Any) -> None:
        control(page, "library").click()
        page.get_by_role("button", name=title).first.click()
        until(page, "store.source.value.kind === 'replay' || store.sweep.value", seconds=60)
        pause(page)
        then(page)

    return act


def tour(page: Any) -> None:
    """The third step of the tour."""
    control(page, "tour").click()
    for _ in range(2):
        control(page, "tour-next").click()
    control(page, "play").click()
    page.wait_for_timeout(4000)
    pause(page)


def layer_four(page: Any) -> None:
    """After four of six layers, with one word chosen."""
    store(page, "(store.show(4), store.selected.value = 3, 1)")


PICTURES = {
    "sphere": ({"viewport": DESKTOP}, preset("sphere", 3)),
    "metastability": ({"viewport": DESKTOP}, preset("metastability", 40)),
    "causal": ({"viewport": DESKTOP, "color_scheme": "dark"}, preset("causal", 6)),
    "exact": ({"viewport": DESKTOP}, exact),
    "trace": ({"viewport": DESKTOP}, opened("MiniLM", layer_four)),
    "sweep": ({"viewport": DESKTOP}, opened("phase diagram")),
    "tour": ({"viewport": DESKTOP}, tour),
    "phone": ({"viewport": PHONE, "color_scheme": "dark"}, preset("leader", 3)),
}

if __name__ == "__main__":
    main()
