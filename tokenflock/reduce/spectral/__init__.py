"""Spectral: sums over tokens on small spheres in O(n), exact to a tolerance."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import equinox as eqx
from jaxtyping import Array, Float

from ...errors import require
from ..base import Problem, Reduction, Task
from .choose import (
    LARGEST_COUNT,
    Evaluation,
    choose,
    refuse_many_products,
    refuse_other_rows,
    refuse_transform,
    refuse_unsupported,
    wants_transform,
)
from .fallback import spectral_rows
from .plan import SpectralPlan, block_size, make_plan, wide_dtype


class Spectral(Reduction):
    """Attention on S^{d-1} through a truncated zonal series: O(n) where Dense and Tiled are O(n^2).

    With e^{x(u-1)} = sum_l p_l(x) C_l(u) (Fourier and Bessel I_k on the circle, spherical harmonics on
    S^2, see `series`), all sums follow from moments of the tokens against the harmonics of degree up to
    about sqrt(2 beta ln 1/tol): (numerator and partition) = sum_l p_l(beta |q_i|) Y_l(q_i) . M_l.

    | | |
    |---|---|
    | keys | on the circle or S^2; on S^{d-1}, d >= 4, by products of coordinates while these are few |
    | kinds | softmax (dot product, L2), unnormalised, linear: queries of any length |
    | | sigmoid, Kernel(phi) with a computed Gegenbauer series: queries that are the tokens |
    | masks | full; causal and ALiBi, by prefix sums of moments |
    | cost | n times 2 degree + 2 features on the circle, (degree + 1)^2 on S^2, C(degree + d, d) above |

    Memory is O(n). Error: an output of softmax is within tol max|v_j| of the exact one; without a
    partition function, within tol times the largest weight times max|v_j|. The truncation bound is
    rigorous (`series`); a computed series is bounded by its own coefficients up to twice the degree.

    The trap is a row far from all tokens at large beta, whose partition is small against e^{beta |q|}.
    Every row whose own bound exceeds tol, or whose query is longer than `reach`, is therefore summed
    directly, at run time, in O(n). The result holds for any tokens; it is fast while such rows are
    few: their partition is below a twentieth of that of evenly spread tokens (a half where tol is
    close to rounding). Speeds below tol (metastable states move at e^{-c beta}) are lost: use Tiled
    there, and choose tol below the solver's atol.

    `degree` and `reach` (bound of |q|) are chosen by `settle`, which `solve` calls; give them where beta
    or the weights are not known in advance. Derivatives are those along the sphere, in reverse mode
    (`method=Stiff()` and `energy_rate` need forward mode: use Tiled).
    `evaluate="finufft"` sums over the circle by non-uniform fast Fourier transforms (the extra
    `tokenflock[spectral]`); "auto" does so on a CPU where that is faster.
    """

    tol: float = eqx.field(static=True)
    degree: int | None = eqx.field(static=True, default=None)
    reach: float | None = eqx.field(
        static=True, default=None, converter=lambda given: None if given is None else float(given)
    )
    evaluate: Evaluation = eqx.field(static=True, default="auto")
    # Set by `settle`: the largest argument a beta |q| that the degree serves, the number of features.
    span: float | None = eqx.field(static=True, default=None)
    terms: int | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        require(
            0.0 < self.tol < 1.0,
            f"Spectral needs a tolerance between 0 and 1, for example 1e-10; got {self.tol}",
        )
        require(
            self.degree is None or self.degree >= 1,
            f"the degree of a series is at least 1, got {self.degree}",
        )
        require(
            self.reach is None or self.reach > 0,
            f"reach bounds the length of queries and must be positive, got {self.reach}",
        )
        require(
            self.evaluate in ("auto", "recurrence", "finufft"),
            f"evaluate is auto, recurrence or finufft, got {self.evaluate!r}",
        )

    def __call__(self, problem: Problem) -> Float[Array, "rows m"]:
        settled = self if self.span is not None else self.settle([problem.task()])
        return _rows(problem, settled._plan(problem))

    def _plan(self, problem: Problem) -> SpectralPlan:
        refuse_unsupported(problem.kind, problem.mask, problem.unit_keys)
        refuse_other_rows(problem)
        assert self.degree is not None
        assert self.span is not None
        assert self.reach is not None
        transform = wants_transform(self.evaluate, problem.keys.shape[0], self.degree)
        plan = make_plan(problem, self.tol, self.degree, self.span, self.reach, transform)
        refuse_many_products(plan.basis, problem.keys.shape[0])
        return plan

    def settle(self, tasks: Sequence[Task]) -> Spectral:
        if not tasks:
            return self
        if self.evaluate == "finufft":
            refuse_transform(tasks)
        choice = choose(tasks, self.tol, self.degree, self.reach)
        return dataclasses.replace(self, **choice._asdict())

    def error_bound(self, problem_size: int) -> float:
        return self.tol

    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        terms = LARGEST_COUNT if self.terms is None else self.terms
        # Tokens, their blocks and sums; one block of features with its copies.
        return 8 * heads * samples * (4 * n * 16 + 3 * terms * block_size(n, terms))


@eqx.filter_jit
def _rows(problem: Problem, plan: SpectralPlan) -> Float[Array, "rows m"]:
    dtype = problem.values.dtype
    return spectral_rows(problem.cast(wide_dtype()), plan).astype(dtype)
