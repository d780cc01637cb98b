"""Room for compiled programs: each holds memory, and maps pages of which Linux allows a process 65,530.

Beyond that the compiler dies with a segmentation fault, so programs are forgotten in time: all of them
between files, which then cost the same in any order and in any process, and in a long file when many are
mapped.
"""

from pathlib import Path

from process_memory import resident_megabytes

MAPS = Path("/proc/self/maps")
MOST_MAPS = 30_000
# What is still made after a look comes on top: a process stays below 1.5 GB. What remains after forgetting is
# not of programs, and to forget them again soon would only make them anew.
MOST_MEGABYTES, LEAST_GROWTH = 1200, 400
# To count maps takes milliseconds: only after so many more programs. Large ones, such as the Hessian of a
# run, map hundreds of pages each, and must still stay below the limit.
PROGRAMS_BETWEEN = 20

_made, _made_at_last_look, _made_at_last_clearing, _kept_megabytes = 0, 0, 0, 0


def _count(event, duration, **details):
    global _made
    if event == "/jax/core/compile/backend_compile_duration":
        _made += 1


def programs_made():
    """How many programs JAX has compiled, or read from its cache, since counting began."""
    return _made


def count_programs():
    """Count what JAX compiles from now on."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(_count)


def make_room():
    """Forget compiled programs once they fill most of what a process may map or should hold."""
    global _made_at_last_look
    if _made - _made_at_last_look < PROGRAMS_BETWEEN or not MAPS.exists():
        return
    _made_at_last_look = _made
    if (
        resident_megabytes() > max(MOST_MEGABYTES, _kept_megabytes + LEAST_GROWTH)
        or _maps() > MOST_MAPS
    ):
        forget_programs()


def _maps():
    return len(MAPS.read_bytes().splitlines())


def forget_programs():
    """Forget every compiled program, and give its memory back to the system."""
    global _made_at_last_clearing, _kept_megabytes
    if _made == _made_at_last_clearing:
        return
    _made_at_last_clearing = _made
    from tokenflock.compiled_programs import forget_compiled_programs

    forget_compiled_programs()
    _kept_megabytes = resident_megabytes()
