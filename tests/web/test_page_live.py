"""The page in a browser: it loads from disk, simulates as the engine does, and obeys the hand."""

import json
import re

import numpy as np
import pytest
from pages import advance, control, open_page, pause, put, restart_with, store, tokens, until

import tokenflock as flock

pytestmark = pytest.mark.xdist_group("browser-live")

SPEC = {
    "title": "test",
    "says": "",
    "model": {"name": "SA", "beta": 9.0},
    "tokens": {"law": "uniform", "d": 3, "n": 48, "seed": 5},
    "solve": {"t1": 12.0, "method": "fixed", "dt": 0.05, "seed": 0},
}


@pytest.fixture
def page(tab, static_page):
    open_page(tab, static_page.as_uri())
    return tab


def test_it_plays_by_itself_from_disk(page):
    until(page, "store.playing.value && store.frame.value.time > 0.1")
    assert "Watch for" in page.get_by_test_id("says").first.inner_text()
    assert page.title().startswith("tokenflock")


@pytest.mark.parametrize("backend", ["js", "webgl2"])
def test_it_reaches_the_engines_clusters_for_the_same_seed(page, backend):
    store(page, f"(store.wantedBackend.value = '{backend}', 1)")
    restart_with(page, SPEC)
    assert store(page, "store.backend.value") == backend
    start = flock.uniform(flock.Sphere(3), n=48, seed=5)
    np.testing.assert_allclose(tokens(page), start.points, atol=1e-14)
    run = flock.solve(
        flock.SA(9.0), start, t1=12.0, rtol=1e-9, atol=1e-11,
        save=flock.Save(every=4.0, observe=[flock.clusters(link="spacing"), flock.energy]),
    )  # fmt: skip
    for expected, energy in zip(run["clusters"].values[1:], run["energy"].values[1:], strict=True):
        advance(page, 80)
        assert store(page, "store.measured.value.clusters") == expected
        assert store(page, "store.measured.value.energy") == pytest.approx(energy, rel=1e-4)
    assert expected < 10, "nothing has clustered: the comparison would say nothing"
    np.testing.assert_allclose(tokens(page), run.final.points, atol=1e-5)


def test_every_preset_plays(page):
    names = page.eval_on_selector_all("[data-testid=preset] option", "all => all.map(o => o.value)")
    papers = page.eval_on_selector_all(
        "[data-testid=preset] optgroup", "all => all.map(o => o.label)"
    )
    for paper in ("2312.10794", "2305.05465", "2410.06833", "2411.04990", "2407.01602",
                  "2510.22026", "2512.01868", "2601.21366", "2509.25040", "2504.14697",
                  "2405.18273"):  # fmt: skip
        assert any(paper in label for label in papers), paper
    for name in filter(None, names):
        control(page, "preset").select_option(name)
        until(page, f"store.preset.value === '{name}' && store.frame.value.time > 0")
        assert store(page, "store.frame.value.points.every(Number.isFinite)"), name
        assert store(page, "store.message.value") is None, name
        assert len(page.get_by_test_id("says").first.inner_text()) > 40, name


def test_settings_move_while_it_runs(page):
    until(page, "store.playing.value && store.frame.value.time > 0")
    put(page, "beta", 3)
    assert store(page, "store.spec.value.model.beta") == 3
    assert store(page, "store.playing.value && store.frame.value.time > 0"), "it went on"
    put(page, "n", 200)
    until(page, "store.n.value === 200 && store.frame.value.points.length === 600")
    control(page, "model").select_option("CausalSA")
    control(page, "values").select_option("minus")
    assert store(page, "store.spec.value.model.name") == "CausalSA"
    assert store(page, "store.spec.value.model.weights.V") == -1
    control(page, "dimension").select_option("2")
    until(page, "store.d.value === 2")
    control(page, "model").select_option("HardmaxFlow")
    until(page, "store.spec.value.model.name === 'HardmaxFlow' && store.frame.value.time > 0")


def test_4096_tokens(page):
    put(page, "n", 4096)
    until(page, "store.n.value === 4096")
    before = store(page, "store.frame.value.time")
    store(page, "(store.playing.value = true, 1)")
    until(page, f"store.frame.value.time > {before}", seconds=60)
    put(page, "n", 5000)
    assert store(page, "store.n.value") == 4096, "4,096 is the most"


def test_pause_step_scrub_and_go_back(page):
    until(page, "store.length.value > 12")
    control(page, "play").click()
    length = store(page, "store.length.value")
    assert not store(page, "store.playing.value")
    control(page, "step").click()
    assert store(page, "store.length.value") == length + 1
    end = store(page, "store.frame.value.time")
    control(page, "scrubber").fill("3")
    assert store(page, "store.position.value") == 3
    assert store(page, "store.frame.value.time") < end
    control(page, "back").click()
    assert store(page, "store.position.value") == 2
    control(page, "play").click()
    until(page, "store.playing.value && store.position.value > 3")
    control(page, "restart").click()
    until(page, "store.frame.value.time < 0.5")


@pytest.mark.parametrize("d", [2, 3])
def test_a_token_is_dragged(page, d):
    centre = [0.0, -1.0] if d == 2 else [0.0, 0.0, 1.0]
    points = [[1.0, *[0.0] * (d - 1)], centre]
    restart_with(page, {
        **SPEC, "tokens": {"law": "points", "space": "sphere", "d": d, "points": points},
    })  # fmt: skip
    page.wait_for_timeout(300)
    box = page.get_by_test_id("scene").locator("canvas").first.bounding_box()
    before = np.array(tokens(page))
    # Look for the first token where it is drawn: the whole picture is searched for a spot that selects it.
    found = _spot_of_token(page, box)
    page.mouse.move(*found)
    page.mouse.down()
    page.mouse.move(found[0] - 30, found[1] - 40, steps=4)
    held = np.array(tokens(page))
    page.mouse.up()
    moved = np.linalg.norm(held - before, axis=1)
    assert np.sum(moved > 0.05) == 1, moved
    np.testing.assert_allclose(np.linalg.norm(held, axis=1), 1.0, atol=1e-9)
    assert store(page, "store.edited.value")


def _spot_of_token(page, box):
    steps = 40
    for row in range(1, steps):
        for column in range(1, steps):
            spot = (
                box["x"] + box["width"] * column / steps,
                box["y"] + box["height"] * row / steps,
            )
            hit = page.evaluate(
                "([x, y]) => { const c = document.elementFromPoint(x, y);"
                " c.dispatchEvent(new PointerEvent('pointermove', { clientX: x, clientY: y, bubbles: true,"
                " pointerId: 1, pointerType: 'mouse' }));"
                " return c.closest('button') ? '' : getComputedStyle(c).cursor; }",
                list(spot),
            )
            if hit == "pointer":
                return spot
    raise AssertionError("no token is found under the pointer anywhere on the scene")


def test_hostile_links_give_a_sentence(tab, static_page):
    for bad in (
        "state=zAAAA",
        "state=p" + "A" * 400,
        "preset=<script>alert(1)</script>",
        "state=q!!",
    ):
        tab.goto("about:blank")
        open_page(tab, f"{static_page.as_uri()}#{bad}")
        until(tab, "store.message.value !== null")
        assert "could not be opened" in store(tab, "store.message.value")


def test_a_link_brings_the_very_state_back(page, browser):
    restart_with(page, SPEC)
    advance(page, 40)
    put(page, "beta", 5)
    advance(page, 7)
    control(page, "colouring").select_option("token")
    link = _copied_link(page)
    state = [
        "store.frame.value.time",
        "store.spec.value",
        "store.colouring.value",
        "store.edited.value",
    ]
    expected = [tokens(page), *(store(page, e) for e in state)]
    other = browser.new_page()
    open_page(other, link)
    until(other, "store.spec.value.model.beta === 5")
    assert [tokens(other), *(store(other, e) for e in state)] == expected
    advance(page, 20)
    advance(other, 20)
    assert tokens(other) == tokens(page), "both go on alike"
    other.close()


def _copied_link(page):
    """What the button puts on the clipboard; pages from disk may have none and then show it."""
    page.evaluate(
        "() => { window.copied = null;"
        " const writeText = (text) => { window.copied = text; return Promise.resolve(); };"
        " Object.defineProperty(navigator, 'clipboard', { value: { writeText }, configurable: true }); }"
    )
    control(page, "link").click()
    page.wait_for_function("() => window.copied !== null")
    link = page.evaluate("() => window.copied")
    assert re.match(r"(file|http)://.*#(state|preset)=", link)
    return link


def test_metastability_is_shown_by_a_link(page, browser):
    """What the issue is for: choose metastability, let it come to the plateau, and pass the link on."""
    control(page, "preset").select_option("metastability")
    until(page, "store.measured.value.clusters <= 8 && store.frame.value.time > 1", seconds=60)
    pause(page)
    seen = store(page, "[store.measured.value.clusters, store.frame.value.time]")
    other = browser.new_page()
    open_page(other, _copied_link(page))
    until(other, f"Math.abs(store.frame.value.time - {seen[1]}) < 1e-9")
    assert store(other, "[store.measured.value.clusters, store.frame.value.time]") == seen
    assert json.dumps(tokens(other)) == json.dumps(tokens(page))
    other.close()
