"""A block as it is sent to a worker: text, numbers and bytes, which every Python can read.

A worker that cannot read what it is sent leaves its cluster without a word. So it is told in plain text
to compare its versions first, and loads tokenflock only if they are those of the client.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from ..errors import InputError
from .workers import Order, Positions, listed, versions

SOURCE = """
import importlib.metadata
import pickle
import platform

def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

found = {name: version(name) for name in wanted}
found["Python"] = ".".join(platform.python_version_tuple()[:2])
problem = None
if found == wanted:
    try:
        from tokenflock.sweeps.workers import compute, prepare_process

        prepare_process()
        import tokenflock.sweeps.block
    except ImportError as error:
        problem = str(error)
if found == wanted and problem is None:
    answer = compute(pickle.loads(order), index, only)
else:
    from distributed import get_worker

    answer = {"worker": get_worker().address, "found": found, "problem": problem}
"""
CALL = "exec(source, given) or given['answer']"


class Sender:
    """Makes of blocks what a cluster is to call."""

    def __init__(self, order: Order):
        self._given = {"order": pickle.dumps(order), "wanted": versions()}

    def call(self, index: int, only: Positions | None) -> tuple[Callable[..., Any], str, dict]:
        """A function and its arguments."""
        given = {**self._given, "index": index, "only": only}
        return eval, CALL, {"source": SOURCE, "given": given}

    def accepted(self, answer: Any) -> Any:
        """What a worker has computed; one that cannot compute it is named."""
        if not isinstance(answer, dict):
            return answer
        if answer["problem"]:
            raise InputError(
                f"the worker at {answer['worker']} cannot load tokenflock: {answer['problem']}; install "
                "it on the cluster as it is here"
            )
        raise InputError(
            f"the worker at {answer['worker']} has {listed(answer['found'])}, and this process "
            f"{listed(self._given['wanted'])}; install the same versions on the cluster, since others "
            "may give other numbers"
        )
