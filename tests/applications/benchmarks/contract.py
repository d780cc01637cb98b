"""What a result is, said once for measured and for committed ones."""

import json

import pytest

from tokenflock.applications.benchmarks.core import UNITS

TOP = {"name", "scale", "machine", "command", "date", "seconds", "versions", "rows"}
ROW = {"case", "ours", "unit", "error", "bound", "peers", "peer_errors", "missing", "ratio"}
ROW |= {"spread", "bars"}


def check_result(result):
    """The JSON object of one benchmark."""
    assert set(result) == TOP
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["rows"]
    assert result["machine"]
    assert {"python", "tokenflock", "jax", "numpy"} <= set(result["versions"])
    assert (
        result["command"] == f"tokenflock bench {result['name']} --scale {result['scale']} --json"
    )
    for row in result["rows"]:
        check_row(row)
    cases = [row["case"] for row in result["rows"]]
    assert len(set(cases)) == len(cases)


def check_row(row):
    assert set(row) == ROW
    assert row["unit"] in UNITS
    assert row["ours"] >= 0 or row["unit"] == "exponent"
    assert row["error"] is None or row["error"] >= 0
    assert row["spread"] is None or row["spread"] >= 0
    assert set(row["peer_errors"]) <= set(row["peers"])
    if not row["peers"]:
        assert row["ratio"] is None
        return
    larger_is_better = UNITS[row["unit"]]
    peers = row["peers"].values()
    best = max(peers) if larger_is_better else min(peers)
    expected = row["ours"] / best if larger_is_better else best / row["ours"]
    assert row["ratio"] == pytest.approx(expected, rel=2e-3)
