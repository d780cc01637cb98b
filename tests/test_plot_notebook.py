"""Figures in a notebook: each is shown once, wherever in a cell it was made."""

import json
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tokenflock.plot import style
from tokenflock.trajectory import Trajectory

# The shell of a notebook, without its processes: what a cell shows is what it would send.
SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell, echoed = InteractiveShell.instance(), []
shell.displayhook.write_format_data = lambda data, metadata=None: echoed.append(data)
seen = []
for cell in json.load(sys.stdin):
    echoed.clear()
    with capture_output() as shown:
        shell.run_cell(cell).raise_error()
    seen.append(sum("image/png" in data for data in [*echoed, *(o.data for o in shown.outputs)]))
print(json.dumps(seen))
"""
# `plot` stands for run.plot(): without JAX the shell starts sooner.
SETUP = """
import importlib.util
found = importlib.util.spec_from_file_location("style", {path!r})
style = importlib.util.module_from_spec(found)
found.loader.exec_module(style)

def plot():
    with style.styled() as pyplot:
        return pyplot.subplots(figsize=(1, 1))[0]
"""
CELLS = {
    SETUP.format(path=str(Path(style.__file__))): 0,
    "plot()": 1,
    "figure = plot()": 1,
    "figure": 1,
    "for _ in range(2):\n    plot()": 2,
    "display(plot())": 1,
    "import matplotlib.pyplot as plt\nplot()\nplt.show()": 1,
    "plt.plot([1, 2])\nNone": 1,
}


def test_a_figure_is_shown_once(tmp_path):
    """The last value of a cell, in a loop, kept, displayed, by plt.show(); others are shown as ever."""
    pytest.importorskip("IPython")
    inline = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    done = subprocess.run(
        [sys.executable, "-c", SHELL],
        input=json.dumps(list(CELLS)),
        env={**os.environ, **inline, "IPYTHONDIR": str(tmp_path / "ipython")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == list(CELLS.values())


def test_the_figure_of_a_run_is_one_of_these_and_stays_with_pyplot():
    """In a script plt.show() shows it; IPython is told to show it as any other figure."""
    arrays = {"energy": np.array([1.0, 2.0, 2.5]), "final_time": np.asarray(2.0)}
    axes = {"energy": ("time",), "final_time": ()}
    told = {"label": "SA", "outcome": "finished", "advice": "", "numerics": {}}
    size = plt.rcParams["font.size"]
    figure = Trajectory(arrays, axes, {"time": np.arange(3.0)}, told).plot("series")
    assert plt.rcParams["font.size"] == size
    with pytest.raises(NotImplementedError):
        figure._ipython_display_()
    assert plt.fignum_exists(figure.number)
    plt.close(figure)
