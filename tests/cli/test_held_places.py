"""Every command that writes a result is refused at once where another one is writing it."""

import pytest
from typer.testing import CliRunner

from tokenflock.cli import app
from tokenflock.cli.held import held
from tokenflock.results.locking import only_writer, only_writer_of

# The command, and the place that it would write. None needs what it reads: it is refused before.
COMMANDS = {
    "trace": (["trace", "no-such-model", "a text", "--out", "result"], "result"),
    "trace report": (["trace", "no-such-model", "text", "--report", "--out", "result"], "result"),
    "retrieval": (["trace", "retrieval", "model", "--random", "4", "--out", "result"], "result"),
    "figure": (["figure", "2312.10794v4/kuramoto", "--out", "picture.svg"], "picture.zarr"),
    "page": (["page", "--out", "site"], "site/index.html"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_second_command_is_refused_before_it_computes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, place = COMMANDS[name]
    with only_writer_of(tmp_path / place):
        before = sorted(tmp_path.rglob("*"))
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 2
        assert "is being written by process" in " ".join(done.output.split())
        assert "Traceback" not in done.output
        assert sorted(tmp_path.rglob("*")) == before
    assert [*tmp_path.iterdir()] == []


def test_a_command_without_a_place_holds_none():
    with held(None):
        pass


def test_a_trace_does_not_replace_a_run(tmp_path):
    """Both have a trajectory.zarr; that of a run stands beside its spec."""
    (tmp_path / "run" / "trajectory.zarr").mkdir(parents=True)
    (tmp_path / "run" / "spec.toml").write_text("")
    out = str(tmp_path / "run")
    done = CliRunner().invoke(app, ["trace", "model", "a text", "--out", out, "--overwrite"])
    assert done.exit_code == 2
    assert "does not hold a trace" in " ".join(done.output.split())


def test_a_benchmark_and_a_report_are_not_written_over_another(tmp_path):
    from tokenflock.applications.benchmarks.files import write
    from tokenflock.errors import StoreError
    from tokenflock.tracing.html_page import write_files

    with only_writer_of(tmp_path / "sum.json"), pytest.raises(StoreError, match="being written"):
        write({}, tmp_path / "sum.json")
    (tmp_path / "trace").mkdir()
    with only_writer(tmp_path / "trace"), pytest.raises(StoreError, match="being written"):
        write_files(tmp_path / "trace", {"report.html": b""})
    assert [item.name for item in tmp_path.iterdir()] == ["trace"]
    assert not any((tmp_path / "trace").iterdir())
