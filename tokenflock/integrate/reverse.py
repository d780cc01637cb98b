"""The adjoint of a solve: how a reverse derivative goes back through the steps, and what it keeps for it.

Both choices discretise, then differentiate: their derivatives are those of the steps that were made, equal
up to rounding. They differ in memory and time alone. (Solving the adjoint equation backwards in time keeps
one state only, but tokens that have come together cannot be told apart on the way back: docs/jax.md.)
"""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import diffrax
import equinox as eqx

from ..errors import require

# equinox makes a bounded loop of nested loops of this length.
NESTED = 16


class Adjoint(eqx.Module):
    """A choice of what reverse derivatives keep; for `solve(..., adjoint=...)`."""

    # Whether values, forward and higher derivatives go through the same loop as reverse ones.
    does_everything: ClassVar[bool]
    # Steps of which everything that was computed is in memory at once.
    whole_steps: ClassVar[int]

    @property
    @abc.abstractmethod
    def loop(self) -> diffrax.AbstractAdjoint:
        """The loop of diffrax that reverse derivatives go through."""

    @abc.abstractmethod
    def states_kept(self, max_steps: int) -> int:
        """How many states of the run are in memory at once on the way back."""

    def cost(self, max_steps: int, state_bytes: int) -> dict[str, Any]:
        """What a reverse derivative keeps: `states` between steps and their `bytes`, and `whole_steps`.

        `state_bytes` is the size of what moves, of the whole batch. All that is computed in these steps (the
        n x n matrices of `Dense` in every stage) and the rows that are saved come on top.
        """
        states = self.states_kept(max_steps)
        kept = {"states": states, "bytes": states * state_bytes, "whole_steps": self.whole_steps}
        return {"name": type(self).__name__, **kept}


class Checkpointed(Adjoint):
    """Keep `checkpoints` states and make the steps between them again on the way back.

    Treeverse (Griewank 1992; online: Stumm and Walther 2010): c states are enough for (c + 1)(c + 2)/2 steps
    if every step is made about once more; with fewer, steps are made several times. By default c is the
    smallest number that is enough for max_steps, about sqrt(2 max_steps). c >= the number of steps makes
    none again.
    """

    checkpoints: int | None = eqx.field(static=True, default=None)
    does_everything: ClassVar[bool] = False
    whole_steps: ClassVar[int] = 1

    def __check_init__(self) -> None:
        count = self.checkpoints
        whole = isinstance(count, int) and not isinstance(count, bool) and count >= 1
        require(
            count is None or whole,
            f"checkpoints is how many states are kept, a whole number of at least 1; got {count!r}. "
            "Leave it out for about sqrt(2 max_steps)",
        )

    @property
    def loop(self) -> diffrax.AbstractAdjoint:
        return diffrax.RecursiveCheckpointAdjoint(self.checkpoints)

    def states_kept(self, max_steps: int) -> int:
        if self.checkpoints is not None:
            return min(self.checkpoints, max_steps)
        return max(1, math.floor(-1.5 + math.sqrt(2 * max_steps + 0.25)) + 1)


class Direct(Adjoint):
    """Loops of 16 turns inside one another that keep all their states: plain operations of JAX.

    One program for values and for derivatives of every direction and order, where `Checkpointed` makes one
    of each: about half the time for a Hessian. It keeps all that 16 steps compute, and makes idle turns
    in every power of 16 up to max_steps: give a small one.
    """

    does_everything: ClassVar[bool] = True
    whole_steps: ClassVar[int] = NESTED

    @property
    def loop(self) -> diffrax.AbstractAdjoint:
        return diffrax.DirectAdjoint()

    def states_kept(self, max_steps: int) -> int:
        return NESTED * max(1, math.ceil(math.log(max_steps, NESTED)))


def checked_adjoint(given: Any) -> Adjoint:
    """The choice, or a sentence on what there is to choose from."""
    require(
        isinstance(given, Adjoint),
        f"adjoint must be Checkpointed(checkpoints) or Direct(), got {given!r}; docs/jax.md has what each "
        "of them keeps in memory",
    )
    return given
