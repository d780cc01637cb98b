"""The paper itself."""

from ..core import Paper

PAPER = Paper(
    "2410.06833v1",
    "Dynamic metastability in the self-attention model",
    "Geshkovski, Koubbi, Polyanskiy, Rigollet",
)
