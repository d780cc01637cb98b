"""How JAX is set up: float64, full-precision matrix products, a persistent compilation cache.

There is one moment, `import tokenflock`. JAX itself takes a second to load, so it is not loaded there:
where it is loaded already it is set up at once, and otherwise in the instant it is.

    import tokenflock
    import jax.numpy as jnp
    jnp.ones(3).dtype           # float64, here and ever after

TOKENFLOCK_X64=0 leaves the precision as JAX has it, for programs that share the process.
TOKENFLOCK_CACHE names the folder of compiled programs; a folder given to JAX itself is kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

CACHE_VARIABLE = "TOKENFLOCK_CACHE"
PRECISION_VARIABLE = "TOKENFLOCK_X64"


def set_up_jax() -> None:
    """Set JAX up now if it is loaded, and otherwise as soon as anybody loads it."""
    if "jax" in sys.modules:
        import jax  # waits for a thread that is still loading it

        _configure(jax)
    else:
        sys.meta_path.insert(0, _WhenJaxLoads())


def cache_place() -> Path:
    """Where everything is kept that can be made anew: $TOKENFLOCK_CACHE, or the user's cache folder."""
    import platformdirs

    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path(platformdirs.user_cache_dir("tokenflock"))


def cache_folder() -> Path:
    """Folder of compiled programs: the place itself if it was named, or its folder xla."""
    return cache_place() if os.environ.get(CACHE_VARIABLE) else cache_place() / "xla"


def _configure(jax: ModuleType) -> None:
    # float64: metastable speeds are ~e^{-c beta}, far below float32 resolution.
    if os.environ.get(PRECISION_VARIABLE, "1") != "0":
        jax.config.update("jax_enable_x64", True)
    # TF32 or bfloat16 passes would put 1e-3 relative errors inside an exponential.
    jax.config.update("jax_default_matmul_precision", "highest")
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        # The hundred small programs of a run's start and figure take a second to compile.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)


class _WhenJaxLoads(MetaPathFinder):
    """Finds JAX where Python would, and sets it up once its own code has run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "jax":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_configure(module: ModuleType) -> None:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            load(module)
            _configure(module)

        spec.loader.exec_module = load_and_configure  # pyright: ignore[reportAttributeAccessIssue]
        return spec
