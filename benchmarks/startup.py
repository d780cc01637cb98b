"""How long until a user sees something: import, --help, and a second `tokenflock run`.

Usage: python benchmarks/startup.py [--json]. Medians of repeated fresh processes; the table is also
written to benchmarks/results/startup.json.
"""

import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PYTHON = sys.executable
COMMAND = str(Path(PYTHON).with_name("tokenflock"))
GOALS = {"import tokenflock": 0.5, "tokenflock --help": 0.8}


def seconds(command):
    """Wall-clock time of one fresh process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def measure(command, repeats):
    """Median and spread; the first call warms the disk cache and is dropped."""
    times = [seconds(command) for _ in range(repeats + 1)][1:]
    return {
        "median_s": round(statistics.median(times), 3),
        "spread_s": round(max(times) - min(times), 3),
    }


def main():
    """Measure, print, and store the table."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "run")
        demo = [COMMAND, "run", "--example", "sphere", "--out", out, "--overwrite", "--json"]
        rows = {
            "import tokenflock": measure([PYTHON, "-c", "import tokenflock"], 7),
            "python -c pass": measure([PYTHON, "-c", "pass"], 7),
            "tokenflock --help": measure([COMMAND, "--help"], 7),
            "tokenflock run --example sphere (warm)": measure(demo, 2),
        }
    for name, goal in GOALS.items():
        rows[name]["goal_s"] = goal
    machine = f"{platform.processor() or platform.machine()}, {platform.system()}, 2 cores"
    result = {
        "name": "startup",
        "machine": machine,
        "python": platform.python_version(),
        "rows": rows,
    }
    target = Path(__file__).parent / "results" / "startup.json"
    target.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result) if "--json" in sys.argv else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
