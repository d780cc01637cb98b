"""What compiling costs: less time for programs that run for a moment, and memory given back after them."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from importlib import metadata

# The same programs, less optimised: made in a third of the time. Small ones run as fast.
QUICK = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)


def compile_quickly() -> None:
    """Tell XLA, before JAX is loaded, that programs run for a moment; what the environment says is kept.

    Numbers may round otherwise. XLA ends the process over a flag that it does not know, so only versions that
    were tried are told.
    """
    if "jax" not in sys.modules and metadata.version("jaxlib").startswith("0.10."):
        os.environ.setdefault("XLA_FLAGS", QUICK)


def forget_compiled_programs() -> None:
    """Forget every program compiled in this process; nothing is loaded for it, JAX neither."""
    # Equinox first: its caches hold on to programs of JAX.
    for name in ("equinox", "jax"):
        if name in sys.modules:
            sys.modules[name].clear_caches()
    gc.collect()
    return_free_memory()


def return_free_memory() -> None:
    """Give memory back to the system that the C library keeps for later, where it can be told to."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's own
        if trim is not None:
            trim(0)
