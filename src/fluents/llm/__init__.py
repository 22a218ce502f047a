"""Language models that answer questions, behind any OpenAI-compatible endpoint."""

from fluents.llm.language_model import LanguageModel, OnAnswer, open_model
from fluents.llm.question import Answerer, CutAnswer, EndpointError, NoAnswerError, Question
from fluents.llm.usage import Prices, Usage

__all__ = [
    "Answerer",
    "CutAnswer",
    "EndpointError",
    "LanguageModel",
    "NoAnswerError",
    "OnAnswer",
    "Prices",
    "Question",
    "Usage",
    "open_model",
]
