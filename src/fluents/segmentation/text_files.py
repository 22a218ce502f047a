"""Reading a text from a file or standard input: its size, its encoding, its line breaks."""

from __future__ import annotations

import re
from pathlib import Path

from fluents.errors import InputError
from fluents.jsonl import open_input
from fluents.segmentation.web_pages import is_page

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


def read_text(path: str | Path) -> str:
    """The text of a file with `\\n` line breaks; "-" is standard input.

    Files are UTF-8, or UTF-16 with a byte order mark; a web page may name another encoding.
    """
    name = "standard input" if str(path) == "-" else str(path)
    stream = open_input(path)
    try:
        data = stream.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read the file: {error.strerror}", where=name) from None
    finally:
        if str(path) != "-":
            stream.close()
    if len(data) > MAX_TEXT_BYTES:
        raise InputError(
            f"the file is larger than {MAX_TEXT_BYTES // 2**20} MB",
            where=name,
            fix="put each procedure in its own file",
        )
    return _decoded(data, name).replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        encoding = _page_encoding(data)
        if encoding:
            return data.decode(encoding, errors="replace")
        raise InputError(
            f"invalid UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            where=name,
            fix="save the file as UTF-8 plain text",
        ) from None


def _page_encoding(data: bytes) -> str | None:
    """The encoding that a web page names, if it is one that pages have."""
    head = data[:_HEAD_BYTES]
    found = _CHARSET.search(head) if is_page(head.decode("latin-1")) else None
    return _PAGE_ENCODINGS.get(found[1].decode("ascii").lower()) if found else None
