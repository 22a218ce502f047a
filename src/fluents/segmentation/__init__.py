"""Procedure text of any layout → Procedure.

What counts as a step:

- In a section with a list, its items; with both numbered and bulleted items, the numbered ones. What follows an item
  (wrapped lines, paragraphs, sub-bullets) belongs to it; prose or bullets before the first item do not.
- A numbered or bold heading with the prose under it; in a section that is named as steps, any heading with prose.
- Elsewhere every sentence, or every line where the text is verse or has one step a line.
- Nothing in sections of what is needed or remarked (`section_names`), and no introduction.

Words are never added. Where parts that had no punctuation are joined, a full stop or a semicolon parts them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from fluents.errors import InputError
from fluents.records import Procedure, id_from
from fluents.segmentation.languages import language
from fluents.segmentation.layout import (
    LayoutLine,
    is_part_title,
    is_title,
    read_layout,
    with_group_titles,
)
from fluents.segmentation.markup import plain_text, readable, without_html_blocks
from fluents.segmentation.section_names import GOAL_WORDS, section_role
from fluents.segmentation.sections import find_steps
from fluents.segmentation.text_files import read_text
from fluents.segmentation.web_pages import is_page, read_page

__all__ = ["language", "read_text", "segment"]

_HOW_TO = re.compile(r"how\s+to\s+(?=\S)", re.IGNORECASE)
_GOAL_LABEL = re.compile(rf"(?:{GOAL_WORDS})\s*[:：]\s*(?=\S)", re.IGNORECASE)
_FRONT_MATTER_KEY = re.compile(r"[A-Za-z_][\w-]*\s*:")


def segment(
    text: str | Path, *, goal: str | None = None, id: str | None = None, source: str | None = None
) -> Procedure:
    """The procedure that a text (str) or a file (Path) describes: its goal and its steps.

    `goal` and `id` override what the text says; a goal is never made up. The name of a file as a str is an error.

    >>> segment("Heat oil. Add eggs.", goal="Fry eggs").steps
    ('Heat oil.', 'Add eggs.')
    """
    if isinstance(text, Path):
        text, source = read_text(text), source or str(text)
    elif source is None and _is_file(text):  # never read unasked: a text may come from strangers
        raise InputError("this is the name of a file, not a text", where=text, fix=f"Path({text!r})")
    found_goal, steps = _goal_and_steps(readable(text), source)
    goal = found_goal if goal is None else _tidy(goal)
    id = id_from(goal, steps[0]) if id is None else _tidy(id)
    if not id:
        raise InputError("the id given is empty", where=source, fix="leave it out to have one made from the goal")
    return Procedure(id=id, goal=goal, steps=tuple(steps), source=None if source is None else readable(source))


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with characters that no name has
        return False


def _goal_and_steps(text: str, source: str | None) -> tuple[str, list[str]]:
    title = ""
    if is_page(text):
        page = read_page(text, source)
        title, text = _goal_text(page.title), page.content
        if page.steps:
            return title, page.steps
    front_title, body = _front_matter(without_html_blocks(text))
    goal, lines = _take_goal(title or front_title, read_layout(body))
    steps = find_steps(with_group_titles(lines))
    if not steps:
        raise _no_steps(goal, lines, source)
    return goal, steps


def _front_matter(text: str) -> tuple[str, str]:
    """(title, text after it) of a text that may begin with YAML between two `---`."""
    lines = text.lstrip().split("\n")
    if lines[0].rstrip() != "---" or len(lines) < 3 or not _FRONT_MATTER_KEY.match(lines[1]):
        return "", text
    end = next((index for index, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return "", text
    for line in lines[1:end]:
        key, _, value = line.partition(":")
        if key.strip().lower() == "title":
            return _goal_text(value.strip().strip("\"'")), "\n".join(lines[end + 1 :])
    return "", "\n".join(lines[end + 1 :])


def _take_goal(title: str, lines: list[LayoutLine]) -> tuple[str, list[LayoutLine]]:
    """The goal, and the lines with a nameless heading in its place, so that what stood before it stays apart."""
    index = _first_main_heading(lines) if title else _goal_line(lines)
    if index is None:
        return title, lines
    return title or _goal_text(lines[index].text), [*lines[:index], LayoutLine("heading", level=1), *lines[index + 1 :]]


def _goal_text(text: str) -> str:
    text = _tidy(plain_text(text)).rstrip(":： ")
    label = _GOAL_LABEL.match(text) or _HOW_TO.match(text)
    return text[label.end() :].rstrip(".") if label else text


def _goal_line(lines: Sequence[LayoutLine]) -> int | None:
    first = next((index for index, line in enumerate(lines) if line.kind != "blank"), 0)
    if not lines:
        return None
    line = lines[first]
    if line.kind == "text" and _is_goal_line(lines, first):
        return first
    if _can_be_goal(line) and sum(other.level == line.level and _can_be_goal(other) for other in lines) == 1:
        return first
    return _first_main_heading(lines)


def _first_main_heading(lines: Sequence[LayoutLine]) -> int | None:
    return next((index for index, line in enumerate(lines) if line.level == 1 and _can_be_goal(line)), None)


def _can_be_goal(line: LayoutLine) -> bool:
    """Whether it is a heading that names neither a step nor a section nor a part."""
    if line.kind != "heading" or line.number is not None:
        return False
    title = plain_text(line.text)
    return (line.level == 1 or is_title(title)) and section_role(title) is None and not is_part_title(title)


def _is_goal_line(lines: Sequence[LayoutLine], index: int) -> bool:
    """Whether the first line, plain text, is a title rather than a step."""
    following = lines[index + 1 :]
    if all(line.kind == "blank" for line in following):
        return False
    text = plain_text(lines[index].text)
    if _GOAL_LABEL.match(text) or _HOW_TO.match(text):
        return is_title(text.rstrip(".:")) and ". " not in text
    return is_title(text) and following[0].kind != "text" and not _is_double_spaced(lines)


def _is_double_spaced(lines: Sequence[LayoutLine]) -> bool:
    """Whether all of the text is short lines with blank lines between: then the first is a step like the others,
    unless it alone is written like a title."""
    written = [line for line in lines if line.kind != "blank"]
    if len(written) < 3 or any(line.kind != "text" or not is_title(line.text) for line in written):
        return False
    if any(line.kind == following.kind == "text" for line, following in pairwise(lines)):
        return False
    return not _is_title_case(written[0].text) or _is_title_case(written[1].text)


def _is_title_case(text: str) -> bool:
    words = [word for word in text.split() if len(word) > 3]
    return len(words) > 1 and all(word[0].isupper() for word in words)


def _no_steps(goal: str, lines: Sequence[LayoutLine], source: str | None) -> InputError:
    if any(line.kind == "heading" and section_role(plain_text(line.text)) for line in lines):
        what = "no steps: the text is all in sections that hold none, such as ingredients or notes"
    elif any(line.kind == "item" for line in lines):
        what = "no steps: the list has items, but each is a step without text"
    elif goal:
        what = "no steps: there is a title, and nothing after it"
    else:
        what = "no steps: the text has no words"
    return InputError(
        what, where=source, fix='write one step a line, or a list under a heading "Steps"; tables are not read'
    )


def _tidy(text: str) -> str:
    return " ".join(readable(text).split())
