"""No other site, no path, no message can make the server do what it should not."""

import json
import os
import shutil
import socket

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from serving import serving, settings, small_run, stand_in_bundle, start, until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tokenflock.errors import InputError
from tokenflock.web.guard import Addresses
from tokenflock.web.messages import parse
from tokenflock.web.page import Page
from tokenflock.web.page_limits import Limits

# One process of the test run starts this server, not each.
pytestmark = pytest.mark.xdist_group("page-server")
PAGES = 5
KNOWN = {"hello", "queued", "compiling", "frames", "done", "cancelled", "error", "pong"}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A shelf with links: one to a run outside, one to the parent, and a store with a stray chunk."""
    root = tmp_path_factory.mktemp("safety")
    shelf = root / "shelf"
    small_run().save(shelf / "own")
    shutil.copytree(shelf / "own", root / "outside" / "secret")
    (shelf / "to-secret").symlink_to(root / "outside" / "secret")
    (shelf / "to-parent").symlink_to(root)
    (shelf / "to-itself").symlink_to(shelf)
    shutil.copytree(shelf / "own", shelf / "stray")
    chunk = next(
        p
        for p in (shelf / "stray" / "states").rglob("*")
        if p.is_file() and p.parent.name != "states"
    )
    kept = root / "outside" / "chunk"
    os.replace(chunk, kept)
    chunk.symlink_to(kept)
    (shelf / "hostile").mkdir()
    (shelf / "hostile" / "zarr.json").write_text("[" * 100_000)
    (shelf / "odd.zarr").mkdir()
    (shelf / "odd.zarr" / "zarr.json").write_text(
        '{"node_type": "group", "attributes": {"spec": 3}}'
    )
    (shelf / "odd.zarr" / "x").mkdir()
    (shelf / "odd.zarr" / "x" / "zarr.json").write_text('{"dimension_names": 7, "shape": "no"}')
    return shelf


@pytest.fixture(scope="module")
def server(shelf, tmp_path_factory):
    with (
        stand_in_bundle(tmp_path_factory.mktemp("bundle")),
        serving([shelf], pages=PAGES, starts_per_minute=400) as served,
    ):
        yield served


@pytest.fixture
def page(server):
    with server.page() as opened:
        yield opened


def is_well(server):
    return server.ping()["ok"]


# --- who asks ---


@pytest.mark.parametrize("path", ["/", "/tokenflock.js", "/api/ping", "/api/library"])
def test_another_name_for_this_machine_is_refused(server, path):
    """DNS rebinding: the site's own name points here, and comes in the Host header."""
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1:1", "127.0.0.1", ""):
        assert server.get(path, host=host).status_code == 421, host
    for host in ("127.0.0.1", "localhost", "[::1]", "LOCALHOST"):
        assert server.get(path, host=f"{host}:{server.port}").status_code == 200, host


def test_other_sites_are_refused(server):
    own = f"http://127.0.0.1:{server.port}"
    assert server.get("/api/library", origin=own).status_code == 200
    for origin in (
        "https://evil.example",
        "null",
        f"http://localhost:{server.port + 1}",
        own + ".",
    ):
        assert server.get("/api/library", origin=origin).status_code == 403, origin
    for site in ("cross-site", "same-site", "nonsense"):
        assert server.get("/api/library", **{"sec-fetch-site": site}).status_code == 403
        assert server.get("/tokenflock.js", **{"sec-fetch-site": site}).status_code == 403
    assert server.get("/api/library", **{"sec-fetch-site": "same-origin"}).status_code == 200


def test_a_link_on_another_site_opens_the_page_and_nothing_else(server):
    opening = {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
    }
    assert server.get("/", **opening).status_code == 200
    assert server.get("/api/library", **opening).status_code == 403
    assert server.get("/", **{**opening, "sec-fetch-dest": "iframe"}).status_code == 403


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"Origin": "http://127.0.0.1:{port}"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://127.0.0.1:1"}, False),
        ({"Host": "evil.example:{port}", "Origin": "http://evil.example:{port}"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
    ],
)
def test_a_websocket_is_for_the_own_page(server, headers, allowed):
    address = f"ws://127.0.0.1:{server.port}/api/exact"
    given = {name: value.format(port=server.port) for name, value in headers.items()}
    if allowed:
        with connect(address, additional_headers=given) as socket:
            assert json.loads(socket.recv(5))["type"] == "hello"
    else:
        with pytest.raises(InvalidStatus) as refused, connect(address, additional_headers=given):
            pass
        # Two Host headers are refused by the parser already.
        assert refused.value.response.status_code in (400, 403)


def test_two_hosts_in_one_request_are_refused(server):
    lines = [f"Host: 127.0.0.1:{server.port}", "Host: evil.example"]
    assert raw(server, "GET /api/ping HTTP/1.1", *lines).split()[1] in ("400", "421")


def raw(server, *lines):
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1"))
        return connection.makefile("rb").read().decode("latin-1")


def test_addresses_of_a_server_for_everyone():
    everyone = Addresses("0.0.0.0", 80)
    assert everyone.includes("192.168.1.7")
    assert everyone.includes("192.168.1.7:80")
    assert everyone.includes("[fe80::1]:80")
    assert not everyone.includes("evil.example")
    assert not everyone.includes("192.168.1.7.evil.example:80")
    chosen = Addresses("lab.example", 8000)
    assert chosen.includes("Lab.Example:8000")
    assert not chosen.includes("other.example:8000")
    assert not chosen.includes("192.168.1.7:8000")
    for nonsense in ("", ":", "[::1", "127.0.0.1:80:80", "127.0.0.1:", "127.0.0.1:٨٠", "a:999999"):
        assert not everyone.includes(nonsense), nonsense


# --- paths ---


@pytest.mark.parametrize(
    "path",
    [
        "/../../../etc/passwd",
        "/api/library/../../../etc/passwd",
        "/api/library/..%2f..%2f..%2fetc%2fpasswd",
        "/api/library/%2e%2e/%2e%2e/secret",
        "/api/library/" + "a" * 5000,
        "/api/library/%00",
        "/tokenflock.js/../server.py",
        "/static/tokenflock.js",
        "/api/library/\\..\\..\\secret",
    ],
)
def test_no_path_reaches_the_file_system(server, path):
    status = raw(server, f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}").split()[1]
    assert status in ("400", "404", "422"), status
    assert is_well(server)


def test_links_that_lead_outside_are_not_followed(server):
    entries = server.get("/api/library").json()
    assert sorted(entry["detail"].split(", ")[-1] for entry in entries) == ["own", "stray"]


def test_a_store_with_a_stray_chunk_is_not_read(server):
    entry = next(e for e in server.get("/api/library").json() if e["detail"].endswith("stray"))
    answer = server.get(f"/api/library/{entry['id']}")
    assert answer.status_code == 422
    assert "link that leads out" in answer.json()["detail"]


# --- messages ---

WRONG = {
    "nothing": "",
    "no JSON": "hello",
    "half": '{"type": "start"',
    "a list": "[]",
    "a number": "7",
    "null": "null",
    "no type": "{}",
    "unknown": '{"type": "shutdown"}',
    "deep": "[" * 100_000 + "]" * 100_000,
    "deep spec": '{"type":"start","spec":' + '{"a":' * 5_000 + "1" + "}" * 5_001,
    "NaN": json.dumps(start(t1=float("nan"))),
    "infinite": json.dumps(start(t1=1e999)),
    "endless": start(t1=1e300),
    "backwards": start(t1=-1.0),
    "no frames": start(every=0.0),
    "text": start(t1="4"),
    "too exact": start(rtol=1e-30),
    "extra": start(command="rm"),
    "float id": {"type": "ping", "id": 1.5},
    "huge id": {"type": "ping", "id": 10**400},
    "many tokens": start(settings(tokens={"law": "uniform", "d": 3, "n": 4097, "seed": 0})),
    "huge n": start(settings(tokens={"law": "uniform", "d": 3, "n": 10**12, "seed": 0})),
    "many samples": start(
        settings(tokens={"law": "uniform", "d": 3, "n": 9, "seed": 0, "samples": 10**6})
    ),
    "high": start(settings(tokens={"law": "uniform", "d": 4, "n": 9, "seed": 0})),
    "grouped": start(
        settings(
            tokens={
                "law": "arcs",
                "d": 2,
                "centres": [0.0] * 99,
                "per_cluster": 99,
                "width": 1,
                "seed": 0,
            }
        )
    ),
    "several betas": start(settings(model={"name": "SA", "beta": [1, 2]})),
    "other model": start(settings(model={"name": "KernelFlow", "phi": [1.0]})),
    "big matrix": start(
        settings(model={"name": "SA", "beta": 1, "weights": {"V": [[1.0] * 99] * 99}})
    ),
    "wide": start(
        settings(
            model={
                "name": "SA",
                "beta": 1,
                "plus": {
                    "width": 10**6,
                    "seed": 0,
                    "scale": 1,
                    "gradient": False,
                    "activation": "relu",
                },
            }
        )
    ),
    "small steps": start(
        settings(solve={"t1": 9, "method": "layers", "step": 1e-9, "seed": 0}), t1=9.0
    ),
    "a file": start(settings(tokens={"law": "points", "d": 3, "points": "/etc/passwd"})),
    "long title": start(settings(title="x" * 81)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_message_gets_a_sentence(page, name):
    page.say(WRONG[name])
    answer = page.hear()
    assert answer["type"] == "error"
    assert 5 < len(answer["message"]) <= 400
    page.say({"type": "ping", "id": 1})
    assert page.hear() == {"type": "pong", "id": 1}


def test_binary_messages_get_a_sentence(page):
    page.say(b"\x00\xff" * 1000)
    assert "JSON text" in page.hear()["message"]


def test_a_message_that_is_too_large_closes_its_page_only(server):
    with server.page() as other, server.page() as page:
        page.say(" " * (Limits().message_bytes + 1))
        with pytest.raises(ConnectionClosed) as closed:
            page.hear(5)
        assert closed.value.rcvd.code == 1009
        other.say({"type": "ping", "id": 2})
        assert other.hear()["id"] == 2


def test_one_page_too_many_is_told_so(server):
    opened = [server.page() for _ in range(PAGES)]
    try:
        for page in opened:
            page.__enter__()
        with connect(f"ws://127.0.0.1:{server.port}/api/exact") as late:
            assert "--max-pages" in json.loads(late.recv(5))["message"]
            with pytest.raises(ConnectionClosed) as closed:
                late.recv(5)
        assert closed.value.rcvd.code == 1013
    finally:
        for page in opened:
            page.__exit__(None, None, None)
    until(lambda: server.ping()["pages"] == 0, "pages are still counted")
    with server.page():
        assert is_well(server)


def test_starts_are_counted():
    page = Page(None, None, Limits(starts_per_minute=2))
    for _ in range(2):
        page.count_start()
    with pytest.raises(InputError, match="within a minute"):
        page.count_start()


VALID = [
    start(),
    start(settings(model={"name": "USA", "beta": 1, "convention": "perspective"})),
    start(settings(solve={"t1": 1, "method": "layers", "step": 0.5, "seed": 0})),
    {"type": "cancel"},
    {"type": "ping", "id": 3},
]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))


def changed(message, path, junk):
    if not path:
        return junk
    return {**message, path[0]: changed(message[path[0]], path[1:], junk)}


@st.composite
def mutants(draw):
    """A valid message with one or two places replaced, or plain junk."""
    message = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 2))):
        if isinstance(message, dict):
            message = changed(message, draw(st.sampled_from(list(places(message)))), draw(JUNK))
    return json.dumps(message)


FUZZ = hypothesis_settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@FUZZ
@given(text=mutants() | st.text(max_size=200))
def test_any_text_is_a_message_or_a_sentence(text):
    try:
        parse(text)
    except InputError as error:
        assert 0 < len(str(error)) <= 400


@FUZZ
@given(text=mutants() | st.text(max_size=200) | st.binary(max_size=200))
def test_the_server_survives_any_message(server, text):
    """Whatever is said is answered with known messages, the page stays open, and so does the server."""
    with server.page() as page:
        page.say(text)
        first = page.hear()
        page.say({"type": "cancel"})
        page.say({"type": "ping", "id": 99})
        heard = [first, *page.hear_until("pong")]
        while heard[-1]["id"] != 99:
            heard += page.hear_until("pong")
    assert {message["type"] for message in heard} <= KNOWN
    assert is_well(server)
