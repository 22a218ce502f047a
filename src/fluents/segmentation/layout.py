"""The layout of a text: its lines, each classified as a heading, a list item or plain text.

Both Markdown and what people type without it are recognised: "Step 1:", "(1)", "•", "STEP ONE", a bare "Ingredients".
A Markdown parser would misread half of these.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from fluents.segmentation.passages import ends_sentence

Role: TypeAlias = Literal["steps", "needs", "remarks"]
"""What a section holds: steps, what they need (ingredients, tools), or remarks (notes, servings, nutrition)."""

SECTION_ROLES: dict[str, Role] = {
    name: role
    for roles in tomllib.loads(Path(__file__).with_name("section_names.toml").read_text(encoding="utf-8")).values()
    for role, names in roles.items()
    for name in names
}
"""What a section of this name holds, whatever its language."""

STEP_WORDS = "step|paso|passo|étape|etape|schritt|stap|krok|шаг|adım|步骤|步驟|手順|ステップ|단계|الخطوة|خطوة|चरण"
"""What is written before the number of a step, as alternatives of a regular expression."""

GOAL_WORDS = (
    "title|goal|task|recipe|título|objetivo|receta|receita|titre|recette|titel|ziel|rezept|titolo|ricetta|рецепт"
)
"""What is written before the goal of a procedure, likewise."""

_TAIL = re.compile(r"[(（]| (?:for|para|pour|per|für|voor|dla|для) ")
_MARKS = re.compile(r"^(?:[*_]{1,3}(?=\S)|#{1,6}\s*|-{2,}\s*|[【\[])")  # not those of a list: "- Tip"
_AND = re.compile(r" (?:and|y|e|et|und|en|i|и|ve) |[&/,、，]")

LABEL_LEVEL = 7
"""The level of headings without "#", such as bold lines: below all levels of Markdown."""

MAX_TITLE_LENGTH = 80
"""A longer line is not a title."""

SURE_NUMBER = 999
"""A larger number may be a year or an amount: it starts an item only if it follows the number of the last one."""

MAX_NUMBER_GAP = 5
"""How many numbers a list may skip. A larger number at the start of a line belongs to the sentence before it."""

_NUMBER_WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_STEP_LABEL = re.compile(
    rf"(?:(?i:{STEP_WORDS})\s{{0,3}}#?(?:(\d{{1,6}})|(?<=\s)(?i:({'|'.join(_NUMBER_WORDS)}))\b)|"
    r"第\s?(\d{1,6})\s?[步歩])"
    r"(?:\s?[:：.)、\-–—]{1,3}(?!\d)|(?=[*_]{1,3}(?:[\s:.]|$))|$|(?=\s[^\W\d_a-z]))"
)
_NUMBER = re.compile(r"(?:(\d{1,6})(?:\.\d{1,3}){0,4}(?:\.\)|[.)、．])(?!\d)|\((\d{1,6})\)|(\d{1,2})$)")
_BULLET = re.compile(r"[-*+–—·](?=\s)|-(?=[^\W\d_])|[•‣◦▪▫●○■□∙・⁃✓✔☐☑]|\(?(?:[a-z]|[ivx]{2,4})\)(?=\s)", re.IGNORECASE)
_CHECKBOX = re.compile(r"\[[ xX]\]\s")
_EMPHASIS = re.compile(r"\*{1,3}|_{1,3}")
_ATX_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_QUOTE_MARK = re.compile(r">\s+|>$")
_REFERENCE = re.compile(r"\[[^\[\]]{1,200}\]:\s")
_PART = re.compile(
    rf"(?:part|method|section|phase|stage)\s(?:\d{{1,3}}|{'|'.join(_NUMBER_WORDS)})\b(?:\sof\s\d{{1,3}}\b)?(?P<rest>.*)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class LayoutLine:
    kind: Literal["blank", "text", "item", "heading"]
    text: str = ""
    """Without the marks of a heading or an item; inline markup is still there."""
    indent: int = 0
    number: int | None = None
    """Of a numbered item or heading."""
    marker: str = ""
    """Of an item: what was before its text."""
    level: int = 0
    """Of a heading."""


def read_layout(text: str) -> list[LayoutLine]:
    """The classified lines of a text. Rules, tables and the marks of code fences are left out."""
    raw = [line.expandtabs(4).rstrip() for line in text.split("\n")]
    fences, literal = _fences(raw)
    raw = with_usual_labels(raw, literal)
    tables = _table_rows(raw)
    lines: list[LayoutLine] = []
    last_number: int | None = None  # of the list we are in; None outside lists
    for index, source in enumerate(raw):
        if index in fences or index in tables or _REFERENCE.match(source):
            continue
        if index in literal:
            lines.append(_text_line(source))
            continue
        if _is_rule(source):
            _underline_heading(lines, source)
            continue
        line = _classify(source, lines[-1] if lines else LayoutLine("blank"), last_number)
        if line.kind == "heading":
            last_number = None
        elif line.kind == "item":
            last_number = (last_number or 0) if line.number is None else line.number
        lines.append(line)
    return lines


def section_role(title: str) -> Role | None:
    """What a section of this title holds, if it is one of the names known: "Ingredients for 4" holds needs."""
    name = _TAIL.split(title.lower().replace("’", "'"), maxsplit=1)[0].rstrip(" :：*_#-】]")
    name = _MARKS.sub("", name, count=1)
    name = name.removesuffix(" needed").removesuffix(" required")
    if name in SECTION_ROLES:
        return SECTION_ROLES[name]
    roles = {SECTION_ROLES.get(part.strip()) for part in _AND.split(name)}
    return roles.pop() if len(roles) == 1 else None


def is_part_title(title: str) -> bool:
    """Whether a title names a group of steps: "Part 1", "Method 2 of 3: …"."""
    match = _PART.fullmatch(title)
    return match is not None and not ends_sentence(title) and not match["rest"].strip()[:1].islower()


def _classify(source: str, previous: LayoutLine, last_number: int | None) -> LayoutLine:
    indent = len(source) - len(source.lstrip())
    content = _without_quote_marks(source.strip())
    if not content:
        return LayoutLine("blank")
    if indent < 4 and (heading := _heading(content, indent, previous, last_number)):
        return heading
    return _item(content, indent, previous, last_number) or LayoutLine("text", content, indent)


def _text_line(source: str) -> LayoutLine:
    content = source.strip()
    return LayoutLine("text", content, len(source) - len(source.lstrip())) if content else LayoutLine("blank")


def _without_quote_marks(content: str) -> str:
    position = 0
    while mark := _QUOTE_MARK.match(content, position):
        position = mark.end()
    return content[position:]


def _heading(content: str, indent: int, previous: LayoutLine, last_number: int | None) -> LayoutLine | None:
    if atx := _ATX_HEADING.fullmatch(content):
        return _numbered_heading(atx[2].rstrip("#").rstrip() or atx[2], len(atx[1]))
    if len(content) > 2 * MAX_TITLE_LENGTH:
        return None
    bold = _bold_line(content)
    title = bold or content
    in_list = last_number is not None
    if (section_role(title) or is_part_title(title)) and not (in_list and indent):
        return LayoutLine("heading", title, level=LABEL_LEVEL)
    continues_item = in_list and (previous.kind != "blank" or indent > 0)
    if bold is not None and not continues_item:
        return _numbered_heading(bold, LABEL_LEVEL)
    return None


def _numbered_heading(text: str, level: int) -> LayoutLine:
    """A heading, its number split off if it has one ("1. Boil the water", "Step 1: …")."""
    marked = _numbered(text)
    if marked is None or marked[0] > SURE_NUMBER:
        return LayoutLine("heading", text, level=level)
    number, marker, rest = marked
    return LayoutLine("heading", rest, level=level, number=number, marker=marker)


def _bold_line(content: str) -> str | None:
    content = content.removesuffix(":")
    for mark in ("**", "__"):
        inner = content[2:-2]
        if content.startswith(mark) and content.endswith(mark) and inner.strip(" *_") and mark not in inner:
            return inner.strip()
    return None


def _item(content: str, indent: int, previous: LayoutLine, last_number: int | None) -> LayoutLine | None:
    marked = _numbered(content)
    if marked is not None:
        number, marker, rest = marked
        says_step = marker[0].isalpha()
        if says_step or _starts_item(number, previous, last_number):
            return LayoutLine("item", _unchecked(rest), indent, number, marker)
        return None
    bullet = _BULLET.match(content)
    if bullet is None:
        return None
    rest = _unchecked(content[bullet.end() :].strip())
    inner = _numbered(rest)
    if inner and inner[0] <= SURE_NUMBER:  # "- 1. Boil the water"
        return LayoutLine("item", inner[2], indent, inner[0], inner[1])
    return LayoutLine("item", rest, indent, marker=bullet[0])


def _unchecked(text: str) -> str:
    return text[4:].lstrip() if _CHECKBOX.match(text) else text


def _numbered(content: str) -> tuple[int, str, str] | None:
    """(number, marker, text) of a numbered line; the marker may be in bold, alone or with the text."""
    emphasis = mark[0] if (mark := _EMPHASIS.match(content)) else ""
    start = len(emphasis)
    if label := _STEP_LABEL.match(content, start):
        number = _NUMBER_WORDS.index(label[2].lower()) + 1 if label[2] else int(label[1] or label[3])
    elif label := _NUMBER.match(content, start):
        number = int(label[1] or label[2] or label[3])
    else:
        return None
    rest = content[label.end() :]
    if emphasis:
        rest = rest[len(emphasis) :].lstrip(" :.–—-") if rest.startswith(emphasis) else emphasis + rest.lstrip()
    return number, label[0], rest.strip()


def _starts_item(number: int, previous: LayoutLine, last_number: int | None) -> bool:
    """Whether a number at the start of a line starts an item, rather than belonging to the line before."""
    if number > SURE_NUMBER:
        return last_number is not None and last_number < number <= last_number + MAX_NUMBER_GAP
    if previous.kind in ("blank", "heading"):
        return True
    if last_number is None:
        return number <= 1 or previous.text.endswith((":", "："))
    return number <= last_number + MAX_NUMBER_GAP


def _is_rule(source: str) -> bool:
    marks = source.replace(" ", "")
    return len(marks) >= 3 and marks[0] in "-*_=~—–" and marks.count(marks[0]) == len(marks)


def _underline_heading(lines: list[LayoutLine], rule: str) -> None:
    """Turn a line with a rule under it into a heading."""
    mark = rule.strip()[0]
    if mark not in "=-" or not lines or lines[-1].kind != "text":
        return
    if mark == "-" and ends_sentence(lines[-1].text):  # then the rule separates two texts
        return
    if len(lines) == 1 or lines[-2].kind in ("blank", "heading"):
        lines[-1] = _numbered_heading(lines[-1].text, 1 if mark == "=" else 2)


def _fences(raw: Sequence[str]) -> tuple[set[int], set[int]]:
    """(indexes of fence marks, indexes of lines inside fences). A fence around the whole text is ignored."""
    marks = [index for index, line in enumerate(raw) if line.lstrip().startswith(("```", "~~~"))]
    first = next((index for index, line in enumerate(raw) if line), 0)
    literal: set[int] = set()
    for start, end in zip(marks[::2], marks[1::2], strict=False):
        if start != first:
            literal.update(range(start + 1, end))
    return set(marks), literal


def _table_rows(raw: Sequence[str]) -> set[int]:
    rows = {index for index, line in enumerate(raw) if line.lstrip().startswith("|")}
    for index, line in enumerate(raw):
        if "|" in line and "-" in line and not line.strip("|-: "):
            rows.update((index - 1, index))
            following = index + 1
            while following < len(raw) and "|" in raw[following] and following not in rows:
                rows.add(following)
                following += 1
    return rows


def with_group_titles(lines: Sequence[LayoutLine]) -> list[LayoutLine]:
    """The lines, with each short line above a list ("For the sauce:") as a heading."""
    marked = list(lines)
    for index, line in enumerate(lines):
        if line.kind != "text" or line.indent or not is_title(line.text.removesuffix(":")):
            continue
        stands_alone = index == 0 or lines[index - 1].kind in ("blank", "heading")
        if stands_alone and _starts_list(lines, index + 1):
            marked[index] = replace(line, kind="heading", text=line.text.removesuffix(":"), level=LABEL_LEVEL)
    return marked


def _starts_list(lines: Sequence[LayoutLine], index: int) -> bool:
    """Whether a new list starts here; after a blank line, only one that begins with "1."."""
    following = lines[index] if index < len(lines) else LayoutLine("blank")
    if following.kind == "blank":
        following = lines[index + 1] if index + 1 < len(lines) else following
        return following.kind == "item" and following.number == 1
    return following.kind == "item" and following.number in (None, 1)


def is_title(text: str) -> bool:
    """Whether a line can be a title: short, and without punctuation at its end."""
    return 0 < len(text) <= MAX_TITLE_LENGTH and not ends_sentence(text) and text[-1] not in ",;:、，；："


# Ambiguous labels: "a.", "iv.", "1.2", and "3" before a sentence. Lines may also begin with "e. coli", "2.5 Liters" or
# "2 eggs". So these labels count only next to another in sequence, on lines with the same indent.

_AMBIGUOUS_LABEL = re.compile(r"(\s*)(?:([a-z]|[ivx]{2,4})\.|(\d{1,6}(?:\.\d{1,3}){0,4}))\s+(\S.*)")
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_NEXT_LETTER = {*pairwise("abcdefghijklmnopqrstuvwxyz"), *pairwise(_ROMAN)}


class _Labelled(NamedTuple):
    indent: int
    label: str
    usual: str
    """The line with its label in the usual form."""


def with_usual_labels(lines: Sequence[str], literal: Container[int] = ()) -> list[str]:
    """The lines, with labels in sequence in their usual form: "a)", "1.2.". Lines with an index in `literal` stay."""
    usual = list(lines)
    last: dict[int, tuple[int, _Labelled]] = {}  # by indent
    for index, line in enumerate(lines):
        labelled = None if index in literal else _labelled(line)
        if labelled is None:
            continue
        place, before = last.get(labelled.indent, (index, labelled))
        if _follows(labelled.label, before.label):
            usual[place], usual[index] = before.usual, labelled.usual
        last[labelled.indent] = index, labelled
    return usual


def _labelled(line: str) -> _Labelled | None:
    match = _AMBIGUOUS_LABEL.fullmatch(line)
    if match is None:
        return None
    indent, letter, number, text = match.groups()
    if letter:
        return _Labelled(len(indent), letter, f"{indent}{letter}) {text}")
    return _Labelled(len(indent), number, f"{indent}{number}. {text}") if _is_instruction(number, text) else None


def _is_instruction(number: str, text: str) -> bool:
    """Whether the text after a number can be a step, rather than an amount: "2 eggs", "0.5 M NaCl"."""
    return text[0].isupper() and text[1:2].islower() and ("." in number or ends_sentence(text))


def _follows(label: str, before: str) -> bool:
    if label.isalpha() or before.isalpha():
        return (before, label) in _NEXT_LETTER
    *group, number = map(int, before.split("."))
    following = [[*group, number + 1]]
    if group:
        following.append([*group[:-1], group[-1] + 1, 1])
    return list(map(int, label.split("."))) in following
