"""What a plain install has: the core runs without the extras, and says which one is missing."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata, util
from pathlib import Path

import jax.numpy as jnp
import pytest
from typer.testing import CliRunner

import tokenflock as flock
from tokenflock import provenance
from tokenflock.errors import MissingExtraError

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tokenflock"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Where a package is imported by another name than it is installed by.
IMPORTED_AS = {
    "dask": ("dask", "distributed"),
    "matplotlib": ("matplotlib", "mpl_toolkits", "cycler"),
    "ott-jax": ("ott",),
    "pillow": ("PIL",),
    "uvicorn": ("uvicorn", "h11", "websockets"),
    "anywidget": ("anywidget", "traitlets"),
}
# Loaded only by `tokenflock play` and the page, after its extra has been asked for.
SERVER = {"web/app.py", "web/library.py", "web/page.py"}


def modules(requirements):
    names = [re.match(r"[\w.-]+", text)[0] for text in requirements]
    return {
        module
        for name in names
        for module in IMPORTED_AS.get(name, (name.replace("-", "_"),))
        if name != "tokenflock"
    }


CORE = modules(PROJECT["dependencies"])
EXTRAS = {name: modules(listed) - CORE for name, listed in PROJECT["optional-dependencies"].items()}
OPTIONAL = set().union(*(EXTRAS[name] for name in EXTRAS if name not in ("dev", "browser")))


def imports(tree, inside=False):
    """(root of an imported package, whether a function imports it) of everything but our own."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0], inside
        else:
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(node, inside or function)


@pytest.fixture(scope="module")
def imported():
    """(file, package, whether inside a function) of all imports of others' packages."""
    return {
        (path.relative_to(PACKAGE).as_posix(), root, inside)
        for path in PACKAGE.rglob("*.py")
        for root, inside in imports(ast.parse(path.read_text()))
        if root not in sys.stdlib_module_names and root != "tokenflock"
    }


def test_what_is_imported_is_declared_and_extras_only_inside_functions(imported):
    for name, root, inside in imported:
        assert root in CORE | OPTIONAL, f"{name} imports {root}, which nothing installs"
        assert root in CORE or inside or name in SERVER, f"{name} always loads {root}"


def test_every_core_dependency_is_used(imported):
    used = {root for _, root, _ in imported}
    assert [text for text in PROJECT["dependencies"] if not modules([text]) & used] == []


def test_ffmpeg_and_optimal_transport_are_extras():
    assert EXTRAS["video"] == {"imageio_ffmpeg"}
    assert EXTRAS["transport"] == {"ott"}
    assert PROJECT["optional-dependencies"]["cuda"] == ["jax[cuda12]"]


BLOCKED = """
import importlib, pathlib, sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        hidden = name.split(".")[0] in {blocked}
        return None if hidden else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
for path in sorted(pathlib.Path({package!r}).rglob("*.py")):
    name = path.relative_to({package!r}).with_suffix("").as_posix()
    if path.name not in ("__init__.py", "__main__.py") and f"{{name}}.py" not in {server}:
        importlib.import_module("tokenflock." + name.replace("/", "."))
"""


def test_every_module_loads_without_the_extras():
    code = BLOCKED.format(blocked=OPTIONAL, package=str(PACKAGE), server=SERVER)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture
def plain_install(monkeypatch):
    """No module of the extras `video` and `transport` can be imported."""
    for name in [*sys.modules]:
        if name.split(".")[0] in EXTRAS["video"] | EXTRAS["transport"]:
            monkeypatch.delitem(sys.modules, name)
    for name in EXTRAS["video"] | EXTRAS["transport"]:
        monkeypatch.setitem(sys.modules, name, None)


def invoke(*words):
    from tokenflock.cli import app

    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


class TestWithoutFfmpeg:
    def test_an_mp4_by_name_is_refused_before_it_is_computed(self, plain_install, tmp_path):
        done = invoke("figure", "2312.10794v4/movies", "--out", tmp_path / "film.mp4")
        assert done.exit_code == 2
        told = " ".join(done.output.split())
        assert "an MP4 needs imageio_ffmpeg, which is not installed" in told
        assert "pip install 'tokenflock[video]'; a .gif needs nothing" in told
        assert [*tmp_path.iterdir()] == []


class TestWithoutOtt:
    def test_sinkhorn_attention_names_its_extra(self, plain_install):
        start = flock.uniform(flock.Sphere(2), n=5, seed=0)
        for reduction in (flock.Dense(), flock.Tiled()):
            with pytest.raises(MissingExtraError, match=r"pip install 'tokenflock\[transport\]'"):
                flock.solve(
                    flock.SinkhornSA(1.3), start, t1=0.1, rtol=1e-3, atol=1e-3, reduction=reduction
                )

    def test_what_else_needs_it_names_it_too(self, plain_install):
        from tokenflock.meanfield.jko import _transport_cost
        from tokenflock.observables.transport import _regularised_cost

        cost, mass = jnp.ones((2, 2)), jnp.full(2, 0.5)
        with pytest.raises(MissingExtraError, match="sinkhorn_divergence needs ott"):
            _regularised_cost(cost, mass, mass, 0.1)
        with pytest.raises(MissingExtraError, match="an entropic JKO step needs ott"):
            _transport_cost(cost, mass, mass, 0.1)

    def test_a_run_does_not_name_a_version_it_does_not_have(self, monkeypatch):
        def version(name):
            if name == "ott-jax":
                raise metadata.PackageNotFoundError(name)
            return "1"

        monkeypatch.setattr(metadata, "version", version)
        found = provenance._installed.__wrapped__()
        assert "ott-jax" not in found
        assert found["jax"] == "1"

    def test_a_claim_that_needs_it_is_inconclusive(self, plain_install):
        done = invoke("check", "2110.11773/sinkhorn-gradient-flow")
        assert done.exit_code == 3, done.output
        assert "pip install 'tokenflock[transport]'" in " ".join(done.output.split())


# --- the README on a package index ---


@pytest.fixture(scope="module")
def index_readme():
    spec = util.spec_from_file_location("index_readme", ROOT / "docs" / "index_readme.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.index_readme


def targets(text):
    return re.findall(r"\]\(([^)]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M))


def test_an_index_shows_no_broken_image_and_no_dead_link(index_readme):
    text = (ROOT / "README.md").read_text()
    alone = index_readme(text)
    assert len(targets(text)) > 20
    assert targets(alone) == []
    assert "![" not in alone
    for caption in re.findall(r"!\[([^\]]+)\]", text):
        assert caption in alone
    fences = re.compile(r"^```.*?^```$", flags=re.S | re.M)
    assert fences.findall(alone) == fences.findall(text)


def test_with_an_address_every_target_is_absolute(index_readme):
    text = (ROOT / "README.md").read_text()
    base = "https://example.org/tokenflock/"
    assert targets(index_readme(text, base)) == [
        target if "://" in target else base + target for target in targets(text)
    ]


def test_what_is_absolute_already_stays(index_readme):
    text = "[a](https://example.org/a) ![b](https://example.org/b.png) [c](#d) [e](f.md)"
    assert index_readme(text) == text.replace("[e](f.md)", "e")


def test_the_page_on_installing_has_a_line_for_every_extra():
    text = (ROOT / "docs" / "install.md").read_text()
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, flags=re.M)
    named = {name for row in rows for name in re.findall(r"\w+", row)}
    assert named == set(PROJECT["optional-dependencies"])


@pytest.mark.slow
def test_the_wheel_carries_that_text(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("no package index can be reached: the build system cannot be had")
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/METADATA"))
        text = archive.read(name).decode("utf-8")
    about, _, readme = text.partition("\n\n")
    assert "Description-Content-Type: text/markdown" in about
    assert readme.startswith("# tokenflock\n")
    assert targets(readme) == []
    assert {f"Provides-Extra: {extra}" for extra in EXTRAS} <= {*about.splitlines()}
