"""House rules a machine can check: imports point downwards, start-up is light, files are short."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "tokenflock"

# Lower modules first; a module may import from its own line and from lines above.
LAYERS = [
    {"errors", "runtime", "startup"},
    {"names", "json_safe", "own_files", "part_names"},
    {"locking", "belonging", "zarr_files"},
    {"space", "connected_components", "masks", "theory", "schedule"},
    {"measure", "kinds", "weights"},
    {"reduce"},
    {"terms"},
    {"noise", "normalisation"},
    {"dynamics", "methods", "outcomes"},
    {"batches", "density"},
    {"observables"},
    {"models", "health", "serialise", "provenance", "memory"},
    {"states"},
    {"trajectory"},
    {"integrate"},
    {"store", "plot", "ensembles", "meanfield", "kinetic", "random_depth", "construct"},
    {"testing"},
    {"lab", "tracing", "training"},
    {"sweeps"},
    {"records"},
    {"claims", "gallery", "bench"},
    {"web"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def home(path):
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imports(path):
    """Top-level imports of our own modules (those inside functions are the deliberate exceptions)."""
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from (name.split(".")[0] for name in names)


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p.name != "__init__.py" or p.parent != PACKAGE)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path):
    here = home(path)
    assert here in LEVEL, f"{here} has no place in the layers"
    for name in imports(path):
        if name in LEVEL and name != here:
            assert LEVEL[name] <= LEVEL[here], f"{here} imports {name}, which lies above it"


def test_files_stay_readable():
    long = {p.name: len(p.read_text().splitlines()) for p in PACKAGE.rglob("*.py")}
    assert max(long.values()) <= 400, {n: c for n, c in long.items() if c > 400}


def test_no_two_test_files_share_a_name():
    """pytest imports them as modules of one name each, and refuses the second."""
    files = [p for p in Path(__file__).parent.rglob("test_*.py") if "node_modules" not in p.parts]
    names = [p.name for p in files]
    assert sorted(set(names)) == sorted(names)


def loaded_by(statement):
    code = f"{statement}\nimport sys\nprint(*sorted(m.split('.')[0] for m in sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(out.stdout.split())


HEAVY = {"jax", "diffrax", "xarray", "matplotlib", "scipy", "pandas", "ott", "torch"}


@pytest.mark.parametrize("statement", ["import tokenflock", "import tokenflock.cli"])
def test_starting_loads_nothing_heavy(statement):
    assert not loaded_by(statement) & HEAVY


def test_every_public_name_exists():
    import tokenflock as flock

    for name in flock.__all__:
        assert getattr(flock, name) is not None
    assert "SA" in dir(flock)
    with pytest.raises(AttributeError):
        _ = flock.no_such_thing
