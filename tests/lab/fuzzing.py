"""Mutants through the commands, as a user would give them: what came of each, and what must never come."""

import json
import warnings

import pytest
import tomli_w
from compiled_programs import make_room
from gentle_mutants import BASES as BASE_TABLES
from gentle_mutants import mutant
from typer.testing import CliRunner

import tokenflock as flock
from tokenflock.cli import app
from tokenflock.errors import InputError, TokenflockError
from tokenflock.integrate.core import integrate
from tokenflock.lab.files import parse, render
from tokenflock.lab.job import Job
from tokenflock.sweeps.cells import Cells
from tokenflock.sweeps.plan import parse_sweep

CODES = {0, 1, 2, 3}


def call(*arguments):
    """A command in this process."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    told = result.stdout + result.stderr
    expected = result.exception is None or isinstance(result.exception, SystemExit)
    assert expected, f"{type(result.exception).__name__}: {result.exception}"
    assert result.exit_code in CODES, f"exit code {result.exit_code}"
    for words in ("unexpected", "Traceback"):
        assert words not in told, result.stderr[-300:]
    return result


def tried(seed, place, **options):
    """Run a mutant for real in a folder of its own: "refused", "finished" or "failed".

    Whatever came of it: an exit code of ours, a sentence, nothing half-written, and results that open.
    """
    make_room()
    name, changes, table = mutant(seed, **options)
    is_sweep = "sweep" in BASE_TABLES[name]
    command = ["sweep", "--workers", "1"] if is_sweep else ["run"]
    place.mkdir()
    spec, folder = place / "spec.toml", place / "result"
    spec.write_text(tomli_w.dumps(table), encoding="utf-8")
    try:
        first = call(*command, spec, "--out", folder, "--json")
        left = sorted(item.name for item in place.iterdir())
        if first.exit_code == 2 or not folder.exists():
            assert first.stderr.strip(), "refused without a word"
            assert left == ["spec.toml"], f"refused, and left {left}"
            return "refused"
        assert left == ["result", "spec.toml"], f"it left {left}"
        _check_result(folder, is_sweep, first)
        again = call(*command, "--resume", "--out", folder, "--json")
        assert again.exit_code == first.exit_code, "resumed, and ended otherwise"
    except AssertionError as error:
        raise AssertionError(f"mutant {seed} of {name} ({', '.join(changes)}): {error}") from error
    return "finished" if first.exit_code == 0 else "failed"


def _check_result(folder, is_sweep, first):
    hidden = [item.name for item in folder.rglob(".*") if item.name.startswith(".writing")]
    assert not hidden, f"half-written {hidden}"
    try:
        opened = flock.open(folder) if is_sweep else flock.open(folder).dataset
        opened.load()
    except TokenflockError as error:
        raise AssertionError(f"cannot be opened: {error}") from error
    assert json.loads(first.stdout) == json.loads((folder / "summary.json").read_text())
    assert call("show", folder, "--json").exit_code == 0


def share_programs(patch):
    """Runs whose programs have the same shapes compile one: what is compiled is not tried here."""

    def compile_it(job):
        try:
            integrate(*job._arguments(job.start(), job.parts[0]))
        except TokenflockError:
            raise
        except Exception as error:
            raise InputError(f"this spec does not make a program: {error}") from error
        job._program = integrate

    patch.setattr(Job, "compile", compile_it)
    patch.setattr("tokenflock.lab.parts.PARTS", 2)
    patch.setenv("TOKENFLOCK_MEMORY_GIB", "0.5")


@pytest.fixture(scope="module")
def shared_shapes():
    """Programs of this module are shared."""
    with pytest.MonkeyPatch.context() as patch:
        share_programs(patch)
        yield


def built(seed, **options):
    """Make a mutant ready to run, and no more: "refused" or "accepted". What is printed reads back."""
    name, changes, table = mutant(seed, **options)
    text = tomli_w.dumps(table)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _built(text, "sweep" in BASE_TABLES[name])
    except TokenflockError as error:
        sound = str(error) and error.exit_code == 2 and "\n" not in str(error)
        assert sound, f"mutant {seed} of {name} ({', '.join(changes)}): {error!r}"
        return "refused"
    except Exception as error:
        told = f"mutant {seed} of {name} ({', '.join(changes)}): {type(error).__name__}: {error}"
        raise AssertionError(told) from error


def _built(text, is_sweep):
    if is_sweep:
        sweep = parse_sweep(text)
        assert parse_sweep(sweep.text).id == sweep.id
        Cells(sweep).cell((0,) * len(sweep.axes))
        return "accepted"
    spec = parse(text)
    assert parse(render(spec)) == spec
    job = Job(spec)
    assert job.parts[-1].times[-1] == spec.solve.t1
    return "accepted"
