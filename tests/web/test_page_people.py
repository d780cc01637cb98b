"""The page for everybody: without a mouse, on a phone, in the dark, and on the tour."""

import pytest
from pages import BROWSER, advance, control, open_page, pause, store, until

pytestmark = pytest.mark.xdist_group("browser-people")
AXE = BROWSER / "node_modules" / "axe-core" / "axe.min.js"
# Rules of WCAG 2.2 A and AA.
RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(params=["light", "dark"])
def page(browser, static_page, request):
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme=request.param
    )
    page = context.new_page()
    open_page(page, static_page.as_uri())
    pause(page)
    yield page
    context.close()


def violations(page):
    if not page.evaluate("() => 'axe' in window"):
        page.add_script_tag(path=str(AXE))
    found = page.evaluate("rules => axe.run(document, rules)", RULES)
    return [
        (v["id"], v["help"], [node["target"] for node in v["nodes"]][:4])
        for v in found["violations"]
    ]


def test_axe_finds_no_violation(page):
    assert violations(page) == []
    control(page, "tour").click()
    page.get_by_test_id("tour-card").wait_for()
    assert violations(page) == []


def test_axe_finds_no_violation_in_menus_and_on_a_phone(page):
    for name in ("export", "library"):
        control(page, name).click()
        assert violations(page) == [], name
        page.keyboard.press("Escape")
    page.set_viewport_size(PHONE)
    assert violations(page) == []


@pytest.mark.parametrize("size", [(390, 844), (844, 390), (768, 1024), (1280, 800), (1920, 1080)])
def test_nothing_sticks_out_sideways(browser, static_page, size):
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    open_page(page, static_page.as_uri())
    wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    scene = page.get_by_test_id("scene").bounding_box()
    assert min(scene["width"], scene["height"]) >= 200
    page.close()


def test_the_keyboard_reaches_and_does_everything(tab, static_page):
    open_page(tab, static_page.as_uri())
    pause(tab)
    tab.locator("body").press("Space")
    until(tab, "store.playing.value")
    tab.keyboard.press("Space")
    assert not store(tab, "store.playing.value")
    length = store(tab, "store.length.value")
    tab.keyboard.press(".")
    assert store(tab, "store.length.value") == length + 1
    tab.keyboard.press(",")
    assert store(tab, "store.position.value") == length - 1
    tab.keyboard.press("?")
    tab.get_by_test_id("help-dialog").wait_for()
    tab.keyboard.press("Escape")
    reached = set()
    for _ in range(60):
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("() => document.activeElement.dataset.testid ?? ''"))
    needed = {
        "preset",
        "tour",
        "link",
        "export",
        "library",
        "theme",
        "model",
        "beta",
        "n",
        "play",
        "scrubber",
    }
    assert needed <= reached, needed - reached


def at_step(tab, number):
    """Wait for a step of the tour: once its scene is set, it takes the focus to its heading."""
    tab.wait_for_function(
        "n => document.activeElement.matches('[data-testid=tour-card] h2') &&"
        " document.activeElement.innerText.startsWith(`${n} of 5`)",
        arg=number,
    )


def test_the_tour_can_be_finished_without_a_mouse(tab, static_page):
    open_page(tab, static_page.as_uri())
    control(tab, "tour").focus()
    tab.keyboard.press("Enter")
    texts = []
    for step in range(1, 6):
        at_step(tab, step)
        texts.append(tab.get_by_test_id("tour-card").inner_text())
        control(tab, "tour-next").focus()
        tab.keyboard.press("Enter")
    assert len(set(texts)) == 5
    tab.get_by_test_id("tour-card").wait_for(state="detached")
    words = " ".join(texts).lower()
    for word in ("token", "beta", "metastab", "causal", "perceptron"):
        assert word in words or (word == "beta" and "β" in words), word


def test_a_step_of_the_tour_is_not_done_by_the_one_before(tab, static_page):
    open_page(tab, static_page.as_uri())
    control(tab, "tour").click()
    at_step(tab, 1)
    control(tab, "tour-next").click()
    at_step(tab, 2)
    advance(tab, 200)
    assert store(tab, "store.measured.value.clusters") == 1
    assert control(tab, "tour-action").get_attribute("data-done") == "false"
    control(tab, "tour-next").click()
    at_step(tab, 3)
    assert store(tab, "store.preset.value") == "metastability"
    assert control(tab, "tour-action").get_attribute("data-done") == "false"


def test_the_causal_step_of_the_tour_can_be_done_without_a_mouse(tab, static_page):
    open_page(tab, static_page.as_uri())
    control(tab, "tour").click()
    for step in range(1, 4):
        at_step(tab, step)
        control(tab, "tour-next").click()
    at_step(tab, 4)
    action = tab.get_by_test_id("tour-action")
    assert action.get_attribute("data-done") == "false"
    tab.get_by_test_id("scene").focus()
    tab.keyboard.press("]")
    before = store(tab, "Array.from(store.frame.value.points)")
    tab.keyboard.press("Shift+ArrowUp")
    after = store(tab, "Array.from(store.frame.value.points)")
    d = store(tab, "store.d.value")
    assert after[:d] != before[:d]
    assert after[d:] == before[d:]
    assert sum(x * x for x in after[:d]) == pytest.approx(1)
    until(tab, "document.querySelector('[data-testid=tour-action]').dataset.done === 'true'")


def test_escape_leaves_the_tour(tab, static_page):
    open_page(tab, static_page.as_uri())
    control(tab, "tour").click()
    tab.get_by_test_id("tour-card").wait_for()
    tab.keyboard.press("Escape")
    tab.get_by_test_id("tour-card").wait_for(state="detached")
