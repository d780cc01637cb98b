r"""Recall by sampling: prompts of n random tokens, with the noise of plain sampling cancelled.

What the last token owes to token k is O(1/n) beside O(1) noise: plain sampling would need 1e6 prompts.
But theta_k(0) is independent of all other tokens, so it is averaged out in every prompt: the same prompt
is run with token k at m places around the circle, and

    Cov(X, phi(theta_k(0))) = E [ Cov(X, phi(theta_k(0)) | all other tokens) ],

whose inner covariance is a sum over the places. For uniform tokens these are the cyclic shifts
theta_k(0) + 2 pi r/m of 2605.09213: the O(1) part cancels, and the error relative to the signal no longer
depends on n.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Complex, Float, Int

from ..density import Law
from ..dynamics import Dynamics
from ..errors import require, require_whole
from ..integrate.unchecked import unchecked
from ..meanfield import laws
from ..meanfield.cdf import distribution_of_law
from ..measure import from_angles
from ..reduce import Dense
from ..space import Sphere
from ..theory import kinetic as theory

if TYPE_CHECKING:
    import xarray as xr

# Pairs of tokens whose forces are held at once: some 100 MB.
PAIRS_AT_ONCE = 4_000_000
MOST_STEPS = 100_000
FEWEST_SHIFTS = 8


class Prompt(eqx.Module):
    """Random tokens, which of them is to be recalled, its places and the mass of each place."""

    angles: Float[Array, "*prompt n"]
    token: Int[Array, "*prompt"]
    places: Float[Array, "*prompt place"]
    masses: Float[Array, "*prompt place"]


def sample_recall(
    model: Dynamics,
    n: int,
    tokens: Sequence[int],
    t1: float,
    *,
    prompts: int,
    seed: int,
    dt: float,
    shifts: int | None = None,
    words: int = 8,
    law: Law | None = None,
) -> xr.Dataset:
    """N Cov(e^{-im theta_n(t1)}, e^{im theta_k(0)}) for tokens k = 1..n-1 and modes m = 1..shifts-1.

    Prompts are n independent tokens of the law (uniform when omitted). `response` tends to `mode_response`
    of a_m at s0 = k/n for uniform tokens, and to the C of `correlations` for others, with a bias of order
    1/n; `profile`, the sum over these modes with the weights e^{-pi^2 m^2/(2 words^2)}, tends to
    `retrieval_profile(..., modes=shifts - 1)`. Without `shifts` there are so many, 8 at least, that the
    modes left out are a thousandth of S_t. `_error` are standard errors over the prompts, of real and
    imaginary parts. All runs are one compiled call of fixed steps dt (Tsit5); cost n^2 shifts prompts per
    token k and stage.
    """
    counts = {"n": (n, 2), "prompts": (prompts, 2), "words": (words, 1), "seed": (seed, 0)}
    for name, (count, least) in counts.items():
        require_whole(name, count, least)
    if shifts is not None:
        require_whole("shifts", shifts, 2)
    _check_tokens(tokens, n)
    _check_flow(model, t1, dt)
    if shifts is None:
        shifts = enough_shifts(model, np.asarray(tokens) / n, t1, words)
    chosen = laws.uniform() if law is None else law
    drawn = _draw(jr.key(seed), n, np.repeat(tokens, prompts), shifts, chosen)
    covariances = np.asarray(_covariances(model, drawn, jnp.asarray(t1), jnp.asarray(dt)))
    each = n * covariances.reshape(len(tokens), prompts, shifts - 1)
    modes = np.arange(1, shifts)
    profile = np.real(each) @ np.exp(-((np.pi * modes / words) ** 2) / 2)
    return _dataset(each, profile, n, tokens, t1, words)


def _check_tokens(tokens: Sequence[int], n: int) -> None:
    require(
        len(tokens) > 0 and all(isinstance(k, int | np.integer) and 1 <= k < n for k in tokens),
        f"the tokens to recall are whole numbers 1..n-1 = {n - 1}, got {list(tokens)}",
    )


def _check_flow(model: Dynamics, t1: float, dt: float) -> None:
    require(
        0 < t1 < np.inf and 0 < dt < np.inf,
        f"t1 and dt must be positive and finite, got t1={t1}, dt={dt}; try dt=0.1",
    )
    require(
        t1 / dt <= MOST_STEPS,
        f"dt={dt:g} asks for {t1 / dt:.2g} steps, the most is {MOST_STEPS}; use a larger dt: Tsit5 is of "
        "order 5, and sampling errors hide its own from dt=0.1 on",
    )
    require(
        model.noise is None and model.space in (None, Sphere(2)),
        "recall is sampled from flows on the circle without noise; use Kinetic(beta, slope)",
    )


def enough_shifts(model: Dynamics, places: np.ndarray, t1: float, words: int) -> int:
    """The fewest that leave a thousandth of S_t out at every place, and 8 at least."""
    term = model.terms.attention()
    beta = np.zeros(()) if term is None else np.asarray(term.beta)
    if term is None or beta.size != 1 or not beta > 0:
        return FEWEST_SHIFTS
    slope = 0.0 if term.mask.decay is None else float(term.mask.decay)
    all_modes = theory.modes_needed(float(beta))

    def left_out(modes: int) -> float:
        logs = [
            theory.log_retrieval_profile(places, float(beta), t1, slope, words, count)
            for count in (modes, all_modes)
        ]
        return float(-np.expm1(logs[0] - logs[1]).min())

    enough = (modes for modes in range(FEWEST_SHIFTS - 1, all_modes) if left_out(modes) < 1e-3)
    return 1 + next(enough, all_modes)


def _draw(key: Array, n: int, tokens: np.ndarray, shifts: int, law: Law) -> Prompt:
    """Independent angles by the inverse distribution function, and equally spaced places."""
    shape, turn = jr.split(key)
    shares = np.asarray(jr.uniform(shape, (len(tokens), n), dtype=jnp.float64))
    angles = distribution_of_law(law).quantiles(shares.ravel()).reshape(shares.shape)
    offset = jr.uniform(turn, (len(tokens), 1), dtype=jnp.float64)
    places = 2 * jnp.pi * (offset + jnp.arange(shifts)) / shifts
    values = law(from_angles(places.ravel()).points).reshape(places.shape)
    masses = values / jnp.sum(values, axis=1, keepdims=True)
    return Prompt(jnp.asarray(angles), jnp.asarray(tokens) - 1, places, masses)


@eqx.filter_jit
def _covariances(
    model: Dynamics, drawn: Prompt, t1: Array, dt: Array
) -> Complex[Array, "prompt mode"]:
    """Cov(e^{-im theta_n(t1)}, e^{im theta_k(0)}) over the places of token k, for every prompt."""
    count, n = drawn.places.shape[1], drawn.angles.shape[1]
    modes = jnp.arange(1, count)

    def one(prompt: Prompt) -> Array:
        starts = jnp.broadcast_to(prompt.angles, (count, n)).at[:, prompt.token].set(prompt.places)
        last = jax.vmap(lambda start: _flow(model, start, t1, dt)[-1])(starts)
        late = jnp.exp(-1j * modes * last[:, None])
        early = jnp.exp(1j * modes * prompt.places[:, None])
        mass = prompt.masses[:, None]
        centred = early - jnp.sum(mass * early, axis=0)
        return jnp.sum(mass * late * centred, axis=0)

    batch = max(1, PAIRS_AT_ONCE // (count * n * n))
    return jax.lax.map(one, drawn, batch_size=min(batch, len(drawn.angles)))


@eqx.filter_jit
def final_angles(
    model: Dynamics, starts: Float[Array, "prompt n"], t1: Array, dt: Array
) -> Float[Array, "prompt n"]:
    """Angles at t1 of many prompts, by steps dt of Tsit5, some prompts at a time."""
    batch = max(1, PAIRS_AT_ONCE // starts.shape[1] ** 2)
    return jax.lax.map(
        lambda start: _flow(model, start, t1, dt),
        starts,
        batch_size=min(batch, len(starts)),
    )


def _flow(model: Dynamics, start: Float[Array, " n"], t1: Array, dt: Array) -> Float[Array, " n"]:
    """Angles at t1, by steps dt of Tsit5: on the circle angles need no retraction."""

    def speed(t: Any, angles: Any, args: Any) -> Array:
        tokens = from_angles(angles)
        force = model.terms.tangent_field(t, tokens.points, tokens, Dense())
        return tokens.points[:, 0] * force[:, 1] - tokens.points[:, 1] * force[:, 0]

    with unchecked():
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(speed),
            diffrax.Tsit5(),
            0.0,
            t1,
            dt,
            start,
            max_steps=MOST_STEPS,
            throw=False,
        )
    assert found.ys is not None
    return found.ys[-1]


def _dataset(
    each: np.ndarray, profile: np.ndarray, n: int, tokens: Sequence[int], t1: float, words: int
) -> xr.Dataset:
    import xarray as xr

    def error(samples: np.ndarray) -> Any:
        parts = [part(samples).std(axis=1, ddof=1) for part in (np.real, np.imag)]
        whole = parts[0] + 1j * parts[1] if np.iscomplexobj(samples) else parts[0]
        return whole / np.sqrt(samples.shape[1])

    return xr.Dataset(
        {
            "response": (("token", "mode"), each.mean(axis=1)),
            "response_error": (("token", "mode"), error(each)),
            "profile": (("token",), profile.mean(axis=1)),
            "profile_error": (("token",), error(profile)),
        },
        coords={
            "token": list(tokens),
            "position": ("token", np.asarray(tokens) / n),
            "mode": np.arange(1, each.shape[-1] + 1),
        },
        attrs={"n": n, "prompts": each.shape[1], "time": t1, "words": words},
    )
