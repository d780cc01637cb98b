"""House rules a machine can check: imports point downwards, start-up is light, files are short."""

import ast
import functools
import graphlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tokenflock.old_names import MOVED, MOVED_BELOW

PACKAGE = Path(__file__).parent.parent / "tokenflock"

# Lower modules first; a module may import from its own line and from lines above.
LAYERS = [
    {"errors", "runtime", "startup", "doors", "old_names", "progress", "host_memory"}
    | {"compiled_programs"},
    {"names", "results"},
    {"space", "connected_components", "masks", "schedule"},
    {"measure", "starts", "kinds", "weights", "random_weights"},
    {"reduce", "theory"},
    {"terms"},
    {"noise", "normalisation", "frame"},
    {"dynamics", "methods", "outcomes"},
    {"batches", "density"},
    {"observables"},
    {"models", "health", "serialise", "provenance", "memory"},
    {"states"},
    {"trajectory", "censoring"},
    {"integrate"},
    {"store", "plot", "ensembles", "meanfield", "kinetic", "random_depth", "construct"},
    {"testing"},
    {"lab", "tracing"},
    {"sweeps"},
    {"records"},
    {"ledger"},
    {"applications", "applications.sentiment"},
    {"papers"},
    {"web"},
    {"applications.benchmarks"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def home(path):
    """The line of LAYERS a file stands in; applications are several, on different lines."""
    return line_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))


def line_of(module):
    two = ".".join(module.split(".")[:2])
    return two if two in LEVEL else two.split(".")[0]


def imports(path):
    """Modules of ours that a file imports, inside functions too; imports for type checkers do not count."""
    own = list(path.relative_to(PACKAGE).with_suffix("").parts)
    package = own[:-1]
    tree = ast.parse(path.read_text())
    for node in [node for node in ast.walk(tree) if id(node) not in only_for_types(tree)]:
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        start = package[: len(package) - (node.level - 1)]
        target = (*start, *(node.module.split(".") if node.module else ()))
        for alias in node.names:
            inner = ".".join((*target, alias.name))
            found = inner if inner in FILES else ".".join(target)
            if found in FILES:
                yield found


@functools.cache
def only_for_types(tree):
    """Nodes below `if TYPE_CHECKING`."""
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    types = [node for node in tests if getattr(node.test, "id", "") == "TYPE_CHECKING"]
    return {id(inner) for node in types for inner in ast.walk(node)}


def dotted(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p.name != "__init__.py" or p.parent != PACKAGE)
FILES = {dotted(path): path for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path):
    here = home(path)
    assert here in LEVEL, f"{here} has no place in the layers"
    for module in imports(path):
        name = line_of(module)
        assert LEVEL[name] <= LEVEL[here], f"{here} imports {name}, which lies above it"


def test_no_files_import_each_other_in_a_circle():
    """Imports inside functions count: a circle that only they close is one for the reader, too."""
    graph = {name: set(imports(path)) - {name} for name, path in FILES.items()}
    sorter = graphlib.TopologicalSorter(graph)
    try:
        sorter.prepare()
    except graphlib.CycleError as circle:
        pytest.fail(f"a circle of imports: {' -> '.join(circle.args[1])}")


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


def names_at_the_root():
    """Names of values, and names of the submodules, that `tokenflock` offers."""
    imported = [
        node
        for node in ast.parse((PACKAGE / "__init__.pyi").read_text()).body
        if isinstance(node, ast.ImportFrom)
    ]
    values = [alias.name for node in imported if node.module for alias in node.names]
    modules = [alias.name for node in imported if not node.module for alias in node.names]
    return values, modules


def test_the_root_has_about_sixty_names_and_no_two_alike():
    """Neither a letter nor a case sets two names apart, nor a plural."""
    values, modules = names_at_the_root()
    assert len(values) <= 66
    plain = [re.sub("s$", "", name.lower()) for name in values + modules]
    alike = {name for name in plain if plain.count(name) > 1}
    assert not alike


def test_an_old_name_says_the_new_one():
    import tokenflock as flock

    values, modules = names_at_the_root()
    for old, new in MOVED.items():
        assert old not in values + modules
        found = functools.reduce(getattr, new.split("."), flock)
        assert found is not None
        with pytest.raises(AttributeError, match=re.escape(f"is now tokenflock.{new}")):
            getattr(flock, old)
    assert not hasattr(flock, "Fourier")
    with pytest.raises(ImportError, match=r"is now tokenflock\.meanfield\.Fourier"):
        exec("from tokenflock import Fourier")


def test_old_names_are_those_of_release_01():
    """`Lab` was one of them; states and ways to differentiate came later."""
    assert MOVED["Lab"] == "frame.Original"
    assert not {"Original", "Schedule", "State", "Checkpointed", "Direct"} & set(MOVED)


OLD_BELOW = [(module, *pair) for module, names in MOVED_BELOW.items() for pair in names.items()]


@pytest.mark.parametrize(("module", "old", "new"), OLD_BELOW)
def test_an_old_name_below_the_root_says_the_new_one(module, old, new):
    import tokenflock as flock

    assert functools.reduce(getattr, new.split("."), flock) is not None
    sentence = re.escape(f"tokenflock.{module}.{old} is now tokenflock.{new}")
    with pytest.raises(AttributeError, match=sentence):
        getattr(importlib.import_module(f"tokenflock.{module}"), old)
    with pytest.raises(ImportError, match=sentence):
        exec(f"from tokenflock.{module} import {old}")
    assert not hasattr(importlib.import_module(f"tokenflock.{module}"), "never_there")


# Where the classes of a slot live: there alone may code ask for a class; elsewhere it asks the slot.
SLOTS = {"kinds", "masks", "terms", "noise", "normalisation", "frame"}


def classes_of_slots():
    files = [path for name, path in FILES.items() if name.split(".")[0] in SLOTS]
    nodes = [node for path in files for node in ast.parse(path.read_text()).body]
    return {node.name for node in nodes if isinstance(node, ast.ClassDef)} | {
        "Original",
        "Rescaled",
    }


def test_nobody_asks_a_slot_for_its_class():
    """A new kind, mask, term, noise or normalisation answers for itself, so no code may know it by name."""
    known = classes_of_slots()
    assert {"Softmax", "ALiBi", "Attention", "Brownian", "PostLN"} <= known
    asked = []
    for name, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            call = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
            if call and name.split(".")[0] not in SLOTS:
                words = {word.id for word in ast.walk(node.args[1]) if isinstance(word, ast.Name)}
                asked += [f"{name}:{node.lineno} {word}" for word in words & known]
    assert not asked
