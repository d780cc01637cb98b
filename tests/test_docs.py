"""The pages that are generated speak of what there is."""

import re
from pathlib import Path

from tokenflock.ledger import all_claims, all_figures

DOCS = Path(__file__).parent.parent / "docs"


def test_the_ledger_has_a_line_for_every_claim_and_no_other():
    text = (DOCS / "ledger.md").read_text()
    listed = []
    for section in text.split("\n## ")[1:]:
        paper = section.split(":")[0]
        listed += [f"{paper}/{name}" for name in re.findall(r"^\| `([^`]+)`", section, flags=re.M)]
    assert listed == [claim.id for claim in all_claims()]
    assert f"**{len(listed)} claims: {len(listed)} hold, 0 fail, 0 inconclusive" in text


def test_the_gallery_shows_every_figure_with_its_command():
    text = (DOCS / "gallery.md").read_text()
    commands = re.findall(r"^\$ tokenflock figure (\S+)$", text, flags=re.M)
    assert commands == [figure.id for figure in all_figures()]
    for figure in all_figures():
        assert f"images/gallery/{figure.id.replace('/', '-')}.png" in text
