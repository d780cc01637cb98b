"""What a stored result is: label, outcome, health, spec, arrays, size, and the failures of a sweep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..results.bounds import bytes_below
from ..results.own_files import is_own_file
from .facts import COLUMNS, JOURNAL, SWEEP_SPEC
from .finding import arrays, list_in, metadata
from .opening import Result
from .verifying import verified

MOST_FAILURES = 1_000
HEALTHY = ("advice", "health")


def describe_result(result: Result, verify: bool = False) -> dict[str, Any]:
    """Everything that can be said without reading an array of results; `verify` reads them to check them."""
    if verify:
        result = replace(result, facts=verified(result.folder, result.facts))
    labels, columns = result.labels, result.facts.columns
    facts = {name: columns.get(name) for name in COLUMNS if columns.get(name) is not None}
    content: dict[str, Any] = {
        "path": str(result.folder),
        **facts,
        "says": _says(labels),
        **{name: labels[name] for name in HEALTHY if name in labels},
        **_said_of_a_part(columns),
        "notes": _notes(result.store),
        "spec": labels.get("spec"),
        "toml": spec_text(result),
        "arrays": [_array(folder) for folder in arrays(result.store)],
        "bytes": bytes_below(result.folder),
    }
    if result.kind == "sweep":
        # The coordinates of failed cells are read through what a damaged sweep refuses.
        failures = [] if columns["damage"] else failures_of(result)
        content |= {"axes": labels.get("axes"), "failures": failures}
    return content


def _said_of_a_part(columns: dict[str, Any]) -> dict[str, str]:
    """A part of an interrupted run tells how the part went; of the run it is known that it can go on."""
    interrupted = columns.get("kind") == "run" and columns.get("outcome") == "interrupted"
    return (
        {"advice": "continue it with tokenflock run --resume --out FOLDER"} if interrupted else {}
    )


def _says(labels: dict[str, Any]) -> str:
    spec = labels.get("spec")
    says = labels.get("says") or (spec.get("says") if isinstance(spec, dict) else "")
    return says if isinstance(says, str) else ""


def spec_text(result: Result) -> str | None:
    """The spec as TOML: of a sweep the one it was started with; None for what has none."""
    import tomli_w

    if result.kind == "sweep":
        from ..lab.files import read_text

        path = result.folder / SWEEP_SPEC
        return read_text(path) if is_own_file(path) else None
    spec = result.labels.get("spec")
    return tomli_w.dumps(spec) if isinstance(spec, dict) else None


def _array(folder: Path) -> dict[str, Any]:
    content = metadata(folder)
    names = list_in(content, "dimension_names")
    return {
        "name": folder.name,
        "dims": [str(name) for name in names],
        "shape": list_in(content, "shape"),
        "dtype": str(content.get("data_type")),
        "coordinate": names == [folder.name],
        "says": _attribute(content, "long_name"),
    }


def _notes(store: Path) -> dict[str, str]:
    """What arrays say of their own meaning, where there is something to say."""
    found = {folder.name: _attribute(metadata(folder), "note") for folder in arrays(store)}
    return {name: note for name, note in found.items() if note}


def _attribute(content: dict[str, Any], name: str) -> str:
    about = content.get("attributes")
    says = about.get(name, "") if isinstance(about, dict) else ""
    return says if isinstance(says, str) else ""


def failures_of(result: Result) -> list[dict[str, Any]]:
    """Coordinates and a sentence for each failed cell, in the order of cells, up to a bound."""
    from ..sweeps.journal import Journal

    if not is_own_file(result.folder / JOURNAL):
        return []
    journal = Journal(result.folder / JOURNAL)
    if journal.header is None or not journal.failed:
        return []
    grid, names = journal.header.grid, journal.header.axes
    dataset = result.dataset()
    values = {name: dataset[name].values for name in names}
    told: list[tuple[tuple[int, ...], str]] = []
    for entry in journal.entries(only_failed=True):
        cells = list(grid.block(entry.block).cells())
        told += [
            (cells[place], text) for place, text in entry.failures.items() if place < len(cells)
        ]
    return [
        {
            "coordinates": {
                name: values[name][k].item() for name, k in zip(names, cell, strict=True)
            },
            "says": text,
        }
        for cell, text in sorted(told)[:MOST_FAILURES]
    ]
