"""Test support: what a person does on the page, and what the page's store says afterwards."""

import json
from pathlib import Path

BROWSER = Path(__file__).parent / "browser"

STORE = "document.getElementById('tokenflock-page').tokenflock.store"


def store(page, expression):
    """The value of an expression in which `store` is the state of the page."""
    return page.evaluate(f"() => {{ const store = {STORE}; return {expression}; }}")


def until(page, expression, seconds=20):
    """Wait for an expression in `store` to become true."""
    page.wait_for_function(
        f"() => {{ const place = document.getElementById('tokenflock-page');"
        f" const store = place && place.tokenflock && place.tokenflock.store;"
        f" return store && ({expression}); }}",
        timeout=1000 * seconds,
    )


def open_page(page, address):
    """Open an address and wait for the first picture."""
    page.goto(str(address))
    until(page, "store.length.value > 0 && document.querySelector('[data-testid=scene] canvas')")


def control(page, name):
    return page.get_by_test_id(name)


def put(page, name, value):
    """Type a number into a control and leave it."""
    field = control(page, name)
    field.fill(str(value))
    field.press("Enter")


def pause(page):
    store(page, "(store.playing.value = false)")


def restart_with(page, spec):
    """Show a spec from its start, at rest."""
    store(page, f"(store.playing.value = false, store.setSpec({json.dumps(spec)}), 1)")


def advance(page, steps):
    """Exactly that many steps of the live simulation, through its own control."""
    store(page, f"Array.from({{ length: {steps} }}, () => store.stepOnce()).length")


def tokens(page):
    """The shown tokens as rows."""
    return store(
        page,
        "Array.from({ length: store.n.value }, (_, i) => "
        "Array.from(store.frame.value.points.slice(i * store.d.value, (i + 1) * store.d.value)))",
    )
