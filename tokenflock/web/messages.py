"""What a page may say over its WebSocket, and how a wrong message is answered."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from ..errors import InputError
from .settings import MOST, Settings, Strict, Time

MOST_SENTENCES = 3
LONGEST_SENTENCE = 400


class Start(Strict):
    """Integrate these settings up to t1 and send the tokens at every multiple of `every`.

    A flow is integrated adaptively in float64 to rtol and atol; layers and noise keep their step.
    """

    type: Literal["start"]
    spec: Settings
    t1: Time
    every: float = Field(gt=0, le=MOST.time)
    rtol: float = Field(default=1e-8, ge=1e-13, le=1e-2)
    atol: float = Field(default=1e-10, ge=1e-15, le=1e-2)

    @model_validator(mode="after")
    def _bounded(self) -> Start:
        steps = self.t1 / self.spec.solve.step
        if self.spec.keeps_its_steps and steps > MOST.steps:
            raise ValueError(
                f"{steps:.3g} steps up to t1; a page may ask for at most {MOST.steps}: lower t1 or "
                "take larger steps"
            )
        return self


class Cancel(Strict):
    """End the run of this page."""

    type: Literal["cancel"]


class Ping(Strict):
    """Ask for a pong."""

    type: Literal["ping"]
    id: int = Field(ge=0, le=2**53 - 1)


Message = Start | Cancel | Ping
_MESSAGE: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])


def parse(text: str) -> Message:
    """One message, or an InputError in a sentence."""
    try:
        return _MESSAGE.validate_json(text)
    except ValidationError as error:
        raise InputError(explain(error)) from None


def explain(error: ValidationError) -> str:
    """The first problems of a message, each with its place."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    sentences = list(dict.fromkeys(_sentence(problem) for problem in problems))
    return "; ".join(sentences[:MOST_SENTENCES])[:LONGEST_SENTENCE]


def _sentence(problem: Any) -> str:
    # The first part of a place names the branch of the union, which the page did not write.
    place = ".".join(str(part) for part in problem["loc"][1:])
    text = problem["msg"].removeprefix("Value error, ")
    return f"{place}: {text}" if place else text


def say(kind: str, **content: Any) -> str:
    """A message to the page; NaN and infinity, which JSON has not, must have become None before."""
    return json.dumps({"type": kind, **content}, allow_nan=False, separators=(",", ":"))
