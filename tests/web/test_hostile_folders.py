"""Folders and processes that mean harm: the library answers, the server lives, and it can be ended."""

import asyncio
import json
import os
import socket
import time

import pytest
from serving import BULKY, in_a_loop, serving, small_run, stand_in_bundle

from tokenflock.web import stores, wire
from tokenflock.web.page_limits import Limits
from tokenflock.web.pool import Pool, Worker, WorkerDied

pytestmark = pytest.mark.xdist_group("hostile-folders")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A good run among traps: a pipe, an endless device, a name that is no text, links that lead out."""
    place = tmp_path_factory.mktemp("traps")
    outside = tmp_path_factory.mktemp("outside")
    small_run().save(place / "good.zarr")
    small_run().save(outside / "secret.zarr")
    (place / "pipe").mkdir()
    os.mkfifo(place / "pipe" / "zarr.json")
    (place / "endless").mkdir()
    os.symlink("/dev/zero", place / "endless" / "zarr.json")
    (place / "linked").mkdir()
    os.symlink(outside / "secret.zarr" / "zarr.json", place / "linked" / "zarr.json")
    (place / "run").mkdir()
    os.symlink(outside / "secret.zarr", place / "run" / "trajectory.zarr")
    odd = os.fsencode(place) + b"/caf\xe9.zarr"
    small_run().save(place / "plain.zarr")
    os.rename(place / "plain.zarr", odd)
    bad = place / "typed.zarr"
    small_run().save(bad)
    content = json.loads((bad / "zarr.json").read_text())
    content["attributes"] |= {"spec": "a string", "trace": [1], "label": {"a": 1}}
    (bad / "zarr.json").write_text(json.dumps(content))
    return place


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    with stand_in_bundle(tmp_path_factory.mktemp("bundle")), serving(folders=[folder]) as served:
        yield served


def test_the_library_lists_what_is_good_and_no_more(server):
    entries = server.get("/api/library").json()
    details = " ".join(entry["detail"] for entry in entries)
    assert len(entries) == 3
    assert "good.zarr" in details
    assert "caf" in details
    assert "secret" not in details


def test_every_entry_opens_or_gives_a_sentence_without_a_path(server, folder):
    for entry in server.get("/api/library").json():
        answer = server.get(f"/api/library/{entry['id']}")
        if answer.status_code == 200:
            assert isinstance(answer.json()["title"], str)
        else:
            assert answer.status_code == 422
            assert str(folder.parent) not in answer.text


def test_a_link_to_a_store_tells_nothing(folder):
    assert stores.describe(folder / "linked") is None
    assert stores.describe(folder / "run") is None


def test_a_connection_that_says_nothing_is_closed(server, monkeypatch):
    from tokenflock.web import serve

    monkeypatch.setattr(serve, "FIRST_REQUEST_SECONDS", 0.5)
    # The bundle of the module's server is still in its place.
    assert server.ping()
    with serving() as other:
        idle = socket.create_connection(("127.0.0.1", other.port))
        idle.sendall(b"GET / HT")
        idle.settimeout(10)
        assert idle.recv(100) == b""
        with other.page() as page:
            time.sleep(0.8)
            page.say({"type": "ping", "id": 1})
            assert page.hear()["type"] == "pong"


def test_headers_are_bounded(server):
    answer = server.http.get("/api/ping", headers={"x-long": "a" * 200_000})
    assert answer.status_code in (400, 431)
    assert server.ping()["ok"]


def test_a_worker_with_unread_words_can_be_ended():
    async def work():
        worker = Worker(Limits())
        await worker.start()
        await worker.ask("run", {"start": BULKY})
        while (await worker.hear())[0] != "frames":
            pass
        await asyncio.sleep(1.0)
        await asyncio.wait_for(worker.kill(), 10)
        assert worker.has_ended

    in_a_loop(work)


def test_an_answer_too_large_to_hear_costs_a_worker_not_the_pool(monkeypatch):
    async def work():
        pool = Pool(1, Limits(), loads_engine=False)
        await pool.start()
        first = pool.workers[0].id
        monkeypatch.setattr(wire, "LARGEST", 1)
        with pytest.raises(WorkerDied):
            await listed(pool)
        monkeypatch.undo()
        assert await listed(pool) == "list"
        assert pool.workers[0].id != first
        await pool.close()

    async def listed(pool):
        async with pool.lease() as worker:
            await worker.ask("list", {"roots": []})
            return (await worker.hear())[0]

    in_a_loop(work)
