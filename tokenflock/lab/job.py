"""A job: a checked spec of tokens, turned into a compiled program and the parts it is run in."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics import Dynamics, State, beta_count, has_beta_batch
from ..errors import require
from ..integrate.api import initial_state, prepare
from ..integrate.assemble import final_state, from_segment, join
from ..integrate.core import Plan, Segment, integrate
from ..integrate.steppers import Merge
from ..measure import Measure
from ..trajectory import Trajectory
from .files import identity
from .parts import Integration, Part, cut, on_host
from .spec import RunSpec, build_model
from .tokens import build_tokens


class Job(Integration):
    """A checked spec of tokens, ready to be compiled and integrated."""

    def __init__(self, spec: RunSpec):
        self.spec = spec
        self.id = identity(spec)
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

    def start(self) -> State:
        """The state at t = 0, with an axis of betas if there are several."""
        state = initial_state(self.model, self.samples, self.merge)
        if has_beta_batch(self.model):
            betas = beta_count(self.model)
            state = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (betas, *leaf.shape)), state)
        return state

    def first_rows(self, start: State) -> dict[str, Any]:
        rows = {"states": start.points, "radii": start.radii} if self.plan.states else {}
        return {name: value for name, value in rows.items() if value is not None}

    def lead_shape(self, start: State) -> tuple[int, ...]:
        return start.points.shape[:-2]

    def finite(self, final: State) -> np.ndarray:
        return np.all(np.isfinite(final.points), axis=(-1, -2))

    def label(self, segment: Segment) -> Trajectory:
        return from_segment(self.plan, self.tokens, segment)

    def joined(self, pieces: list[Trajectory]) -> Trajectory:
        return join(self.plan, self.tokens, pieces)

    def end_of(self, arrays: dict[str, Any]) -> State:
        return final_state(arrays)

    def _function(self) -> Any:
        return integrate

    def _arguments(self, state: State, part: Part) -> tuple[Any, ...]:
        return self.plan, self.samples, on_host(state), jnp.asarray(part.times)


def check_common_noise(model: Dynamics) -> None:
    """Refuse a vector of betas inside a noise."""
    hidden = getattr(model.noise, "attention", None)
    require(
        hidden is None or hidden.beta.ndim == 0,
        "several betas are a batch of drifts; the beta of a common noise must be one number",
    )
