"""Links in a browser: their past, their view, and the way back."""

import json

import pytest
from pages import advance, control, open_page, pause, store, until

pytestmark = pytest.mark.xdist_group("browser-people")


@pytest.fixture
def page(tab, static_page):
    open_page(tab, static_page.as_uri())
    pause(tab)
    return tab


def link_of(page):
    """The link, which copying also puts into the address."""
    control(page, "link").click()
    page.wait_for_function("() => location.hash.startsWith('#state=')")
    return page.evaluate("() => location.href")


def drawn(page):
    """Wait until the scene has drawn what the store holds."""
    page.evaluate(
        "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
    )


def test_an_opened_link_can_be_scrubbed_and_looks_the_same(page, browser):
    store(page, "(store.restart(), 1)")  # it may have played before it was paused
    advance(page, 120)
    page.get_by_test_id("scene").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "+"):
        page.keyboard.press(key)
    drawn(page)
    # Colours depend on what was seen before: these are not the ones another page would choose.
    store(page, "(store.slots.value = store.measured.value.sizes.map((_, k) => (k + 2) % 7), 1)")
    drawn(page)
    shown = "[store.camera.value, store.slots.value, Array.from(store.frame.value.points)]"
    expected = json.dumps(store(page, shown))
    other = browser.new_page()
    open_page(other, link_of(page))
    until(other, "store.stepsShown.value === 120 && store.busy.value === null")
    drawn(other)
    assert json.dumps(store(other, shown)) == expected
    assert store(other, "store.length.value") > 50
    control(other, "scrubber").focus()
    other.keyboard.press("Home")
    until(other, "store.frame.value.time === 0")
    other.close()


def test_back_returns_to_the_preset_before(page):
    first = store(page, "store.preset.value")
    for name in ("circle", "noise"):
        control(page, "preset").select_option(name)
        assert page.evaluate("() => location.hash") == f"#preset={name}"
    page.go_back()
    until(page, "store.preset.value === 'circle'")
    page.go_back()
    until(page, f"store.preset.value === {first!r}")
    page.go_forward()
    until(page, "store.preset.value === 'circle'")
