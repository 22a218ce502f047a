"""Segmentation: the goal and the steps of a text or a web page.

What counts as a step:

- In a section with a list, each item; if some items are numbered, only those. Lines, paragraphs and sub-items after an
  item belong to it.
- A numbered or bold heading with the text under it; in a section called "Steps" or the like, any heading with text.
- Elsewhere each sentence, or each line if the text has one step per line.

Introductions, ingredients, tools, notes and tips are left out (`section_names.toml` lists what they are called). No
words are added; parts of a step without punctuation are joined with a full stop or a semicolon.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from fluents.errors import FluentsWarning, InputError
from fluents.jsonl import decoded, open_input
from fluents.records import Procedure, id_from
from fluents.segmentation.layout import (
    GOAL_WORDS,
    LayoutLine,
    is_part_title,
    is_title,
    read_layout,
    section_role,
    with_group_titles,
)
from fluents.segmentation.passages import is_page, plain_text, readable, without_html_blocks
from fluents.segmentation.sections import find_steps
from fluents.segmentation.web_pages import read_page

__all__ = ["language", "read_text", "segment", "text_in"]

MAX_TEXT_BYTES = 10 * 1024 * 1024
"""No procedure comes near this; a larger file is something else."""

_CHARSET = re.compile(rb"<meta[^<>]{1,200}?charset\s*=\s*[\"']?\s*([\w-]{2,20})", re.IGNORECASE)
_HEAD_BYTES = 4096
_PAGE_ENCODINGS = {
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii", "windows-1252"), "cp1252"),
    **{f"windows-{page}": f"cp{page}" for page in (1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258)},
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)},
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **{name: name for name in ("utf-8", "shift_jis", "euc-jp", "euc-kr", "big5", "koi8-r", "koi8-u")},
}
"""What a page may call its encoding, and Python's name for it: browsers read Latin-1 as Windows-1252 too."""

_HOW_TO = re.compile(r"how\s+to\s+(?=\S)", re.IGNORECASE)
_GOAL_LABEL = re.compile(rf"(?:{GOAL_WORDS})\s*[:：]\s*(?=\S)", re.IGNORECASE)
_FRONT_MATTER_KEY = re.compile(r"[A-Za-z_][\w-]*\s*:")


def segment(
    text: str | Path, *, goal: str | None = None, id: str | None = None, source: str | None = None
) -> Procedure:
    """Split a text or web page (str), or a file (Path), into a goal and steps.

    `goal` and `id` replace what the text says. The name of a file as a str is an error.

    >>> segment("Heat oil. Add eggs.", goal="Fry eggs").steps
    ('Heat oil.', 'Add eggs.')
    """
    if isinstance(text, Path):
        text, source = read_text(text), source or str(text)
    elif source is None and _is_file(text):  # never read unasked: a text may come from strangers
        raise InputError(
            "expected a text, found the name of a file", where=text, fix=f"to read the file, give Path({text!r})"
        )
    found_goal, steps = _goal_and_steps(readable(text), source)
    goal = found_goal if goal is None else _tidy(goal)
    id = id_from(goal, steps[0]) if id is None else _tidy(id)
    if not id:
        raise InputError("`id` is empty", where=source, fix="leave out `id`: fluents then makes an id from the goal")
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
    """The title in YAML front matter (between two lines `---`), and the text after it."""
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
    """The goal, and the lines with an empty heading in its place: what was before it stays a section of its own."""
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
    """Whether a line is a heading that is not the name of a step, a section or a part."""
    if line.kind != "heading" or line.number is not None:
        return False
    title = plain_text(line.text)
    return (line.level == 1 or is_title(title)) and section_role(title) is None and not is_part_title(title)


def _is_goal_line(lines: Sequence[LayoutLine], index: int) -> bool:
    """Whether the first line of a text is its title rather than a step."""
    following = lines[index + 1 :]
    if all(line.kind == "blank" for line in following):
        return False
    text = plain_text(lines[index].text)
    if _GOAL_LABEL.match(text) or _HOW_TO.match(text):
        return is_title(text.rstrip(".:")) and ". " not in text
    return is_title(text) and following[0].kind != "text" and not _is_double_spaced(lines)


def _is_double_spaced(lines: Sequence[LayoutLine]) -> bool:
    """Whether all lines are short and separated by blank lines. Then the first is a step too, unless it alone is in
    title case."""
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
        what = "no steps found: the text has only sections such as ingredients or notes"
    elif any(line.kind == "item" for line in lines):
        what = "no steps found: all list items are empty"
    elif goal:
        what = "no steps found: there is nothing after the title"
    else:
        what = "no steps found: the text has no words"
    return InputError(
        what, where=source, fix='write one step per line, or a list under a heading "Steps"; tables are ignored'
    )


def _tidy(text: str) -> str:
    return " ".join(readable(text).split())


# Files


def read_text(path: str | Path) -> str:
    """The text of a file with `\\n` line breaks; "-" is standard input.

    Files are UTF-8, or UTF-16 with a byte order mark; a web page may name another encoding.
    """
    name = "standard input" if str(path) == "-" else str(path)
    stream = open_input(path)
    try:
        return text_in(stream, name)
    finally:
        if str(path) != "-":
            stream.close()


def text_in(stream: IO[bytes], name: str) -> str:
    """Likewise of a stream, which `name` is called in errors."""
    try:
        data = stream.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        fix = "check that you may read the file"
        raise InputError(f"cannot read the file: {error.strerror}", where=name, fix=fix) from None
    if len(data) > MAX_TEXT_BYTES:
        fix = "put each procedure in its own file"
        raise InputError(f"the file is larger than {MAX_TEXT_BYTES // 2**20} MB", where=name, fix=fix)
    return _decoded(data, name).replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes, name: str) -> str:
    with suppress(UnicodeDecodeError):
        return data.decode("utf-8-sig")
    encoding = _page_encoding(data)
    return data.decode(encoding, errors="replace") if encoding else decoded(data, name)


def _page_encoding(data: bytes) -> str | None:
    """The encoding that a web page names, if it is one that pages have."""
    head = data[:_HEAD_BYTES]
    found = _CHARSET.search(head) if is_page(head.decode("latin-1")) else None
    return _PAGE_ENCODINGS.get(found[1].decode("ascii").lower()) if found else None


# Languages

_NAMES = (
    "ar Arabic, bn Bengali, cs Czech, da Danish, de German, el Greek, en English, es Spanish, fa Persian, "
    "fi Finnish, fr French, he Hebrew, hi Hindi, hu Hungarian, id Indonesian, it Italian, ja Japanese, "
    "ko Korean, nl Dutch, no Norwegian, pl Polish, pt Portuguese, ro Romanian, ru Russian, sv Swedish, ta Tamil, "
    "th Thai, tr Turkish, uk Ukrainian, ur Urdu, vi Vietnamese, zh Chinese"
)
LANGUAGES: dict[str, str] = dict(name.split() for name in _NAMES.split(", "))
"""The languages told apart: ISO 639-1 code → English name."""

MAX_CHARACTERS = 5000
"""More text makes nothing surer."""
MARGIN = 20
"""By how much, in log probability, another language must be likelier than English. None of the 837 English procedures
of OpenPI and Proc2PDDL, and none of their 4,510 steps taken alone, comes near it."""


def language(text: str) -> str | None:
    """The ISO 639-1 code of the language of a text, or None where it cannot be told.

    >>> language("Die Zwiebeln schälen und in Butter anschwitzen.")
    'de'
    """
    if not any(character.isalpha() for character in text):
        return None
    with _loading:
        identifier = _identifier()
    ranked: list[tuple[str, float]] = identifier.rank(text[:MAX_CHARACTERS])
    code, score = ranked[0]
    if code == "en" or score - dict(ranked)["en"] >= MARGIN:
        return code
    return None


_loading = threading.Lock()  # else each of many threads at once would load a model of its own


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def warn_of_language(procedure: Procedure, known: Collection[str]) -> None:
    """Issue a FluentsWarning if a procedure is in a language other than those a model knows."""
    code = language(" ".join([procedure.goal, *procedure.steps]))
    if code is None or code in known:
        return
    names = " or ".join(LANGUAGES[name] for name in known)
    warnings.warn(
        f"the text seems to be in {LANGUAGES[code]}, but the embedded model knows only {names}, so expect wrong "
        "changes. "
        f"To use a language model that knows {LANGUAGES[code]}, give `model` and `base_url`",
        FluentsWarning,
        stacklevel=3,
    )
