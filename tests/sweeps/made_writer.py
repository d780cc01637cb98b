"""A process that forks a writer for each line it reads: `DIE_AT FOLDER`; see made_faults.Writers."""

import os
import signal
import sys

import zarr  # noqa: F401  (slow to load, and needed by every writer)
from made_faults import at_call
from made_sweeps import made_layout, made_result, made_sweep

from tokenflock.sweeps.arrays import BlockEncoder
from tokenflock.sweeps.store import SweepStore

SWEEP, LAYOUT = made_sweep(), made_layout()


def write_what_is_left(folder, die_at):
    """As the engine does on --resume; says so when it begins."""
    store = SweepStore.open(folder, SWEEP, LAYOUT)
    BlockEncoder(SWEEP, LAYOUT).encode(
        SWEEP.grid.block(0), made_result(SWEEP.grid.block(0), LAYOUT)
    )
    print(os.getpid(), flush=True)
    with at_call(die_at, lambda: os.kill(os.getpid(), signal.SIGKILL)), store.lock():
        for index, done in enumerate(store.done()):
            if not done:
                block = SWEEP.grid.block(index)
                store.write(block, made_result(block, LAYOUT))


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        die_at, folder = line.rstrip("\n").split(" ", 1)
        pid = os.fork()
        if pid == 0:
            write_what_is_left(folder, int(die_at))
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print("ended" if status == 0 else "killed", flush=True)


if __name__ == "__main__":
    main()
