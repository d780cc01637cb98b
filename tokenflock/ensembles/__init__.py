"""Thousands of small systems at once: the statistics of a phase diagram, from one launch on a GPU."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..dynamics import Dynamics
from ..errors import InputError, require
from ..integrate import Layers, Save, solve
from ..kinds import Softmax, Unnormalised
from ..masks import Full
from ..measure import Measure
from ..memory import require_bytes
from ..observables import order_parameter, pair_fraction
from ..provenance import provenance
from ..space import Sphere
from ..terms import Attention
from ..weights import Weights
from .lanes import integrate_lanes
from .plan import Plan
from .tiles import integrate_tiles

if TYPE_CHECKING:
    import xarray as xr

Engine = Literal["auto", "fused", "solve"]
# Above this dimension coordinates no longer fit a lane's registers and tensor cores win.
WIDEST_LANE = 8
MOST_TOKENS, MOST_DIMENSIONS = 128, 256
# The finest tolerance that means something in float32.
FINEST = 1e-6
STATISTICS = ("pair_fraction", "order_parameter")


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
) -> xr.Dataset:
    """Mean and standard error over samples of what a phase diagram shows, for every beta and save time.

    `model` is SA or USA with Q = K = I and V = c I, beta a vector; x0 a batch of samples (2312.10794,
    Figures 3 to 5). Statistics: `pair_fraction`, P(<x_i, x_j> >= 1 - delta) over i != j, and
    `order_parameter`, |mean of x_i|, at t = 0, every, 2 every, ..., t1, each with `_error`.

    `method=Layers(step)` is the discrete network; rtol and atol follow the flow (Bogacki-Shampine 3(2),
    at most float32's accuracy). The `fused` engine runs the whole time loop of all systems in one GPU
    launch in float32, for n <= 128 and d <= 256; `solve` is the general engine in float64; `auto` takes
    the first on a GPU and the second elsewhere, and the attribute `engine` says which it was. A fused
    flow that cannot reach the next save within `max_steps` gives NaN from there on.
    """
    plan = _plan(model, x0, t1, every, method, rtol, atol, delta, max_steps, interpret)
    attention = model.terms
    assert isinstance(attention, Attention)
    betas = jnp.atleast_1d(attention.beta)
    chosen = _choose(engine, x0, plan)
    if chosen == "fused":
        means, errors = _fused(plan, x0, betas)
    else:
        means, errors = _solved(model, x0, t1, every, method, plan)
    return _dataset(plan, x0, np.asarray(betas), means, errors, chosen)


def _choose(engine: Engine, x0: Measure, plan: Plan) -> str:
    """The engine to use, or the reason why it cannot be the one asked for."""
    require(engine in ("auto", "fused", "solve"), f"engine is auto, fused or solve, got {engine!r}")
    here = plan.interpret or jax.default_backend() in ("gpu", "cuda")
    small = x0.n <= MOST_TOKENS and x0.d <= MOST_DIMENSIONS
    coarse = plan.rtol is None or plan.rtol >= FINEST
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
        f"the fused engine computes in float32: rtol must be at least {FINEST:g}, got {plan.rtol}; "
        "use engine='solve'",
    )
    return engine


def _plan(
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
) -> Plan:
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
        return Plan(per_save=_whole(every / method.step, text), step=method.step, **common)
    if rtol is None or atol is None:
        raise InputError(
            "state how to integrate: method=Layers(step) for the network, or rtol and atol, for "
            "example rtol=1e-4, atol=1e-5, for the flow"
        )
    require(rtol > 0 and atol > 0, f"rtol and atol must be positive, got {rtol} and {atol}")
    return Plan(rtol=rtol, atol=atol, **common)


def _whole(ratio: float, otherwise: str) -> int:
    require(abs(ratio - round(ratio)) < 1e-6 and round(ratio) >= 1, otherwise)
    return round(ratio)


def _checked_model(model: Dynamics, x0: Measure) -> tuple[Softmax | Unnormalised, float]:
    """The kind and V = c of a model the kernels know, or a sentence."""
    term = model.terms
    advice = "use flock.solve, which takes a batch of samples and of beta too"
    plain = (
        isinstance(term, Attention)
        and isinstance(term.weights, Weights)
        and not term.weights.matrices()
        and isinstance(term.mask, Full)
        and (isinstance(term.kind, Unnormalised) or term.kind == Softmax())
        and model.noise is None
        and model.is_plain_flow
    )
    require(
        plain,
        "an ensemble needs SA or USA with Q = K = I and V a number, every token visible, no noise "
        f"and post-LN; {advice}",
    )
    require(isinstance(x0.space, Sphere), f"an ensemble lives on a sphere, not on {x0.space}")
    require(x0.n >= 2, "a statistic of pairs needs at least two tokens")
    equal = np.asarray(x0.weights)
    require(bool(np.allclose(equal, equal.flat[0])), f"an ensemble needs equal weights; {advice}")
    assert isinstance(term, Attention)
    assert isinstance(term.weights, Weights)
    assert isinstance(term.kind, (Softmax, Unnormalised))
    return term.kind, 1.0 if term.weights.V is None else float(term.weights.V)


def _fused(plan: Plan, x0: Measure, betas: Array) -> tuple[Array, Array]:
    """Means and errors (statistic, beta, time) from the kernels."""
    points = x0.points.reshape(-1, x0.n, x0.d)
    systems = betas.size * points.shape[0]
    numbers = systems * (2.0 * (plan.saves + 1) + 6.0 * x0.n * x0.d)
    require_bytes(4 * numbers, f"the {systems} systems", "save less often or use fewer samples")
    return _launch(plan, points, betas)


@functools.partial(jax.jit, static_argnums=0)
def _launch(
    plan: Plan, points: Float[Array, "samples n d"], betas: Float[Array, " betas"]
) -> tuple[Array, Array]:
    samples = points.shape[0]
    integrate = integrate_lanes if points.shape[-1] <= WIDEST_LANE else integrate_tiles
    copies = jnp.tile(points, (betas.size, 1, 1))
    values = integrate(plan, copies, jnp.repeat(betas, samples))
    values = values.reshape(2, plan.saves + 1, betas.size, samples).swapaxes(1, 2)
    return _mean_and_error(values)


def _mean_and_error(values: Float[Array, "*lead samples"]) -> tuple[Array, Array]:
    samples = values.shape[-1]
    spread = jnp.std(values, axis=-1, ddof=min(1, samples - 1))
    return jnp.mean(values, axis=-1), spread / np.sqrt(samples)


def _solved(
    model: Dynamics, x0: Measure, t1: float, every: float, method: Layers | None, plan: Plan
) -> tuple[Array, Array]:
    """The same from the general engine."""
    import diffrax

    save = Save(every=every, states=False, observe=[pair_fraction(plan.delta), order_parameter])
    numerics: dict[str, Any] = {"method": method, "max_steps": plan.max_steps * plan.saves}
    if method is None:
        numerics |= {"method": diffrax.Bosh3(), "rtol": plan.rtol, "atol": plan.atol}
    run = solve(model, x0, t1, save=save, **numerics)
    found = []
    for name in STATISTICS:
        values = run[name]
        others = [dim for dim in values.dims if dim not in ("beta", "time")]
        values = values if "beta" in values.dims else values.expand_dims("beta")
        ordered = values.transpose("beta", "time", *others).values
        found.append(ordered.reshape(*ordered.shape[:2], -1))
    return _mean_and_error(jnp.asarray(np.stack(found)))


def _dataset(
    plan: Plan, x0: Measure, betas: np.ndarray, means: Array, errors: Array, engine: str
) -> xr.Dataset:
    import xarray as xr

    data = {}
    for name, mean, error in zip(STATISTICS, means, errors, strict=True):
        data[name] = (("beta", "time"), np.asarray(mean, dtype=float))
        data[f"{name}_error"] = (("beta", "time"), np.asarray(error, dtype=float))
    times = plan.interval * np.arange(plan.saves + 1)
    samples = int(np.prod(x0.batch_shape, dtype=int))
    method = "Bosh3" if plan.adaptive else f"Layers(step={plan.step:g})"
    facts = {"engine": engine, "method": method, "samples": samples, "n": x0.n, "d": x0.d}
    facts |= {"delta": plan.delta, "spec": plan.spec_of_first(x0)}
    return xr.Dataset(data, {"beta": betas, "time": times}, {**facts, **provenance()})
