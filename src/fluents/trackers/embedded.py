"""The embedded model in this process: llama.cpp with base weights and an adapter, merged into them or beside them.

And what trackers with an embedded model share: a procedure step by step, and engines that stay loaded.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from fluents.errors import FluentsError
from fluents.records import Procedure, Reject, StateChange, Trace
from fluents.segmentation import warn_of_language
from fluents.trackers import Listener, Tracker
from fluents.trackers.concurrent import side_by_side
from fluents.weights.adapters import ADAPTERS, Adapter
from fluents.weights.base_weights import load_fix


@dataclass(frozen=True)
class Sampling:
    """So many answers to one prompt, drawn with temperature, then top-k, then top-p; temperature 0 is the likeliest."""

    samples: int = 16
    temperature: float = 0.9
    top_k: int = 64
    top_p: float = 0.95
    max_tokens: int = 256


class Sampler(Protocol):
    """Whatever draws a model's answers to a prompt."""

    def sample(
        self,
        prompt: str,
        sampling: Sampling,
        seed: int,
        grammar: str | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> list[str]: ...


class WrittenToken(NamedTuple):
    """A token of an answer and the logarithm of its probability, before temperature."""

    text: bytes
    logprob: float


class WrittenAnswer(NamedTuple):
    """What the model wrote."""

    text: str
    tokens: tuple[WrittenToken, ...]
    """Of the whole text; empty where they were not asked for."""
    ended: bool
    """Whether the model ended it, and was not cut off."""


class ModelError(FluentsError):
    """The embedded model could not be loaded or could not answer."""


class Engine:
    """The model, loaded once, answering one prompt at a time with several samples side by side.

    The same seed gives the same answers: that needs one prompt a request, always in the first slot, and no prompt
    cache, or one that holds the same each time; all these would change the batches and with them the last bits of the
    numbers. Where speed counts more, `continue_from` takes several prompts at a time, each in a slot of its own.
    """

    def __init__(
        self,
        model: Path,
        *,
        slots: int,
        context: int,
        threads: int | None = None,
        adapter: Path | None = None,
        shared: bool = True,
        plain_attention: bool = False,
    ) -> None:
        """`context` is for all slots: `shared`, so that a long prompt has room, or in equal parts, so that a slot keeps
        what it holds, and reads nothing but its own, while others are at work. Where a sequence grows long,
        `plain_attention` is faster on a processor than flash attention, by a fifth for tiny."""
        # Threads that wait for each other spin for a moment only: without end, beside another busy program, they would
        # take its time and ours; not at all, waking them would take half the time of every layer.
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.verbosity = -1
        params.n_parallel = slots
        params.kv_unified = shared
        params.n_ctx = context
        params.cache_ram_mib = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads or free_cores()
        if plain_attention:
            params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        if adapter is not None:
            params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(adapter), 1.0)]
        # llama.cpp opens a port on loopback whether one wants it or not: nobody else shall use it.
        params.api_keys = [secrets.token_hex()]
        self.slots = slots
        self._model = model
        self._alone = threading.Lock()
        try:
            self._server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelError(
                f'the model could not be loaded; llama.cpp reports: "{error}"',
                where=model,
                fix=load_fix(model),
            ) from None
        # llama.cpp's loop starts beside; ended before it runs, it would wait for ever. A first answer proves it runs.
        self._round("\n", Sampling(samples=1, max_tokens=1), seed=0, count=1, grammar=None)

    def sample(
        self,
        prompt: str,
        sampling: Sampling,
        seed: int,
        grammar: str | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> list[str]:
        """So many answers as `sampling` asks for, in rounds of as many as there are slots. Ctrl-C ends it at once.

        `on_line` is told every line of any answer as it is written, from another thread. Threads take turns.
        """
        texts: list[str] = []
        with self._alone:
            while len(texts) < sampling.samples:
                count = min(self.slots, sampling.samples - len(texts))
                answers = self._round(prompt, sampling, seed + len(texts), count, grammar, on_line)
                texts += [answer.text for answer in answers]
        return texts

    def continue_from(
        self,
        prompt: str,
        sampling: Sampling,
        seed: int,
        *,
        fresh: bool,
        on_line: Callable[[str], None] | None = None,
        slot: int | None = None,
    ) -> list[WrittenAnswer]:
        """Answers with the probabilities of their tokens, to a prompt that goes on from the last one and its answer.

        What both have in common is not read again. A `fresh` prompt begins anew: it is read as a whole, so that its
        answers do not depend on what was asked before. Read as a whole or bit by bit, a prompt gives numbers that
        differ in their last bits: where two tokens are all but equally likely, answers may differ.

        Threads take turns, unless each names a `slot` of its own: then it gets one answer, and their prompts share the
        batches, which too changes the last bits.
        """
        answers: list[WrittenAnswer] = []
        if slot is not None:
            caching = {"cache_prompt": not fresh, "logprobs": 1, "id_slot": slot}
            return self._round(prompt, sampling, seed, 1, None, on_line, caching)
        with self._alone:
            while len(answers) < sampling.samples:
                count = min(self.slots, sampling.samples - len(answers))
                caching = {"cache_prompt": not fresh or bool(answers), "logprobs": 1}
                answers += self._round(prompt, sampling, seed + len(answers), count, None, on_line, caching)
        return answers

    def _round(
        self,
        prompt: str,
        sampling: Sampling,
        seed: int,
        count: int,
        grammar: str | None,
        on_line: Callable[[str], None] | None = None,
        more: dict[str, Any] | None = None,
    ) -> list[WrittenAnswer]:
        if self._server is None:
            raise ModelError("this model is already closed", fix="open the tracker again")
        request = {
            "prompt": prompt,
            "n": count,
            "seed": seed % 2**32,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "top_p": sampling.top_p,
            "samplers": ["temperature", "top_k", "top_p"],
            "cache_prompt": False,
            "id_slot": 0,
            "stream": True,
        } | (more or {})
        if grammar:
            request["grammar"] = grammar
        parts = [""] * count
        tokens: list[list[WrittenToken]] = [[] for _ in range(count)]
        ended: dict[int, str] = {}
        failed: list[str] = []
        stop, done = threading.Event(), threading.Event()

        def receive(chunk: Any) -> bool:
            for item in chunk if isinstance(chunk, list) else [chunk]:
                if "error" in item:
                    failed.append(str(item["error"].get("message", "unknown error")))
                for choice in item.get("choices", ()):
                    parts[choice["index"]] += choice["text"]
                    for token in (choice.get("logprobs") or {}).get("content", ()):
                        tokens[choice["index"]].append(WrittenToken(bytes(token["bytes"]), token["logprob"]))
                    if on_line and choice["text"].endswith("\n"):
                        on_line(parts[choice["index"]].splitlines()[-1])
                    if choice.get("finish_reason"):
                        ended[choice["index"]] = choice["finish_reason"]
            return stop.is_set()

        def work() -> None:
            try:
                self._server.handle_completions(request, receive)
            except Exception as error:  # whatever it is, it belongs to the caller, who waits in another thread
                failed.append(str(error))
            finally:
                done.set()

        # The call does not return on Ctrl-C and swallows its callback's exceptions: it runs beside, told to stop.
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        try:
            while not done.wait(0.2):
                pass
        except BaseException:
            stop.set()
            worker.join(timeout=10)
            raise
        if failed or len(ended) < count:  # an answer without its end must not pass for a short one
            what = f"the model could not answer: {failed[0] if failed else 'generation stopped early'}"
            raise ModelError(what, where=self._model, fix=f"try again; if it fails again, {load_fix(self._model)}")
        return [WrittenAnswer(parts[i], tuple(tokens[i]), ended[i] == "stop") for i in range(count)]

    def close(self) -> None:
        """Let go of the model and its memory."""
        self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


LOAD = Path("/proc/loadavg")


def free_cores() -> int:
    """The processors this process may use and others leave idle now, at least one.

    llama.cpp's threads wait for each other at every layer: one more than there are idle processors makes it slower by
    a factor of ten and more, while the answers are the same with any number.
    """
    in_all = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else in_all
    return max(1, min(usable, in_all - _busy_elsewhere()))


def _busy_elsewhere() -> int:
    """How many threads of other processes want a processor now (0 where the system does not tell)."""
    counts = []
    for _ in range(9):
        try:
            counts.append(int(LOAD.read_text().split()[3].partition("/")[0]) - 1)  # without ourselves
        except (OSError, ValueError, IndexError):
            return 0
        time.sleep(0.01)
    return sorted(counts)[len(counts) // 2]


_engines: OrderedDict[Hashable, Engine] = OrderedDict()
_loading = threading.Lock()


def loaded_engine(key: Hashable, load: Callable[[], Engine], most: int) -> Engine:
    """The engine of this key, loaded if need be. It stays loaded until `most` others have been asked for."""
    with _loading:
        if key not in _engines:
            while len(_engines) >= most:
                _engines.popitem(last=False)  # freed when the last tracker lets go of it
            _engines[key] = load()
        _engines.move_to_end(key)
        return _engines[key]


def unload() -> None:
    """Free the memory of engines that no tracker uses."""
    with _loading:
        _engines.clear()


# Trackers

LANGUAGES = ("en",)
"""The languages the shipped adapters were trained on."""


class StepByStep(Protocol):
    """The model at work on one procedure: it is told or asked about every step, in order."""

    def tell(self, changes: tuple[StateChange, ...]) -> None:
        """The next step was answered before."""
        ...

    def ask(self, step: int) -> tuple[tuple[StateChange, ...], tuple[Reject, ...]]:
        """The changes of the next step, and what could not be read."""
        ...


class EmbeddedTracker(Tracker):
    """Tracks with an embedded model, which is loaded when the first procedure is tracked."""

    adapters: Sequence[Adapter]
    """The ones that answer."""

    at_once = 1
    """Procedures that `track_many` takes side by side, each in a slot of the engine."""

    @abstractmethod
    def begin(self, procedure: Procedure, on_line: Callable[[str], None], slot: int | None = None) -> StepByStep:
        """The model at the beginning of a procedure; `on_line` gets every line that it writes.

        With a `slot` others are underway in other slots.
        """

    def finished(self, trace: Trace) -> Trace:
        """What is returned of a trace with all its steps."""
        return trace

    def track(self, procedure: Procedure, listener: Listener | None = None, done: Trace | None = None) -> Trace:
        """The changes of every step. Until the last one the listener's traces are as the model sees them.

        Issues a FluentsWarning if the text is in a language that the shipped adapters do not know (`LANGUAGES`).
        """
        return self._track(procedure, listener, done, None)

    def track_many(
        self, procedures: Iterable[Procedure], listener: Listener | None = None, done: Mapping[str, Trace] | None = None
    ) -> Iterator[Trace]:
        """Likewise of several procedures, `at_once` of them side by side."""
        if self.at_once == 1:
            return super().track_many(procedures, listener, done)
        slots: SimpleQueue[int] = SimpleQueue()
        for slot in range(self.at_once):
            slots.put(slot)

        def in_a_slot(procedure: Procedure, relay: Listener) -> Trace:
            slot = slots.get()
            try:
                return self._track(procedure, relay, (done or {}).get(procedure.id), slot)
            finally:
                slots.put(slot)

        return side_by_side(in_a_slot, procedures, self.at_once, listener)

    def _track(self, procedure: Procedure, listener: Listener | None, done: Trace | None, slot: int | None) -> Trace:
        if all(adapter.name in ADAPTERS for adapter in self.adapters):
            warn_of_language(procedure, LANGUAGES)
        listener = listener or Listener()
        answered = () if done is None else done.covered_steps
        listener.on_start(procedure, len(answered))
        trace = Trace(procedure=procedure, covered=() if procedure.steps else None, provenance=self.provenance)
        model = self.begin(procedure, listener.on_draft, slot)
        for step in range(1, len(procedure.steps) + 1):
            if done is not None and step in answered:
                changes, rejects = done.at(step), tuple(reject for reject in done.rejects if reject.step == step)
                model.tell(changes)
            else:
                changes, rejects = model.ask(step)
            is_last = step == len(procedure.steps)
            trace = trace.replace(
                changes=trace.changes + changes,
                rejects=trace.rejects + rejects,
                covered=None if is_last else (*(trace.covered or ()), step),
            )
            if is_last:
                trace = self.finished(trace)
            if step not in answered:
                listener.on_step(trace)
        return trace
