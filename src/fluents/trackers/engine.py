"""The embedded model in this process: llama.cpp with the base weights and an adapter merged into them."""

from __future__ import annotations

import os
import secrets
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from typing_extensions import Self

from fluents.decoding.sampling import Sampling
from fluents.errors import FluentsError, InputError


class Sampler(Protocol):
    """Whatever draws a model's answers to a prompt."""

    def sample(self, prompt: str, sampling: Sampling, seed: int) -> list[str]: ...


class ModelError(FluentsError):
    """The embedded model could not be loaded or could not answer."""


class Engine:
    """The model, loaded once, answering one prompt at a time with several samples side by side.

    The same seed gives the same answers: that needs one prompt a request and no prompt cache, whose content would
    change the batches and with them the last bits of the numbers.
    """

    def __init__(self, model: Path, *, slots: int, context: int, threads: int | None = None) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.verbosity = -1
        params.n_parallel = slots
        params.kv_unified = True  # the slots share the context, so a long prompt has room
        params.n_ctx = context
        params.cache_ram_mib = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads or usable_cores()
        # llama.cpp opens a port on loopback whether one wants it or not: nobody else shall use it.
        params.api_keys = [secrets.token_hex()]
        self.slots = slots
        try:
            self._server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelError(
                f"the model could not be loaded: {error}",
                where=model,
                fix="fluents weights verify, then fluents weights get",
            ) from None

    def sample(self, prompt: str, sampling: Sampling, seed: int, grammar: str | None = None) -> list[str]:
        """So many answers as `sampling` asks for, in rounds of as many as there are slots. Ctrl-C ends it at once."""
        texts: list[str] = []
        while len(texts) < sampling.samples:
            count = min(self.slots, sampling.samples - len(texts))
            texts += self._round(prompt, sampling, seed + len(texts), count, grammar)
        return texts

    def _round(self, prompt: str, sampling: Sampling, seed: int, count: int, grammar: str | None) -> list[str]:
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
            "stream": True,
        } | ({"grammar": grammar} if grammar else {})
        parts = [""] * count
        failed: list[str] = []
        stop, done = threading.Event(), threading.Event()

        def receive(chunk: Any) -> bool:
            for item in chunk if isinstance(chunk, list) else [chunk]:
                if "error" in item:
                    failed.append(str(item["error"].get("message", "unknown error")))
                for choice in item.get("choices", ()):
                    parts[choice["index"]] += choice["text"]
            return stop.is_set()

        def work() -> None:
            try:
                self._server.handle_completions(request, receive)
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
        if failed:
            raise ModelError(f"the model could not answer: {failed[0]}", fix="shorten the step")
        return parts

    def close(self) -> None:
        """Let go of the model and its memory."""
        self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Replay:
    """Answers drawn before, by prompt: what was sampled elsewhere goes through the same tracker."""

    def __init__(self, answers: dict[str, list[str]]) -> None:
        self.answers = answers

    def sample(self, prompt: str, sampling: Sampling, seed: int) -> list[str]:  # noqa: ARG002 - drawn already
        if prompt not in self.answers:
            raise InputError("these samples hold no answer to this prompt", where=prompt[:200])
        return self.answers[prompt][: sampling.samples]


def usable_cores() -> int:
    """The processors this process may use: more threads than those make llama.cpp slower, not faster."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, count)
