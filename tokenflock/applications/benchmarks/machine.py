"""Where a number was measured: the machine in words, and the versions of all that took part."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from ... import __version__  # pyright: ignore[reportAttributeAccessIssue]

PACKAGES = (
    "jax",
    "jaxlib",
    "diffrax",
    "numpy",
    "torch",
    "torchdiffeq",
    "transformers",
    "transformer-lens",
    "pykeops",
    "jax-finufft",
    "uvicorn",
    "websockets",
)


def has_gpu() -> bool:
    """Whether JAX sees an NVIDIA GPU."""
    import jax

    return jax.default_backend() in ("gpu", "cuda")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_machine(device: str = "cpu") -> str:
    """Processor, cores, memory and system; the GPU in front where it did the work."""
    parts = [
        _processor(),
        f"{cores()} cores",
        *_memory(),
        f"{platform.system()} {platform.machine()}",
    ]
    if device == "gpu":
        import jax

        parts.insert(0, jax.devices()[0].device_kind)
    return ", ".join(parts)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _memory() -> list[str]:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return []
    return [f"{size / 2**30:.0f} GiB"]


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that are installed."""
    found = {"tokenflock": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
