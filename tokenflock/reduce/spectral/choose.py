"""Degree, range and reach of a series from what is known of the sums; refusals where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax

from ...errors import InputError, require
from ...kinds import Kind
from ...masks import Mask
from ...runtime import is_traced
from ..base import Problem, Task, machine_epsilon
from . import series
from .plan import (
    Basis,
    amplification,
    choose_basis,
    rounding,
    series_dimension,
    wide_dtype,
)
from .products import Products, count
from .transforms import available

Evaluation = Literal["auto", "recurrence", "finufft"]

# Degrees beyond which features cost more than the sums they replace, or than anyone waits to compile.
LARGEST_DEGREE = {2: 4096, 3: 128}
LARGEST_COUNT, FEW = 4096, 64
# From here on transforms beat recurrences on the circle (2 cores, tol 1e-10, softmax of 2 values: equal
# between degrees 48 and 64 for n = 10^4 to 10^6, six times faster at 200; slower at n = 10^3 up to 200).
TRANSFORM_DEGREE, TRANSFORM_COUNT = 56, 10_000
SETTLE = (
    "solve() settles it before tracing; elsewhere call reduction.settle([attention.task(tokens)]) "
    "first, or give degree and reach, or use reduction=Tiled()"
)


class Choice(NamedTuple):
    """What a settled `Spectral` knows."""

    degree: int
    reach: float
    span: float
    terms: int


def choose(tasks: Sequence[Task], tol: float, degree: int | None, reach: float | None) -> Choice:
    """One choice that serves every task."""
    for task in tasks:
        refuse_unsupported(task.kind, task.mask, task.unit_keys)
    # A kind that is its own polynomial is exact for any beta and any queries.
    open_ended = [task for task in tasks if task.kind.polynomial_degree is None]
    if not open_ended:
        return _polynomial_choice(tasks, reach)
    reach = max(_reach(task, reach) for task in open_ended)
    span = max(_argument(task, reach, degree is not None) for task in open_ended)
    if degree is None:
        degree = max(_degree(task, reach, tol) for task in open_ended)
    elif any(task.kind.exponent is not None for task in open_ended):
        span = _span_of(degree, series_dimension(tasks[0].d), tol, span)
    bases = [_basis(task, degree) for task in open_ended]
    for task, basis in zip(open_ended, bases, strict=True):
        _refuse_high_degree(task, degree)
        refuse_many_products(basis, task.n)
        _refuse_too_precise(task, tol, basis, span)
    return Choice(degree, reach, span, max(basis.size for basis in bases))


def _polynomial_choice(tasks: Sequence[Task], reach: float | None) -> Choice:
    """One degree more where it is cheap: the energy of such a kind sums its primitive."""
    first = tasks[0]
    known = [task.reach for task in tasks if task.reach is not None]
    degree = max(task.kind.polynomial_degree or 0 for task in tasks)
    higher = count(first.d, degree + 1) <= _affordable(first.n)
    span = max([1.0, *known]) if reach is None else reach
    return Choice(degree + 1 if higher else degree, span, 0.0, count(first.d, degree))


def _basis(task: Task, degree: int) -> Basis:
    return choose_basis(task.d, degree, task.kind, own=task.reach == 1.0)


def refuse_unsupported(kind: Kind, mask: Mask, unit_keys: bool) -> None:
    """Refuse what has no zonal series, or no series here."""
    _refuse_kind(kind)
    require(
        mask.sees_all or mask.causal,
        f"Spectral knows the masks Full, Causal and ALiBi, got {type(mask).__name__}; "
        "use reduction=Tiled()",
    )
    require(
        unit_keys,
        "Spectral needs keys that are the tokens of a sphere (after K moves into B = Q^T K); these "
        "keys have any length (tokens of R^d, low-rank heads, or K under L2 scores); "
        "use reduction=Tiled()",
    )


def refuse_other_rows(problem: Problem) -> None:
    """Refuse an ordered mask whose rows are not the tokens in their order."""
    rows, columns = problem.queries.shape[0], problem.keys.shape[0]
    require(
        rows == columns or problem.mask.sees_all,
        f"an ordered mask is summed by prefixes of the tokens themselves, but there are {rows} rows "
        f"and {columns} tokens; use reduction=Tiled()",
    )


def _refuse_kind(kind: Kind) -> None:
    if kind.has_series:
        return
    raise InputError(
        f"{kind.name} attention is not a sum of a smooth function of <q, k>, which a series needs; "
        "use reduction=Tiled() or Dense()"
    )


def wants_transform(evaluate: Evaluation, n: int, degree: int) -> bool:
    """Whether the circle's sums go through FINUFFT, where the rest of the problem allows it."""
    if evaluate != "auto":
        return evaluate == "finufft"
    large = n >= TRANSFORM_COUNT and degree >= TRANSFORM_DEGREE
    return large and _transforms_run_here()


def _transforms_run_here() -> bool:
    return jax.default_backend() == "cpu" and wide_dtype() == "float64" and available()


def refuse_transform(tasks: Sequence[Task]) -> None:
    """Refuse FINUFFT by name where it cannot serve."""
    require(
        _transforms_run_here(),
        "evaluate='finufft' needs jax-finufft (pip install 'tokenflock[spectral]'), a CPU and float64; "
        "leave evaluate out",
    )
    for task in tasks:
        require(
            task.d == 2 and task.mask.sees_all,
            f"evaluate='finufft' sums over the circle with a full mask, got d={task.d} and "
            f"{type(task.mask).__name__}; leave evaluate out",
        )


def _reach(task: Task, given: float | None) -> float:
    reach = task.reach if given is None else given
    if reach is None:
        raise InputError(
            "Spectral needs a bound of the length of the queries B^T x, but these weights are redrawn in "
            "time or per sample, or traced; give it as Spectral(tol, reach=...) (longer queries are "
            "summed directly), or use reduction=Tiled()"
        )
    return reach


def _argument(task: Task, reach: float, degree_known: bool) -> float:
    """The largest a beta |q| |k|."""
    if task.beta is None:
        require(
            degree_known, f"Spectral chooses its degree from beta, which is traced here; {SETTLE}"
        )
        return 0.0
    return (task.kind.exponent or 0.0) * task.beta * reach


def _degree(task: Task, reach: float, tol: float) -> int:
    """The degree that one task needs."""
    dimension = series_dimension(task.d)
    kind = task.kind
    if kind.exponent is not None:
        return series.needed_degree(_argument(task, reach, False), dimension, tol)
    assert task.beta is not None
    if is_traced(kind):
        raise InputError(
            f"Spectral computes the series of {type(kind).__name__} from its parameters, which are "
            f"traced here; {SETTLE}"
        )
    degree = series.computed_degree(kind, task.beta, reach, dimension, tol)
    if degree is None:
        raise InputError(
            f"the series of {type(kind).__name__} at beta={task.beta:g} decays too slowly: more than "
            f"{series.LONGEST_COMPUTED[dimension]} terms for tol={tol:g}; use reduction=Tiled()"
        )
    # The energy of a kind sums its primitive, which has one degree more.
    return degree + 1


def _span_of(degree: int, dimension: int, tol: float, asked: float) -> float:
    """The range of a given degree, which must hold what is known of the sums."""
    span = series.largest_argument(degree, dimension, tol)
    if span < asked:
        needed = series.needed_degree(asked, dimension, tol)
        raise InputError(
            f"degree={degree} reaches tol={tol:g} for beta |q| up to {span:.3g} only, and it is "
            f"{asked:.3g} here; give degree={needed}, or leave it out"
        )
    return span


def _refuse_high_degree(task: Task, degree: int) -> None:
    limit = LARGEST_DEGREE.get(task.d, degree)
    require(
        degree <= limit,
        f"this series needs degree {degree}, above the limit {limit} for d={task.d} "
        f"(beta={task.beta}, reach={task.reach}); raise tol, or use reduction=Tiled()",
    )


def refuse_many_products(basis: Basis, n: int) -> None:
    """Refuse products of coordinates where they are more work than the sum itself."""
    if not isinstance(basis, Products) or basis.degree == 1:
        return
    require(
        basis.size <= _affordable(n),
        f"Spectral needs {basis.size} terms here, the products of at most {basis.degree} of d={basis.d} "
        f"coordinates; for n={n} tokens it takes up to {_affordable(n)}: lower beta, raise tol, or use "
        "reduction=Tiled()",
    )


def _affordable(n: int) -> int:
    """Products that cost less than the sum itself: n/4 of them, or a few in any case."""
    return max(FEW, min(LARGEST_COUNT, n // 4))


def _refuse_too_precise(task: Task, tol: float, basis: Basis, span: float) -> None:
    """Refuse a tolerance that rounding alone would miss on evenly spread tokens."""
    even = 1.0
    if task.kind.averages:
        even = series.evenly_spread(span, series_dimension(task.d))
    lost = 4.0 * rounding(basis, task.n, task.mask) * amplification(basis, span) / even
    floor = max(lost, 8.0 * machine_epsilon(task.precision))
    require(
        tol >= floor,
        f"tol={tol:g} is below what {task.precision} gives for n={task.n} tokens at beta={task.beta}, "
        f"about {floor:.1e}; raise tol, or use reduction=Tiled()",
    )
