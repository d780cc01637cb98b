"""Where numbers come from: versions, precision, device."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp

from . import __version__  # pyright: ignore[reportAttributeAccessIssue]

PACKAGES = ("jax", "jaxlib", "diffrax", "equinox", "numpy", "scipy", "ott-jax", "xarray", "zarr")


def versions() -> dict[str, str]:
    """Versions of everything that computes or stores."""
    return {
        "tokenflock": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in PACKAGES},
    }


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
