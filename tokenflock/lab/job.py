"""A job: a checked spec, turned into a compiled program and the parts it is run in."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..density import Density
from ..errors import InputError, SolveError, TokenflockError, require
from ..integrate import core
from ..integrate.api import prepare
from ..integrate.assemble import from_segment, join
from ..integrate.core import Plan, Segment
from ..measure import Measure
from ..memory import require_bytes
from ..results.identity import Identity, digest
from ..states import Carried, State, as_state
from ..trajectory import Trajectory
from .density import build_density, check_size
from .files import identity
from .parts import Part, cut
from .sizes import refuse_too_large
from .spec import RunSpec, build_model
from .tokens import build_tokens


def build_start(spec: RunSpec) -> Measure | Density:
    """The tokens of [tokens], or the density of [density]."""
    if spec.density is None:
        return build_tokens(spec.tokens)
    require(
        spec.output.animation == "none",
        "a density has no tokens to film; leave out output.animation, its figure shows it at several times",
    )
    rows = len(spec.save.build().times(spec.solve.t1)) if spec.save.states else 2
    check_size(spec.density, rows)
    return build_density(spec.density)


def planned(spec: RunSpec, model: Any, x0: Measure | Density, save: Any) -> Any:
    """What `prepare` makes of a spec whose model, start and save plan are built."""
    return prepare(
        model,
        as_state(x0).with_options(spec.solve.merge(), spec.solve.build_reduction()),
        spec.solve.t1,
        spec.solve.accuracy(),
        save=save,
        stop=spec.stop.build(),
        clock=spec.solve.clock(),
        seed=spec.solve.seed,
    )


class Job:
    """A checked spec, ready to be compiled and integrated."""

    def __init__(self, spec: RunSpec):
        self.spec = spec
        self.id = identity(spec)
        refuse_too_large(spec)
        self.x0 = build_start(spec)
        self.model = build_model(spec.model, self.x0.space.d)
        self.plan: Plan
        self.state: State
        self.plan, self.state, self.times = planned(spec, self.model, self.x0, spec.save.build())
        self.parts = cut(self.times, self.plan.clock, spec.solve.fixed_step)
        self._program: Any = None

    @property
    def identity(self) -> Identity:
        """What the numbers of every part follow from: the spec, the precision, where the run is cut."""
        # Not to the last bit, which may depend on the machine.
        cuts = [f"{part.times[-1]:.12g}" for part in self.parts]
        rows = [len(self.parts[0].times), *(int(np.sum(part.keep)) for part in self.parts)]
        precision = str(jnp.zeros(()).dtype)
        return {"spec": self.id, "precision": precision, "cuts": digest([cuts, rows])}

    def start(self) -> Carried:
        """What moves, at t = 0."""
        return self.plan.start(self.state)

    def rows(self, y: Carried) -> dict[str, Any]:
        """What is saved of the state itself, of all members of a batch."""
        return self.plan.state.rows(y.moving, self.plan.keep_states)

    def finite(self, final: Carried) -> np.ndarray:
        """Which members of a batch are finite."""
        last = np.asarray(self.plan.state.ends(final.moving)[self.plan.state.main])
        return np.all(np.isfinite(last), axis=tuple(range(len(self.plan.lead_shape), last.ndim)))

    def label(self, segment: Segment) -> Trajectory:
        """A labelled trajectory of consecutive rows."""
        return from_segment(self.plan, self.state, segment)

    def joined(self, pieces: list[Trajectory]) -> Trajectory:
        """One trajectory of consecutive pieces, with the health of the whole."""
        return join(self.plan, self.state, pieces)

    def end_of(self, arrays: dict[str, Any]) -> Carried:
        """What moved, where a stored piece ended."""
        ends = {n.removeprefix("final_"): v for n, v in arrays.items() if n.startswith("final_")}
        names = (*self.plan.state.integrands(self.model), *(i.name for i in self.plan.integrals))
        integrals = {name: jnp.asarray(ends[name]) for name in names}
        return Carried(self.plan.state.continued(ends), integrals)

    def _arguments(self, y: Carried, part: Part) -> tuple[Any, ...]:
        return self.plan, on_host(y), jnp.asarray(part.times)

    def compile(self) -> None:
        """Trace and compile the program of a part; what cannot be observed is refused here."""
        try:
            lowered = core.integrate.lower(*self._arguments(self.start(), self.parts[0]))
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

    def advance(self, y: Carried, part: Part) -> Segment:
        """Integrate one part; the result is on the host. Ctrl-C is heard while it computes."""
        try:
            segment = self._program(*self._arguments(y, part))
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
