"""The web application under load, on loopback, with a replayed model. Ends by itself; status 1 if a bound is missed.

    python benchmarks/soak_web.py                                             # as `make soak` runs it
    python benchmarks/soak_web.py --visitors 5 --seconds 3 --jobs 20 --calls 100    # the short form

Server and visitors share two cores. Visitors open about a page a second each: the page itself, the library, a search, a
document, its trace drawn and for the filters, and now and then they paste a text and watch it being tracked. Then jobs
run one after the other, and the memory of the server and of its worker is compared after a fifth of them and at the
end. Last, requests made from the API's own schema must not find an error of the server, and none may be left without
an answer, except for those that are too large.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable

from fluents.web.guard import GuardRules

ROOT = Path(__file__).parents[1]
HTTPS = False
"""No certificates are loaded, which nobody asks for on loopback: for fifty clients that takes seconds of the processor
that the server needs too."""
SOUP = ROOT / "examples" / "tomato_soup"
MAX_P95 = 0.2
"""Seconds in which 95 of 100 pages must have come."""
PER_OPERATION = 15
"""Requests of one kind before the next has its turn."""
CUT_OFF = 0
"""Stands for the status of a request that was not answered."""
PATIENCE = 120.0
"""Seconds in which a request made from the schema must have been answered."""
MAX_GROWTH = 20.0
"""MiB by which memory may differ between a fifth of the jobs and all of them."""


@dataclass
class Findings:
    """What was counted and measured."""

    pages: dict[str, list[float]] = field(default_factory=dict)
    """Seconds that each kind of page took."""
    errors: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    """Of requests made from the schema."""
    jobs: int = 0
    memory: dict[str, tuple[float, float]] = field(default_factory=dict)
    """MiB after a fifth of the jobs, and after all."""

    @property
    def p95(self) -> float:
        times = sorted(seconds for taken in self.pages.values() for seconds in taken)
        return times[int(len(times) * 0.95)] if times else 0.0

    @property
    def server_errors(self) -> int:
        return sum(count for status, count in self.statuses.items() if status >= 500)

    def missed(self) -> list[str]:
        """The bounds that do not hold."""
        found = [f"{len(self.errors)} errors, the first: {self.errors[0]}"] if self.errors else []
        if self.p95 > MAX_P95:
            found.append(f"95 % of pages took up to {self.p95:.3f} s")
        found += [f"{who} grew by {b - a:.1f} MiB" for who, (a, b) in self.memory.items() if b - a > MAX_GROWTH]
        return found + ([f"{self.server_errors} errors of the server"] if self.server_errors else [])


@contextmanager
def started(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server of its own, which this command of fluents starts: its address and its process."""
    command = [sys.executable, "-m", "fluents", *arguments, "--port", "0", "--no-open", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        printed = ""
        while "\n}" not in printed:
            line = process.stdout.readline()
            assert line, "the server did not start"
            printed += line
        yield json.loads(printed)["address"], process
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, int]]:
    """A server of the web application: its address and process id."""
    store = str(folder / "web.sqlite")
    with started("web", "--replay", f"{SOUP}.jsonl", "--store", store) as (address, process):
        yield address, process.pid


async def visit(address: str, seconds: float, visitors: int, found: Findings) -> None:
    """Visitors come and go about for some time."""
    end = time.monotonic() + seconds
    await asyncio.gather(*(_visitor(address, end, random.Random(number), found) for number in range(visitors)))


async def _visitor(address: str, end: float, chance: random.Random, found: Findings) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=60, verify=HTTPS) as client:
        text = SOUP.with_suffix(".md").read_text(encoding="utf-8")
        document = trace = ""
        while time.monotonic() < end:
            await asyncio.sleep(chance.uniform(0.5, 1.5))
            try:
                if not document or chance.random() < 0.05:
                    made = await _page(client, "paste", "POST", "/api/v1/documents", found, json={"text": text})
                    document = made.json()["id"]
                    job = await _page(client, "start", "POST", f"/api/v1/documents/{document}/jobs", found, json={})
                    trace = await _watched(client, job.json()["id"])
                    found.jobs += 1
                    continue
                name, path = chance.choice(
                    [
                        ("page", "/"),
                        ("style", "/static/app.css"),
                        ("library", "/api/v1/documents"),
                        ("search", "/api/v1/search?after=hot"),
                        ("document", f"/api/v1/documents/{document}"),
                        ("trace", f"/api/v1/traces/{trace}"),
                        ("drawn trace", f"/api/v1/traces/{trace}/views"),
                    ]
                )
                await _page(client, name, "GET", path, found)
            except (httpx.HTTPError, AssertionError, KeyError, ValueError) as error:
                found.errors.append(f"{type(error).__name__}: {error}"[:300])


async def _page(
    client: httpx.AsyncClient, name: str, method: str, path: str, found: Findings, **more: Any
) -> httpx.Response:
    began = time.perf_counter()
    answer = await client.request(method, path, **more)
    found.pages.setdefault(name, []).append(time.perf_counter() - began)
    assert answer.status_code < 400, f"{method} {path}: {answer.status_code} {answer.text[:100]}"
    return answer


async def _watched(client: httpx.AsyncClient, job: str) -> str:
    """The trace of a job, when its events have told of it."""
    last = ""
    async with client.stream("GET", f"/api/v1/jobs/{job}/events") as answer:
        async for line in answer.aiter_lines():
            last = line.removeprefix("data: ") if line.startswith("data: ") else last
    ended = json.loads(last)
    assert ended["state"] == "done", ended
    return str(ended["trace"])


async def run_jobs(address: str, pid: int, count: int, found: Findings) -> None:
    """Jobs one after the other, each on a text of its own, which is deleted at the end."""
    async with httpx.AsyncClient(base_url=address, timeout=120, verify=HTTPS) as client:
        text = SOUP.with_suffix(".md").read_text(encoding="utf-8")
        before: dict[str, float] = {}
        for number in range(1, count + 1):
            document = (await client.post("/api/v1/documents", json={"text": text, "goal": f"Soup {number}"})).json()[
                "id"
            ]
            job = (await client.post(f"/api/v1/documents/{document}/jobs", json={})).json()["id"]
            await _watched(client, job)
            await client.delete(f"/api/v1/documents/{document}")
            found.jobs += 1
            if number == max(1, count // 5):
                before = memory(pid)
        after = memory(pid)
        found.memory = {who: (before[who], after[who]) for who in before if who in after}


def memory(pid: int) -> dict[str, float]:
    """MiB that the server and its worker have in memory."""
    workers = [
        int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()
    ]
    return {name: _resident(one) for name, one in zip(("server", "worker"), (pid, *workers), strict=False)}


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def call_by_schema(
    address: str,
    count: int,
    found: Any,
    known: dict[str, str],
    headers: dict[str, str] | None = None,
    patience: float = PATIENCE,
) -> None:
    """Requests that schemathesis makes from the API's schema, good and bad; half of the ids are of what is there. They
    end early if the server is gone."""
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.core.result import Ok

    schema = schemathesis.openapi.from_url(f"{address}api/v1/openapi.json")
    operations = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    [health] = [one.path for one in operations if one.path.endswith("/health")]
    calls = SchemaCalls(found, known, address.rstrip("/") + health, headers, patience)
    for number in itertools.count():
        for operation in operations:
            left = count - found.statuses.total()
            if left <= 0 or calls.server_is_gone:
                calls.check_health()
                return
            mode = GenerationMode.NEGATIVE if number % 2 else GenerationMode.POSITIVE
            calls.make(operation.as_strategy(generation_mode=mode), min(left, PER_OPERATION), number)


@dataclass
class SchemaCalls:
    """Calls of one server, and what became of them."""

    found: Any
    """Where statuses and errors are counted: the findings of this soak or of another."""
    known: dict[str, str]
    health: str
    """The address that says whether the server works."""
    headers: dict[str, str] | None = None
    patience: float = PATIENCE
    server_is_gone: bool = False

    def make(self, cases: Any, count: int, number: int) -> None:
        """So many requests of one kind."""

        @seed(number)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases)
        def call(case: Any) -> None:
            if not self.server_is_gone:
                self._call(case)

        with suppress(Unsatisfiable):  # nothing can be wrong with a request that takes nothing
            call()

    def _call(self, case: Any) -> None:
        if case.method != "DELETE" and self.found.statuses.total() % 2:
            given_ids = case.path_parameters or {}
            case.path_parameters = {name: self.known.get(name, value) for name, value in given_ids.items()}
            if case.path == "/api/v1/compare":
                case.query = {"gold": self.known["trace_id"], "pred": self.known["trace_id"]}
        said = ""
        try:
            status = case.call(timeout=self.patience, headers=self.headers).status_code
        except OSError as error:  # as those of requests are
            status, said = CUT_OFF, "" if may_be_cut_off(error) else f" ({type(error).__name__})"
        self.found.statuses[status] += 1
        if said or status >= 500:
            self.found.errors.append(f"{status}{said}: {case.as_curl_command()}"[:1000])
        if status == CUT_OFF:
            self.check_health()

    def check_health(self) -> None:
        """A server that does not say that it works is an error, which is told once."""
        if self.server_is_gone:
            return
        try:
            httpx.get(self.health, timeout=self.patience, verify=HTTPS).raise_for_status()
        except httpx.HTTPError as error:
            self.server_is_gone = True
            self.found.errors.append(f"the server is gone: {self.health}: {type(error).__name__}: {error}"[:1000])


def may_be_cut_off(error: OSError) -> bool:
    """Whether a request may go without an answer: its body is too large, and was refused before it was sent whole."""
    from requests import Timeout

    body = getattr(getattr(error, "request", None), "body", None)
    return isinstance(body, bytes | str) and len(body) > GuardRules().body_bytes and not isinstance(error, Timeout)


def known_ids(address: str) -> dict[str, str]:
    """The ids of a document, a job and a trace."""
    text = SOUP.with_suffix(".md").read_text(encoding="utf-8")
    with httpx.Client(base_url=address, timeout=120) as client:
        document = client.post("/api/v1/documents", json={"text": text}).json()["id"]
        job = client.post(f"/api/v1/documents/{document}/jobs", json={}).json()["id"]
        client.get(f"/api/v1/jobs/{job}/events")
        trace = client.get(f"/api/v1/jobs/{job}").json()["trace"]
    return {"document_id": document, "job_id": job, "trace_id": trace}


def soak(visitors: int, seconds: float, jobs: int, calls: int) -> Findings:
    """All of it, one after the other."""
    found = Findings()
    with tempfile.TemporaryDirectory(prefix="fluents-soak-") as folder:
        with server(Path(folder)) as (address, pid):
            asyncio.run(visit(address, seconds, visitors, found))
            asyncio.run(run_jobs(address, pid, jobs, found))
        with server(Path(folder)) as (address, _):
            call_by_schema(address, calls, found, known_ids(address))
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--visitors", type=int, default=50)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--jobs", type=int, default=1000)
    options.add_argument("--calls", type=int, default=2000)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    given = options.parse_args()
    found = soak(given.visitors, given.seconds, given.jobs, given.calls)
    for name, times in sorted(found.pages.items()):
        times.sort()
        middle, most = times[len(times) // 2], times[int(len(times) * 0.95)]
        print(f"{name:12} {len(times):6,} times, median {middle:.3f} s, 95 % {most:.3f} s")
    print(f"all pages: 95 % within {found.p95:.3f} s; {found.jobs:,} jobs; {len(found.errors)} errors")
    for who, (before, after) in found.memory.items():
        print(f"memory of the {who}: {before:.1f} MiB after a fifth of the jobs, {after:.1f} MiB at the end")
    print(f"{found.statuses.total():,} calls by the schema: {dict(sorted(found.statuses.items()))}")
    for bound in found.missed():
        print(f"missed: {bound}")
    return 1 if found.missed() else 0


if __name__ == "__main__":
    sys.exit(main())
