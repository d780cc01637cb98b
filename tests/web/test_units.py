"""The front end's own tests of what needs no browser: links, history, palettes, presets, the tour."""

import re
import subprocess
from pathlib import Path

from browser_code import node

WEB = Path(__file__).parent.parent.parent / "web"


def test_the_front_ends_own_tests_pass():
    files = sorted(str(path) for path in (WEB / "test").glob("*.test.ts"))
    assert len(files) >= 9
    done = subprocess.run(
        [node(), "--test", "--test-reporter=tap", *files],
        capture_output=True,
        text=True,
        timeout=240,
    )
    failed = re.findall(r"^\s*not ok .*$", done.stdout, re.MULTILINE)
    assert done.returncode == 0, "\n".join([*failed, done.stdout[-3000:]])
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]) >= 100


def test_files_stay_readable():
    long = {
        str(path.relative_to(WEB)): len(path.read_text().splitlines())
        for folder in ("src", "test")
        for path in (WEB / folder).rglob("*.ts*")
    }
    assert max(long.values()) <= 400, {n: c for n, c in long.items() if c > 400}
