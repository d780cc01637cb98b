"""The columns of a catalogue by the names people use: beta for model.beta.

A plain name is the last key of a setting. Of several it means the least nested one (model.beta, not
model.noise.beta); equally nested ones (tokens.seed, solve.seed) must be told apart by their paths.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import InputError
from ..lab.setting_paths import last_name
from ..names import nearest
from .facts import COLUMNS, Facts


class Names:
    """Columns, full paths of settings, and plain names with the paths that have them (`owners`)."""

    def __init__(self, everything: Iterable[Facts]):
        self.paths: set[str] = set()
        self.owners: dict[str, set[str]] = {}
        self._own_names: dict[str, set[str]] = {}
        for facts in everything:
            self.paths |= facts.settings.keys()
            for axis in facts.axes:
                self.paths |= axis.values.keys()
                if len(axis.values) == 1 and axis.name not in map(last_name, axis.values):
                    # An axis may have a name of its own: heat = { ..., set = "model.beta" }.
                    self._own_names.setdefault(axis.name, set()).update(axis.values)
        for path in self.paths:
            self.owners.setdefault(last_name(path), set()).add(path)
        for name, paths in self._own_names.items():
            self.owners.setdefault(name, set()).update(paths)

    def find(self, name: str, asked_by: str) -> str:
        """The column or path that a name stands for."""
        if name in COLUMNS or name in self.paths:
            return name
        meant = self.meant(name)
        if len(meant) == 1:
            return meant[0]
        if meant:
            options = " or ".join(sorted(self.owners[name], key=_by_nesting))
            raise InputError(f"{asked_by} {name} is ambiguous here; write {options}")
        return self._in_small_letters(name, asked_by)

    def meant(self, name: str) -> list[str]:
        """The least nested of the paths with a plain name, and those that an axis gave this name."""
        owners = self.owners.get(name, set())
        least = min((_nesting(path) for path in owners), default=0)
        named = self._own_names.get(name, set())
        return sorted(path for path in owners if _nesting(path) == least or path in named)

    def _in_small_letters(self, name: str, asked_by: str) -> str:
        """SQL takes names in any case; so is a name that fits only one when its case is ignored."""
        alike = [known for known in self.known if known.lower() == name.lower()]
        if len(alike) == 1 and alike[0] != name:
            return self.find(alike[0], asked_by)
        hint = (
            nearest(name, self.known)
            or f"; there are {', '.join(COLUMNS)} and the settings of specs"
        )
        raise InputError(f"{asked_by}: no result here has a column {name!r}{hint}")

    @property
    def known(self) -> list[str]:
        """Every name that can be asked for."""
        clear = {name for name in self.owners if len(self.meant(name)) == 1}
        return sorted({*COLUMNS, *self.paths, *clear})

    def short(self, path: str) -> str:
        """The last key of a path if it means this path."""
        leaf = last_name(path)
        return leaf if self.meant(leaf) == [path] and leaf not in COLUMNS else path


def _nesting(path: str) -> int:
    return path.count(".")


def _by_nesting(path: str) -> tuple[int, str]:
    return _nesting(path), path
