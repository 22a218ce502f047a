"""A run of the program in a test: how it ended, and what it printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from fluents import jsonl
from fluents.records import Trace


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.status == 0, self.err
        return json.loads(self.out)

    @property
    def traces(self) -> list[Trace]:
        assert self.status == 0, self.err
        return [record for line in self.out.splitlines() if isinstance(record := jsonl.loads(line), Trace)]


Run: TypeAlias = Callable[..., Done]
