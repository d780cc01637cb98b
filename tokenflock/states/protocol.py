"""What is integrated: the protocol that tokens, densities and every other state of a run implement.

A state is a value that says how a run of it starts, moves, is looked at, labelled and judged; `solve` asks
it for all of that and knows no state by name. The numbers that move are a pytree `y` of the state's own:
points for tokens, coefficients for a density. A new state is one class, given to `solve` in the place of
tokens: it must say how it begins, its velocity, what observables see, and the names and sizes of its axes.
Everything else has a default, which fits a y that is one array.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..dynamics import Dynamics
from ..errors import InputError, require
from ..measure import Measure
from ..methods import Method
from ..observables.base import Observable, Snapshot
from ..runtime import Scalar
from ..serialise import describe

# f(model, t, y): what is integrated along a run beside its state.
Integrand = Callable[[Dynamics, Scalar, Any], Array]
# The Brownian path of a run, from the shape of its increments.
Brownian = Callable[[jax.ShapeDtypeStruct], diffrax.AbstractPath]


class Told(Protocol):
    """What writes of itself beside numbers: an observable, or a stop."""

    @property
    def notes(self) -> Callable[..., dict[str, Any]] | None:
        """What its parameters come to on given tokens."""
        ...

    @property
    def attributes(self) -> dict[str, Any]:
        """What it is."""
        ...

    def attributes_on(self, measure: Measure) -> dict[str, Any]:
        """What it is, with what its parameters come to."""
        ...


class Carried(eqx.Module):
    """What the solver steps: the numbers of a state, and integrals along the run so far."""

    moving: Any
    integrals: dict[str, Array]

    def at_rest(self) -> dict[str, Array]:
        """Zero rates of the integrals."""
        return jax.tree.map(jnp.zeros_like, self.integrals)


class Judgement(NamedTuple):
    """How the members of a run ended; advice of the state's own by outcome; facts to be stored."""

    names: np.ndarray
    advice: dict[str, str] = {}
    facts: dict[str, Any] = {}


class State(eqx.Module):
    """What is integrated. Methods from `prepared` to `lost` are compiled, the others are not."""

    # The end whose numbers must be finite: final_NAME of a result.
    main: ClassVar[str] = "state"
    # Rows and ends that are whole numbers.
    whole: ClassVar[tuple[str, ...]] = ()

    # --- before a run -----------------------------------------------------------------------------

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Sizes of the axes of independent samples."""
        return ()

    @property
    def spans_devices(self) -> bool:
        """Whether one system is spread over several devices."""
        return False

    def with_options(self, merge: Any, reduction: Any) -> State:
        """With the options of `solve` that only tokens have; None leaves them as they are."""
        for name, given in (("merge", merge), ("reduction", reduction)):
            require(
                given is None, f"a density has no tokens, so {name} has no meaning; leave it out"
            )
        return self

    def check(self, model: Dynamics, t1: float) -> None:
        """Refuse a model this state cannot be moved by, with a sentence."""

    def check_names(self, observe: Sequence[Observable]) -> None:
        """Refuse observables under names that this state keeps for itself."""

    def check_method(self, model: Dynamics, method: Method) -> None:
        """Refuse a way of stepping this state does not have."""

    def settled(self, model: Dynamics, method: Method, saves: int, keep: bool) -> State:
        """With the choices that compiled code cannot make; refuses what does not fit in memory.

        saves -- the number of rows; keep -- whether states are kept in them.
        """
        return self

    def holding(self, start: Any) -> State:
        """This state with another start of the same shape: the choices that were made stay."""
        raise InputError(f"{type(self).__name__} has one start, and cannot be swept")

    def blank(self) -> State:
        """Without the numbers at t = 0 and without samples: all that compiled code needs of it."""
        return self

    @abc.abstractmethod
    def begin(self, model: Dynamics) -> Any:
        """y at t = 0, several sample axes as one in front."""

    def row_numbers(self, observe: Sequence[Observable], keep: bool) -> float:
        """About how many numbers one save of one sample keeps."""
        return float(math.prod(self.sizes.values()))

    def watch(self, model: Dynamics, observe: tuple[Observable, ...]) -> tuple[Observable, ...]:
        """The observables, with those that the health of a run needs."""
        return observe

    # --- how it is stepped ------------------------------------------------------------------------

    def needs_fixed_steps(self, model: Dynamics) -> bool:
        """Whether only fixed steps make sense (noise)."""
        return False

    def own_solver(self, model: Dynamics) -> diffrax.AbstractSolver:
        """The solver to use where none was asked for."""
        return diffrax.Dopri8()

    def stepper(self, solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver:
        """The solver, with what this state does after every step."""
        return solver

    def controller(
        self, given: diffrax.AbstractStepSizeController
    ) -> diffrax.AbstractStepSizeController:
        """The step-size controller to use in the place of the one that was asked for."""
        return given

    # --- the equation -----------------------------------------------------------------------------

    def prepared(self, model: Dynamics) -> State:
        """With whatever the model's terms need, computed once for a run."""
        return self

    @abc.abstractmethod
    def velocity(self, model: Dynamics, t: Scalar, y: Any) -> Any:
        """dy/dt, without what `extra_terms` add."""

    def extra_terms(
        self, model: Dynamics, brownian: Brownian
    ) -> tuple[diffrax.AbstractTerm[Any, Any], ...]:
        """Noise, or a part that is treated implicitly; they step a `Carried`."""
        return ()

    def layer(self, model: Dynamics, t: Scalar, y: Any, step: Scalar) -> Any:
        """One layer of the discrete network."""
        raise InputError(f"{type(self).__name__} has no layers; give rtol and atol, or dt")

    def kicked(self, model: Dynamics, t: Scalar, y: Any, increment: Array) -> Any:
        """y after a Brownian increment at the end of a layer."""
        raise InputError(f"{type(self).__name__} has no noise between layers")

    def retracted(self, y: Any) -> Any:
        """The nearest y that is a state: steps and interpolation may leave the space."""
        return y

    def integrands(self, model: Dynamics) -> dict[str, Integrand]:
        """What a run of this state always integrates."""
        return {}

    @property
    def may_be_lost(self) -> bool:
        """Whether `lost` may end a run."""
        return False

    def lost(self, model: Dynamics, t: Scalar, y: Any) -> Array:
        """Whether the run must end here, since y no longer means anything."""
        return jnp.zeros((), bool)

    def ended(self, code: Array, final: dict[str, Array]) -> Array:
        """The outcome (an index into `outcomes.OUTCOMES`), with what the last row says of it."""
        return code

    # --- looked at --------------------------------------------------------------------------------

    @abc.abstractmethod
    def snapshot(self, model: Dynamics, t: Array, y: Any) -> Snapshot:
        """What observables see."""

    def trial(self, model: Dynamics, more: int = 0) -> Snapshot:
        """A snapshot of the right shapes, of a single model; with `more` tokens InputError if it has none."""
        require(more == 0, "this state has no tokens")
        return self.prepared(model).snapshot(model, jnp.zeros(()), self.begin(model))

    def rows(self, y: Any, keep: bool) -> dict[str, Array]:
        """What a save keeps of the state itself; `keep`: the whole of it."""
        return {"states": y} if keep else {}

    def watched(self, model: Dynamics, t: Array, y: Any) -> dict[str, Array]:
        """Numbers kept at every save for the health of the run."""
        return {}

    @property
    def details(self) -> dict[str, dict[str, Any]]:
        """Units and meaning of what is kept beside observables."""
        return {}

    # --- labelled ---------------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def sizes(self) -> dict[str, int]:
        """The axes of y by name, with their sizes."""

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """Names of the axes of every row and every end."""
        return dict.fromkeys(("states", "state"), tuple(self.sizes))

    @property
    def labels(self) -> dict[str, np.ndarray]:
        """Values along those axes, where they are not 0, 1, 2, ..."""
        return {}

    def ends(self, y: Any) -> dict[str, Array]:
        """Arrays from which a run can be continued: final_NAME of a result."""
        return {"state": y}

    def continued(self, ends: dict[str, Array]) -> Any:
        """y again, from the arrays of `ends`."""
        return jnp.asarray(ends["state"])

    def at_start(self) -> dict[str, Array]:
        """Arrays of the start, with all sample axes: initial_NAME of a result."""
        return {}

    def value(self, arrays: dict[str, Any]) -> Any:
        """What a user holds, from arrays as `ends` and `at_start` give them: a Measure, a Density."""
        require("state" in arrays, f"the start of {type(self).__name__} was not kept")
        return jnp.asarray(arrays["state"])

    def stored_snapshot(self, model: Dynamics, t: Array, row: Array) -> Snapshot:
        """What observables of a run that is over see at a kept row of `states`."""
        return self.prepared(model).snapshot(model, t, row)

    def described(self) -> dict[str, Any]:
        """What is written about this state, as plain data; `states.from_description` reads it."""
        return {"state": describe(self.blank())}

    def described_numerics(self) -> dict[str, Any]:
        """What is written about how it was stepped."""
        return {}

    def notes(self, thing: Told) -> dict[str, Any]:
        """What is written beside the values of an observable, or the times of a stop."""
        return thing.attributes

    # --- judged -----------------------------------------------------------------------------------

    def health(self, model: Dynamics, arrays: dict[str, Any], lead: int) -> dict[str, Any]:
        """What a run can say about its own numbers; `lead` is the number of batch axes."""
        return {}

    def judged(
        self, model: Dynamics, names: np.ndarray, arrays: dict[str, Any], atol: float
    ) -> Judgement:
        """The outcomes of all members, where their numbers say more than the solver does."""
        return Judgement(names)
