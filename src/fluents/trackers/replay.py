"""Recorded traces and sampled answers, repeated: for demonstrations and tests, where a model would take its time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Self

from fluents import jsonl
from fluents.errors import InputError
from fluents.records import Procedure, Provenance, Reject, StateChange, Trace
from fluents.text.names import one_line
from fluents.trackers import Listener, Tracker
from fluents.trackers.embedded import Sampling
from fluents.version import __version__

NOT_RECORDED = "the recorded traces do not contain this step"


class ReplayTracker(Tracker):
    """Says of a step what some trace says of a step with the same text. One that none has gets no answer.

    `pause` are the seconds it takes for each step.
    """

    def __init__(self, traces: Iterable[Trace], pause: float = 0.0) -> None:
        self._pause = pause
        self._changes: dict[str, tuple[StateChange, ...]] = {}
        for trace in traces:
            for _, text, changes in trace.by_step():
                self._changes.setdefault(one_line(text), changes)

    @classmethod
    def read(cls, source: str | Path, pause: float = 0.0) -> Self:
        """From a dataset, or a file of traces in any known format."""
        from fluents.data.file_formats import read_traces

        return cls(read_traces(source), pause)

    @cached_property
    def provenance(self) -> Provenance:
        said = sha256(repr(sorted(self._changes.items())).encode("utf-8", "surrogatepass")).hexdigest()
        return Provenance(tracker="replay", decoding={"recorded": said[:16]}, version=__version__)

    def track(self, procedure: Procedure, listener: Listener | None = None, done: Trace | None = None) -> Trace:
        listener = listener or Listener()
        answered = () if done is None else done.covered_steps
        listener.on_start(procedure, len(answered))
        trace = Trace(procedure=procedure, covered=() if procedure.steps else None, provenance=self.provenance)
        for step, text in enumerate(procedure.steps, start=1):
            if done is not None and step in answered:
                found = done.at(step)
            else:
                time.sleep(self._pause)
                recorded = self._changes.get(one_line(text))
                if recorded is None:
                    trace = trace.replace(rejects=(*trace.rejects, Reject(step=step, text="", reason=NOT_RECORDED)))
                    continue
                found = tuple(change.replace(step=step) for change in recorded)
            covered = (*(trace.covered or ()), step)
            trace = trace.replace(
                changes=trace.changes + found, covered=None if len(covered) == len(procedure.steps) else covered
            )
            if step not in answered:
                listener.on_step(trace)
        return trace


class Replay:
    """Recorded answers by prompt: what was sampled elsewhere goes through the same tracker."""

    def __init__(self, answers: dict[str, list[str]]) -> None:
        self.answers = answers

    def sample(
        self,
        prompt: str,
        sampling: Sampling,
        seed: int,  # noqa: ARG002 - drawn already
        grammar: str | None = None,  # noqa: ARG002
        on_line: Callable[[str], None] | None = None,  # noqa: ARG002
    ) -> list[str]:
        if prompt not in self.answers:
            raise InputError(
                "the sampled answers contain no answer to this prompt",
                where=prompt[:200],
                fix="sample the same dataset with the same adapter: `fluents train sample`",
            )
        return self.answers[prompt][: sampling.samples]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The answers in a file that `write` or `fluents train sample` wrote."""
        answers = {}
        for where, line in jsonl.read_lines(path):
            what, fix = 'expected {"prompt": …, "answers": […]}', "give a file that `fluents train sample` wrote"
            with jsonl.wrong_shape_is_input_error(what, where, fix):
                value = jsonl.parse_json(line, where)
                answers[str(value["prompt"])] = [str(answer) for answer in value["answers"]]
        return cls(answers)

    def write(self, path: str | Path) -> None:
        """Write a line of JSON for each prompt; the file is whole or not there."""
        with jsonl.atomic_output(path) as stream:
            for prompt, answers in self.answers.items():
                stream.write(json.dumps({"prompt": prompt, "answers": answers}).encode() + b"\n")
