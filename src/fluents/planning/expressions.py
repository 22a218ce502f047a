"""Text → parenthesised expressions that know where they stand, with parentheses repaired. Nothing here recurses."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NoReturn

from fluents.errors import InputError

MAX_DEPTH = 100
MAX_SYMBOLS = 2_000_000
MAX_REPAIRS = 1_000
"""Limits on hostile input: what nests as deep, is longer or needs more repairs is refused."""

SECTIONS = frozenset(
    {":requirements", ":types", ":constants", ":predicates", ":action", ":domain", ":objects", ":init", ":goal"}
    | {":functions", ":derived", ":durative-action", ":constraints", ":metric"}
)
"""What stands directly in a definition, and nowhere else."""
FIELDS = frozenset({":parameters", ":precondition", ":effect"})
"""What stands directly in an action."""
_ALIASES = (
    {":preconditions": ":precondition", ":effects": ":effect", ":parameter": ":parameters", ":params": ":parameters"}
    | {":requirement": ":requirements", ":type": ":types", ":constant": ":constants", ":predicate": ":predicates"}
    | {":actions": ":action", ":object": ":objects", ":initial": ":init", ":initial-state": ":init", ":goals": ":goal"}
)  # fmt: skip

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
"""Every other letter is none of PDDL's, and might change its length."""
_TOKEN = re.compile(r";[^\n]*|[()]|[^\s();]+")
_SYMBOL = re.compile(r"[?:-]?[a-z][a-z0-9_-]*|[?-]|[<>]?=|[<>]")


class PddlError(InputError):
    """PDDL that cannot be read, or not strictly."""


@dataclass(frozen=True)
class Repair:
    """What was changed to make sense of a text, where, and why."""

    source: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}, column {self.column}: {self.message}"


class Symbol(str):
    """A word that knows where it stands."""

    __slots__ = ("offset", "text")
    offset: int
    text: PddlText


class Expression(list[Any]):
    """What stands between two parentheses: symbols and other expressions."""

    __slots__ = ("offset", "text")

    def __init__(self, text: PddlText, offset: int) -> None:
        super().__init__()
        self.text, self.offset = text, offset

    @property
    def head(self) -> str:
        return self[0] if self and isinstance(self[0], Symbol) else ""


class PddlText:
    """A text, and the repairs it needed so far."""

    def __init__(self, source: str, content: str, repairs: list[Repair]) -> None:
        self._source, self._repairs = source, repairs
        content = content.removeprefix("\ufeff")  # the byte order mark of editors on Windows
        self._content = content.translate(_LOWER)  # PDDL does not tell case apart
        self._lines = [0, *(match.end() for match in re.finditer("\n", self._content))]
        self._renamed: dict[str, str] = {}
        self._words: set[str] = set()

    def repair(self, offset: int, message: str) -> None:
        if len(self._repairs) >= MAX_REPAIRS:
            self.fail(offset, f"the text is not PDDL: more than {MAX_REPAIRS} repairs would be needed")
        self._repairs.append(Repair(self._source, *self._place(offset), message))

    def fail(self, offset: int, message: str) -> NoReturn:
        line, column = self._place(offset)
        raise PddlError(message, where=f"{self._source}, line {line}, column {column}")

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def symbol(self, word: str, offset: int) -> Symbol:
        made = Symbol(word)
        made.offset, made.text = offset, self
        return made

    def definitions(self) -> Iterator[Expression]:
        """Every `(define …)` in the text, and every action outside one; all else is left out."""
        in_text = False
        for item in self._tree():
            head = item.head if isinstance(item, Expression) else ""
            if head in ("define", ":action"):
                yield item
            elif head.startswith(":"):
                self.repair(item.offset, f"({head} …) outside a definition: ignored")
            elif not in_text:
                self.repair(item.offset, "text outside a definition: ignored")
            in_text = not head.startswith((":", "define"))

    def _tree(self) -> Expression:
        root = Expression(self, 0)
        stack = [root]
        for count, match in enumerate(_TOKEN.finditer(self._content)):
            word, offset = match[0], match.start()
            if count > MAX_SYMBOLS:
                self.fail(offset, f"texts with more than {MAX_SYMBOLS:,} symbols are not supported")
            if word == "(":
                self._begin(stack, offset)
                stack.append(Expression(self, offset))
                stack[-2].append(stack[-1])
                if len(stack) > MAX_DEPTH:
                    self.fail(offset, f"{MAX_DEPTH} or more nested parentheses are not supported")
            elif word == ")":
                if len(stack) > 1:
                    stack.pop()
                else:
                    self.repair(offset, "extra closing parenthesis: ignored")
            elif word[0] != ";":
                is_prose = len(stack) == 1 and word not in _ALIASES
                symbol = self.symbol(word, offset) if is_prose else self._clean(word, offset)
                if symbol in FIELDS:
                    self._settle(stack, 2, symbol)
                stack[-1].append(symbol)
        for open_ in stack[1:]:
            self.repair(open_.offset, "missing closing parenthesis: added at the end")
        return root

    def _begin(self, stack: list[Expression], offset: int) -> None:
        """A section begins in a definition, a definition in nothing."""
        following = _TOKEN.search(self._content, offset + 1)
        word = _ALIASES.get(following[0], following[0]) if following else ""
        if word in SECTIONS:
            self._settle(stack, 1, self.symbol(word, offset))
        elif word == "define":
            self._settle(stack, 0, self.symbol(word, offset))

    def _settle(self, stack: list[Expression], depth: int, symbol: Symbol) -> None:
        """Close what was left open before this symbol, or open again what was closed too early."""
        if len(stack) - 1 > depth:
            self.repair(stack[-1].offset, f"missing closing parenthesis before {symbol}: added there")
            del stack[depth + 1 :]
        while len(stack) - 1 < depth:
            last = stack[-1][-1] if stack[-1] else None
            if not isinstance(last, Expression) or last.head != ("define", ":action")[len(stack) - 1]:
                return
            self.repair(symbol.offset, f"{last.head} is closed before {symbol}: extra parenthesis ignored")
            stack.append(last)

    def _clean(self, word: str, offset: int) -> Symbol:
        if word in _ALIASES:
            self.repair(offset, f"{word} is not a PDDL keyword: read as {_ALIASES[word]}")
            word = _ALIASES[word]
        if _SYMBOL.fullmatch(word):
            return self.symbol(word, offset)
        if not self._words:
            self._words = set(_TOKEN.findall(self._content))
        if word not in self._renamed:
            mark = word[0] if word[0] in "?:-" else ""
            letters = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode().lower()
            name = re.sub("[^a-z0-9_-]+", "_", letters).strip("_-")
            name = mark + (name if name[:1].isalpha() else f"n{name}")
            while name in self._words:
                name += "_"
            self._words.add(name)
            self._renamed[word] = name
        self.repair(offset, f"{word} is not a valid PDDL name: read as {self._renamed[word]}")
        return self.symbol(self._renamed[word], offset)
