"""How well and how fast does the hardmax classifier learn real reviews? Finished trainings as one table.

Usage: tokenflock train sentiment REVIEWS.csv --only source=imdb --d D --out runs/dD     (for several D)
       python benchmarks/sentiment_reviews.py OUT.json runs/d2 runs/d8 runs/d16
"""

import json
import sys
from pathlib import Path

from tokenflock.applications.benchmarks.machine import describe_machine
from tokenflock.applications.sentiment.folder import read_report


def row(folder: str) -> dict:
    """One training: accuracies with their intervals, losses with softmax and hardmax, seconds."""
    report = read_report(Path(folder))
    if report is None:
        raise SystemExit(f"the training in {folder} has not ended")
    network, bag = report["network"], report["bag of words"]
    return {
        "d": report["settings"]["d"],
        "depth": report["settings"]["depth"],
        "epochs": report["settings"]["epochs"],
        "best_epoch": network["best_epoch"],
        "reviews": report["data"]["parts"],
        "accuracy": network["accuracy"],
        "bag_of_words_accuracy": bag["accuracy"],
        "test_loss_hardmax": network["loss"]["test"],
        "test_loss_softmax": network["test_loss_of_the_softmax_surrogate"],
        "alpha": network["alpha"],
        "leaders": {name: report["leaders"][name] for name in ("mean", "vote_agrees", "norms")},
        "seconds": report["seconds"],
    }


def main(out: str, *folders: str) -> None:
    """Write one JSON object."""
    result = {
        "command": "python benchmarks/sentiment_reviews.py OUT.json FOLDER...",
        "machine": describe_machine("cpu"),
        "rows": [row(folder) for folder in folders],
    }
    Path(out).write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
