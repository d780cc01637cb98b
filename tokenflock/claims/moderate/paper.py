"""The paper itself."""

from ..core import Paper

PAPER = Paper(
    "2509.25040",
    "A multiscale analysis of mean-field transformers in the moderate interaction regime",
    "Bruno, Pasqualotto, Agazzi",
)
