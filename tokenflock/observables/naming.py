"""Which names observables may have: none that a result gives to arrays and axes of its own.

An observable under such a name would replace what the engine stores there, or be dropped for it. So would
two axes of one name that mean different things.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InputError, require
from .base import Observable
from .table import belongs_to_another

# Axes that a result has whatever is observed; the axes of a cell of a sweep and of a run are the same.
OWN_AXES = ("time", "beta", "sample", "save")
# Axes that some result puts in front of the values: those, and that of traces.
FRONT_AXES = (*OWN_AXES, "layer")
# Arrays and axes that runs, runs of densities and sweeps make themselves. What they store is compared
# with this list in tests/observables/test_naming.py.
OWN_NAMES = frozenset(
    (
        *OWN_AXES,
        *("token", "coordinate", "states", "radii", "owners"),
        # A run ends with final_points and the like, where the last value of an observable would be, too.
        *("points", "masses", "state", "work"),
        *("outcome", "outcome_code", "finite", "steps", "accepted_steps", "rejected_steps"),
    )
)
# The ends of a run (final_energy, initial_points), further axes of samples, derived seeds of a sweep.
LONGEST_NAME = 100
OWN_BEGINNINGS, OWN_ENDINGS = ("final_", "initial_", "sample_"), ("_seed",)


def is_own(name: str) -> bool:
    """Whether results use a name for themselves."""
    return name in OWN_NAMES or name.startswith(OWN_BEGINNINGS) or name.endswith(OWN_ENDINGS)


def check_names(observe: Sequence[Observable], taken: Sequence[str] = ()) -> None:
    """Refuse names and axes that would collide; `taken` are further names of this sort of result."""
    for thing in observe:
        _check_name(thing, taken)
        _check_axes(thing)
    names = [thing.name for thing in observe]
    require(len(set(names)) == len(names), f"observables must have different names, got {names}")
    for thing in observe:
        owner = next((other.name for other in observe if thing.name in other.axes), None)
        require(
            owner is None, f"{thing.name!r} cannot name an observable: it is an axis of {owner}"
        )
    _check_labels(observe)


def check_word(name: object, taken: Sequence[str] = ()) -> None:
    """Refuse what is no name, and the names that results use themselves."""
    if not (isinstance(name, str) and name.isidentifier()):
        raise InputError(
            f"{name!r} cannot name an observable; use letters, digits and _, for example 'wide_clusters'"
        )
    require(
        len(name) <= LONGEST_NAME,
        f"{name[:20]}... cannot name an observable: it has {len(name)} letters, and a name becomes that of "
        f"a file; use at most {LONGEST_NAME}",
    )
    require(
        not is_own(name) and name not in taken,
        f"{name!r} cannot name an observable: results keep an array or an axis of their own under that "
        "name; choose another",
    )


def _check_name(thing: Observable, taken: Sequence[str]) -> None:
    check_word(thing.name, taken)
    require(
        not belongs_to_another(thing),
        f"{thing.name!r} cannot name this observable: another one is registered under that name, and "
        "results are read by name; choose another",
    )


def _check_axes(thing: Observable) -> None:
    own = [axis for axis in thing.axes if axis in FRONT_AXES or axis.startswith("sample_")]
    require(
        not own,
        f"{thing.name} has the axis {', '.join(own)}, which every result has already; give the axes of "
        "one value at one time",
    )
    require(
        len(set(thing.axes)) == len(thing.axes),
        f"the axes of {thing.name} need different names, got {thing.axes}",
    )


def _check_labels(observe: Sequence[Observable]) -> None:
    """One axis has one set of values."""
    seen: dict[str, tuple[str, tuple[float, ...]]] = {}
    for thing in observe:
        for axis, values in thing.labels:
            other, known = seen.setdefault(axis, (thing.name, values))
            require(
                known == values,
                f"{other} and {thing.name} share the axis {axis!r} but not its values ({len(known)} and "
                f"{len(values)} of them); give both the same, or make two runs",
            )
