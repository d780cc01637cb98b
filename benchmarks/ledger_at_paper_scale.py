"""Does every claim hold at the papers' own sizes? Verdicts and times, on a GPU if there is one.

Usage: python benchmarks/ledger_at_paper_scale.py OUT.json [PART PARTS]

PART of PARTS lets several processes share a large device.
"""

import json
import sys
import time
from pathlib import Path

from tokenflock.ledger import all_claims
from tokenflock.ledger.batch import summary
from tokenflock.ledger.examine import examine
from tokenflock.provenance import provenance

KEPT = ("id", "verdict", "what", "relation", "measured", "predicted", "tolerance")


def main(out: str, part: int = 0, parts: int = 1) -> None:
    """Examine every claim of this part and write one JSON object."""
    start = time.perf_counter()
    reports = []
    for claim in all_claims()[part::parts]:
        reports.append(examine(claim, "paper"))
        print(f"{reports[-1].verdict:<12} {claim.id} {reports[-1].seconds:.1f} s", flush=True)
    rows = [
        {**{name: getattr(report, name) for name in KEPT}, "seconds": round(report.seconds, 1)}
        for report in reports
    ]
    result = {
        "command": "python benchmarks/ledger_at_paper_scale.py OUT.json",
        "processes": parts,
        "wall_seconds": round(time.perf_counter() - start, 1),
        "provenance": provenance(),
        "summary": summary(reports),
        "claims": rows,
    }
    Path(out).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
