"""What files and folders of results are called, each name stated once."""

from __future__ import annotations

# Whatever is being written stands beside its place under a name that begins so.
SCRATCH = ".writing-"
# A run or a trace: the whole, the parts of one that goes on, and its tokens at t = 0.
STORE = "trajectory.zarr"
SEGMENTS = "segments"
INITIAL = "initial.zarr"
# A sweep: its dataset, and which blocks are done.
SWEEP_STORE = "sweep.zarr"
JOURNAL = "journal.jsonl"
# What was asked for: of a run, a sweep, a training.
RUN_SPEC = "spec.toml"
SWEEP_SPEC = "sweep.toml"
TRAINING = "training.json"
# What came out: written last, so that whatever has it is finished.
SUMMARY = "summary.json"
FIGURE = "figure.png"
FILMS = ("animation.mp4", "animation.gif")
# What a Zarr folder says of itself, and the format it names there.
METADATA = "zarr.json"
RUN_FORMAT = "tokenflock-trajectory-1"
SWEEP_FORMAT = "tokenflock-sweep-1"
