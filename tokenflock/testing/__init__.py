"""Conformance suites: what anybody's kind, mask, term, observable, state or discretisation must keep.

    from tokenflock.testing import check_kind

    def test_my_kind():
        check_kind(Cubic())

Every suite tries what the library would ask of the thing. A capability may work, or refuse with a sentence
(`InputError`); a wrong number or any other exception is an AssertionError that names the check. What comes
back is a dictionary: the name of each check, and `holds` or the sentence of the refusal.
"""

from .discretisations import check_discretisation as check_discretisation
from .kinds import check_kind as check_kind
from .masks import check_mask as check_mask
from .observables import check_observable as check_observable
from .states import check_state as check_state
from .terms import check_term as check_term
