"""How tests of Ctrl-C start a command: hearing it."""

import sys

# A test run in the background of a shell ignores SIGINT, and so would its children.
HEARING_SIGINT = [
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.argv[1], sys.argv[1:])",
]
