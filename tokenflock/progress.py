"""How long work tells of its progress."""

from __future__ import annotations

from collections.abc import Callable

# The share that is done.
ShareReport = Callable[[float], None]
# The share that is done, and what is being done.
NotedReport = Callable[[float, str], None]
