"""The page and the engine speak of the same thing: what every preset sends, the engine can run."""

import json
import subprocess
from pathlib import Path

import pytest
from browser_code import node

from tokenflock.lab.spec import RunSpec
from tokenflock.lab.tokens import build_tokens
from tokenflock.web.exact import resolve
from tokenflock.web.messages import parse
from tokenflock.web.page_limits import Limits

RUNNER = Path(__file__).with_name("request_runner.ts")


@pytest.fixture(scope="module")
def requests():
    done = subprocess.run([node(), str(RUNNER)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def resolved(requests):
    """Read as the server reads them, and made into specs as a worker does."""
    checked = {name: parse(json.dumps(request)) for name, request in requests.items()}
    plain = {name: start.model_dump(exclude_none=True) for name, start in checked.items()}
    return {name: (plain[name], *resolve(plain[name], Limits())) for name in plain}


def test_every_preset_is_understood(resolved):
    assert len(resolved) >= 20
    assert all(isinstance(spec, RunSpec) for _, spec, _ in resolved.values())


def test_flows_are_solved_to_a_tolerance_and_the_rest_keeps_its_steps(resolved):
    methods = set()
    for request, spec, _ in resolved.values():
        asked = request["spec"]
        noisy = "noise" in asked["model"]
        expected = asked["solve"]["method"]
        expected = "adaptive" if expected == "fixed" and not noisy else expected
        assert spec.solve.method == expected
        methods.add((expected, noisy))
        if expected == "adaptive":
            assert (spec.solve.rtol, spec.solve.atol) == (1e-8, 1e-10)
    assert {("adaptive", False), ("layers", False)} <= methods


def test_a_drag_starts_from_the_tokens_shown(resolved):
    for name, (_, spec, _) in resolved.items():
        if name.endswith(", dragged"):
            assert spec.tokens.law == "points"
            start = build_tokens(resolved[name.removesuffix(", dragged")][1].tokens)
            assert abs(build_tokens(spec.tokens).points - start.points).max() < 1e-12


def test_the_page_asks_for_no_more_frames_than_it_gets(resolved):
    assert {name: notes for name, (_, _, notes) in resolved.items() if notes} == {}
