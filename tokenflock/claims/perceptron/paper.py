"""The paper itself."""

from ..core import Paper

PAPER = Paper(
    "2601.21366v2",
    "Perceptrons and localization of attention's mean-field landscape",
    "Alvarez-Lopez, Geshkovski, Ruiz-Balet",
)
