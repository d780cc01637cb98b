"""Save plans: when to look, what to compute there, and whether to keep the tokens themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import require
from ..observables.naming import check_names
from ..observables.plain import Observed, as_observables
from ..runtime import ArrayLike, is_traced

MOST_SAVES = 2_000_000
# Rows of a single run that only serve to keep its program: few enough to cost nothing.
FEWEST_ROWS = 16
MOST_SPARE_BYTES = 2**26
ENDLESS: dict[str, Any] = {"mode": "constant", "constant_values": np.inf}


def filled(times: np.ndarray, row_bytes: float, batched: bool) -> np.ndarray:
    """The times, then infinities up to a power of two: other save times need no other program.

    An infinite time is never reached, so it costs memory alone; where that is much, none is added. In a
    batch every step copies all rows, so there no more than twice as many are made.
    """
    wanted = len(times) if batched else max(len(times), FEWEST_ROWS)
    spare = 2 ** int(np.ceil(np.log2(wanted))) - len(times)
    return np.pad(times, (0, spare if spare * row_bytes <= MOST_SPARE_BYTES else 0), **ENDLESS)


def filled_jumps(jumps: Sequence[Any], t1: float) -> Any:
    """The times of switches in order, filled up in the same way; none stay none, as another program.

    Traced ones that lie beyond t1 become infinite, so that nobody ever comes to them.
    """
    spare = 2 ** int(np.ceil(np.log2(len(jumps)))) - len(jumps) if jumps else 0
    if not is_traced(list(jumps)):
        return np.pad(np.asarray(jumps, dtype=float), (0, spare), **ENDLESS)
    times = jnp.stack([jnp.asarray(time, dtype=float) for time in jumps])
    return jnp.pad(jnp.sort(jnp.where(times < t1, times, jnp.inf)), (0, spare), **ENDLESS)


class Save:
    """Look at t = 0, at the times of one rule, and at t1.

    every -- each multiple of this interval;
    at -- the given times;
    log -- (first, count): `count` logarithmically spaced times from `first` to t1.

    observe -- observables computed during the solve, or plain functions of a snapshot;
    states -- whether to keep the tokens at those times (the first and last are always kept).
    """

    def __init__(
        self,
        every: float | None = None,
        at: ArrayLike | None = None,
        log: tuple[float, int] | None = None,
        observe: Sequence[Observed] = (),
        states: bool = False,
    ):
        given = [
            name for name, rule in (("every", every), ("at", at), ("log", log)) if rule is not None
        ]
        require(len(given) <= 1, f"choose one of every, at and log, got {' and '.join(given)}")
        self.every, self.at, self.log = every, at, log
        self.observe = as_observables(observe)
        self.states = states
        check_names(self.observe)

    def times(self, t1: float) -> np.ndarray:
        """The increasing save times, from 0 to t1 included."""
        inner = self._rule(t1)
        require(
            bool(np.all(np.isfinite(inner)) and np.all((inner >= 0) & (inner <= t1))),
            f"save times must lie in [0, t1] = [0, {t1:g}]",
        )
        return np.unique(np.concatenate([[0.0], inner, [t1]]))

    def _rule(self, t1: float) -> np.ndarray:
        if self.every is not None:
            require(self.every > 0, f"every must be positive, got {self.every}")
            require(
                t1 / self.every <= MOST_SAVES,
                f"every={self.every:g} up to t1={t1:g} is {t1 / self.every:.3g} saves; "
                f"the limit is {MOST_SAVES}; save less often or with log=(first, count)",
            )
            # A multiple within rounding of t1 is t1 itself, not a second save beside it.
            return self.every * np.arange(1, int(np.ceil(t1 / self.every - 1e-9)))
        if self.log is not None:
            first, count = self.log
            require(
                0 < first < t1 and count >= 2,
                f"log=(first, count) needs 0 < first < t1={t1:g} and count >= 2, got {self.log}",
            )
            return np.geomspace(first, t1, int(count))[:-1]
        return np.asarray([] if self.at is None else self.at, dtype=float).ravel()
