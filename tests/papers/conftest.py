"""Every figure that a test of the gallery draws must be readable: see tokenflock/plot/readable.py."""

import pytest

from tokenflock.ledger.figure import Figure
from tokenflock.plot.readable import complaints


@pytest.fixture(autouse=True)
def drawn_figures_are_readable(monkeypatch):
    """Labels on all axes, keys to all colours and marks, no text on another; drawn from a test's own data."""
    draw = Figure.draw

    def checked(figure, data):
        picture = draw(figure, data)
        if not figure.id.startswith("0000."):
            assert complaints(picture) == [], figure.id
        return picture

    monkeypatch.setattr(Figure, "draw", checked)
