"""What the page says while settings move, and beside its theory."""

import pytest
from pages import control, open_page, pause, put, store, until

pytestmark = pytest.mark.xdist_group("browser-live")


@pytest.fixture
def page(tab, static_page):
    open_page(tab, static_page.as_uri())
    return tab


def choose(page, name):
    control(page, "preset").select_option(name)
    until(page, f"store.preset.value === '{name}'")
    pause(page)


def solve(page):
    return store(page, "store.spec.value.solve")


def test_step_and_end_come_back_with_a_slower_model(page):
    choose(page, "noise")
    chosen = solve(page)
    put(page, "beta", 20)
    assert solve(page)["dt"] < 1e-8
    toast = store(page, "store.message.value")
    assert "step was shortened" in toast
    assert "now ends at t = 0.002" in toast
    put(page, "beta", 2)
    assert solve(page) == chosen


def test_layers_end_whole_and_given_tokens_are_not_replaced_in_silence(page):
    choose(page, "leader")
    control(page, "fold-advanced").click()
    put(page, "t1", 3.25)
    assert solve(page)["t1"] == 3
    assert "whole layers" in store(page, "store.message.value")
    put(page, "n", 20)
    assert "8 given tokens were replaced" in store(page, "store.message.value")


def test_theory_says_under_which_hypothesis_it_is_drawn(page):
    choose(page, "modes")
    notes = page.locator(".tfc-key small")
    notes.filter(has_text="first form from many uniform tokens").first.wait_for()
    assert not page.get_by_text("equiangular ODE").count()
