"""Settings as attributes (case.n, job.beta): what claims, figures and benchmarks are measured from."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from ..errors import InputError


class Settled:
    """The chosen values of the settings of something, by name."""

    KIND: ClassVar[str] = "case"

    def __init__(self, values: Mapping[str, Any]):
        self.values = MappingProxyType(dict(values))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(f"this {self.KIND} has no setting {name!r}") from None


def changed(owner: str, settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a scale with changes laid over them; a name that is none of them is refused."""
    unknown = changes.keys() - settings.keys()
    if unknown:
        raise InputError(
            f"{owner} has no setting {', '.join(sorted(unknown))}; it has {', '.join(settings)}"
        )
    return {**settings, **changes}
