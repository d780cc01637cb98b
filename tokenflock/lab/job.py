"""A job: a checked spec turned into a compiled program and the parts it is run in.

Where a run is cut depends on its spec alone, never on when it was flushed or killed, so a resumed run
makes the same steps as an uninterrupted one. All parts have the same number of times, so that one
compiled program serves them all.
"""

from __future__ import annotations

import itertools
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics import Dynamics, State, has_beta_batch
from ..errors import InputError, SolveError, TokenflockError, require
from ..integrate.api import initial_state, prepare
from ..integrate.clocks import Clock
from ..integrate.core import Plan, Segment, integrate
from ..integrate.steppers import Merge
from ..measure import Measure
from ..memory import require_bytes
from .files import identity
from .spec import RunSpec, build_model
from .tokens import build_tokens

PARTS = 40
MOST_REDRAWS = 1_000_000


class Part(NamedTuple):
    """Consecutive times; `keep` marks those to be saved that the part before has not saved."""

    times: np.ndarray
    keep: np.ndarray


class Job:
    """A checked spec, ready to be compiled and integrated."""

    def __init__(self, spec: RunSpec):
        self.spec = spec
        self.id = identity(spec)
        check_redraws(spec)
        self.tokens: Measure = build_tokens(spec.tokens)
        self.model = build_model(spec.model, self.tokens.d)
        check_common_noise(self.model)
        arguments = spec.solve.arguments()
        self.merge: Merge | None = arguments["merge"]
        self.plan: Plan
        self.plan, self.samples, self.times = prepare(
            self.model,
            self.tokens,
            save=spec.save.build(),
            stop=spec.stop.build(),
            progress=False,
            **arguments,
        )
        self.parts = cut(self.times, self.plan.clock, spec.solve.fixed_step)
        self._program: Any = None

    def start(self) -> State:
        """The state at t = 0, with an axis of betas if there are several."""
        state = initial_state(self.model, self.samples, self.merge)
        if has_beta_batch(self.model):
            betas = max(part.beta.size for part in self.model.attentions())
            state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (betas, *leaf.shape)), state)
        return state

    def compile(self) -> None:
        """Trace and compile the program of a part; what cannot be observed is refused here."""
        try:
            lowered = integrate.lower(*self._arguments(self.start(), self.parts[0]))
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

    def advance(self, state: State, part: Part) -> Segment:
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

    def _arguments(self, state: State, part: Part) -> tuple[Any, ...]:
        # Through the host, so that a stored state and a fresh one are arrays of the same kind.
        placed = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), state)
        return self.plan, self.samples, placed, jnp.asarray(part.times)


def _runtime_advice(error: Exception) -> str:
    if "RESOURCE_EXHAUSTED" in str(error):
        return "the device ran out of memory; use reduction = 'tiled', fewer tokens or samples"
    return f"the compiled program failed: {str(error).strip().split(chr(10))[0][:300]}"


def check_common_noise(model: Dynamics) -> None:
    """Refuse a vector of betas inside a noise."""
    hidden = getattr(model.noise, "attention", None)
    require(
        hidden is None or hidden.beta.ndim == 0,
        "several betas are a batch of drifts; the beta of a common noise must be one number",
    )


def check_redraws(spec: RunSpec) -> None:
    """Each redraw of random weights is a time the solver must not step over."""
    period = getattr(getattr(spec.model, "weights", None), "period", None)
    require(
        period is None or spec.solve.t1 / period <= MOST_REDRAWS,
        f"weights.period = {period} redraws the weights {spec.solve.t1 / (period or 1):.3g} times up "
        f"to t1; the limit is {MOST_REDRAWS}",
    )


def cut(times: np.ndarray, clock: Clock, step: float | None) -> list[Part]:
    """About PARTS parts of equal length: some saves each, or several per save if saves are few."""
    fine = _refine(times, clock, step)
    saved = np.isin(fine, times)
    rows = -(-(len(fine) - 1) // PARTS)
    return [_part(fine, saved, first, rows) for first in range(0, len(fine) - 1, rows)]


def _part(fine: np.ndarray, saved: np.ndarray, first: int, rows: int) -> Part:
    times, keep = fine[first : first + rows + 1], saved[first : first + rows + 1].copy()
    keep[0] = first == 0
    # The last part repeats the end, so that it needs no program of its own.
    missing = rows + 1 - len(times)
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
