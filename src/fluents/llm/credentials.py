"""Where a model is, and the key to it."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

from fluents.errors import InputError
from fluents.jsonl import open_input
from fluents.llm import EndpointError

OPENAI = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
MAX_KEY = 10_000


def checked_url(address: str) -> str:
    """An address of an endpoint as it is used everywhere: without a slash at the end."""
    fix = "such as https://api.openai.com/v1 or http://127.0.0.1:8080/v1"
    try:
        parts = urlsplit(address.strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number, a bracket too many
        usable = False
    if not usable:
        raise EndpointError("this is no address of an endpoint", where=address[:200], fix=fix)
    if parts.username or parts.password:
        raise EndpointError("a name or password in the address would be written down", fix=f"use a key file; {fix}")
    if parts.query or parts.fragment:  # often a key, and requests go to other places below the address
        raise EndpointError("an address of an endpoint has neither ? nor #", fix=f"a key is for a key file; {fix}")
    return address.strip().rstrip("/")


def is_loopback(address: str) -> bool:
    """Whether an address is this machine."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def find_key(base_url: str, *, file: Path | None = None, variable: str | None = None) -> str | None:
    """The key for an endpoint: from the file or the environment variable named, else from OPENAI_API_KEY.

    That one is sent by https alone: to this machine, or in the clear, goes only a key that was named for it.
    """
    if file is not None and variable is not None:
        raise InputError("a key from a file and from a variable", fix="give --key-file or --key-variable, not both")
    if file is not None:
        with open_input(file) as stream:
            return _checked_key(stream.read(MAX_KEY + 1).decode("utf-8", "replace"), str(file))
    if variable is not None:
        key = os.environ.get(variable)
        if not key:
            raise InputError(f"the environment variable {variable} holds no key", fix=f"export {variable}=…")
        return _checked_key(key, f"${variable}")
    if not base_url.startswith("https:"):
        return None
    key = os.environ.get(KEY_VARIABLE)
    if not key and base_url == OPENAI:
        raise InputError(f"no key for {base_url}", fix=f"export {KEY_VARIABLE}=…, or --key-file; or another --base-url")
    return _checked_key(key, f"${KEY_VARIABLE}") if key else None


def _checked_key(key: str, where: str) -> str:
    """A key as it can stand in a header. Errors never show it."""
    key = key.strip()
    if not key or len(key) > MAX_KEY or not all("!" <= character <= "~" for character in key):
        raise InputError("this is no key: one line of letters, digits and signs is expected", where=where)
    return key
