"""What OUTPUT.part holds: the last trace of every id, behind the line with the settings."""

from __future__ import annotations

from pathlib import Path

from fluents import jsonl
from fluents.records import Trace


def part_traces(output: Path) -> list[Trace]:
    part = output.with_name(f"{output.name}.part")
    lines = part.read_bytes().splitlines(keepends=True)[1:] if part.exists() else []
    whole = [line for line in lines if line.endswith(b"\n")]  # the last may be on its way
    found = [record for line in whole if isinstance(record := jsonl.loads(line), Trace)]
    return list({trace.id: trace for trace in found}.values())
