"""A run in a notebook: one frame with the whole page inside, and sentences where something is missing."""

import html
import json
import re

import numpy as np
import pytest
from packed import unpack
from serving import STAND_IN, stand_in_bundle
from test_replay import made, on_sphere

from tokenflock.errors import InputError
from tokenflock.web.notebook import FIRST_HEIGHT

FRAME = re.compile(
    r'<iframe title="tokenflock" srcdoc="([^"<]*)" [^<>]*height: (\d+)px[^<>]*></iframe>'
)


@pytest.fixture(autouse=True)
def built(tmp_path):
    with stand_in_bundle(tmp_path) as path:
        yield path


def parts(view):
    """The page inside the frame, its options, and the height of the frame."""
    found = FRAME.fullmatch(view._repr_html_())
    assert found is not None
    page = html.unescape(found[1])
    data = re.search(
        r'<script id="tokenflock-options" type="application/json">(.*?)</script>', page
    )
    assert data is not None
    return page, json.loads(data[1]), int(found[2])


def test_the_output_holds_the_page_and_the_run():
    states = on_sphere(3, 5, 3)
    page, options, height = parts(made(states).view(height=500))
    assert STAND_IN in page
    assert (options["mode"], options["whole"], height) == ("notebook", False, 500)
    (replay,) = options["replays"]
    np.testing.assert_allclose(unpack(replay["points"]), states, atol=1e-6)


def test_without_a_height_it_is_as_high_as_what_is_in_it():
    _, options, height = parts(made(on_sphere(2, 3, 2)).view())
    assert (options["whole"], height) == (True, FIRST_HEIGHT)


def test_it_needs_nothing_from_elsewhere():
    """No address that a browser would fetch: an exported notebook works without a network."""
    page, _, _ = parts(made(on_sphere(2, 3, 2)).view())
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", page.replace(STAND_IN, ""))


def test_outside_a_notebook_it_says_what_it_is():
    assert "view of a run of SA" in repr(made(on_sphere(2, 3, 2)).view())


@pytest.mark.parametrize("height", [10, 10**6, "tall", True, 500.5])
def test_a_height_that_is_none_is_a_sentence(height):
    with pytest.raises(InputError, match="pixels"):
        made(on_sphere(2, 3, 2)).view(height=height)


def test_without_the_bundle_it_says_how_to_build_it(monkeypatch, tmp_path):
    monkeypatch.setenv("TOKENFLOCK_BUNDLE", str(tmp_path / "nothing.js"))
    with pytest.raises(InputError, match="make page"):
        made(on_sphere(2, 3, 2)).view()
