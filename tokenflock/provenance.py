"""Where numbers come from: versions, precision, device."""

from __future__ import annotations

import contextlib
import functools
import platform
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp

from . import __version__  # pyright: ignore[reportAttributeAccessIssue]

PACKAGES = ("jax", "jaxlib", "diffrax", "equinox", "numpy", "scipy", "ott-jax", "xarray", "zarr")


def versions() -> dict[str, str]:
    """Versions of everything that computes or stores."""
    return {"tokenflock": __version__, "python": platform.python_version(), **_installed()}


@functools.cache
def _installed() -> dict[str, str]:
    """Read once: parsing the metadata of nine packages takes longer than a short solve.

    A package of an extra that is not installed computes nothing, and is left out.
    """
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def provenance() -> dict[str, Any]:
    """Versions, precision and device of this process."""
    device = jax.devices()[0]
    return {
        "versions": versions(),
        "dtype": str(jnp.zeros(()).dtype),
        "device": f"{device.platform}:{device.device_kind}",
        "machine": platform.machine(),
        "system": platform.platform(),
    }
