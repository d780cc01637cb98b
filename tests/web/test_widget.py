"""The notebook widget: the page's own module and options, and sentences where something is missing."""

import json
import sys

import numpy as np
import pytest
from packed import unpack
from serving import STAND_IN, stand_in_bundle
from test_replay import made, on_sphere

from tokenflock.errors import InputError

RNG = np.random.default_rng(4)


@pytest.fixture(autouse=True)
def built(tmp_path):
    with stand_in_bundle(tmp_path) as path:
        yield path


def test_a_run_is_its_own_widget():
    anywidget = pytest.importorskip("anywidget")
    states = on_sphere(3, 5, 3)
    widget = made(states).view(height=500)
    assert isinstance(widget, anywidget.AnyWidget)
    sent = widget.get_state()
    assert sent["height"] == 500
    assert sent["_esm"] == STAND_IN
    assert sent["options"]["mode"] == "widget"
    (replay,) = json.loads(json.dumps(sent["options"], allow_nan=False))["replays"]
    np.testing.assert_allclose(unpack(replay["points"]), states, atol=1e-6)


def test_two_widgets_have_their_own_runs():
    pytest.importorskip("anywidget")
    first, second = made(on_sphere(2, 3, 2)).view(), made(on_sphere(2, 7, 2)).view()
    shapes = [w.options["replays"][0]["points"]["shape"] for w in (first, second)]
    assert shapes == [[2, 3, 2], [2, 7, 2]]
    assert first.model_id != second.model_id


@pytest.mark.parametrize("height", [10, 10**6, "tall", True, 500.5])
def test_a_height_that_is_none_is_a_sentence(height):
    with pytest.raises(InputError, match="pixels"):
        made(on_sphere(2, 3, 2)).view(height=height)


def test_without_anywidget_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(InputError, match=r"pip install 'tokenflock\[web\]'"):
        made(on_sphere(2, 3, 2)).view()


def test_without_the_bundle_it_says_how_to_build_it(monkeypatch, tmp_path):
    pytest.importorskip("anywidget")
    monkeypatch.setenv("TOKENFLOCK_BUNDLE", str(tmp_path / "nothing.js"))
    with pytest.raises(InputError, match="make page"):
        made(on_sphere(2, 3, 2)).view()
