"""The library of a server: what the folders hold, under ids that name nothing else.

Ids are hashes of paths found by looking into the folders, so that no path ever comes from a page.
Stores are read by a worker process: damaged or hostile files cannot harm the server.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from fastapi import HTTPException

from .limits import Limits
from .pool import Pool, WorkerDied
from .shapes import LibraryEntry
from .stores import Found, find

UNREADABLE = 422


class Library:
    """Looks into the folders when asked; its reader starts with the first thing to read."""

    def __init__(self, folders: list[Path], limits: Limits):
        self.roots = [folder.resolve() for folder in folders]
        self.limits = limits
        self._reader = Pool(1, limits)
        self._starting = asyncio.Lock()

    async def entries(self) -> list[LibraryEntry]:
        """One line for each run, trace and sweep."""
        return [
            LibraryEntry(id=each.id, kind=each.kind, title=each.title, detail=each.detail)
            for each in await self._found()
        ]

    async def _found(self) -> list[Found]:
        return await asyncio.to_thread(find, self.roots)

    async def replay(self, id: str) -> str | None:
        """The JSON of one of them; None if there is no such id."""
        found = next((each for each in await self._found() if each.id == id), None)
        return None if found is None else await self._read(found)

    async def _read(self, found: Found) -> str:
        async with self._starting:
            if not self._reader.workers:
                await self._reader.start()
        request = {"path": str(found.path), "roots": [str(root) for root in self.roots]}
        try:
            async with asyncio.timeout(self.limits.read_seconds), self._reader.lease() as reader:
                await reader.ask("replay", request)
                kind, body = await reader.hear()
        except TimeoutError:
            raise HTTPException(UNREADABLE, f"{found.title} takes too long to read") from None
        except WorkerDied as death:
            raise HTTPException(UNREADABLE, f"{found.title} cannot be read: {death}") from None
        if kind == "error":
            raise HTTPException(UNREADABLE, json.loads(body)["message"])
        return body

    async def close(self) -> None:
        """End the reader."""
        await self._reader.close()
