"""The paper itself."""

from ..core import Paper

PAPER = Paper(
    "2410.23228",
    "Emergence of meta-stable clustering in mean-field transformer models",
    "Bruno, Pasqualotto, Agazzi",
)
