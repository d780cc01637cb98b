"""Auto: the cheapest reduction that is accurate enough, by measured costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import equinox as eqx
from jaxtyping import Array

from ..errors import InputError, require
from .base import Problem, Reduction, Task
from .costs import PAIRS, platform_of, term_cost
from .dense import Dense
from .kernel import GpuKernel
from .spectral import Spectral
from .tiled import Tiled

# Beyond this the n x n matrix is not worth its memory, whatever it would cost in time.
LARGEST_DENSE_BYTES = 2**30


class Auto(Reduction):
    """Takes the fastest of Dense, Tiled, Spectral and GpuKernel whose error bound is at most `tol`.

    Costs are those of `costs`, measured. `solve` settles the choice before anything is compiled and
    records it with its reason: run.attributes["numerics"]["reduction"] holds `inner` and `why`.
    """

    tol: float = eqx.field(static=True, default=1e-10)

    def __check_init__(self) -> None:
        require(
            0.0 < self.tol < 1.0,
            f"Auto needs a tolerance between 0 and 1, for example 1e-10; got {self.tol}",
        )

    def __call__(self, problem: Problem) -> Array:
        return self.settle([problem.task()])(problem)

    def settle(self, tasks: Sequence[Task]) -> Picked:
        if not tasks:
            return Picked(Dense(), "no attention, no sums over tokens")
        offers = list(_offers(tasks, self.tol))
        possible = [offer for offer in offers if offer.reduction is not None]
        if not possible:
            raise InputError(
                f"no reduction reaches tol={self.tol:g}: {_sentence(offers)}; raise tol in Auto(tol)"
            )
        best = min(possible, key=lambda offer: offer.seconds)
        assert best.reduction is not None
        others = [offer for offer in offers if offer is not best]
        return Picked(best.reduction, f"{best.says()}; instead of {_sentence(others)}")

    def error_bound(self, problem_size: int) -> float:
        return self.tol

    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        return Tiled().peak_bytes(n, heads, samples)


class Picked(Reduction):
    """What Auto took, and why."""

    inner: Reduction
    why: str = eqx.field(static=True)

    def __call__(self, problem: Problem) -> Array:
        return self.inner(problem)

    def error_bound(self, problem_size: int) -> float:
        return self.inner.error_bound(problem_size)

    def peak_bytes(self, n: int, heads: int, samples: int) -> int:
        return self.inner.peak_bytes(n, heads, samples)


@dataclasses.dataclass(frozen=True)
class Offer:
    """One candidate: its price, or the reason it is none."""

    name: str
    reduction: Reduction | None
    seconds: float = float("inf")
    refusal: str = ""

    def says(self) -> str:
        """The candidate in a few words."""
        if self.reduction is None:
            return f"{self.name} ({self.refusal})"
        return f"{self.name} (about {self.seconds:.2g} s an evaluation)"


def _sentence(offers: Sequence[Offer]) -> str:
    return ", ".join(offer.says() for offer in offers) or "nothing"


def _offers(tasks: Sequence[Task], tol: float) -> Iterator[Offer]:
    """All candidates of this platform, in order of preference at equal price."""
    table = PAIRS[platform_of(tasks[0])]
    yield _dense(tasks, sum(table["Dense"].seconds(task) for task in tasks))
    yield _series(tasks, tol)
    plain = {
        "Tiled": Tiled(),
        "Tiled float32": Tiled(precision="float32"),
        "GpuKernel": GpuKernel(),
    }
    for name, reduction in plain.items():
        if name in table:
            price = sum(table[name].seconds(task) for task in tasks)
            yield _accurate(name, reduction, price, tasks, tol)


def _dense(tasks: Sequence[Task], price: float) -> Offer:
    needed = max(Dense().peak_bytes(task.n, task.heads, task.samples) for task in tasks)
    if needed > LARGEST_DENSE_BYTES:
        return Offer("Dense", None, refusal=f"its matrix needs {needed / 2**30:.2g} GiB")
    return Offer("Dense", Dense(), price)


def _series(tasks: Sequence[Task], tol: float) -> Offer:
    try:
        settled = Spectral(tol).settle(tasks)
    except InputError as error:
        return Offer("Spectral", None, refusal=_first_clause(error))
    price = sum(term_cost(task).seconds(task, settled.terms or 1) for task in tasks)
    return Offer("Spectral", settled, price)


def _accurate(
    name: str, reduction: Reduction, price: float, tasks: Sequence[Task], tol: float
) -> Offer:
    """The candidate, unless it cannot do these sums or its bound is above tol."""
    try:
        settled = reduction.settle(tasks)
    except InputError as error:
        return Offer(name, None, refusal=_first_clause(error))
    bound = max(settled.error_bound(task.n) for task in tasks)
    if bound > tol:
        return Offer(name, None, refusal=f"error up to {bound:.1g}")
    return Offer(name, settled, price)


def _first_clause(error: InputError) -> str:
    return str(error).split(";")[0]
