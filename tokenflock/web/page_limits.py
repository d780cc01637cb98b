"""What one page may ask of this machine."""

from __future__ import annotations

import dataclasses
import os
from typing import Any


@dataclasses.dataclass(frozen=True)
class Limits:
    """Every bound of the server in one place; the page is told them when it connects."""

    tokens: int = 4_096
    dimension: int = 3
    width: int = 1_024
    time: float = 1e5
    steps: int = 100_000
    frames: int = 2_000
    # Coordinates of a whole run: 32 MB of float64, 43 MB as text.
    numbers: int = 4_000_000
    run_seconds: float = 180.0
    cpu_seconds: int = 600
    # By the engine's own estimate of a run; what a worker may ask of the system at all; what it may
    # still hold between two runs.
    memory_gib: float = 2.0
    process_gib: float = 8.0
    tidy_gib: float = 1.0
    replay_bytes: int = 128 * 2**20
    # Room for 4,096 tokens in R^3, each coordinate written out.
    message_bytes: int = 512 * 1024
    # A page that takes longer than this to read a message is closed.
    stall_seconds: float = 30.0
    # What a cancelled run gets to end by itself before its process is ended.
    grace_seconds: float = 2.0
    read_seconds: float = 60.0
    starts_per_minute: int = 60
    pages: int = 64

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return dataclasses.asdict(self)


def default_workers() -> int:
    """Processes that compute: one core stays free for the server, and four are plenty."""
    return max(1, min(4, (os.cpu_count() or 1) - 1))
