"""Memory of this process: what it holds, and the most it has held."""

import contextlib
import re
import resource
from pathlib import Path

STATUS, COUNTER = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident_megabytes():
    """What is held now, in MB; the peak where the system does not tell."""
    return _told("VmRSS")


def peak_megabytes():
    """The most since the process began or, where the system can count anew, since `begin_anew`."""
    return _told("VmHWM")


def _told(entry):
    found = re.search(rf"{entry}:\s*(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    if found is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return int(found[1]) // 1024


def begin_anew():
    """Let the peak begin at what is held now, as Linux can."""
    with contextlib.suppress(OSError):
        COUNTER.write_text("5")
