"""How far n tokens are from their limit: W2(mu_n(t), mu(t)) on the circle against n.

The limit is solved as a density by Fourier series, the tokens as tokens, and the distance is exact
(`transport.w2_on_circle`). Dobrushin's estimate W(mu_n(t), mu(t)) <= e^{Ct} W(mu_n(0), mu(0)) (2312.10794,
section 3.1) carries the error of the start along:

| start | W2 at t = 0 | rate |
|---|---|---|
| iid | root mean square pi/sqrt(3 n) for the uniform law | n^{-1/2} |
| quantiles | (pi/sqrt 3) sqrt(mean of 1/rho)/n | n^{-1}, at any t without noise |

With noise tokens are as good as independent at any t > 0, and both starts end at n^{-1/2}.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..density import Density, Law
from ..dynamics import Dynamics
from ..errors import require
from ..integrate import Save, solve
from ..measure import Measure
from ..reduce import Dense, Reduction, Spectral
from ..space import Sphere
from .cdf import distribution_of_law, middle_masses
from .circle import Fourier
from .transport import w2_on_circle

Start = Literal["iid", "quantiles"]
# Steps of noisy tokens where no dt is given: the error of the law is of first order in the step.
NOISY_STEPS = 256
# Tokens beyond the n-th carry this mass: they drift along and move nobody.
NO_MASS = 1e-300
# Up to here all pairs are summed; beyond, moments in O(n) with this error.
DENSE_TOKENS, SUM_ERROR = 1024, 1e-10


@dataclasses.dataclass(frozen=True)
class LimitError:
    """W2 to the limit in radians, of every number of tokens and every draw."""

    ns: Float[np.ndarray, " n"]
    distances: Float[np.ndarray, "n draw"]

    @property
    def sizes(self) -> Float[np.ndarray, " n"]:
        """Root mean square over the draws."""
        return np.sqrt(np.mean(self.distances**2, axis=-1))

    @property
    def rate(self) -> tuple[float, float]:
        """p with W2 ~ n^p by least squares of the logarithms, and its standard error.

        The error is that of the draws (`size_errors`), which are independent between n; nan for one draw.
        """
        logs = np.log(self.ns) - np.mean(np.log(self.ns))
        slope = logs @ np.log(self.sizes) / (logs @ logs)
        error = np.linalg.norm(logs * self.size_errors / self.sizes) / (logs @ logs)
        return float(slope), float(error)

    @property
    def size_errors(self) -> Float[np.ndarray, " n"]:
        """Standard errors of `sizes`; nan for a single draw."""
        squares, draws = self.distances**2, self.distances.shape[-1]
        if draws == 1:
            return np.full(len(self.ns), np.nan)
        return np.std(squares, axis=-1, ddof=1) / (2 * self.sizes * np.sqrt(draws))


def limit_error(
    model: Dynamics,
    law: Law,
    ns: Sequence[int],
    t: float,
    seeds: Sequence[int],
    *,
    start: Start = "iid",
    modes: int = 128,
    rtol: float = 1e-7,
    atol: float = 1e-9,
    dt: float | None = None,
) -> LimitError:
    """W2(mu_n(t), mu(t)) for every n in `ns` and every draw of `seeds`, tokens on the circle.

    `start="iid"` draws tokens from the law, anew for every n; `"quantiles"` puts them at equal masses (one
    draw without noise, since nothing is random). All n run in one compiled program with as many tokens
    as the largest, by the O(n) reduction where these are many. `dt` is the step of noisy tokens.
    """
    _check(model, ns, seeds, start)
    limit = _limit(model, law, t, modes)
    # Without noise quantiles differ in nothing but their number; the copies share a program with draws.
    different = len(seeds) if start == "iid" or model.noise is not None else 1
    rows = []
    for n in ns:
        tokens = np.stack([_angles(law, n, seed, start) for seed in seeds])
        # Those beyond the n-th only fill up the shape of the program.
        first = np.pad(tokens, ((0, 0), (0, max(ns) - n)))
        last = _moved(model, first, n, t, seeds[0], rtol, atol, dt)
        rows.append([_distance(points[:n], limit) for points in last[:different]])
    return LimitError(np.asarray(ns, float), np.array(rows))


def start_error(
    law: Law, ns: Sequence[int], seeds: Sequence[int], *, start: Start = "iid", modes: int = 128
) -> LimitError:
    """W2(mu_n(0), mu(0)): the error that the flow carries along."""
    density = Density.from_law(Fourier(modes), law)
    draws = seeds if start == "iid" else seeds[:1]
    rows = [[_distance(_points(_angles(law, n, s, start)), density) for s in draws] for n in ns]
    return LimitError(np.asarray(ns, float), np.array(rows))


def _limit(model: Dynamics, law: Law, t: float, modes: int) -> Density:
    """The density at t."""
    start = Density.from_law(Fourier(modes), law)
    run = solve(model, start, t, rtol=1e-9, atol=1e-12, save=Save(at=[t], states=True))
    return start.at(jnp.asarray(run.states)[-1])


def _angles(law: Law, n: int, seed: int, start: Start) -> Float[np.ndarray, " n"]:
    if start == "quantiles":
        return distribution_of_law(law).quantiles(middle_masses(n))
    # Seeded by n too, or the tokens of a smaller n would be the first ones of a larger.
    return distribution_of_law(law).quantiles(np.random.default_rng([seed, n]).uniform(size=n))


def _points(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def _moved(
    model: Dynamics,
    angles: np.ndarray,
    n: int,
    t: float,
    seed: int,
    rtol: float,
    atol: float,
    dt: float | None,
) -> Float[np.ndarray, "draw most 2"]:
    """The tokens at time t; those beyond the n-th have no mass."""
    weights = np.where(np.arange(angles.shape[1]) < n, 1.0 / n, NO_MASS)
    tokens = Measure(Sphere(2), _points(angles), weights)
    save = Save(at=[t], states=True)
    if model.noise is None:
        run = solve(model, tokens, t, rtol=rtol, atol=atol, save=save, reduction=_sums(tokens))
    else:
        step = t / NOISY_STEPS if dt is None else dt
        # Another n meets another noise: the draws of one n are not those of the next.
        noise = seed + 1_000_003 * n
        run = solve(model, tokens, t, dt=step, save=save, reduction=_sums(tokens), seed=noise)
    return np.asarray(run.array("states", time=-1))


def _sums(tokens: Measure) -> Reduction:
    return Dense() if tokens.n <= DENSE_TOKENS else Spectral(tol=SUM_ERROR)


def _distance(points: np.ndarray, density: Density) -> float:
    return w2_on_circle(Measure(Sphere(2), points), density)


def _check(model: Dynamics, ns: Sequence[int], seeds: Sequence[int], start: str) -> None:
    require(
        len(ns) > 0 and all(isinstance(n, int | np.integer) and n >= 2 for n in ns),
        f"numbers of tokens must be whole and at least 2, got {list(ns)}",
    )
    require(len(seeds) > 0, "need at least one seed to draw tokens with")
    require(start in ("iid", "quantiles"), f"start must be 'iid' or 'quantiles', got {start!r}")
    require(
        model.noise is None or model.temperature() is not None,
        "noise shared by all tokens has no deterministic limit; use Brownian noise or none",
    )
