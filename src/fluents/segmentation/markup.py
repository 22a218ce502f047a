"""Recognising and removing Markdown and HTML: the words and the layout of lists and headings stay."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

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
