"""The most memory this process has held: since it began or, where the system can count anew, since then."""

import contextlib
import re
import resource
from pathlib import Path

STATUS, COUNTER = Path("/proc/self/status"), Path("/proc/self/clear_refs")
PEAK = re.compile(r"VmHWM:\s*(\d+) kB")


def peak_megabytes():
    """The peak in MB."""
    found = PEAK.search(STATUS.read_text()) if STATUS.exists() else None
    if found is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return int(found[1]) // 1024


def begin_anew():
    """Let the peak begin at what is held now, as Linux can."""
    with contextlib.suppress(OSError):
        COUNTER.write_text("5")
