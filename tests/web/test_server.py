"""The server as a browser and a script see it: the page, its module, the API and its description."""

import json
import shutil

import numpy as np
import pytest
import schemathesis
import xarray as xr
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from packed import unpack
from serving import STAND_IN, serving, settings, small_run, stand_in_bundle

import tokenflock as flock
from tokenflock.web.serve import DEFAULT_PORT, PortTaken, bind

# One process of the test run starts this server, not each.
pytestmark = pytest.mark.xdist_group("page-server")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder with a run and a sweep, and the run."""
    root = tmp_path_factory.mktemp("library")
    run = small_run()
    run.save(root / "shelf" / "deeper" / "mine")
    sweep = xr.Dataset(
        {"order": (("beta", "n"), np.arange(6.0).reshape(2, 3))},
        coords={"beta": [1.0, 4.0], "n": [8, 16, 32]},
        attrs={"title": "a map", "spec": settings()},
    )
    sweep.to_zarr(root / "shelf" / "map.zarr", zarr_format=3, consolidated=False)
    (root / "shelf" / "notes.txt").write_text("not a run")
    return root / "shelf", run


@pytest.fixture(scope="module")
def server(shelf, tmp_path_factory):
    with stand_in_bundle(tmp_path_factory.mktemp("bundle")), serving([shelf[0]]) as served:
        yield served


def test_the_page_holds_its_options_and_asks_only_this_server(server):
    answer = server.get("/")
    assert answer.status_code == 200
    assert "text/html" in answer.headers["content-type"]
    assert '<div id="tokenflock-page">' in answer.text
    options = answer.text.split('type="application/json">')[1].split("</script>")[0]
    assert json.loads(options) == {"mode": "served", "version": flock.__version__, "replays": []}
    assert answer.text.count("<script") == 2
    assert '<script type="module" src="/tokenflock.js">' in answer.text
    for elsewhere in ("http://", "https://", "//cdn"):
        assert elsewhere not in answer.text


def test_the_module_is_served_as_javascript(server):
    answer = server.get("/tokenflock.js")
    assert answer.text == STAND_IN
    assert answer.headers["content-type"].startswith("text/javascript")


def test_every_answer_is_locked_down(server):
    for path in ("/", "/tokenflock.js", "/api/ping", "/api/library", "/nothing"):
        headers = server.get(path).headers
        assert "script-src 'self';" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        stored = "no-store" if path.startswith("/api/") else "no-cache"
        assert headers["cache-control"] == stored


def test_the_library_lists_what_the_folders_hold(server):
    entries = server.get("/api/library").json()
    assert [(entry["kind"], entry["title"]) for entry in entries] == [
        ("run", "SA"),
        ("sweep", "a map"),
    ]
    assert "8 tokens in 3 dimensions" in entries[0]["detail"]
    assert "beta and n" in entries[1]["detail"]
    assert all("/" not in entry["id"] and len(entry["id"]) == 16 for entry in entries)


def test_what_is_listed_can_be_opened(server, shelf):
    run, sweep = (server.get(f"/api/library/{e['id']}") for e in server.get("/api/library").json())
    np.testing.assert_allclose(unpack(run.json()["points"]), shelf[1].states, atol=1e-6)
    assert run.json()["times"] == [0.0, 0.5, 1.0]
    assert run.headers["content-type"] == "application/json"
    assert sweep.json()["rows"] == {"name": "beta", "values": [1.0, 4.0]}
    assert sweep.json()["columns"] == {"name": "n", "values": [8.0, 16.0, 32.0]}
    assert sweep.json()["spec"] == settings()


def test_a_new_run_appears_in_the_library(server, shelf):
    before = len(server.get("/api/library").json())
    shutil.copytree(shelf[0] / "deeper" / "mine", shelf[0] / "later")
    after = server.get("/api/library").json()
    shutil.rmtree(shelf[0] / "later")
    assert len(after) == before + 1
    assert len({entry["id"] for entry in after}) == len(after)
    assert any(entry["detail"].endswith("later") for entry in after)


def test_a_damaged_run_is_a_sentence(server, shelf):
    shutil.copytree(shelf[0] / "deeper" / "mine", shelf[0] / "zz-damaged")
    for chunk in (shelf[0] / "zz-damaged" / "states").rglob("*"):
        if chunk.is_file() and chunk.name != "zarr.json":
            chunk.write_bytes(b"garbage")
    entry = next(e for e in server.get("/api/library").json() if "zz-damaged" in e["detail"])
    answer = server.get(f"/api/library/{entry['id']}")
    shutil.rmtree(shelf[0] / "zz-damaged")
    assert answer.status_code == 422
    assert "not a readable" in answer.json()["detail"]


def test_an_unknown_id_is_not_found(server):
    assert server.get("/api/library/0123456789abcdef").status_code == 404


def test_ping_says_how_busy_it_is(server):
    with server.page(), server.page():
        assert server.ping() == {
            "ok": True,
            "version": flock.__version__,
            "pages": 2,
            "workers": 1,
            "idle": 1,
            "waiting": 0,
        }


@pytest.fixture(scope="module")
def api(server):
    return schemathesis.openapi.from_url(f"{server.url}/api/openapi.json")


@schemathesis.pytest.from_fixture("api").parametrize()
@hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
def test_the_api_keeps_to_its_description(case):
    """Requests in and out of the OpenAPI description: never a server error, always as described."""
    case.call_and_validate()


def test_ports():
    first = bind("127.0.0.1", 0)
    with pytest.raises(PortTaken, match="choose another --port"):
        bind("127.0.0.1", first.port)
    near = bind("127.0.0.1", None)
    again = bind("127.0.0.1", None)
    assert DEFAULT_PORT <= near.port < again.port
    for place in (first, near, again):
        place.listener.close()
