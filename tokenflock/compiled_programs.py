"""Give back what compiled programs hold: a process that goes on to other models never uses them again."""

from __future__ import annotations

import ctypes
import gc
import sys


def forget_compiled_programs() -> None:
    """Forget every program compiled in this process; nothing is loaded for it, JAX neither."""
    jax = sys.modules.get("jax")
    if jax is not None:
        jax.clear_caches()
    gc.collect()
    return_free_memory()


def return_free_memory() -> None:
    """Give memory back to the system that the C library keeps for later, where it can be told to."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's own
        if trim is not None:
            trim(0)
