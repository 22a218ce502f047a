"""Counts as people read them."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """ "no steps", "1 entity", "2,000 changes"."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count:,} {noun if count == 1 else plural}" if count else f"no {plural}"
