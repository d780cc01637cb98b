"""tokenflock doctor: facts for a bug report, and a two-second test against a closed form."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

# Where JAX logs what it finds in the cache, and what it calls the program of `integrate`.
JAX_LOG, SOLVER = "jax._src.compiler", "jit_integrate"


def doctor(
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout."),
) -> None:
    """Print versions, devices, precision and cache settings, and run a short self-test.

    The self-test integrates eight orthogonal tokens and compares their common inner product with the
    closed form (e^{2t} - 1)/(e^{2t} + n - 1) of beta = 0. Exit code 1 if it disagrees.
    """
    report = facts()
    report["self_test"] = self_test()
    report["compilation_cache"] |= cache_test()
    if as_json:
        typer.echo(json.dumps(report))
    else:
        _show(report)
    if not report["self_test"]["passed"]:
        raise typer.Exit(1)


def facts() -> dict[str, Any]:
    """Versions, devices and settings of this installation."""
    import jax

    from ..memory import available_bytes
    from ..provenance import provenance

    settings: Any = jax.config
    return {
        **provenance(),
        "devices": [str(device) for device in jax.devices()],
        "precision": {
            "float64": bool(settings.jax_enable_x64),
            "matrix_products": str(settings.jax_default_matmul_precision),
        },
        "compilation_cache": _cache(),
        "memory_limit_gib": round(available_bytes() / 2**30, 2),
    }


def _cache() -> dict[str, Any]:
    """Where compiled programs are kept, how many, and whether more can be."""
    import jax

    from ..startup import cache_folder

    settings: Any = jax.config
    folder = Path(settings.jax_compilation_cache_dir or cache_folder())
    sizes = [item.stat().st_size for item in folder.glob("*-cache")] if folder.is_dir() else []
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    return {
        "folder": str(folder),
        "enabled": bool(settings.jax_enable_compilation_cache),
        "writable": place.is_dir() and os.access(place, os.W_OK | os.X_OK),
        "programs": len(sizes),
        "megabytes": round(sum(sizes) / 1e6, 1),
        "kept_above_seconds": settings.jax_persistent_cache_min_compile_time_secs,
    }


def self_test() -> dict[str, Any]:
    """Eight orthogonal tokens at beta = 0 against the closed form of their inner product."""
    import numpy as np

    from ..integrate import Save, solve
    from ..models import SA
    from ..space import Sphere
    from ..starts import equiangular

    start, n = time.perf_counter(), 8
    times = np.linspace(0.0, 3.0, 13)
    run = solve(
        SA(beta=0.0),
        equiangular(Sphere(n), n),
        t1=3.0,
        rtol=1e-10,
        atol=1e-12,
        save=Save(at=times, states=True),
    )
    measured = np.einsum("tc,tc->t", run.states[:, 0], run.states[:, 1])
    growth = np.exp(2 * np.asarray(run.time))
    error = float(np.max(np.abs(measured - (growth - 1) / (growth + n - 1))))
    return {
        "error": error,
        "tolerance": 1e-8,
        "passed": error < 1e-8,
        "seconds": round(time.perf_counter() - start, 2),
    }


def cache_test() -> dict[str, Any]:
    """Whether the solver's program is really read back: forget it, solve again, and listen to JAX.

    `hit` is whether JAX says that it found the solver; a program that may not be stored, such as one that
    calls back to Python, is neither a hit nor a miss. `hits` and `misses` count all programs of that second
    solve: small ones that compile in less than `kept_above_seconds` are not kept.
    """
    import jax

    jax.clear_caches()
    with listening() as heard:
        seconds = self_test()["seconds"]
    found = [name for name, hit in heard if hit]
    counts = {"hits": len(found), "misses": len(heard) - len(found)}
    return {"hit": SOLVER in found, **counts, "warm_seconds": seconds}


@contextlib.contextmanager
def listening() -> Iterator[list[tuple[str, bool]]]:
    """Names of the programs that JAX looks up in the cache, and whether it finds them, as it logs them."""
    heard: list[tuple[str, bool]] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found = re.search(r"cache (hit|miss) for '([^']*)'", record.getMessage(), re.IGNORECASE)
            if found:
                heard.append((found[2], found[1].lower() == "hit"))

    logger, listener = logging.getLogger(JAX_LOG), Listener()
    before = logger.level, logger.propagate
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield heard
    finally:
        logger.removeHandler(listener)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def _show(report: dict[str, Any]) -> None:
    for name, value in report.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key} {entry}" for key, entry in value.items())
        elif isinstance(value, list):
            value = ", ".join(value)
        typer.echo(f"{name.replace('_', ' '):18} {value}")
