"""OpenPI2.0's tables with the adapter that was trained on OpenPI: states, schemata and complete sentences.

    python benchmarks/openpi2.py states --answers states.jsonl     # asks `base`; run it again after an interruption
    fluents track openpi2:dev --setting openpi -o openpi2.jsonl
    python benchmarks/openpi2.py tables --pred openpi2.jsonl

In the table of states, the entity and the attribute of each gold change are given. Here the model reads the prompt it
was trained with, and the beginning of a line, `entity | attribute |`: the likeliest rest of this line is its answer.
With `--samples`, it is the most frequent one of so many.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import get_args

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from fluents.data.datasets import load_traces
from fluents.metrics import score
from fluents.prompts.local import MAX_FIELD, MAX_PROMPT_BYTES, Style, prompt
from fluents.prompts.local import grammar as grammar_of_lines
from fluents.records import StateChange, Trace
from fluents.scoring import Mode
from fluents.text.names import one_line
from fluents.trackers.embedded import Engine, Sampling
from fluents.weights import ensure, open_adapter
from fluents.weights.adapters import unpacked

GOLD = "openpi2:ranked-dev"
REST_OF_LINE = grammar_of_lines(1).replace("root ::= line{0,1}", 'root ::= " " field " | " field "\\n"')
MAX_TOKENS = 2 * MAX_FIELD + 8
SLOTS = 4
"""Procedures that are asked about side by side, each in a slot that remembers the last prompt."""


class Completer(Engine):
    """An engine that completes a line, and reads no part of a prompt twice that the slot still holds."""

    def rest(self, text: str, sampling: Sampling, slot: int) -> list[str]:
        more = {"cache_prompt": True, "id_slot": slot}
        answers = self._round(text, sampling, 1, sampling.samples, REST_OF_LINE, more=more)
        return [answer.text.strip() for answer in answers]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    states = commands.add_parser("states", help="ask for the states of every gold change, and score the answers")
    states.add_argument(
        "--answers",
        type=Path,
        required=True,
        help="file of the answers; those in it are not asked for again, so use a new file for other options",
    )
    states.add_argument("--adapter", default="openpi-base")
    states.add_argument("--style", choices=get_args(Style), default="plain")
    states.add_argument("--count", type=int, help="number of changes that the prompt names")
    states.add_argument(
        "--samples",
        type=int,
        default=1,
        help="draw so many answers (temperature 0.8), and take the most frequent one; 1 is the likeliest",
    )
    states.add_argument("--lower", action="store_true", help="write the entity in lower case")
    states.add_argument("--threads", type=int)
    tables = commands.add_parser("tables", help="score predictions for openpi2:dev")
    tables.add_argument("--pred", required=True)
    chosen = parser.parse_args()
    modes: tuple[Mode, ...] = get_args(Mode)
    if chosen.command == "tables":
        for mode in modes:
            for metric in ("schemata", "complete"):
                found = score(metric, "openpi2:dev", chosen.pred, mode=mode)
                print(f"\n{metric}, {mode}\n{found}\n{found.intervals()}")
        return
    gold = list(load_traces(GOLD))
    said = asked(gold, chosen)
    predicted = [
        trace.replace(changes=tuple(answered(change, said[question(trace, change)]) for change in trace.changes))
        for trace in gold
    ]
    for mode in modes:
        found = score("states", gold, predicted, mode=mode)
        print(f"\nstates, {mode}\n{found}\n{found.intervals()}")


def question(trace: Trace, change: StateChange) -> str:
    """What tells a question from the others."""
    return json.dumps([trace.id, change.step, change.entity, change.attribute], ensure_ascii=False)


def asked(gold: Sequence[Trace], chosen: argparse.Namespace) -> dict[str, list[str]]:
    """Question → answers, from the file or from the model."""
    said: dict[str, list[str]] = {}
    if chosen.answers.exists():
        lines = chosen.answers.read_text(encoding="utf-8").splitlines()
        said = {line["question"]: line["answers"] for line in map(json.loads, lines)}
    procedures = list(left(gold, said))
    if not procedures:
        return said
    adapter = open_adapter(chosen.adapter)
    sampling = Sampling(chosen.samples, temperature=0.8 if chosen.samples > 1 else 0, max_tokens=MAX_TOKENS)
    slots = max(SLOTS, chosen.samples)
    lora = unpacked(adapter.path)
    free: SimpleQueue[int] = SimpleQueue()
    for slot in range(SLOTS if chosen.samples == 1 else 1):  # samples take slots of their own
        free.put(slot)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    context = slots * (MAX_PROMPT_BYTES + MAX_TOKENS)
    with (
        Completer(ensure(adapter.base), slots=slots, context=context, adapter=lora, threads=chosen.threads) as engine,
        chosen.answers.open("a", encoding="utf-8") as file,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        task = progress.add_task("", total=sum(len(changes) for _, changes in procedures))

        def ask(procedure: tuple[Trace, list[StateChange]]) -> None:
            trace, changes = procedure
            slot = free.get()
            try:
                for change in changes:
                    entity = change.entity.lower() if chosen.lower else change.entity
                    names = f"{one_line(entity)} | {one_line(change.attribute)} |"  # a token begins with its blank
                    text = prompt(trace.procedure, change.step, style=chosen.style, count=chosen.count) + names
                    answers = engine.rest(text, sampling, slot)
                    said[question(trace, change)] = answers
                    line = {"question": question(trace, change), "answers": answers}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
                    file.flush()
                    progress.advance(task)
            finally:
                free.put(slot)

        with ThreadPoolExecutor(free.qsize()) as pool:
            list(pool.map(ask, procedures))
    return said


def left(gold: Sequence[Trace], said: dict[str, list[str]]) -> Iterator[tuple[Trace, list[StateChange]]]:
    """The changes of each procedure that are still to be asked for, step by step and each question once."""
    for trace in gold:
        questions = {question(trace, change): change for change in trace.changes}
        changes = [change for key, change in questions.items() if key not in said]
        if changes:
            yield trace, sorted(changes, key=lambda change: (change.step, change.entity))


def answered(change: StateChange, answers: Sequence[str]) -> StateChange:
    """The change with the states of the most frequent answer, or the first one of those."""
    most = Counter(answer.casefold() for answer in answers).most_common(1)[0][0]
    before, _, after = next(answer for answer in answers if answer.casefold() == most).partition(" | ")
    names = change.alternatives.replace(before=(), after=())
    return change.replace(before=before, after=after, alternatives=names)


if __name__ == "__main__":
    main()
