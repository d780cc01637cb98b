"""The columns of a catalogue by the names people use: beta for model.beta where nothing else is beta."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import InputError
from ..lab.catalogue import nearest
from .facts import COLUMNS, Facts


class Names:
    """Columns, full paths of settings, and last keys that stand for one path in all results."""

    def __init__(self, everything: Iterable[Facts]):
        self.paths: set[str] = set()
        self.owners: dict[str, set[str]] = {}
        for facts in everything:
            self.paths |= facts.settings.keys()
            for axis in facts.axes:
                self.paths |= axis.values.keys()
                if len(axis.values) == 1:
                    # An axis may have a name of its own: heat = { ..., set = "model.beta" }.
                    self.owners.setdefault(axis.name, set()).update(axis.values)
        for path in self.paths:
            self.owners.setdefault(path.rpartition(".")[2], set()).add(path)

    def find(self, name: str, asked_by: str) -> str:
        """The column or path that a name stands for."""
        if name in COLUMNS or name in self.paths:
            return name
        owners = self.owners.get(name, set())
        if len(owners) == 1:
            return next(iter(owners))
        if owners:
            options = " or ".join(sorted(owners))
            raise InputError(f"{asked_by} {name} is ambiguous here; write {options}")
        return self._in_small_letters(name, asked_by)

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
        unique = {leaf for leaf, owners in self.owners.items() if len(owners) == 1}
        return sorted({*COLUMNS, *self.paths, *unique})

    def short(self, path: str) -> str:
        """The last key of a path if it stands for this path alone."""
        leaf = path.rpartition(".")[2]
        alone = self.owners.get(leaf) == {path} and leaf not in COLUMNS
        return leaf if alone else path
