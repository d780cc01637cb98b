"""Messages between the server and its workers: over pipes, each with its length in front.

4 bytes   length of the rest
KIND \\n   a word the server acts on, in ASCII
body      JSON; what goes to the page is forwarded as it is
"""

from __future__ import annotations

import asyncio
import struct
from typing import BinaryIO

HEADER = struct.Struct(">I")
LARGEST = 2**28


def encode(kind: str, body: str = "") -> bytes:
    """One message as bytes."""
    content = kind.encode("ascii") + b"\n" + body.encode()
    return HEADER.pack(len(content)) + content


def decode(content: bytes) -> tuple[str, str]:
    """Kind and body."""
    kind, _, body = content.partition(b"\n")
    return kind.decode("ascii"), body.decode()


def read(stream: BinaryIO) -> tuple[str, str] | None:
    """The next message; None at the end of the stream."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    (length,) = HEADER.unpack(header)
    content = stream.read(length)
    return decode(content) if len(content) == length else None


async def receive(stream: asyncio.StreamReader) -> tuple[str, str]:
    """The next message; asyncio.IncompleteReadError at the end of the stream."""
    (length,) = HEADER.unpack(await stream.readexactly(HEADER.size))
    if length > LARGEST:
        raise ValueError(f"a worker announced {length} bytes")
    return decode(await stream.readexactly(length))
