"""The library of a server: what the folders hold, under ids that name nothing else.

Ids are hashes of paths found by looking into the folders, so that no path ever comes from a page.
Folders are looked through and stores are read by a worker process: damaged or hostile files cannot
harm the server, nor keep it waiting.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from fastapi import HTTPException

from .page_limits import Limits
from .pool import Pool, WorkerDied
from .shapes import LibraryEntry

UNREADABLE = 422


class Library:
    """Looks into the folders when asked; its reader starts with the first thing to read."""

    def __init__(self, folders: list[Path], limits: Limits):
        self.roots = [os.fsdecode(folder.resolve()) for folder in folders]
        self.limits = limits
        self._reader = Pool(1, limits, loads_engine=False)
        self._starting = asyncio.Lock()
        self._paths: dict[str, str] = {}

    async def entries(self) -> list[LibraryEntry]:
        """One line for each run, trace and sweep."""
        if not self.roots:
            return []
        found = json.loads(await self._ask("list", {}, "the library"))
        self._paths = {entry["id"]: entry.pop("path") for entry in found}
        return [LibraryEntry(**entry) for entry in found]

    async def replay(self, id: str) -> str | None:
        """The JSON of one of them; None if there is no such id."""
        if id not in self._paths:
            await self.entries()
        path = self._paths.get(id)
        return None if path is None else await self._ask("replay", {"path": path}, Path(path).name)

    async def _ask(self, kind: str, request: dict[str, Any], name: str) -> str:
        async with self._starting:
            if not self._reader.workers:
                await self._reader.start()
        try:
            async with self._reader.lease() as reader:
                async with asyncio.timeout(self.limits.read_seconds):
                    await reader.ask(kind, {**request, "roots": self.roots})
                    answer, body = await reader.hear()
        except TimeoutError:
            raise HTTPException(UNREADABLE, f"{name} takes too long to read") from None
        except WorkerDied as death:
            raise HTTPException(UNREADABLE, f"{name} cannot be read: {death}") from None
        if answer == "error":
            raise HTTPException(UNREADABLE, self._without_paths(json.loads(body)["message"]))
        return body

    def _without_paths(self, sentence: str) -> str:
        """Where the folders lie is nobody's business but their owner's."""
        for root in sorted(self.roots, key=len, reverse=True):
            sentence = sentence.replace(f"{Path(root).parent}{os.sep}", "")
        return sentence

    async def close(self) -> None:
        """End the reader."""
        await self._reader.close()
