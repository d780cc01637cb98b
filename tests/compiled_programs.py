"""Room for compiled programs: each maps some pages of memory, and Linux allows a process 65,530 maps.

Beyond that the compiler dies with a segmentation fault, so programs are forgotten in time.
"""

from pathlib import Path

MAPS = Path("/proc/self/maps")
MOST_MAPS = 30_000
# To count maps takes milliseconds: only after so many more programs. Large ones, such as the Hessian of a
# run, map hundreds of pages each, and must still stay below the limit.
PROGRAMS_BETWEEN = 20

_made = 0


def _count(event, duration, **details):
    global _made
    if event == "/jax/core/compile/backend_compile_duration":
        _made += 1


def count_programs():
    """Count what JAX compiles from now on."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(_count)


def make_room():
    """Forget compiled programs once they fill most of what a process may map."""
    global _made
    if _made < PROGRAMS_BETWEEN or not MAPS.exists():
        return
    _made = 0
    if len(MAPS.read_bytes().splitlines()) > MOST_MAPS:
        import jax

        jax.clear_caches()
