"""Faults on purpose: damaged files, failing system calls, and writers that are killed."""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

# Everything through which a store reaches the disk.
SYSTEM_CALLS = ("write", "fsync", "replace", "rename", "ftruncate")
DAMAGES = ("flip", "truncate", "empty", "delete")


def damage(path, how, draw):
    """Damage a file in one way, at a random place."""
    content = bytearray(path.read_bytes())
    if how == "flip":
        content[draw.integers(len(content))] ^= 1 << int(draw.integers(8))
    elif how == "truncate":
        del content[draw.integers(1, len(content)) :]
    elif how == "empty":
        content.clear()
    path.write_bytes(content)
    if how == "delete":
        path.unlink()


@contextlib.contextmanager
def at_call(number, act):
    """Run `act` before the system call of that number; gives the names of the calls made."""
    counter, kept = itertools.count(), {name: getattr(os, name) for name in SYSTEM_CALLS}
    made = []

    def watched(call):
        def instead(*given, **named):
            made.append(call.__name__)
            if next(counter) == number:
                act()
            return call(*given, **named)

        return instead

    for name, call in kept.items():
        setattr(os, name, watched(call))
    try:
        yield made
    finally:
        for name, call in kept.items():
            setattr(os, name, call)


@contextlib.contextmanager
def read_only(folder):
    """A folder in which even root cannot write; gives False where that cannot be had."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        try:
            yield True
        finally:
            folder.chmod(0o755)
        return
    made = _succeeds("chattr", "+i", folder)
    try:
        yield made
    finally:
        if made:
            subprocess.run(["chattr", "-i", str(folder)], check=True)


@contextlib.contextmanager
def small_disk(place, kibibytes):
    """A disk that fills up; gives False where none can be mounted."""
    place.mkdir()
    made = os.geteuid() == 0 and _succeeds(
        "mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", place
    )
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", str(place)], check=True)


def _succeeds(command, *arguments):
    if shutil.which(command) is None:
        return False
    return subprocess.run([command, *map(str, arguments)], capture_output=True).returncode == 0


class Writers:
    """Processes that write a sweep, each forked from one that has loaded everything already."""

    def __enter__(self):
        self.nursery = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("made_writer.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._answer() == "ready"
        return self

    def __exit__(self, *error):
        self.nursery.stdin.close()
        self.nursery.wait(timeout=30)
        self.nursery.stdout.close()

    def _answer(self):
        # A writer that hangs ends with all others, and what they say is then nothing.
        late = threading.Timer(60, os.killpg, (self.nursery.pid, signal.SIGKILL))
        late.start()
        answer = self.nursery.stdout.readline().strip()
        late.cancel()
        assert answer, "the writers do not answer"
        return answer

    def start(self, folder, die_at=-1):
        """Continue the sweep in a folder; gives the pid when the writing begins.

        die_at -- number of the system call at which it kills itself (default: never)
        """
        self.nursery.stdin.write(f"{die_at} {folder}\n")
        self.nursery.stdin.flush()
        return int(self._answer())

    def wait(self):
        """Whether the last one ended by itself."""
        return self._answer() == "ended"

    def kill(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
