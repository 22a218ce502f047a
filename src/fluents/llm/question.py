"""Questions for a language model, and whoever answers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fluents.errors import FluentsError


@dataclass(frozen=True)
class Question:
    """All that decides an answer, beside the model: the cache knows it by these."""

    prompt: str
    system: str = ""
    schema: Mapping[str, Any] | None = None
    """JSON schema the answer is to follow, where the endpoint can enforce one."""
    name: str = ""
    """Name and version of the prompt file, such as "schemata-1"."""
    max_tokens: int = 1024
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 1


class CutAnswer(str):
    """An answer that ended because `max_tokens` were written, not because it was complete."""

    __slots__ = ()


class Answerer(Protocol):
    """Anything that answers questions: an endpoint, a script."""

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        """`samples` answers to one question, a CutAnswer where one was cut off.

        Raises NoAnswerError for a question that gets none, and any other FluentsError when asking on is in vain.
        """
        ...


class EndpointError(FluentsError):
    """The endpoint does not work as it is used: asking on is in vain."""


class NoAnswerError(FluentsError):
    """This one question gets no answer; others may."""
