"""A real browser (headless Chromium with WebGL2 in software), and pages that may not log an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import BROWSER

UNPACKED = BROWSER / "node_modules" / ".unpacked"
FLAGS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-dev-shm-usage",
]


def environment():
    """The libraries that came with the browser stand behind the machine's own."""
    libraries = [os.environ.get("LD_LIBRARY_PATH", ""), str(UNPACKED / "al2023" / "lib")]
    found = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries))}
    if not Path("/etc/fonts").exists():
        found["FONTCONFIG_PATH"] = str(UNPACKED / "fonts")
    return found


@pytest.fixture(scope="session")
def browser():
    """Chromium; skipped, with the reason, where none can be started."""
    if not (UNPACKED / "chromium").exists():
        pytest.skip("no browser: run `make test`, which installs one from tests/web/browser")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as driver:
        try:
            found = driver.chromium.launch(
                executable_path=str(UNPACKED / "chromium"), args=FLAGS, env=environment()
            )
        except sync_api.Error as error:
            pytest.skip(f"the browser does not start here: {str(error).splitlines()[0]}")
        yield found
        found.close()


@pytest.fixture
def tab(browser):
    """A page that fails the test when it logs an error or throws."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.set_default_timeout(15_000)
    page = context.new_page()
    complaints = []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.complaints = complaints
    yield page
    context.close()
    assert not complaints, complaints


@pytest.fixture(scope="session")
def static_page(tmp_path_factory):
    """index.html as `tokenflock page` writes it."""
    folder = tmp_path_factory.mktemp("site") / "page"
    command = [sys.executable, "-m", "tokenflock", "page", "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder / "index.html"
