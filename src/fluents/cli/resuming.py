"""Commands that take traces and give them back with more in them: what is done survives an interruption."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.console import RenderableType

from fluents import jsonl
from fluents.cli.output import emit, messages
from fluents.errors import InputError
from fluents.records import Trace

TraceFile = Annotated[str, typer.Argument(help="Traces: a file, a dataset's split, or - for standard input.")]


@dataclass(frozen=True)
class Destination:
    """Where the traces go. Each field is an option."""

    output: Annotated[str | None, typer.Option("--output", "-o", help="Write JSONL here.")] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run, whose traces are in OUTPUT.part.")
    ] = False
    as_json: Annotated[bool | None, typer.Option("--json/--table", help="JSONL or tables.")] = None


def each_trace(
    file: str, work: Callable[[Trace], Trace], view: Callable[[Trace], RenderableType], to: Destination
) -> None:
    """Do the work on each trace of a file. The output appears whole at the end; until then its part is beside it."""
    if to.resume and to.output in (None, "-"):
        raise InputError("--resume needs --output", fix="name the file to go on with")
    if file == "-" and sys.stdin is not None and sys.stdin.isatty():
        messages.print("reading traces from standard input; Ctrl-D ends them", style="dim")
    from fluents.data.file_formats import read_traces

    traces = read_traces(file)
    target = _regular_file(to.output)
    if target is None:
        emit(map(work, traces), view, to.output, to.as_json)
        return
    part = target.with_name(f"{target.name}.part")
    emit(_done(traces, work, part, resume=to.resume), view, to.output, to.as_json)
    part.unlink(missing_ok=True)


def _regular_file(output: str | None) -> Path | None:
    """The file that is to be written, unless it is a pipe or device, which keeps what it was given, or a folder."""
    if output is None or output == "-":
        return None
    try:
        path = Path(output).resolve()
        return path if path.is_file() or not path.exists() else None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot write here: {error}", where=output[:300]) from None


LINE_START = b'{"fluents":'
"""How every line that we write begins."""


def _done(traces: Iterable[Trace], work: Callable[[Trace], Trace], part: Path, *, resume: bool) -> Iterator[Trace]:
    before = {trace.id: trace for trace in whole_traces(part)} if resume and part.exists() else {}
    with _growing(part, resume) as stream:
        for trace in traces:
            done = before.get(trace.id)
            if done is None:
                done = work(trace)
                stream.write(jsonl.dumps(done) + b"\n")
                stream.flush()
            elif (done.procedure, done.changes) != (trace.procedure, trace.changes):
                raise InputError(
                    f"{trace.id} has changed since the run was interrupted", where=part, fix="leave --resume out"
                )
            yield done


@contextmanager
def _growing(part: Path, append: bool) -> Iterator[IO[bytes]]:
    """The file of what is done so far. If the run ends early it stays, and its place is told."""
    try:
        with jsonl.open_output(part, append=append) as stream:
            yield stream
    except BaseException:
        if part.exists() and part.stat().st_size:
            messages.print(f"what is done is in {part}; --resume goes on", markup=False, soft_wrap=True)
        else:
            part.unlink(missing_ok=True)
        raise


def whole_traces(path: Path) -> list[Trace]:
    """The traces of an interrupted run; a last line that was cut off in the writing is taken away.

    A file that is none of ours is refused and left as it is.
    """
    content = path.read_bytes()
    whole, cut = content[: content.rfind(b"\n") + 1], content[content.rfind(b"\n") + 1 :]
    lines = [(f"{path}:{number}", line) for number, line in enumerate(whole.splitlines(), start=1) if line.strip()]
    found = list(jsonl.read_records(lines))
    if cut:
        if not cut.startswith(LINE_START[: len(cut)]):
            raise InputError("this is no file of traces to go on with", where=path, fix="name another --output")
        with suppress(InputError):  # whole but for its end
            found.append(jsonl.loads(cut, str(path)))
            whole = content + b"\n"
        with jsonl.atomic_output(path) as stream:
            stream.write(whole)
    return [record for record in found if isinstance(record, Trace)]
