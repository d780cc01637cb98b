"""The page as one file: everything inside, nothing that a text can break out of, never half written."""

import json
import os
import re

import numpy as np
import pytest
from packed import unpack
from serving import STAND_IN, stand_in_bundle
from test_replay import made, on_sphere
from typer.testing import CliRunner

from tokenflock.cli import app
from tokenflock.errors import InputError
from tokenflock.web import bundle
from tokenflock.web.bundle import escape_script, static_page
from tokenflock.web.replay import run_replay

RNG = np.random.default_rng(3)
BREAKING = "</script><script>alert(1)</script><!-- \u2028 ]]>"


@pytest.fixture(autouse=True)
def built(tmp_path):
    with stand_in_bundle(tmp_path) as path:
        yield path


def page(*arguments):
    return CliRunner().invoke(app, ["page", *map(str, arguments)])


def options_of(document):
    return json.loads(re.search(r'application/json">(.*?)</script>', document, re.DOTALL)[1])


def test_the_file_holds_the_module_and_asks_for_nothing(tmp_path):
    found = page("--out", tmp_path / "site")
    assert found.exit_code == 0
    document = (tmp_path / "site" / "index.html").read_text()
    assert STAND_IN.strip() in document
    assert options_of(document)["mode"] == "static"
    assert "src=" not in document
    assert re.findall(r'href="(?!data:)', document) == []
    assert os.listdir(tmp_path / "site") == ["index.html"]


def test_texts_of_a_run_stay_texts():
    states = on_sphere(3, 4, 3)
    run = made(states)
    run.attributes["spec"] = {"title": BREAKING, "says": BREAKING}
    document = static_page([run_replay(run)])
    assert document.count("<script") == 2
    assert document.count("</script>") == 2
    (replay,) = options_of(document)["replays"]
    assert replay["title"] == replay["says"] == BREAKING
    np.testing.assert_allclose(unpack(replay["points"]), states, atol=1e-6)


def test_a_module_cannot_end_its_own_element(built):
    built.write_text('const a = "</script>", b = `<!--`, c = /<\\/SCRIPT/; if (d<!--e) f();')
    document = static_page([])
    assert document.count("</script>") == 2
    assert "<!--" not in document
    assert "</SCRIPT" not in document
    assert r'const a = "\x3c/script>", b = `\x3c!--`' in document
    assert "if (d< !--e) f();" in document


def test_what_is_escaped_means_the_same():
    """As Python reads the same escapes in a string."""
    text = "</script> <!-- </ScRiPt"
    assert escape_script(text).encode().decode("unicode_escape") == text


def test_what_is_there_is_not_overwritten(tmp_path):
    place = tmp_path / "site" / "index.html"
    place.parent.mkdir()
    place.write_text("mine")
    refused = page("--out", place.parent)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.output
    assert place.read_text() == "mine"
    foreign = page("--out", place.parent, "--overwrite")
    assert foreign.exit_code == 2
    assert "no page of tokenflock" in foreign.output
    place.write_text('<div id="tokenflock-page">old</div>')
    assert page("--out", place.parent, "--overwrite").exit_code == 0
    assert "old</div>" not in place.read_text()


def test_a_failed_write_leaves_the_old_page(tmp_path, monkeypatch):
    place = tmp_path / "site" / "index.html"
    place.parent.mkdir()
    old = '<div id="tokenflock-page">old</div>'
    place.write_text(old)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    failed = page("--out", place.parent, "--overwrite")
    assert failed.exit_code == 1
    assert "no space" in failed.output.lower()
    assert place.read_text() == old
    assert os.listdir(place.parent) == ["index.html"]


def test_what_is_wrong_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    for arguments in (
        ["--out", tmp_path / "file"],
        ["--out", tmp_path / "site", tmp_path / "nothing"],
        ["--out", tmp_path / "site", tmp_path / "file"],
    ):
        failed = page(*arguments)
        assert failed.exit_code == 2, arguments
        assert failed.output.startswith("tokenflock: ")
        assert "Traceback" not in failed.output
    assert not (tmp_path / "site").exists()


def test_a_missing_bundle_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv(bundle.BUNDLE_VARIABLE, str(tmp_path / "no.js"))
    with pytest.raises(InputError, match="make page"):
        bundle.require_bundle()
    failed = page("--out", tmp_path / "site")
    assert failed.exit_code == 2
    assert "make page" in failed.output


def test_json_says_what_was_written(tmp_path):
    found = json.loads(page("--out", tmp_path / "site", "--json").output)
    assert found["page"] == str(tmp_path / "site" / "index.html")
    assert found["bytes"] == (tmp_path / "site" / "index.html").stat().st_size
    assert found["replays"] == []
