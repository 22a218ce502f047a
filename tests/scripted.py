"""A model that answers as a test wants it to: a real asker, with a function for a brain."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable

from fluents.llm import Question


class Script:
    """Answers by a function of the question, and remembers what it was asked. Threads may share it."""

    def __init__(self, answer: Callable[[Question], str]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self.asked: list[Question] = []

    def ask(self, question: Question, samples: int = 1) -> list[str]:
        with self._lock:
            self.asked.append(question)
        return [self._answer(question) for _ in range(samples)]

    def prompts(self, name: str) -> list[str]:
        """What was asked with one prompt, in the order of the steps asked about."""
        return sorted((q.prompt for q in self.asked if q.name == name), key=lambda p: (step_in(p), p))


def step_in(prompt: str) -> int:
    """The number of the step a prompt is about; 0 if about all."""
    found = re.findall(r"^The step now, number (\d+): ", prompt, re.MULTILINE)
    return int(found[-1]) if found else 0


def thing_in(prompt: str) -> str:
    """The entity a prompt is about."""
    return str(json.loads(re.findall(r"^Thing: (.*)$", prompt, re.MULTILINE)[-1]))


def attribute_in(prompt: str) -> str:
    return str(json.loads(re.findall(r"^Attribute: (.*)$", prompt, re.MULTILINE)[-1]))


def pairs(**found: list[str]) -> str:
    """A schemata answer."""
    return json.dumps({"entities": [{"entity": entity, "attributes": found[entity]} for entity in found]})


def states(before: str, after: str) -> str:
    return json.dumps({"before": before, "after": after})


def water_heats(prompt: str) -> str:
    """The answer to every prompt of the llm tracker of one who sees water heat up in every step."""
    if "Which state changes does" in prompt:
        return "heat of water was cold before and hot afterwards"
    if '"1": [{' in prompt:
        change = {"entity": "water", "attribute": "heat", "before": "cold", "after": "hot"}
        steps = int(re.findall(r"(\d+)\.\nAnswer:$", prompt)[0])
        return json.dumps({str(step): [change] for step in range(1, steps + 1)})
    if "Attribute:" in prompt:
        return json.dumps({"changes": True}) if "Somebody says" in prompt else states("cold", "hot")
    return pairs(water=["heat"])
