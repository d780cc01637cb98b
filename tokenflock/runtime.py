"""How JAX is set up here: float64, full-precision matrix products, a persistent compilation cache.

Imported by every module that uses JAX, before the first array is made.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.typing
import platformdirs
from jax.core import Tracer

# What a user may write for numbers: an array, a number, or nested lists of them.
ArrayLike = jax.typing.ArrayLike | Sequence[Any]
# What a time, a step or another single number may be inside compiled code.
Scalar = jax.typing.ArrayLike
CACHE_VARIABLE = "TOKENFLOCK_CACHE"


def cache_folder() -> Path:
    """Folder of compiled programs: $TOKENFLOCK_CACHE, or the user's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path(platformdirs.user_cache_dir("tokenflock")) / "xla"


def _configure() -> None:
    # float64: metastable speeds are ~e^{-c beta}, far below float32 resolution.
    # TOKENFLOCK_X64=0 leaves JAX's own setting alone, for programs that share the process.
    if os.environ.get("TOKENFLOCK_X64", "1") != "0":
        jax.config.update("jax_enable_x64", True)
    # TF32 or bfloat16 passes would put 1e-3 relative errors inside an exponential.
    jax.config.update("jax_default_matmul_precision", "highest")
    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        # The hundred small programs of a run's start and figure take a second to compile.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)


_configure()


def is_traced(*arrays: object) -> bool:
    """True inside jit, grad or vmap, where values cannot be inspected."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arrays))
