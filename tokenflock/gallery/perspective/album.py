"""The album itself."""

from ..core import Album

ALBUM = Album("2312.10794v4")
