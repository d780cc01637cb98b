"""The paper itself."""

from ..core import Paper

PAPER = Paper(
    "2312.10794v4",
    "A mathematical perspective on Transformers",
    "Geshkovski, Letrouit, Polyanskiy, Rigollet",
)
