"""What the files of a training must hold to be read again: the shape of training.json and of report.json."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from .settings import Settings


def _settings(stored: Any) -> Settings:
    """Settings by name; all are written, so that one that is missing was lost."""
    if not isinstance(stored, dict) or stored.keys() != Settings().as_json().keys():
        raise ValueError(f"these are not the settings {', '.join(Settings().as_json())}")
    return Settings(**stored)


class _Part(BaseModel):
    """Others may read more than these entries; nobody can read less."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


class TrainingFacts(_Part):
    """training.json: all that resuming and explaining need."""

    settings: Annotated[Settings, BeforeValidator(_settings)]
    source: str
    only: str | None
    fingerprint: str
    labels: tuple[str, str]
    vocabulary: list[str]


class _Share(_Part):
    share: float
    low: float
    high: float


class _Accuracy(_Part):
    train: _Share
    validation: _Share
    test: _Share


class _Loss(_Part):
    test: float


class _Network(_Part):
    depth: int
    best_epoch: int
    accuracy: _Accuracy
    loss: _Loss
    test_loss_of_the_softmax_surrogate: float
    alpha: float
    contraction: float


class _Word(_Part):
    word: str
    leads: int
    occurs: int
    from_layer_0: float
    sentiment: float
    norm: float


class _Leaders(_Part):
    reviews: int
    mean: float
    min: int
    max: int
    share_from_layer_0: float
    vote_agrees: float
    words: list[_Word]


class _Data(_Part):
    labels: tuple[str, str]


class _Seconds(_Part):
    wall: float
    processor: float


class TrainingReport(_Part):
    """report.json, as far as it is shown."""

    data: _Data
    network: _Network
    bag_of_words: _Network = Field(alias="bag of words")
    leaders: _Leaders
    seconds: _Seconds


def require_shape(content: Any, shape: type[BaseModel]) -> None:
    """Raise a ValueError that names the first entry which is missing or of another kind."""
    try:
        shape.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise ValueError(f"{place}: {first['msg']}") from error
