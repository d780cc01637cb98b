"""A solver of diffrax with something around its step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax


class Wrapping(diffrax.AbstractWrappedSolver):
    """Everything as the solver inside; `step` is for subclasses to write."""

    solver: diffrax.AbstractSolver

    @property
    def term_structure(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the wrapped solver's."""
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Callable[..., Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the wrapped solver's."""
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self) -> Any:
        """As the wrapped solver's."""
        return self.solver.term_compatible_contr_kwargs

    @property
    def root_finder(self) -> Any:
        """As the wrapped solver's, if it is implicit."""
        return self.solver.root_finder  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def scan_kind(self) -> Any:
        """As the wrapped solver's, if it has stages."""
        return self.solver.scan_kind  # pyright: ignore[reportAttributeAccessIssue]

    def order(self, terms: Any) -> int | None:
        """As the wrapped solver's."""
        return self.solver.order(terms)

    def strong_order(self, terms: Any) -> Any:
        """As the wrapped solver's."""
        return self.solver.strong_order(terms)

    def error_order(self, terms: Any) -> Any:
        """As the wrapped solver's."""
        return self.solver.error_order(terms)

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> Any:
        """As the wrapped solver's."""
        return self.solver.init(terms, t0, t1, y0, args)

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        """As the wrapped solver's."""
        return self.solver.func(terms, t0, y0, args)
