"""The example of OpenPI2.0's table 8 in our own words: on a stormy night, an open window costs the light."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fluents.records import Trace

FOLDER = Path(__file__).parents[2] / "examples"
TEXT = FOLDER / "windy_room.md"
TRACE = Trace.model_validate_json(
    (FOLDER / "windy_room.jsonl").read_text(encoding="utf-8").replace('"fluents":1,"kind":"trace",', "")
)
QUESTION = "Can she see what is in the room?"


def sensible(prompt: str) -> str:
    """The answer of one who looks at the states alone, as a model with a chain of thought would."""
    asked = prompt.rpartition("Goal:")[2]
    numbered = {state: int(number) for number, state in re.findall(r"^(\d+)\. (\"brightness.*)$", asked, re.MULTILINE)}
    lit = next((state.endswith('"lit" after it') for state in numbered), None)
    answer = {"reason": "There is light." if lit else "It is dark.", "rating": 5 if lit else 1}
    if "Rate it" not in prompt:
        change = "same" if lit is None else "more" if lit else "less"
        answer = {"reason": "The light decides.", "change": change}
    return json.dumps({"states": list(numbered.values())} | answer)
