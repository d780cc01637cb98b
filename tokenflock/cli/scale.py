"""The two sizes at which claims and figures run."""

from enum import StrEnum


class Scale(StrEnum):
    """quick: seconds each. paper: the sizes of the paper."""

    quick = "quick"
    paper = "paper"
