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
from typing import Any, ClassVar

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Complex, Float

from ..density import Law
from ..dynamics import Dynamics
from ..errors import require, require_whole
from ..integrate import Save, solve
from ..meanfield import laws
from ..meanfield.cdf import distribution_of_law
from ..measure import Measure, from_angles
from ..observables.base import Observable, Snapshot
from ..reduce import Dense
from ..runtime import Scalar
from ..serialise import describe
from ..space import Sphere
from ..states.protocol import State
from ..theory import kinetic as theory
from ..trajectory import Trajectory

# Pairs of tokens whose forces are held at once: some 25 MB.
PAIRS_AT_ONCE = 1_000_000
MOST_STEPS = 100_000
FEWEST_SHIFTS = 8
# Axes of the prompts of a sample: s0 = k/n of the token k to recall, the prompts, the places of that token.
SAMPLED = ("position", "prompt", "place")


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
) -> Trajectory:
    """N Cov(e^{-im theta_n(t)}, e^{im theta_k(0)}) for tokens k = 1..n-1 and modes m = 1..shifts-1.

    Prompts are n independent tokens of the law (uniform when omitted). The run has the tokens of all
    prompts at t = 0 and t1, and at these times, for every position s0 = k/n and every prompt, the real part
    `response` of the covariance, its imaginary part `response_imaginary`, and `profile`, the sum of the
    response over the modes with the weights e^{-pi^2 m^2/(2 words^2)}.

    Averaged over the prompts (`ensembles.mean_and_error(run, "final_profile", over="prompt")`) the response
    tends to `mode_response` of a_m at s0 for uniform tokens, and to the C of `correlations` for others, with
    a bias of order 1/n; the profile tends to `retrieval_profile(..., modes=shifts - 1)`. Without `shifts`
    there are so many, 8 at least, that the modes left out are a thousandth of S_t. Steps are of fixed
    length dt (Tsit5); cost n^2 shifts prompts per token k and stage.
    """
    counts = {"n": (n, 2), "prompts": (prompts, 2), "words": (words, 1), "seed": (seed, 0)}
    for name, (count, least) in counts.items():
        require_whole(name, count, least)
    if shifts is not None:
        require_whole("shifts", shifts, 2)
    _check_tokens(tokens, n)
    _check_steps(t1, dt)
    _check_flow(model)
    if shifts is None:
        shifts = enough_shifts(model, np.asarray(tokens) / n, t1, words)
    chosen = laws.uniform() if law is None else law
    start, places, masses = _draw(jr.key(seed), n, tokens, prompts, shifts, chosen)
    run = solve(
        model,
        Prompts(start, jnp.asarray(tokens) / n),
        t1,
        dt=dt,
        method=diffrax.Tsit5(),
        save=Save(observe=recall_observables(places, masses, words)),
        max_steps=MOST_STEPS + 1,
    )
    run.attributes["recall"] = {"n": n, "prompts": prompts, "shifts": shifts, "words": words}
    run.attributes["recall"] |= {"tokens": [int(k) for k in tokens], "seed": seed}
    return run


def recall_observables(places: Array, masses: Array, words: int) -> tuple[Observable, ...]:
    """What the last tokens of all prompts owe to the places at which the tokens to recall began."""
    data = {"places": places, "masses": masses}
    modes: Any = tuple(range(1, places.shape[-1]))
    axes, labels = (*SAMPLED[:2], "mode"), (("mode", modes),)

    def observable(name: str, compute: Any, says: str, axes: Any = axes, **more: Any) -> Observable:
        return Observable(name, "1", compute, axes=axes, data=data, says=says, **more)

    says = "n Cov(e^{-im theta_n(t)}, e^{im theta_k(0)}) of a prompt"
    return (
        observable("response", _response, f"Real part of {says}", labels=labels),
        observable("response_imaginary", _imaginary, f"Imaginary part of {says}", labels=labels),
        observable(
            "profile",
            _profile,
            "Sum of the response over the modes, weighted by e^{-pi^2 m^2/(2 words^2)}",
            axes=SAMPLED[:2],
            parameters=(("words", words),),
        ),
    )


def _response(
    snapshot: Snapshot, places: Array, masses: Array
) -> Float[Array, "position prompt mode"]:
    return jnp.real(_covariances(snapshot, places, masses))


def _imaginary(
    snapshot: Snapshot, places: Array, masses: Array
) -> Float[Array, "position prompt mode"]:
    return jnp.imag(_covariances(snapshot, places, masses))


def _profile(
    snapshot: Snapshot, places: Array, masses: Array, words: int
) -> Float[Array, "position prompt"]:
    modes = jnp.arange(1, places.shape[-1])
    weights = jnp.exp(-((jnp.pi * modes / words) ** 2) / 2)
    return _response(snapshot, places, masses) @ weights


def _covariances(
    snapshot: Snapshot, places: Array, masses: Array
) -> Complex[Array, "position prompt mode"]:
    """n Cov(e^{-im theta_n(t)}, e^{im theta_k(0)}) over the places of token k, for every prompt."""
    last = angles_of(snapshot.measure.points[..., -1, :])
    modes, mass = jnp.arange(1, places.shape[-1]), masses[..., None]
    late = jnp.exp(-1j * modes * last[..., None])
    early = jnp.exp(1j * modes * places[..., None])
    centred = early - jnp.sum(mass * early, axis=-2, keepdims=True)
    return snapshot.measure.n * jnp.sum(mass * late * centred, axis=-2)


def angles_of(points: Float[Array, "*batch 2"]) -> Float[Array, "*batch"]:
    """The angles of points of the circle."""
    return jnp.arctan2(points[..., 1], points[..., 0])


class Prompts(State):
    """Prompts on the circle that all take the same steps, by their angles, some of them at a time.

    One state, not a batch of samples: what is recalled is a covariance over the places of a prompt, and the
    forces of all prompts at once would not fit in memory. On the circle angles need no retraction.
    """

    measure: Measure
    positions: Float[Array, " position"]
    main: ClassVar[str] = "points"

    def check(self, model: Dynamics, t1: float) -> None:
        model.check(self.measure, t1)

    def blank(self) -> Prompts:
        empty = jnp.zeros((self.measure.n, self.measure.d))
        return Prompts(self.measure.at(empty), self.positions)

    def begin(self, model: Dynamics) -> Float[Array, "position prompt place n"]:
        return angles_of(self.measure.points)

    def velocity(self, model: Dynamics, t: Scalar, y: Array) -> Array:
        n = y.shape[-1]
        rows = y.reshape(-1, n)

        def speeds(angles: Array) -> Array:
            here = self.measure.at(_points(angles))
            force = model.terms.tangent_field(t, here.points, here, Dense())
            return here.points[:, 0] * force[:, 1] - here.points[:, 1] * force[:, 0]

        at_once = min(max(1, PAIRS_AT_ONCE // n**2), len(rows))
        return jax.lax.map(speeds, rows, batch_size=at_once).reshape(y.shape)

    def snapshot(self, model: Dynamics, t: Array, y: Array) -> Snapshot:
        return Snapshot(t, self.measure.at(_points(y)), model, Dense())

    def rows(self, y: Array, keep: bool) -> dict[str, Array]:
        return {"states": _points(y)} if keep else {}

    @property
    def sizes(self) -> dict[str, int]:
        shape = self.measure.points.shape
        return dict(zip((*SAMPLED, "token", "coordinate"), shape, strict=True))

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(("states", "points"), (*SAMPLED, "token", "coordinate"))

    @property
    def labels(self) -> dict[str, np.ndarray]:
        return {"position": np.asarray(self.positions)}

    def ends(self, y: Array) -> dict[str, Array]:
        return {"points": _points(y)}

    def continued(self, ends: dict[str, Array]) -> Array:
        return angles_of(jnp.asarray(ends["points"]))

    def at_start(self) -> dict[str, Array]:
        return {"points": self.measure.points}

    def value(self, arrays: dict[str, Any]) -> Measure:
        return self.measure.at(jnp.asarray(arrays["points"]))

    def described(self) -> dict[str, Any]:
        return {"measure": describe(self.blank().measure)}


def _points(angles: Float[Array, "*batch"]) -> Float[Array, "*batch 2"]:
    return jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)


def _check_tokens(tokens: Sequence[int], n: int) -> None:
    require(
        len(tokens) > 0 and all(isinstance(k, int | np.integer) and 1 <= k < n for k in tokens),
        f"the tokens to recall are whole numbers 1..n-1 = {n - 1}, got {list(tokens)}",
    )


def _check_steps(t1: float, dt: float) -> None:
    require(
        0 < t1 < np.inf and 0 < dt < np.inf,
        f"t1 and dt must be positive and finite, got t1={t1}, dt={dt}; try dt=0.1",
    )
    require(
        t1 / dt <= MOST_STEPS,
        f"dt={dt:g} asks for {t1 / dt:.2g} steps, the most is {MOST_STEPS}; use a larger dt: Tsit5 is of "
        "order 5, and sampling errors hide its own from dt=0.1 on",
    )


def _check_flow(model: Dynamics) -> None:
    require(
        model.noise is None and model.space in (None, Sphere(2)) and model.is_plain_flow,
        "recall is sampled from flows on the circle without noise, with post-LN; "
        "use KineticFlow(beta, slope)",
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


def _draw(
    key: Array, n: int, tokens: Sequence[int], prompts: int, shifts: int, law: Law
) -> tuple[Measure, Array, Array]:
    """Prompts with token k at each of its places; these places, and the mass of the law at each.

    Independent angles by the inverse distribution function, and equally spaced places.
    """
    shape, turn = jr.split(key)
    count = len(tokens) * prompts
    shares = np.asarray(jr.uniform(shape, (count, n), dtype=jnp.float64))
    angles = distribution_of_law(law).quantiles(shares.ravel()).reshape(shares.shape)
    offset = jr.uniform(turn, (count, 1), dtype=jnp.float64)
    places = np.asarray(2 * jnp.pi * (offset + jnp.arange(shifts)) / shifts)
    values = np.asarray(law(from_angles(places.ravel()).points)).reshape(places.shape)
    starts = np.repeat(angles[:, None], shifts, axis=1)
    recalled = np.repeat(np.asarray(tokens) - 1, prompts)
    starts[np.arange(count), :, recalled] = places
    masses = values / values.sum(axis=1, keepdims=True)

    def folded(table: np.ndarray) -> np.ndarray:
        return table.reshape(len(tokens), prompts, *table.shape[1:])

    return from_angles(folded(starts)), jnp.asarray(folded(places)), jnp.asarray(folded(masses))
