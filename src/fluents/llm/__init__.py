"""Language models that answer questions: behind any OpenAI-compatible address, or played back from a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fluents.errors import FluentsError
from fluents.llm.usage import Usage


@dataclass(frozen=True)
class Question:
    """All that decides an answer, beside the model: a cache may know it by these."""

    prompt: str
    system: str = ""
    schema: Mapping[str, Any] | None = None
    """JSON schema the answer is to follow, where the endpoint can hold a model to one."""
    name: str = ""
    """Of the prompt file and its version, such as "schemata-1"."""
    max_tokens: int = 1024
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 1


class CutAnswer(str):
    """An answer that ended because `max_tokens` were written, not because it was done."""

    __slots__ = ()


class Answerer(Protocol):
    """Whoever answers questions."""

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        """So many answers to one question, a CutAnswer where one was cut off.

        Raises NoAnswerError for a question that gets none, and any other FluentsError when asking on is in vain.
        """
        ...


class Model(Answerer, Protocol):
    """A model that counts what it is asked."""

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        ...

    @property
    def left_out(self) -> tuple[str, ...]:
        """Parameters that were refused, so that answers came without them."""
        ...


class EndpointError(FluentsError):
    """The address of a model does not work as it is used: asking on is in vain."""


class NoAnswerError(FluentsError):
    """This one question gets no answer; others may."""
