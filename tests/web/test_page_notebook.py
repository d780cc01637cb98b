"""A run in a notebook, in a browser without a network."""

import pytest
from test_replay import made, on_sphere

from tokenflock.web.bundle import BUNDLE

pytestmark = [
    pytest.mark.xdist_group("browser-engine"),
    pytest.mark.skipif(not BUNDLE.exists(), reason="the page is not built: make test builds it"),
]


@pytest.mark.parametrize("width", [700, 1000, 1400])
def test_a_notebook_shows_the_whole_page_without_a_network(tab, width):
    """The frame becomes as high as its page: no chart is cut, and nothing scrolls inside."""
    tab.context.set_offline(True)
    tab.set_viewport_size({"width": width, "height": 640})
    tab.set_content(made(on_sphere(4, 5, 3)).view()._repr_html_())
    frame = tab.frame_locator("iframe")
    frame.locator("[data-testid=scene] canvas").first.wait_for()
    tab.wait_for_function("() => document.querySelector('iframe').style.height !== '1100px'")
    inside = tab.frames[1].evaluate(
        """() => {
          const cards = [...document.querySelectorAll(".tfc-card")];
          const charts = document.querySelector(".tf-charts");
          return {
            seen: innerHeight,
            all: document.documentElement.scrollHeight,
            cards: cards.map((card) => card.getBoundingClientRect().bottom),
            hidden: charts.scrollHeight - charts.clientHeight,
          };
        }"""
    )
    assert inside["all"] <= inside["seen"]
    assert len(inside["cards"]) >= 4
    assert max(inside["cards"]) < inside["seen"]
    assert inside["hidden"] <= 1


def test_a_notebook_view_keeps_a_height_that_was_asked_for(tab):
    tab.set_content(made(on_sphere(4, 5, 3)).view(height=480)._repr_html_())
    tab.frame_locator("iframe").locator("[data-testid=scene] canvas").first.wait_for()
    assert tab.locator("iframe").bounding_box()["height"] == pytest.approx(480)
    assert tab.frames[1].evaluate("() => document.documentElement.scrollHeight") == 480
