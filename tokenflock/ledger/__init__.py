"""The ledger: what a claim, a control and a figure are, and how they are judged and drawn.

paper         a paper's identity, and the claims and figures found in its folder
case          settings as attributes, shared by claims, figures and benchmarks
claim         what a claim is; comparisons with tolerances
examine       measure, halve the tolerances, run the control, judge
batch         many claims at once, over processes
figure        what a figure is: data, then a drawing made from the data alone
figure_files  the picture and its data as files
finding       the papers there are; claims and figures by id
measure       flows, fields and observables that claims of several papers read
branches      branches of stationary states, for the papers on noise
"""

from .batch import check as check
from .batch import check_many as check_many
from .claim import Claim as Claim
from .examine import Report as Report
from .figure import Figure as Figure
from .finding import all_claims as all_claims
from .finding import all_figures as all_figures
from .finding import asking_claims as asking_claims
from .finding import find_claim as find_claim
from .finding import find_figure as find_figure
from .finding import find_paper as find_paper
from .finding import papers as papers
from .paper import Paper as Paper
