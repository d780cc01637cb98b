"""Integrating a spec in parts: one compiled program, run from state to state.

Where a run is cut depends on its spec alone, never on when it was flushed or killed, so a resumed run
makes the same steps as an uninterrupted one. All parts have the same number of times, so that one
compiled program serves them all.
"""

from __future__ import annotations

import abc
import itertools
import math
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..belonging import Identity, digest
from ..errors import InputError, SolveError, TokenflockError
from ..integrate.clocks import Clock
from ..memory import require_bytes
from ..trajectory import Trajectory

PARTS = 40


class Part(NamedTuple):
    """Consecutive times; `keep` marks those to be saved that the part before has not saved."""

    times: np.ndarray
    keep: np.ndarray


class Integration(abc.ABC):
    """A checked spec, ready to be compiled and integrated: of tokens, or of a density."""

    spec: Any
    id: str
    plan: Any
    parts: list[Part]
    _program: Any = None

    @property
    def identity(self) -> Identity:
        """What the numbers of every part follow from: the spec, the precision, where the run is cut."""
        # Not to the last bit, which may depend on the machine.
        cuts = [f"{part.times[-1]:.12g}" for part in self.parts]
        rows = [len(self.parts[0].times), *(int(np.sum(part.keep)) for part in self.parts)]
        precision = str(jnp.zeros(()).dtype)
        return {"spec": self.id, "precision": precision, "cuts": digest([cuts, rows])}

    @abc.abstractmethod
    def start(self) -> Any:
        """The state at t = 0, with an axis of betas if there are several."""

    @abc.abstractmethod
    def first_rows(self, start: Any) -> dict[str, Any]:
        """What is saved of the state at t = 0 when nothing else is known yet."""

    @abc.abstractmethod
    def lead_shape(self, start: Any) -> tuple[int, ...]:
        """Sizes of the batch axes of a state."""

    @abc.abstractmethod
    def finite(self, final: Any) -> np.ndarray:
        """Which members of a batch are finite."""

    @abc.abstractmethod
    def label(self, segment: Any) -> Trajectory:
        """A labelled trajectory of consecutive rows."""

    @abc.abstractmethod
    def joined(self, pieces: list[Trajectory]) -> Trajectory:
        """One trajectory of consecutive pieces, with the health of the whole."""

    @abc.abstractmethod
    def end_of(self, arrays: dict[str, Any]) -> Any:
        """The state a stored piece ended with."""

    @abc.abstractmethod
    def _function(self) -> Any:
        """The compiled function of a part."""

    @abc.abstractmethod
    def _arguments(self, state: Any, part: Part) -> tuple[Any, ...]:
        """Its arguments."""

    def compile(self) -> None:
        """Trace and compile the program of a part; what cannot be observed is refused here."""
        try:
            lowered = self._function().lower(*self._arguments(self.start(), self.parts[0]))
            self._program = lowered.compile()
        except (TokenflockError, KeyboardInterrupt):
            raise
        except Exception as error:
            reason = str(error).strip().split("\n")[0][:300]
            raise InputError(
                f"this spec does not make a program: {reason} ({type(error).__name__})"
            ) from error
        self._check_program(self._program.compiled.memory_analysis())

    def _check_program(self, sizes: Any) -> None:
        if sizes is not None:
            require_bytes(
                sizes.temp_size_in_bytes + len(self.parts) * sizes.output_size_in_bytes,
                "the compiled program and its results",
                "use fewer samples or saves, leave out observables that compare all pairs of tokens "
                "(clusters, energies, histograms), and use reduction = 'tiled'",
            )

    def advance(self, state: Any, part: Part) -> Any:
        """Integrate one part; the result is on the host. Ctrl-C is heard while it computes."""
        try:
            segment = self._program(*self._arguments(state, part))
            pause = 1e-4
            while not segment.outcome.is_ready():
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
            return jax.device_get(segment)
        except jax.errors.JaxRuntimeError as error:
            raise SolveError(_runtime_advice(error)) from error


def on_host(tree: Any) -> Any:
    """Arrays through the host, so that a stored state and a fresh one are of the same kind."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), tree)


def _runtime_advice(error: Exception) -> str:
    if "RESOURCE_EXHAUSTED" in str(error):
        return "the device ran out of memory; use reduction = 'tiled', fewer tokens or samples"
    return f"the compiled program failed: {str(error).strip().split(chr(10))[0][:300]}"


def cut(times: np.ndarray, clock: Clock, step: float | None) -> list[Part]:
    """About PARTS parts of equal length: some saves each, or several per save if saves are few."""
    fine = _refine(times, clock, step)
    saved = np.isin(fine, times)
    rows = -(-(len(fine) - 1) // PARTS)
    return [_part(fine, saved, first, rows) for first in range(0, len(fine) - 1, rows)]


def _part(fine: np.ndarray, saved: np.ndarray, first: int, rows: int) -> Part:
    times, keep = fine[first : first + rows + 1], saved[first : first + rows + 1].copy()
    keep[0] = first == 0
    # The end is repeated, so that the last part needs no program of its own, nor do other numbers of saves up
    # to the next power of two.
    missing = 2 ** math.ceil(math.log2(rows + 1)) - len(times)
    return Part(np.pad(times, (0, missing), mode="edge"), np.pad(keep, (0, missing)))


def _refine(times: np.ndarray, clock: Clock, step: float | None) -> np.ndarray:
    """The save times, with times between them where they are fewer than PARTS."""
    pieces = PARTS // (len(times) - 1)
    if pieces <= 1:
        return times
    between = [_between(low, high, pieces, clock, step) for low, high in itertools.pairwise(times)]
    return np.unique(np.concatenate([times, *between]))


def _between(low: float, high: float, pieces: int, clock: Clock, step: float | None) -> np.ndarray:
    """Times strictly inside an interval: equal steps of the clock, or whole fixed steps."""
    if step is None:
        ends = np.asarray(clock.inverse(np.array([low, high])))
        inner = np.asarray(clock.time(np.linspace(ends[0], ends[1], pieces + 1)))[1:-1]
        margin = 1e-9 * (high - low)
    else:
        count = (high - low) / step
        inner = low + step * np.unique(np.round(np.linspace(0, count, pieces + 1)))
        margin = step / 2
    return inner[(inner > low + margin) & (inner < high - margin)]
