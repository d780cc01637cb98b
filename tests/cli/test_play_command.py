"""tokenflock play as a process: it says where it is, and leaves nothing behind."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner
from websockets.sync.client import connect

from tokenflock.cli import app

sys.path.append(str(Path(__file__).parent.parent / "web"))
from serving import ENDLESS, OpenPage, is_alive, stand_in_bundle, until


@pytest.fixture(autouse=True)
def built(tmp_path):
    with stand_in_bundle(tmp_path) as path:
        yield path


@contextlib.contextmanager
def playing(*arguments):
    """The command as a process of its own, and the line it prints."""
    command = [sys.executable, "-m", "tokenflock", "play", "--no-open", *arguments]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    )
    try:
        yield process, process.stdout.readline()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def children(process):
    return [int(i) for i in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def play(*arguments):
    return CliRunner().invoke(app, ["play", "--no-open", *map(str, arguments)])


def test_it_says_where_it_plays_and_ctrl_c_ends_everything(tmp_path):
    """In the middle of a run that does not listen."""
    with playing("--port", "0", str(tmp_path)) as (process, line):
        address = re.fullmatch(
            r"tokenflock plays at (http://127\.0\.0\.1:\d+/); Ctrl-C ends it\n", line
        )[1]
        assert httpx.get(f"{address}api/ping", timeout=30).json()["workers"] >= 1
        workers = children(process.pid)
        assert workers
        with connect(address.replace("http", "ws") + "api/exact") as socket:
            page = OpenPage(socket)
            page.say(ENDLESS)
            page.hear_until("compiling")
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        assert process.returncode == 0
        assert errors == ""
        until(lambda: not any(map(is_alive, workers)), "workers outlive the server")


def test_workers_end_with_a_server_that_is_killed(tmp_path):
    with playing("--port", "0", "--host", "0.0.0.0", str(tmp_path)) as (process, line):
        assert "http://127.0.0.1:" in line
        workers = children(process.pid)
        process.kill()
        _, errors = process.communicate(timeout=20)
        assert "lets others on the network" in errors
        assert workers
        until(lambda: not any(map(is_alive, workers)), "workers outlive the server")


def test_a_taken_port_is_a_sentence():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        failed = play("--port", other.getsockname()[1])
    assert failed.exit_code == 2
    assert "choose another --port" in failed.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such-folder"], "is not a folder"),
        (["--host", "no.such.host.invalid"], "no address"),
        (["--host", "203.0.113.7"], "cannot listen"),
    ],
)
def test_wrong_input_is_a_sentence(arguments, says):
    failed = play(*arguments)
    assert failed.exit_code == 2
    assert says in failed.output
    assert "Traceback" not in failed.output


def test_a_missing_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    failed = play()
    assert failed.exit_code == 2
    assert "pip install 'tokenflock[web]'" in failed.output


def test_a_missing_bundle_says_how_to_build_it(monkeypatch, tmp_path):
    monkeypatch.setenv("TOKENFLOCK_BUNDLE", str(tmp_path / "nothing.js"))
    failed = play()
    assert failed.exit_code == 2
    assert "make page" in failed.output


def test_the_server_itself_loads_no_engine(tmp_path):
    """So that it starts at once and its event loop never waits for a compiler."""
    code = (
        "import sys; from tokenflock.web import app, serve, library, page; "
        "print(*sorted(m.split('.')[0] for m in sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"jax", "diffrax", "xarray", "scipy", "torch"} & set(loaded.stdout.split())
