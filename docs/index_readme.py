"""The README as a package index shows it: on its own, away from the files it links to.

A picture or a page named by a relative path is a broken image or a dead link there. With `address` (a
setting of this hook in pyproject.toml: where the repository's files can be read, ending in a slash) they
become absolute; without one a picture gives way to its caption and a link to its words.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # the text can be made, and tested, without the build system
    MetadataHookInterface = object

README = Path(__file__).parent.parent / "README.md"
FENCE = re.compile(r"(^```.*?^```$)", flags=re.S | re.M)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
LINK = re.compile(r"(?<!!)\[((?:!\[[^\]]*\]\([^)\s]+\)|[^\]])*)\]\(([^)\s]+)\)")
ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|#", flags=re.I)


class IndexReadme(MetadataHookInterface):
    """Puts the text into the metadata of a wheel or a source archive."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        text = index_readme(README.read_text("utf-8"), self.config.get("address", ""))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def index_readme(text: str, address: str = "") -> str:
    """`text` without relative targets; code blocks stay as they are."""
    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else _prose(part, address) for part in parts)


def _prose(text: str, address: str) -> str:
    if address:
        text = PICTURE.sub(lambda found: f"![{found[1]}]({_absolute(found[2], address)})", text)
        return LINK.sub(lambda found: f"[{found[1]}]({_absolute(found[2], address)})", text)
    # Links first: one of them holds a picture.
    text = LINK.sub(lambda found: found[0] if ABSOLUTE.match(found[2]) else found[1], text)
    return PICTURE.sub(
        lambda found: found[0] if ABSOLUTE.match(found[2]) else f"*Figure: {found[1]}.*", text
    )


def _absolute(target: str, address: str) -> str:
    return target if ABSOLUTE.match(target) else address + target
