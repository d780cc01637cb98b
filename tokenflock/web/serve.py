"""Serve the page until Ctrl-C."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .bundle import require_bundle
from .guard import Addresses
from .page_limits import Limits

if TYPE_CHECKING:
    import uvicorn

DEFAULT_PORT = 8765
PORTS_TO_TRY = 50
FIRST_REQUEST_SECONDS = 10.0
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Place:
    """A bound socket and the address a browser finds it under."""

    listener: socket.socket
    host: str
    port: int

    @property
    def address(self) -> str:
        """The URL of the page."""
        shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}/"


def require_web() -> None:
    """The packages of the extra, or a sentence."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"the page's server needs {error.name}, which is not installed; run: pip install "
            "'tokenflock[web]'"
        ) from error


def bind(host: str, port: int | None) -> Place:
    """Listen on the port, on any free one for 0, or near the default if none was asked for."""
    if port is not None:
        return _bind(host, port)
    for candidate in range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TO_TRY):
        try:
            return _bind(host, candidate)
        except PortTaken:
            continue
    return _bind(host, 0)


class PortTaken(InputError):
    """Something else listens there."""


def _bind(host: str, port: int) -> Place:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        # asyncio sends small answers at once only over a socket that names its protocol.
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise InputError(f"--host {host} is no address of this machine ({error})") from error
    try:
        # A port whose last connections are still winding down is free; one that is in use is not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).lower()
        raise PortTaken(
            f"cannot listen on {host} port {port}: {reason}; choose another --port or --host"
        ) from error
    return Place(listener, host, listener.getsockname()[1])


def serve(
    place: Place,
    folders: list[Path],
    workers: int,
    limits: Limits,
    when_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until Ctrl-C (or SIGTERM); all workers are ended with it."""
    require_bundle()
    server = make_server(place, folders, workers, limits, when_ready)
    # asyncio warns of every answer to a page that has gone; pages come and go.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    # uvicorn shuts down in order and then passes the signal on.
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[place.listener])


def _patient_protocol() -> Any:
    """HTTP whose connections are closed when their first request does not come."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(FIRST_REQUEST_SECONDS, self._give_up)

        def _give_up(self) -> None:
            if self.conn.their_state is h11.IDLE and self.cycle is None:
                self.transport.close()

    return Patient


def make_server(
    place: Place,
    folders: list[Path],
    workers: int,
    limits: Limits,
    when_ready: Callable[[], None] = lambda: None,
) -> uvicorn.Server:
    """A uvicorn server of the page; its `should_exit` ends it."""
    import uvicorn

    from .app import make_app

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                when_ready()

    config = uvicorn.Config(
        make_app(Addresses(place.host, place.port), folders, workers, limits),
        # Starts processes safely beside other threads; nothing here needs a faster loop.
        loop="asyncio",
        # Bounds the size of headers, which the faster parser does not.
        http=_patient_protocol(),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws_max_size=limits.message_bytes,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        ws_per_message_deflate=False,
        h11_max_incomplete_event_size=32 * 1024,
        limit_concurrency=4 * limits.pages + 64,
        timeout_graceful_shutdown=2,
    )
    return Server(config)
