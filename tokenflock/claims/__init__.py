"""The ledger: what the papers claim, executed. One file (or folder) per paper.

core       what a claim is; comparisons with tolerances
examine    measure, halve the tolerances, run the control, judge
measure    flows, fields and observables that many claims read
registry   finding claims by id and paper
batch      many claims at once, over processes
"""

from .batch import check as check
from .batch import check_many as check_many
from .core import Claim as Claim
from .examine import Report as Report
from .registry import all_claims as all_claims
from .registry import asking_claims as asking_claims
from .registry import find_claim as find_claim
from .registry import find_paper as find_paper
