"""A wheel carries the page: build it when it is missing. An editable install leaves it to `make play`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent.parent
BUNDLE = ROOT / "tokenflock" / "web" / "static" / "tokenflock.js"


class PageHook(BuildHookInterface):
    """Builds tokenflock/web/static before a wheel is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling; `version` is "editable" for an editable install."""
        if version == "editable" or BUNDLE.exists():
            return
        spec = importlib.util.spec_from_file_location("page_build", ROOT / "web" / "build.py")
        assert spec is not None
        assert spec.loader is not None
        build = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(build)
        try:
            build.main([])
        except SystemExit as reason:
            self.app.display_warning(f"this wheel has no page (tokenflock play): {reason}")
