"""The album itself."""

from ..core import Album

ALBUM = Album("2305.05465v6")
