"""Passages of text: their words without markup, and their sentences.

sentencex finds the boundaries of sentences in a masked copy of the text, in which full stops inside brackets, quotes,
addresses and units are covered. Quotation marks are always covered: an unclosed one takes sentencex quadratic time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import sentencex
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

SENTENCE_ENDS = ".!?…。！？｡।॥؟۔"
WINDOW = 4000
"""Characters given to sentencex at once: without spaces after full stops it takes quadratic time."""

CLOSERS = ")]}\"'”’»›」』》）】"

_OPENER_OF = dict(zip(")]}”’»」』》）】", "([{“‘«「『《（【", strict=True))
_OPENERS = frozenset(_OPENER_OF.values())
_STRAIGHT_QUOTES = "\"'"  # one character both opens and closes
_BRACKET = re.compile("[" + re.escape("".join({*_OPENER_OF, *_OPENERS, *_STRAIGHT_QUOTES})) + "]")
_QUOTE = re.compile("[\"'`´“”„‚‛‘’«»‹›「」『』❝❞]")
_END = re.compile(f"[{re.escape(SENTENCE_ENDS)}]")

_ADDRESS = re.compile(r"\b(?:https?://|ftp://|www\.)[^\s<>]+", re.IGNORECASE)
_UNIT = (
    r"approx|ca|incl|figs?|mins?|hrs?|secs?|wks?|tbsps?|tbs?|tsps?|oz|lbs?|pts?|qts?|gal|doz|pkgs?|pkts?|"
    r"ml|cl|dl|ltrs?|kg|mg|cm|mm|km|ft|yds?|sq|cu|dia|diam|deg"
)
_ABBREVIATION = re.compile(rf"(?:\b(?i:{_UNIT})|(?<=\d )in)\.(?= [a-z\d(])|\b[Dd]eg\. ?[CF]\.(?= [a-z])")
_TIME_BEFORE_CAPITAL = re.compile(r"(?<=\d )(?:mins?|hrs?|secs?)(?=\. [A-Z])")
"""sentencex never ends a sentence after these, but "Bake 20 min. Remove it." is two."""


def split_sentences(text: str) -> list[str]:
    """The sentences of a text without line breaks. Only the space between them is lost."""
    pieces = []
    start = 0
    for length in _lengths(_masked(text)):
        pieces.append(text[start : start + length].strip())
        start += length
    return _with_fragments_joined(pieces)


def _lengths(masked: str) -> Iterator[int]:
    """The lengths of the sentences in order. sentencex sees one window at a time."""
    start, window = 0, WINDOW
    while start < len(masked):
        lengths = [len(sentence) for sentence in sentencex.segment("en", masked[start : start + window])]
        if start + window < len(masked):
            lengths = lengths[:-2]  # the window may have cut through the words that decide on the last boundary
        yield from lengths
        start += sum(lengths)
        window = WINDOW if lengths else 2 * window


def ends_sentence(text: str) -> bool:
    """Whether a text ends like a sentence, quotes and brackets aside."""
    return text.rstrip(CLOSERS)[-1:] in tuple(SENTENCE_ENDS)


def _masked(text: str) -> str:
    masked = list(text)
    for match in _ABBREVIATION.finditer(text):
        masked[match.start() : match.end()] = "x" * len(match[0])
    for match in _TIME_BEFORE_CAPITAL.finditer(text):
        masked[match.start() : match.end()] = "x" * len(match[0])
    for match in _ADDRESS.finditer(text):
        length = len(match[0].rstrip(SENTENCE_ENDS + CLOSERS + ",;:"))
        masked[match.start() : match.start() + length] = "x" * length
    for match in _QUOTE.finditer(text):
        masked[match.start()] = _quote_mask(text, match.start())
    for start, end in _asides(text):
        if _END.search(text, start, end):
            masked[start:end] = _aside_mask(text, start, end)
    return "".join(masked)


def _quote_mask(text: str, position: int) -> str:
    """The mask of a quotation mark; after a full stop it ends the sentence."""
    before, after = text[position - 1 : position], text[position + 1 : position + 2]
    return before if before and before in SENTENCE_ENDS and not after.isalnum() else "X"


def _aside_mask(text: str, start: int, end: int) -> str:
    """The mask of text[start:end], in brackets or quotes; a full stop in it ends the sentence unless that goes on."""
    goes_on = text[end : end + 2].lstrip()[:1]
    last = text[end - 2]
    ends = last in SENTENCE_ENDS and (not goes_on or not (goes_on.islower() or goes_on in SENTENCE_ENDS + ",;:"))
    return "X" + "x" * (end - start - 2) + (last if ends else "x")


def _asides(text: str) -> list[tuple[int, int]]:
    """(start, end) of the outermost closed brackets and quotes, in order."""
    open_marks: list[tuple[str, int]] = []
    still_open: Counter[str] = Counter()  # of each opener, to look it up without walking the stack
    found: list[tuple[int, int]] = []
    for opener, position, closes in _bracket_marks(text, still_open):
        if not closes:
            open_marks.append((opener, position))
            still_open[opener] += 1
            continue
        while True:  # openers that were never closed fall away with the one that is
            mark, start = open_marks.pop()
            still_open[mark] -= 1
            if mark == opener:
                break
        while found and found[-1][0] > start:
            found.pop()
        found.append((start, position + 1))
    return found


def _bracket_marks(text: str, still_open: Counter[str]) -> Iterator[tuple[str, int, bool]]:
    """(opener, position, whether it closes) of every bracket and quote, without apostrophes and inch marks."""
    for match in _BRACKET.finditer(text):
        mark, position = match[0], match.start()
        before, after = text[position - 1 : position] or " ", text[position + 1 : position + 2] or " "
        if mark in _STRAIGHT_QUOTES or mark in "‘’":
            opener = _OPENER_OF.get(mark, mark)
            if still_open[opener] and mark != "‘" and not before.isspace() and not after.isalnum():
                yield opener, position, True
            elif mark != "’" and not before.isalnum() and not after.isspace():
                yield opener, position, False
        elif mark in _OPENERS:
            yield mark, position, False
        elif still_open[_OPENER_OF[mark]]:
            yield _OPENER_OF[mark], position, True


def _with_fragments_joined(pieces: list[str]) -> list[str]:
    """Join pieces that are not sentences: a number ("2.") to the next one, all others to the last."""
    sentences: list[list[str]] = []
    ahead: list[str] = []
    for piece in filter(None, pieces):
        is_remark = piece[0] in "([（" and piece[-1] in ")]）"
        has_letter = any(character.isalpha() for character in piece)
        if sentences and not ahead and (is_remark or not (has_letter or piece[0].isdigit())):
            sentences[-1].append(piece)
        elif has_letter:
            sentences.append([*ahead, piece])
            ahead = []
        else:
            ahead.append(piece)
    return [" ".join(sentence) for sentence in (*sentences, ahead) if sentence]


# Markup: Markdown and HTML, of which the words and the layout of lists and headings stay

_LINE_BREAK = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]")
"""Control characters, lone surrogates and invisible characters. Joiners stay: some scripts need them."""

# No pattern below matches past the next "<", so that a hostile text takes linear time.
_PAGE = re.compile(
    r"\s*(?:<\?xml[^<>]{0,200}>\s*)?(?:<!--[^<>]{0,2000}-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE
)
_UNREAD_ELEMENT = re.compile(r"<!--|-->|<(/?)(script|style|table|head)\b[^<>]*>", re.IGNORECASE)
_BLOCK_TAG = re.compile(
    r"<(/?)(p|div|br|hr|section|article|header|footer|main|nav|body|html|blockquote|pre|figure|figcaption|"
    r"dl|dt|dd|ul|ol|li|h[1-6])\b[^<>]*>",
    re.IGNORECASE,
)
_TAG_START = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)\s*(/?>)?")
_INLINE_TAG_NAMES = (
    "a abbr b bdi bdo big br button center cite code data del dfn em font i img input ins kbd label mark q rp rt ruby "
    "s samp small span strike strong sub sup svg time tt u var video wbr"
)
_INLINE_TAGS = frozenset(_INLINE_TAG_NAMES.split())
"""Only these are removed: `ssh <host>` is not HTML."""

_MARKUP_CHARACTER = re.compile(r"[*_`\[\]<&\\~]")


def readable(text: str) -> str:
    """The text with `\\n` line breaks only and without unreadable characters."""
    return _UNREADABLE.sub("", _LINE_BREAK.sub("\n", text))


def is_page(text: str) -> bool:
    """Whether a text is a whole HTML page, rather than a text with some HTML in it."""
    return _PAGE.match(text) is not None


def without_html_blocks(text: str) -> str:
    """The text with HTML lists, headings and paragraphs as Markdown; comments, scripts and tables are removed."""
    text = text.replace("&bull;", "•")
    if "<" not in text:
        return text
    text = _without_unread_elements(text)
    open_lists: list[str] = []

    def as_lines(match: re.Match[str]) -> str:
        closing, name = match[1], match[2].lower()
        if name in ("ul", "ol"):
            if not closing:
                open_lists.append(name)
            elif open_lists:
                open_lists.pop()
            return "\n"
        if name == "li" and not closing:
            depth = min(len(open_lists), 20)
            return "\n" + "    " * (depth - 1) + ("1. " if open_lists[-1:] == ["ol"] else "- ")
        if name[0] == "h" and name[1].isdigit():
            return "\n\n" + ("" if closing else "#" * int(name[1]) + " ")
        return "\n" if name in ("br", "li") else "\n\n"

    return _BLOCK_TAG.sub(as_lines, text)


def _without_unread_elements(text: str) -> str:
    kept = []
    start = 0  # of what has not been copied yet
    opened: tuple[str, int] | None = None
    for match in _UNREAD_ELEMENT.finditer(text):
        closes = match[0] == "-->" or bool(match[1])
        name = (match[2] or "comment").lower()
        if opened is None and not closes:
            opened = (name, match.start())
        elif opened is not None and closes and opened[0] == name:
            kept += [text[start : opened[1]], "\n" if name == "table" else ""]
            start = match.end()
            opened = None
    return "".join([*kept, text[start:]])


def plain_text(fragment: str) -> str:
    """The words of a paragraph, without Markdown and HTML, with single spaces."""
    if _MARKUP_CHARACTER.search(fragment):
        fragment = "".join(_words_of_inline(fragment))
    return " ".join(readable(fragment).split())


def _words_of_inline(fragment: str) -> list[str]:
    words = []
    parser = _INLINE if "](" in fragment else _INLINE_WITHOUT_LINKS
    for token in parser.parseInline(fragment)[0].children or ():
        if token.type in ("softbreak", "hardbreak"):
            words.append(" ")
        elif token.type == "html_inline":
            words.append(_words_of_tag(token.content))
        elif token.type != "image":
            words.append(token.content)
    return words


def _words_of_tag(text: str) -> str:
    tag = _TAG_START.match(text)
    is_html = tag is not None and tag[1].lower() in _INLINE_TAGS and (tag[2] is not None or "=" in text)
    if tag is None or not is_html:  # "a <b and c> d" has neither attributes nor a tag's end
        return text
    return " " if tag[1].lower() == "br" else ""


def _asterisk_of_sum(state: StateInline, silent: bool) -> bool:
    """Inline rule: the asterisks in "10*20*30 cm" are not emphasis."""
    position = state.pos
    around = state.src[max(position - 1, 0) : position + 2]
    if len(around) != 3 or around[1] != "*" or not (around[0].isdigit() and around[2].isdigit()):
        return False
    if not silent:
        state.pending += "*"
    state.pos += 1
    return True


def _inline_parser(*link_rules: str) -> MarkdownIt:
    rules = ["emphasis", "strikethrough", "backticks", "entity", "escape", "autolink", "html_inline", *link_rules]
    parser = MarkdownIt("zero", {"html": True}).enable(rules)
    parser.inline.ruler.before("emphasis", "asterisk_of_sum", _asterisk_of_sum)
    return parser


_INLINE = _inline_parser("link", "image")
_INLINE_WITHOUT_LINKS = _inline_parser()  # much faster on a text full of "["
