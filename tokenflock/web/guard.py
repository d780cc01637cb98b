"""Who may talk to the server: the page it serves, and no other site.

A server on loopback can be reached by every site a browser visits. Three checks keep them out:

Host -- must be an address this server was given. A site that points its own name at 127.0.0.1 (DNS
    rebinding) arrives with that name.
Origin -- where there is one, must be the page's own. Browsers send it with every WebSocket and with
    every request of a script to another site. Programs that are no browsers send none and are let in:
    they could write any Origin they like.
Sec-Fetch-Site -- must not say that another site asked, but for a link that opens the page itself.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' blob: data:",
        "media-src 'self' blob: data:",
        "font-src 'self' data:",
        "worker-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
MISDIRECTED, FORBIDDEN = 421, 403
POLICY_VIOLATION = 1008


class Addresses:
    """The names under which this server may be asked for."""

    def __init__(self, host: str, port: int):
        self.host, self.port = host, port
        self._names = {*LOOPBACK, _written(host)}
        # Bound to every address of the machine, any address is right; names, which others can point
        # here, are not.
        self._any_address = host in ("0.0.0.0", "::")

    def includes(self, host: str) -> bool:
        """Whether a Host header names this server."""
        name, port = _split(host)
        if port != self.port:
            return False
        return name in self._names or (self._any_address and _is_address(name))


def _written(host: str) -> str:
    """A host as it stands in a URL: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host.lower()


def _split(host: str) -> tuple[str, int | None]:
    name, colon, port = host.lower().rpartition(":")
    if not colon or port.endswith("]"):
        return host.lower(), 80
    return name, int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Guard:
    """ASGI middleware: refuse what comes from elsewhere, and set the headers of every answer."""

    def __init__(self, app: Any, addresses: Addresses):
        self.app, self.addresses = app, addresses

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Check and pass on."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self.refusal(scope)
        if refusal is None:
            await self.app(scope, receive, _with_headers(scope, send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": refusal[1]})
        else:
            await _refuse(_with_headers(scope, send), *refusal)

    def refusal(self, scope: Any) -> tuple[int, str] | None:
        """Status and sentence for a request that is not the page's own; None for one that is."""
        headers = _headers(scope)
        host = headers.get("host", [])
        if len(host) != 1 or not self.addresses.includes(host[0]):
            return MISDIRECTED, "this server does not answer under that name; open its own address"
        origin = headers.get("origin", [])
        if origin and origin not in ([f"http://{host[0]}"], [f"https://{host[0]}"]):
            return FORBIDDEN, "another site asked; only the page served here may"
        site = headers.get("sec-fetch-site", ["none"])
        if site not in (["none"], ["same-origin"]) and not _opens_the_page(scope, headers):
            return FORBIDDEN, "another site asked; only the page served here may"
        return None


def _headers(scope: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _opens_the_page(scope: Any, headers: dict[str, list[str]]) -> bool:
    """A link on another site that opens the page in its own tab: a shared state is such a link."""
    return (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and scope["path"] == "/"
        and headers.get("sec-fetch-mode") == ["navigate"]
        and headers.get("sec-fetch-dest") == ["document"]
    )


def _with_headers(scope: Any, send: Any) -> Any:
    if scope["type"] != "http":
        return send
    fresh = "no-store" if scope["path"].startswith("/api/") else "no-cache"
    added = {**HEADERS, "cache-control": fresh}

    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            pairs = [(name.encode(), value.encode()) for name, value in added.items()]
            message = {**message, "headers": [*message.get("headers", []), *pairs]}
        await send(message)

    return sending


async def _refuse(send: Any, status: int, sentence: str) -> None:
    body = json.dumps({"detail": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
