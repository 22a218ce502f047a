"""Output files that survive an interruption: OUTPUT.part grows result by result and becomes OUTPUT when all is done."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from filelock import FileLock, Timeout

from fluents import jsonl
from fluents.errors import InputError
from fluents.jsonl import AnyRecord
from fluents.records import Procedure, Trace
from fluents.task_records import CrepeCase

HEADER = b'{"fluents-run":'
"""How the first line of a part begins. It holds the settings of the run."""
LINE_START = b'{"fluents":'
"""How every other line begins."""
MAX_OUTDATED = 4 * 2**20
"""Bytes of outdated lines that a part may hold beside as many current ones."""

SettingsOf = Callable[[Trace], Mapping[str, Any]]


class ResumableOutput:
    """A file of traces, or of answers to questions. Results go to OUTPUT.part at once; OUTPUT itself is replaced when
    the block ends well.

    `settings` says how the traces are made: a run with other settings cannot be resumed. With `resume` the run goes on
    from OUTPUT.part or, where `settings_of` tells how its traces were made, from OUTPUT. `finish` is applied to every
    trace when OUTPUT is written. A second process that opens the same OUTPUT is refused.

    >>> with ResumableOutput("out.jsonl", {"model": "m"}, resume=True) as output:
    ...     for procedure in procedures:
    ...         output.add(output.kept(procedure) or work(procedure))
    """

    def __init__(
        self,
        path: str | Path,
        settings: Mapping[str, Any],
        *,
        resume: bool = False,
        settings_of: SettingsOf | None = None,
        finish: Callable[[Trace], Trace] | None = None,
    ) -> None:
        self.path = _regular_file(path)
        self.part = self.path.with_name(f"{self.path.name}.part")
        self._settings = json.loads(json.dumps(settings))
        self._resume, self._settings_of, self._finish = resume, settings_of, finish
        self._places: dict[str, tuple[int, int]] = {}
        self._order: dict[str, None] = {}
        self._outdated = 0
        self._stream: IO[bytes] = io.BytesIO()
        self._lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))

    def __enter__(self) -> Self:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise InputError(
                "another process is writing this file",
                where=self.path,
                fix="wait until that process has finished, or choose another `output`",
            ) from None
        except OSError as error:
            fix = "check that you may write to this folder, or choose another `output`"
            raise InputError(f"cannot write the file: {error.strerror}", where=self.path, fix=fix) from None
        try:
            self._open()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with jsonl.disk_errors_name(self.path):
                if kind is None:
                    self._complete()
                else:
                    self._stop()
        finally:
            self._close()

    def kept(self, wanted: Procedure | Trace) -> Trace | None:
        """What an earlier run has made of this procedure or trace, if it has; an error if that has changed since."""
        found = self._get(wanted.id)
        if not isinstance(found, Trace):
            return None
        if isinstance(wanted, Trace):
            self._check_same(wanted.id, (found.procedure, found.changes) == (wanted.procedure, wanted.changes))
        else:
            same = (found.procedure.goal, found.procedure.steps) == (wanted.goal, wanted.steps)
            self._check_same(wanted.id, same)
        return found

    def kept_answers(self, procedure: Procedure, questions: Collection[str]) -> CrepeCase | None:
        """Likewise for answers to questions about a procedure."""
        found = self._get(procedure.id)
        if not isinstance(found, CrepeCase):
            return None
        self._check_same(procedure.id, found.procedure == procedure)
        self._check_same(procedure.id, set(found.asked) == set(questions), "the questions about {} have")
        return found

    def _check_same(self, name: str, same: bool, what: str = "the procedure {} has") -> None:
        if not same:
            raise InputError(
                f"{what.format(name)} changed since the run that you want to resume",
                where=self.part if self.part.exists() else self.path,
                fix="to start over, choose another `output`",
            )

    def keep_steps(self, trace: Trace) -> None:
        """Keep the finished steps of an unfinished procedure."""
        if trace.covered is not None:
            self._put(trace)

    def add(self, result: Trace | CrepeCase) -> None:
        """Add a result. OUTPUT has them in this order, after those of an earlier run that are not added again."""
        if self._get(result.id) != result:
            self._put(result)
        self._order[result.id] = None

    def traces(self) -> Iterator[Trace]:
        """All traces so far, as OUTPUT would have them."""
        return (result for result in self._results() if isinstance(result, Trace))

    def _results(self) -> Iterator[AnyRecord]:
        before = [name for name in self._places if name not in self._order]
        for name in [*before, *self._order]:
            found = self._get(name)
            if found is not None:
                yield self._finish(found) if self._finish and isinstance(found, Trace) else found

    @property
    def count(self) -> int:
        """How many procedures there are, finished or not."""
        return len(self._places)

    def _open(self) -> None:
        if self.part.exists() and not self._is_void():
            if not self._resume:
                fix = "add `resume` to continue that run, or delete this file to start over"
                raise InputError("this file contains the results of an interrupted run", where=self.part, fix=fix)
            self._read_part()
            return
        found: list[Trace] = []
        if self._resume and self._settings_of and self.path.exists():
            found = whole_traces(self.path)
            for trace in found:
                self._check(self._settings_of(trace), self.path)
        with jsonl.disk_errors_name(self.part):
            self._stream = self.part.open("wb+")
            try:
                self._stream.write(self._header())
                self._stream.flush()
                for trace in found:
                    self._put(trace)
            except BaseException:
                self.part.unlink()
                raise

    def _is_void(self) -> bool:
        """Whether the part is of a run that was killed before it had a result."""
        with jsonl.open_input(self.part) as stream:
            first, rest = stream.readline(jsonl.MAX_LINE_BYTES), stream.read(1)
        return not rest and (first.startswith(HEADER) or HEADER.startswith(first))

    def _header(self) -> bytes:
        return HEADER + json.dumps(self._settings, ensure_ascii=False).encode() + b"}\n"

    def _read_part(self) -> None:
        """Take up the lines of an interrupted run. A last line that was cut off in the writing is removed."""
        with jsonl.disk_errors_name(self.part):
            self._stream = self.part.open("rb+")
        first = self._stream.readline(jsonl.MAX_LINE_BYTES)
        if not first.startswith(HEADER):
            raise InputError(
                "this file does not contain the results of an interrupted run",
                where=self.part,
                fix="delete or rename this file",
            )
        self._check(jsonl.parse_json(first, f"{self.part}:1")["fluents-run"], self.part)
        for number, (start, line) in enumerate(_lines(self._stream), start=2):
            try:
                record = jsonl.loads(line, f"{self.part}:{number}")
            except InputError:
                if line.endswith(b"\n"):
                    raise
                self._stream.truncate(start)
                break
            if not line.endswith(b"\n"):
                self._stream.write(b"\n")
                line += b"\n"
            self._outdated += self._places.get(record.id, (0, 0))[1]
            self._places[record.id] = start, len(line)

    def _check(self, before: Mapping[str, Any], where: Path) -> None:
        before = json.loads(json.dumps(before))
        for name in [*before, *self._settings]:
            was, is_now = before.get(name), self._settings.get(name)
            if was != is_now:
                raise InputError(
                    f"the run that you want to resume had other settings: {name} was {_short(was)}, but is now "
                    f"{_short(is_now)}",
                    where=where,
                    fix="use the settings of that run, or choose another `output`",
                )

    def _put(self, result: AnyRecord) -> None:
        line = jsonl.dumps(result) + b"\n"
        with jsonl.disk_errors_name(self.part):
            start = self._stream.seek(0, os.SEEK_END)
            self._stream.write(line)
            self._stream.flush()
        self._outdated += self._places.get(result.id, (0, 0))[1]
        self._places[result.id] = start, len(line)
        if self._outdated > max(MAX_OUTDATED, start / 2):
            self._rewrite_part()

    def _line(self, name: str) -> bytes:
        start, length = self._places[name]
        self._stream.seek(start)
        return self._stream.read(length)

    def _get(self, name: str) -> AnyRecord | None:
        return jsonl.loads(self._line(name), str(self.part)) if name in self._places else None

    def _rewrite_part(self) -> None:
        """Write the part anew without outdated lines."""
        places: dict[str, tuple[int, int]] = {}
        with jsonl.atomic_output(self.part) as stream:
            stream.write(self._header())
            for name in self._places:
                line = self._line(name)
                places[name] = stream.tell(), len(line)
                stream.write(line)
            self._stream.close()  # before it is replaced, as some systems want it
        self._stream = self.part.open("rb+")
        self._places, self._outdated = places, 0

    def _complete(self) -> None:
        jsonl.write(self._results(), self.path)
        self._stream.close()
        self.part.unlink()

    def _stop(self) -> None:
        """Leave a tidy part behind, or none where nothing is done."""
        if not self._places:
            self._stream.close()
            self.part.unlink(missing_ok=True)
        elif self._outdated:
            with suppress(OSError, InputError):  # a full disk: the part is whole as it is
                self._rewrite_part()

    def _close(self) -> None:
        with suppress(OSError):  # what mattered was flushed before
            self._stream.close()
        with suppress(OSError):
            Path(self._lock.lock_file).unlink(missing_ok=True)  # before the release: another process may hold it after
        self._lock.release()


def is_regular(path: str | Path | None) -> bool:
    """Whether results can be kept beside this path: it is a file, or nothing yet; no pipe, device or stream."""
    if path is None or str(path) == "-":
        return False
    target = jsonl.output_path(path)
    return target.is_file() or not target.exists()


def _regular_file(path: str | Path) -> Path:
    target = jsonl.output_path(path)
    if not is_regular(path):
        raise InputError(
            "`resume` works only if `output` is a file, not a pipe or device",
            where=target,
            fix="give a file as `output`",
        )
    if not target.parent.is_dir():
        raise InputError(
            "cannot write the file: no such folder",
            where=target,
            fix=f"create the folder {target.parent}, or choose another `output`",
        )
    return target


def whole_traces(path: Path) -> list[Trace]:
    """The traces of a file of ours, without a last line that was cut off in the writing."""
    found = []
    with jsonl.open_input(path) as stream:
        for number, (_, line) in enumerate(_lines(stream), start=1):
            try:
                record = jsonl.loads(line, f"{path}:{number}")
            except InputError:
                if line.endswith(b"\n") or not line.startswith(LINE_START[: len(line)]):
                    raise
                break
            if isinstance(record, Trace):
                found.append(record)
    return found


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """(position, line) of every line that is not blank, from where the stream is."""
    while True:
        start = stream.tell()
        line = stream.readline(jsonl.MAX_LINE_BYTES)
        if not line:
            return
        if line.strip():
            yield start, line


def _short(value: object) -> str:
    return "none" if value is None else str(value)[:80]
