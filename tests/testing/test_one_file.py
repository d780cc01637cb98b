"""A new discretisation is its own file and its name in the public list: stored, opened, named by files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import pytest

import tokenflock as flock
from tokenflock import serialise

PACKAGE = Path(flock.__file__).parent
PUBLIC = ("kinds", "masks", "terms", "noise", "normalisation", "frame", "meanfield", "starts")
NEW = '''
"""Fourier modes under another name."""

from typing import ClassVar

from .circle import Fourier


class Finer(Fourier):
    spec_name: ClassVar[str] = "finer"
'''
USED = """
import sys
import jax.numpy as jnp
import tokenflock as flock

start = flock.Density.from_law(flock.meanfield.Finer(12), lambda x: jnp.exp(x[:, 0]))
run = flock.solve(flock.USA(1.0), start, t1=0.2, rtol=1e-6, atol=1e-8)
run.save(sys.argv[1])
found = flock.open(sys.argv[1])
print(type(found.final.on).__name__, float(found.observe(flock.entropy).values[-1]))
from tokenflock.lab.density import SPECTRAL
print(SPECTRAL["finer"].__name__)
"""


@pytest.mark.parametrize("package", PUBLIC)
def test_a_public_class_is_found_by_its_name(package):
    public = vars(getattr(flock, package)) | {
        name: getattr(getattr(flock, package), name) for name in dir(getattr(flock, package))
    }
    classes = [each for each in public.values() if isinstance(each, type)]
    ours = [each for each in classes if issubclass(each, eqx.Module)]
    for each in ours:
        assert serialise._class(each.__name__) is each


@pytest.mark.slow
def test_a_new_discretisation_is_one_file_and_one_name(tmp_path):
    here = tmp_path / "tokenflock"
    shutil.copytree(PACKAGE, here, ignore=shutil.ignore_patterns("static", "__pycache__"))
    (here / "meanfield" / "mine.py").write_text(NEW.lstrip())
    with (here / "meanfield" / "__init__.pyi").open("a") as names:
        names.write("from .mine import Finer as Finer\n")
    done = subprocess.run(
        [sys.executable, "-c", USED, str(tmp_path / "run.zarr")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[0] == "Finer"
    assert done.stdout.split()[-1] == "Finer"
