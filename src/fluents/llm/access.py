"""Where a model is, and the key to it."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from fluents.llm import EndpointError


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
    return address.strip().rstrip("/")


def is_loopback(address: str) -> bool:
    """Whether an address is this machine."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
