"""Rebuild docs/ledger.md: check every claim and write the table of verdicts.

Usage: make ledger            (quick scale; minutes)
       make ledger SCALE=paper
"""

import argparse
import datetime
import os
import platform
from pathlib import Path

from tokenflock.cli.check import written
from tokenflock.ledger import all_claims, asking_claims, check_many
from tokenflock.ledger.batch import summary
from tokenflock.ledger.finding import papers
from tokenflock.provenance import versions

LEDGER = Path(__file__).parent / "ledger.md"
PREFACE = """# The ledger

What the papers claim, executed. `make ledger` writes this page; `tokenflock check` reproduces it, and
`tokenflock check ID` tells one claim in full. Every line compares a measured number with what the
statement predicts, up to a tolerance. The error is how far halving the solver's tolerances moves the
number; where that is more than a tenth of the margin the verdict is *inconclusive*. The control is the
same measurement with a hypothesis broken: it is run every time and must fail. A misprint is the form as
printed: it must fail too. One correction cannot be run: 2312.10794v4 says in a footnote that the tokens of
ALBERT-XLarge live in R^4096; the hidden size of the model used is 2048.
"""


def main() -> None:
    """Check everything, then write the page at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=("quick", "paper"), default="quick")
    scale = parser.parse_args().scale
    reports = {}
    for report in check_many([claim.id for claim in all_claims()], scale):
        reports[report.id] = report
        print(f"{len(reports):>3} {report.verdict:<12} {report.id}", flush=True)
    lines = [PREFACE, *_heading(list(reports.values()), scale)]
    for paper in papers():
        lines += [
            "",
            f"## {paper.id}: {paper.title}",
            "",
            f"{paper.authors}. Read in: {paper.seen}.",
            "",
        ]
        lines += _table([reports[claim.id] for claim in paper.claims if not claim.asks])
    lines += _on_checkpoints()
    LEDGER.write_text("\n".join(lines) + "\n")


def _heading(reports: list, scale: str) -> list[str]:
    totals, used = summary(reports), versions()
    return [
        f"**{totals['claims']} claims: {totals['holds']} hold, {totals['fails']} fail, "
        f"{totals['inconclusive']} inconclusive; {totals['controls_failed']} controls failed, as they "
        f"must.** Scale {scale}, seed 0, {totals['seconds']:.0f} s of computing in all.",
        "",
        f"{datetime.date.today().isoformat()}, tokenflock {used['tokenflock']}, jax {used['jax']}, "
        f"diffrax {used['diffrax']}, Python {used['python']}, {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores.",
    ]


def _on_checkpoints() -> list[str]:
    """Claims about a trained network are run on the reader's own; docs/trace.md shows results."""
    lines = ["", "## On trained networks", ""]
    for claim in asking_claims():
        lines.append(
            f"- `{claim.id}`: {claim.says} *{claim.note}* Run it with `tokenflock check {claim.id} "
            f"--set {claim.asks}=...`; results on public weights are in [trace.md](trace.md)."
        )
    return lines


def _table(reports: list) -> list[str]:
    rows = [
        "| claim | says | verdict | measured and predicted | control, which must fail |",
        "|---|---|---|---|---|",
    ]
    for report in reports:
        cells = [
            f"`{report.id.split('/', 1)[1]}` {report.where}",
            " ".join([report.says, *([f"*{report.note}*"] if report.note else [])]),
            f"**{report.verdict}**" + (f": {report.reason}" if report.reason else ""),
            report.evidence,
            "; ".join(
                [_trial("", report.control), *(_trial("misprint: ", e) for e in report.errata)]
            ),
        ]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return rows


def _trial(kind: str, trial: dict) -> str:
    changed = ", ".join(f"{name}={value}" for name, value in trial["settings"].items())
    fate = "fails" if trial["failed"] else "**does not fail**"
    return f"{kind}{trial['why']} ({changed}): {fate}, {written(trial)}"


if __name__ == "__main__":
    main()
