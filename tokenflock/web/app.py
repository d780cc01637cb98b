"""The HTTP and WebSocket interface of the page."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Response, WebSocket
from fastapi import Path as InPath
from fastapi.responses import FileResponse, HTMLResponse

from .bundle import page_options, require_bundle, served_page
from .guard import Addresses, Guard
from .library import Library
from .page import Pages
from .page_limits import Limits
from .pool import Pool
from .shapes import LibraryEntry, Pong, Problem, Replay

Id = Annotated[str, InPath(pattern="^[0-9a-f]{16}$", description="An id from the library.")]


def make_app(
    addresses: Addresses, folders: list[Path], workers: int, limits: Limits | None = None
) -> Any:
    """The whole server as one ASGI application."""
    limits = limits or Limits()
    library = Library(folders, limits)
    pool = Pool(workers, limits)
    pages = Pages(pool, limits)

    @contextlib.asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        await pool.start()
        try:
            yield
        finally:
            await pool.close()
            await library.close()

    app = FastAPI(
        title="tokenflock",
        version=page_options("served")["version"],
        lifespan=life,
        # The pages FastAPI would make load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.pool, app.state.pages, app.state.library = pool, pages, library
    _add_page(app)
    _add_api(app, pages, library)
    return Guard(app, addresses)


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(served_page())

    @app.get("/tokenflock.js", include_in_schema=False)
    async def module() -> FileResponse:
        return FileResponse(require_bundle(), media_type="text/javascript")


def _add_api(app: FastAPI, pages: Pages, library: Library) -> None:
    @app.get("/api/ping")
    async def ping() -> Pong:
        """Whether the server is there, and how busy it is."""
        pool = pages.pool
        return Pong(
            version=app.version,
            pages=pages.open,
            workers=pool.size,
            idle=pool.idle,
            waiting=pool.waiting,
        )

    @app.get("/api/library")
    async def entries() -> list[LibraryEntry]:
        """Runs, traces and sweeps in the folders the server was given."""
        return await library.entries()

    @app.get(
        "/api/library/{id}",
        response_model=Replay,
        responses={404: {"model": Problem}, 422: {"model": Problem}},
    )
    async def replay(id: Id) -> Response:
        """One of them, thinned to what a page can show."""
        found = await library.replay(id)
        if found is None:
            raise HTTPException(404, "the library has nothing under this id; look at it again")
        return Response(found, media_type="application/json")

    @app.websocket("/api/exact")
    async def exact(socket: WebSocket) -> None:
        await pages.welcome(socket)
