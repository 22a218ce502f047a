"""Web pages: the steps that a page states as data, or else its main content without menus, comments and footer.

Recipe sites describe their recipes to search engines as schema.org data in JSON-LD, which is exact. The content of
other pages is found by trafilatura. Nothing on a page is run, and nothing is fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple

from fluents.errors import InputError
from fluents.segmentation.layout import read_layout, with_group_titles
from fluents.segmentation.passages import plain_text, without_html_blocks
from fluents.segmentation.sections import find_steps

MAX_ELEMENTS = 50_000
"""A page with more elements is an error: finding the content takes a second for each 10,000."""
MAX_DEPTH = 20
"""How deep sections of steps may lie in each other; deeper ones are left out."""
MAX_LINKED = 0.7
"""A list of which a larger share is links is a menu."""
MAX_ELEMENTS_OF_A_KIND = 20
"""How many headings, or blocks of data, are looked at."""
MAX_TITLE_LENGTH = 1000

# Every pattern is kept from running past the next "<" or ">", so that a hostile page takes linear time.
_DATA = re.compile(r"<script\b[^<>]*\btype\s*=\s*[\"']?application/ld\+json\b[^<>]*>", re.IGNORECASE)
_META = re.compile(r"<meta\b[^<>]*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\b(property|name|content)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_HEADING = re.compile(r"<h1\b[^<>]*>", re.IGNORECASE)
_TITLE = re.compile(r"<title\b[^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(r"</?(?:p|br|li|ul|ol|div|h[1-6])\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_SEPARATOR = re.compile(r"\s+(?:[|·•–—»-]|::)\s+")
_NUMBER = re.compile(r"(?:step\s*)?\d{1,3}\s?[.):]\s+|step\s*\d{1,3}$", re.IGNORECASE)

_NO_CONTENT = "//nav | //footer | //aside | //form | //button | //noscript | //header[not(.//h1)]"
_NO_CONTENT_NAME = re.compile(
    r"(?:^|[\s_-])(?:comments?|menu|nav|navbar|navigation|footer|sidebar|related|share|sharing|social|cookies?|"
    r"newsletter|breadcrumbs?|ads?|advert|promo|popup|modal)(?=$|[\s_-])",
    re.IGNORECASE,
)
_LAYOUT = (re.compile(r"<li\b"), re.compile(r"<h[2-6]\b"))


class WebPage(NamedTuple):
    """The title of a page, and either its steps or a text that holds them."""

    title: str
    steps: list[str]
    """From schema.org data; empty if the page has none."""
    content: str
    """The main content as HTML; empty if there are steps."""


def read_page(text: str, source: str | None = None) -> WebPage:
    """The title of a page with its steps or its main content. `source` is named in errors."""
    for data in _procedures(text):
        is_how_to = "howto" in _types(data)
        steps = list(filter(None, _steps(data.get("step" if is_how_to else "recipeInstructions"), is_how_to)))
        if steps:
            return WebPage(_words(data.get("name")) or _title(text), steps, "")
    if text.count("<") > 2 * MAX_ELEMENTS:
        fix = "copy the procedure into a text file"
        raise InputError(
            f"the page is too large: it has more than {MAX_ELEMENTS:,} HTML elements", where=source, fix=fix
        )
    return WebPage(_title(text), [], _main_content(text))


# The main content


def _main_content(text: str) -> str:
    """What trafilatura finds; the whole page without menus and the like, if it loses all lists or all headings."""
    from trafilatura import extract

    whole = _pruned(text)
    found = extract(text, output_format="html", include_comments=False, include_formatting=True, include_tables=False)
    return found if found and not any(kind.search(whole) and not kind.search(found) for kind in _LAYOUT) else whole


def _pruned(text: str) -> str:
    """The page without menus, comments, footers and lists of links."""
    from lxml import etree, html

    try:
        page = html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8", remove_comments=True))
    except etree.ParserError:  # no element at all
        return text
    for element in page.xpath(_NO_CONTENT):
        element.drop_tree()
    for element in page.xpath("//body//*[@id or @class][not(.//h1)]"):
        names = f"{element.get('id', '')} {element.get('class', '')}"
        if _NO_CONTENT_NAME.search(names) and element.tag not in ("body", "main", "article"):
            element.drop_tree()
    for element in page.xpath("//ul | //ol"):
        linked = sum(len(link.text_content()) for link in element.iter("a"))
        if linked > len("".join(element.text_content().split())) * MAX_LINKED:
            element.drop_tree()
    return str(html.tostring(page, encoding="unicode"))


# schema.org data


def _procedures(text: str) -> Iterator[dict[str, Any]]:
    """The recipes and how-tos among a page's JSON-LD, wherever they stand in it, in order."""
    for block in _inside(text, _DATA, "script", len(text)):
        try:
            found = [json.loads(block, strict=False)]
        except (ValueError, RecursionError):  # broken data is not the reader's fault: the page may still be read
            continue
        while found:
            value = found.pop()
            if isinstance(value, dict):
                if _types(value) & {"recipe", "howto"}:
                    yield value
                found += reversed(value.values())
            elif isinstance(value, list):
                found += reversed(value)


def _types(value: dict[str, Any]) -> set[str]:
    """Its types in small letters, "schema:Recipe" and "http://schema.org/Recipe" as "recipe"."""
    types = value.get("@type")
    names = types if isinstance(types, list) else [types]
    return {re.split("[/:#]", name)[-1].lower() for name in names if isinstance(name, str)}


def _steps(value: Any, with_names: bool, depth: int = 0) -> Iterator[str]:
    """The steps of instructions: a text, or a list of texts, steps, and sections of steps."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        yield from find_steps(with_group_titles(read_layout(without_html_blocks(unescape(value)))))
    elif isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value):
        yield from map(_words, value)
    elif isinstance(value, list):
        for item in value:
            yield from _steps(item, with_names, depth + 1)
    elif isinstance(value, dict) and not _types(value) & {"howtotip", "howtosupply", "howtotool"}:
        parts = next((value[key] for key in ("itemListElement", "steps", "step", "item") if value.get(key)), None)
        words = _words(value.get("text")) or _words(value.get("description"))
        if parts and not words:
            inside = _steps(parts, with_names, depth + 1)
            yield from [" ".join(inside)] if "howtostep" in _types(value) else inside
        else:
            yield _named(_words(value.get("name")), words) if with_names or not words else words


def _named(name: str, words: str) -> str:
    """A step as it would be read: its name, unless the text says it again, and its text."""
    if not name or words.lower().startswith(name.rstrip(".…").lower()):
        return words
    return f"{name if name[-1] in '.!?:' else name + '.'} {words}" if words else name


def _words(value: Any) -> str:
    """The words of a text that may hold HTML, without the number of the step; "" for what is no text."""
    if not isinstance(value, str):
        return ""
    text = unescape(_TAG.sub("", _BLOCK.sub(" ", value)))
    text = plain_text(_TAG.sub("", _BLOCK.sub(" ", text)))
    return _NUMBER.sub("", text, count=1) if _NUMBER.match(text) else text


# The title


def _title(text: str) -> str:
    """The page's og:title, else its first heading, else its <title>; without the name of the site."""
    meta = _meta(text)
    headings = [words for found in _inside(text, _HEADING, "h1", MAX_TITLE_LENGTH) if (words := _words(found))]
    stated = meta.get("og:title") or next(map(_words, _inside(text, _TITLE, "title", MAX_TITLE_LENGTH)), "")
    site = meta.get("og:site_name", "").lower()
    for heading in headings:
        if stated.lower().startswith(heading.lower()) and heading.lower() != site:
            return heading
    if headings and "og:title" not in meta:
        return headings[0]
    parts = _SEPARATOR.split(stated)
    return parts[0] if len(parts) > 1 and (parts[-1].lower() == site or "og:title" not in meta) else stated


def _meta(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for tag in _META.finditer(text):
        attributes = {name.lower(): double or single for name, double, single in _ATTRIBUTE.findall(tag[0])}
        key = attributes.get("property") or attributes.get("name")
        if key and attributes.get("content", "").strip():
            found.setdefault(key.lower(), _words(attributes["content"]))
    return found


def _inside(text: str, start: re.Pattern[str], name: str, length: int) -> Iterator[str]:
    """What stands between the start tag and the end tag of the first elements of a kind, cut to a length."""
    end = re.compile(f"</{name}", re.IGNORECASE)
    for count, tag in enumerate(start.finditer(text)):
        close = end.search(text, tag.end())
        if close is None or count == MAX_ELEMENTS_OF_A_KIND:
            return
        yield text[tag.end() : min(close.start(), tag.end() + length)]
