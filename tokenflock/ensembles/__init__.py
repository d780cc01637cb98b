"""Thousands of small systems at once: the statistics of a phase diagram, from one launch on a GPU."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics import Dynamics
from ..errors import InputError, SolveError, require
from ..integrate import Layers, Save, solve
from ..integrate.api import prepare
from ..integrate.assemble import from_segment
from ..integrate.numerics import Accuracy
from ..kinds import Kind
from ..measure import Measure
from ..observables import order_parameter, pair_fraction
from ..outcomes import failure, succeeded
from ..space import Sphere
from ..states import TokenState
from ..trajectory import Trajectory
from .averages import mean_and_error as mean_and_error
from .fused import STATISTICS, integrate_fused
from .launch import Launch

Engine = Literal["auto", "fused", "solve"]
MOST_TOKENS, MOST_DIMENSIONS = 128, 256
# The finest tolerance that means something in float32.
FINEST = 1e-6


def ensemble(
    model: Dynamics,
    x0: Measure,
    t1: float,
    *,
    every: float,
    method: Layers | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    delta: float = 1e-3,
    engine: Engine = "auto",
    max_steps: int = 100_000,
    interpret: bool = False,
    throw: bool = True,
) -> Trajectory:
    """A run of many samples at many beta that keeps what a phase diagram shows, at every save time.

    `model` is SA or USA with Q = K = I and V = c I, beta a vector; x0 a batch of samples (2312.10794,
    Figures 3 to 5). The run has the axes (beta, sample, time), as that of `solve`, and the rows
    `pair_fraction`, P(<x_i, x_j> >= 1 - delta) over i != j, and `order_parameter`, |mean of x_i|, at
    t = 0, every, 2 every, ..., t1; `mean_and_error(run, "pair_fraction")` averages over the samples.

    `method=Layers(step)` is the discrete network; rtol and atol follow the flow (Bogacki-Shampine 3(2),
    at most float32's accuracy). The `fused` engine runs the whole time loop of all systems in one GPU
    launch in float32, for n <= 128 and d <= 256; `solve` is the general engine in float64; `auto` takes
    the first on a GPU and the second elsewhere, and `run.attributes["numerics"]["engine"]` says which it
    was. A flow that is not at the next save after `max_steps` steps (with `solve`: not at t1 after
    `max_steps` times the number of saves) breaks off: SolveError, or with `throw=False` NaN from there on.
    """
    launch = _launch(model, x0, t1, every, method, rtol, atol, delta, max_steps, interpret)
    chosen = _choose(engine, x0, launch)
    stepper = diffrax.Bosh3() if method is None else method
    asked = Accuracy(rtol, atol, None, stepper, max_steps * launch.saves)
    save = Save(every=every, observe=[pair_fraction(delta), order_parameter])
    if chosen == "fused":
        run = _fused(launch, model, x0, t1, asked, save)
    else:
        run = solve(model, x0, t1, save=save, throw=False, **asked._asdict())
    if throw and not succeeded(run.outcome):
        raise SolveError(failure(run, t1))
    # The kernels have no derivatives.
    own = {"precision": "float32", "adjoint": None} if chosen == "fused" else {}
    run.attributes["numerics"] |= {"engine": chosen, **own}
    run.attributes["cell_spec"] = launch.spec_of_first(x0, float(_betas(model)[0]))
    return run


def _fused(
    launch: Launch, model: Dynamics, x0: Measure, t1: float, asked: Accuracy, save: Save
) -> Trajectory:
    """The same plan as that of `solve`, computed by the kernels."""
    # Of one sample: the kernels hold no matrices, for which `solve` would need memory.
    one = TokenState(x0.at(x0.points.reshape(-1, x0.n, x0.d)[0]))
    plan, state, times = prepare(model, one, t1, asked, save=save)
    observe = tuple(thing for thing in plan.observe if thing.name in STATISTICS)
    samples = int(np.prod(x0.batch_shape)) if x0.batch_shape else None
    plan = dataclasses.replace(plan, observe=observe, samples=samples)
    segment = integrate_fused(launch, plan, x0, _betas(model), times)
    return from_segment(plan, state.holding(x0), segment)


def _betas(model: Dynamics) -> jax.Array:
    return jnp.atleast_1d(jnp.asarray(model.attentions()[0].beta))


def _choose(engine: Engine, x0: Measure, launch: Launch) -> str:
    """The engine to use, or the reason why it cannot be the one asked for."""
    require(engine in ("auto", "fused", "solve"), f"engine is auto, fused or solve, got {engine!r}")
    here = launch.interpret or jax.default_backend() in ("gpu", "cuda")
    small = x0.n <= MOST_TOKENS and x0.d <= MOST_DIMENSIONS
    coarse = launch.rtol is None or launch.rtol >= FINEST
    if engine == "auto":
        return "fused" if here and small and coarse else "solve"
    if engine == "solve":
        return engine
    require(
        here,
        "the fused engine needs an NVIDIA GPU; use engine='solve', or interpret=True for a test",
    )
    require(
        small,
        f"the fused engine holds n <= {MOST_TOKENS} tokens of d <= {MOST_DIMENSIONS}, got "
        f"n={x0.n}, d={x0.d}; use engine='solve'",
    )
    require(
        coarse,
        f"the fused engine computes in float32: rtol must be at least {FINEST:g}, got {launch.rtol}; "
        "use engine='solve'",
    )
    return engine


def _launch(
    model: Dynamics,
    x0: Measure,
    t1: float,
    every: float,
    method: Layers | None,
    rtol: float | None,
    atol: float | None,
    delta: float,
    max_steps: int,
    interpret: bool,
) -> Launch:
    """Check the request and state it as numbers."""
    kind, value = _checked_model(model, x0)
    require(0 < every <= t1, f"every must lie in (0, t1], got every={every:g} and t1={t1:g}")
    saves = _whole(t1 / every, f"t1={t1:g} is not a multiple of every={every:g}")
    require(
        1e-5 <= delta <= 2,
        f"delta must lie in [1e-5, 2], got {delta:g}: float32 cannot tell closer pairs apart",
    )
    common: dict[str, Any] = {
        "kind": kind,
        "value": value,
        "delta": delta,
        "saves": saves,
        "interval": float(every),
        "max_steps": max_steps,
        "interpret": interpret,
    }
    if method is not None:
        require(rtol is None and atol is None, "Layers has a fixed step: leave out rtol and atol")
        text = f"every={every:g} is not a multiple of the layers' step {method.step:g}"
        return Launch(per_save=_whole(every / method.step, text), step=method.step, **common)
    if rtol is None or atol is None:
        raise InputError(
            "state how to integrate: method=Layers(step) for the network, or rtol and atol, for "
            "example rtol=1e-4, atol=1e-5, for the flow"
        )
    require(rtol > 0 and atol > 0, f"rtol and atol must be positive, got {rtol} and {atol}")
    return Launch(rtol=rtol, atol=atol, **common)


def _whole(ratio: float, otherwise: str) -> int:
    require(abs(ratio - round(ratio)) < 1e-6 and round(ratio) >= 1, otherwise)
    return round(ratio)


def _checked_model(model: Dynamics, x0: Measure) -> tuple[Kind, float]:
    """The kind and V = c of a model the kernels know, or a sentence."""
    term = model.terms.attention()
    advice = "use flock.solve, which takes a batch of samples and of beta too"
    plain = term is not None and term.is_plain and model.now(0.0) is model
    V = term.weights.at(0.0).V if plain and term is not None else None
    require(
        plain
        and np.ndim(1.0 if V is None else V) == 0
        and model.noise is None
        and model.is_plain_flow,
        "an ensemble needs SA or USA with Q = K = I and V a number, the same at every depth, every token "
        f"visible, no noise and post-LN; {advice}",
    )
    require(isinstance(x0.space, Sphere), f"an ensemble lives on a sphere, not on {x0.space}")
    require(x0.n >= 2, "a statistic of pairs needs at least two tokens")
    equal = np.asarray(x0.weights)
    require(bool(np.allclose(equal, equal.flat[0])), f"an ensemble needs equal weights; {advice}")
    assert term is not None
    return term.kind, 1.0 if V is None else float(V)
