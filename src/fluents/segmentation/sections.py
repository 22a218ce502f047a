"""Sections of a text: which of them hold steps, and where each step begins and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise

from fluents.segmentation.layout import LABEL_LEVEL, LayoutLine, Role, is_part_title, section_role
from fluents.segmentation.passages import ends_sentence, plain_text, split_sentences

WRAP_WIDTH = 60
"""Text is rarely wrapped narrower than this: a shorter line ends on purpose."""

_SENTENCE_LABEL = re.compile(r"([^:：.]{1,40})[:：]\s*(?=\S)")
_LABEL_INSIDE = re.compile(r"(?<=[.!?。！？)] )([^:：.!?]{1,40})[:：]")
_DURATION = re.compile(r"\D{0,10}\d[\d\s.,:–-]*[^\W\d]{1,12}\.?")


def find_steps(lines: Sequence[LayoutLine]) -> list[str]:
    """The steps in order, each on one line."""
    sections = _sections(lines)
    steps = [step for section in _without_introduction(sections) for step in section.steps()]
    if not any(map(_is_readable, steps)):  # an outline: headings with nothing under them
        steps = [plain_text(section.heading.text) for section in sections if section.is_bare_title]
    return [step for step in steps if _is_readable(step)]


def _is_readable(step: str) -> bool:
    """Whether a step has more than punctuation; emoji count as words."""
    return any(character.isalnum() or ord(character) > 0x2BFF for character in step)


@dataclass
class _Section:
    """A heading and the lines under it."""

    heading: LayoutLine
    role: Role | None = None
    """By its own name, or of the section it is part of."""
    has_own_name: bool = False
    """Whether the heading is a known section name or names a part, and so is not a step."""
    lines: list[LayoutLine] = field(default_factory=list)
    has_items: bool = False
    has_numbers: bool = False
    has_text: bool = False

    def add(self, line: LayoutLine) -> None:
        self.lines.append(line)
        self.has_items |= line.kind == "item"
        self.has_numbers |= line.number is not None
        self.has_text |= line.kind == "text"

    @property
    def is_skipped(self) -> bool:
        return self.role in ("needs", "remarks")

    @property
    def is_bare_title(self) -> bool:
        has_more = self.has_items or self.has_text or self.heading.number is not None
        return bool(self.heading.text) and not (has_more or self.is_skipped or self.has_own_name)

    @property
    def is_one_step(self) -> bool:
        """Whether heading and content together are one step."""
        if self.is_skipped or self.has_own_name:
            return False
        if self.heading.number is not None:
            return not self.has_numbers
        if not self.heading.text or not self.has_text or self.has_items:
            return False
        return self.heading.level == LABEL_LEVEL or self.role == "steps"

    def steps(self) -> list[str]:
        if self.is_skipped:
            return []
        if self.is_one_step:
            step = _StepText(self.heading.text)
            step.add_all([LayoutLine("blank"), *self.lines])
            return [step.joined()]
        return _list_steps(self.lines) if self.has_items else list(_prose_steps(self.lines))


def _sections(lines: Sequence[LayoutLine]) -> list[_Section]:
    sections = [_Section(LayoutLine("heading"))]
    role: Role | None = None
    level = 0  # of the heading that gave the role
    last_step = 0
    for line in lines:
        current = sections[-1]
        if line.kind == "heading":
            title = plain_text(line.text)
            own, is_part = section_role(title), is_part_title(title)
            if own is not None:
                role, level = own, line.level
            elif line.level <= level or (is_part and role != "steps"):
                role, level = None, 0
            sections.append(_Section(line, role, has_own_name=own is not None or is_part))
            continue
        if current.is_skipped and _leaves_section(current, line, last_step):
            role, level = None, 0
            sections.append(_Section(LayoutLine("heading")))
        elif line.number is not None and not current.is_skipped:
            last_step = line.number
        sections[-1].add(line)
    _extend_needs(sections)
    return sections


def _leaves_section(section: _Section, line: LayoutLine, last_step: int) -> bool:
    """Whether a line ends a section such as "Ingredients" or "Note" without a heading: the steps go on."""
    if line.number is not None and line.number > 1:
        return line.number == last_step + 1 and not section.has_numbers
    if section.role != "needs" or not section.lines or section.lines[-1].kind != "blank" or section.has_numbers:
        return False
    if line.kind == "text":
        return section.has_items and line.indent == 0 and ends_sentence(line.text)
    return line.number == 1 and (section.has_items or section.has_text)


def _extend_needs(sections: Sequence[_Section]) -> None:
    """Between "Ingredients" and "Method", other lists ("For the sauce") hold ingredients too."""
    last_steps = max((index for index, section in enumerate(sections) if section.role == "steps"), default=0)
    for index, (before, section) in enumerate(pairwise(sections), 1):
        is_nameless = section.role is None and section.heading.number is None and not section.has_own_name
        if before.role == "needs" and is_nameless and not section.has_numbers and index < last_steps:
            section.role = "needs"


def _without_introduction(sections: Sequence[_Section]) -> list[_Section]:
    """The sections without the prose before a section of steps, or before the first list under the title."""
    used = [section for section in sections if not section.is_skipped and not section.is_bare_title]
    used = [section for section in used if section.has_items or section.has_text or section.is_one_step]
    named = next((index for index, section in enumerate(used) if section.role == "steps"), 0)
    kept = [section for section in used[:named] if section.has_items or section.is_one_step] + used[named:]
    first, rest = kept[:1], kept[1:]
    if first and not first[0].heading.text and not first[0].has_items and not named:
        first = [] if any(section.has_items or section.is_one_step for section in rest) else first
    return [*first, *rest]


class _StepText:
    """Builds the text of a step from an item and what belongs to it."""

    def __init__(self, text: str) -> None:
        self._parts: list[tuple[str, list[str]]] = [("", [text])]
        self._after_blank = False
        self._in_remark = False

    def add(self, line: LayoutLine) -> None:
        self._in_remark = line.kind != "blank" and (_is_remark(line) or (self._in_remark and line.kind == "text"))
        if self._in_remark:
            return
        if line.kind == "item":
            self._parts.append((";", [line.text]))
        elif line.kind == "text" and self._after_blank:
            self._parts.append((".", [line.text]))
        elif line.kind == "text":
            self._parts[-1][1].append(line.text)
        self._after_blank = line.kind == "blank"

    def add_all(self, lines: Sequence[LayoutLine]) -> None:
        for line in lines:
            self.add(line)

    def joined(self) -> str:
        pieces: list[str] = []
        for mark, lines in self._parts:
            piece = plain_text(" ".join(lines))
            if pieces and piece and not ends_sentence(pieces[-1]) and pieces[-1][-1] not in ":;,-–—：；，":
                pieces[-1] += mark
            pieces += [piece] if piece else []
        return _without_remarks(" ".join(pieces))


def _is_remark(line: LayoutLine) -> bool:
    """Whether a line is a note on the step, such as "Note: store the eluate at 4 °C", and not part of it."""
    label = _SENTENCE_LABEL.match(plain_text(line.text))
    return label is not None and section_role(label[1]) == "remarks"


def _without_remarks(step: str) -> str:
    """The step without sentences such as "Tip: use a thermometer."; unchanged if nothing else would be left."""
    if not any(section_role(label[1]) == "remarks" for label in _LABEL_INSIDE.finditer(step)):
        return step
    sentences = [sentence for sentence in split_sentences(step) if _unlabelled(sentence)]
    return " ".join(sentences) or step


def _list_steps(lines: Sequence[LayoutLine]) -> list[str]:
    items = [line for line in lines if line.kind == "item"]
    margin = min(item.indent for item in items) + 1
    numbered = any(item.number is not None and item.indent <= margin for item in items)
    # Numbers may be set flush right, "  9." over "100.": then they end, not begin, at one column.
    right = max((_number_end(item) for item in items if item.number is not None and item.indent <= margin), default=0)
    steps: list[_StepText] = []
    for line in lines:
        at_margin = line.indent <= margin or (line.number is not None and _number_end(line) == right)
        is_step = line.kind == "item" and at_margin and (line.number is not None or not numbered)
        if is_step or (line.kind == "item" and not steps and not numbered):
            steps.append(_StepText(line.text))
        elif steps:
            steps[-1].add(line)
    if len(steps) == 1 and numbered:
        first = next(item for item in items if item.number is not None)
        return _unrolled(steps[0].joined(), first)
    return [step.joined() for step in steps]


def _number_end(item: LayoutLine) -> int:
    return item.indent + len(item.marker)


def _unrolled(text: str, first: LayoutLine) -> list[str]:
    """The steps of "1. Boil the water. 2. Pour it." on one line; the whole text if the numbers are not in sequence."""
    if first.number != 1 or first.marker[-1] not in ".):":
        return [text]
    steps = []
    start = 0
    for number in count(2):
        marker = f" {first.marker.replace('1', str(number), 1)} "
        position = text.find(marker, start)
        if position < 0:
            break
        steps.append(text[start:position])
        start = position + len(marker)
    if len(steps) < 2 and not (steps and ends_sentence(steps[0])):  # "Repeat steps 1 and 2. Then rest."
        return [text]
    return [*steps, text[start:]]


def _prose_steps(lines: Sequence[LayoutLine]) -> Iterator[str]:
    paragraph: list[str] = []
    for line in (*lines, LayoutLine("blank")):
        if line.kind != "blank":
            paragraph.append(line.text)
            continue
        for passage in paragraph if _is_one_step_a_line(paragraph) else [" ".join(paragraph)]:
            for sentence in split_sentences(plain_text(passage)):
                yield from _unlabelled(sentence)
        paragraph = []


def _unlabelled(sentence: str) -> list[str]:
    """The sentence without a label such as "Method:"; nothing if the label is "Ingredients:", "Note:" or the like."""
    label = _SENTENCE_LABEL.match(sentence)
    role = section_role(label[1]) if label else None
    if label is None or role is None:
        return [sentence]
    rest = sentence[label.end() :]
    return [rest] if role == "steps" and not _DURATION.fullmatch(rest) else []  # "Preparation: 20 minutes"


def _is_one_step_a_line(lines: Sequence[str]) -> bool:
    """Whether the lines of a paragraph end on purpose, rather than being wrapped."""
    if not any(line[0].islower() or line[0].isdigit() for line in lines):
        width = max([WRAP_WIDTH, *map(len, lines)])
        return any(len(line) + 1 + len(after.split(None, 1)[0]) <= width for line, after in pairwise(lines))
    return not any(len(line) > WRAP_WIDTH or ends_sentence(line) or ". " in line for line in lines)
