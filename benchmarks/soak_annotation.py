"""Annotation under load, on loopback, on SQLite and PostgreSQL. Ends by itself; status 1 if a bound is missed.

    python benchmarks/soak_annotation.py                                                # as `make soak` runs it
    python benchmarks/soak_annotation.py --annotators 5 --seconds 3 --items 200 --kills 2 --calls 100       # shorter

Server and annotators share two cores. Annotators take an item, think for about a second and decide; now and then they
undo, give an item back, or send a decision again as if its answer had been lost. An owner looks at progress and
agreement meanwhile. Then the server is killed (kill -9) again and again while people write as fast as they can; each
time, what was not acknowledged is sent again to the next server, as the page does. At the end the history must have
every acknowledged decision exactly once, and no item may have had more holders than judges. Last, requests made from
the API's own schema must not find an error of the server, and none may be left without an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import runpy
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import httpx
import pytest

from fluents import jsonl
from fluents.records import Procedure, StateChange, Trace

ROOT = Path(__file__).parents[1]
WEB = runpy.run_path(str(ROOT / "benchmarks" / "soak_web.py"))
"""What the two load tests share."""
HTTPS: bool = WEB["HTTPS"]
API = "/api/v1/annotation"
JUDGES = 3
PER_PROCEDURE = 50
MAX_P95 = 0.3
"""Seconds in which 95 of 100 requests must have been answered."""
WRITERS = 10
"""Who write as fast as they can while servers are killed."""
Started: TypeAlias = AbstractContextManager[tuple[str, subprocess.Popen[str]]]


@dataclass
class Findings:
    """What was counted and measured on one store."""

    times: dict[str, list[float]] = field(default_factory=dict)
    """Seconds that each kind of request took."""
    errors: list[str] = field(default_factory=list)
    sent: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The id of each decision → its author and its item."""
    acknowledged: set[str] = field(default_factory=set)
    kills: int = 0
    cut_off: int = 0
    """Decisions whose answer a killed server did not give."""
    holders: dict[str, set[str]] = field(default_factory=dict)
    """Who has each item in hand, or decided it and did not undo that."""
    crowded: int = 0
    """How often an item had more holders than judges."""
    lost: int = 0
    doubled: int = 0
    strange: int = 0
    """Decisions in the history that nobody sent, or that say something else."""
    decisions: int = 0
    """In the history."""
    statuses: Counter[int] = field(default_factory=Counter)
    """Of requests made from the schema."""

    @property
    def p95(self) -> float:
        return percentile([seconds for taken in self.times.values() for seconds in taken], 0.95)

    def missed(self) -> list[str]:
        """The bounds that do not hold."""
        found = [f"{len(self.errors)} errors, the first: {self.errors[0]}"] if self.errors else []
        for name in ("lost", "doubled", "strange", "crowded"):
            if count := getattr(self, name):
                found.append(f"{name}: {count}")
        if self.p95 > MAX_P95:
            found.append(f"95 % of requests took up to {self.p95:.3f} s")
        return found

    def hold(self, item: str, who: str) -> None:
        holders = self.holders.setdefault(item, set())
        holders.add(who)
        self.crowded += len(holders) > JUDGES


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)] if times else 0.0


# The project and its servers


def create(store: str, folder: Path, items: int) -> None:
    """A project with so many items, as a person creates it."""
    steps = tuple(f"Do what is to be done in part {number} of the work." for number in range(1, 6))
    traces = []
    for number in range(-(-items // PER_PROCEDURE)):
        changes = tuple(
            StateChange(step=1 + place % 5, entity=f"part {place}", attribute="state", before="raw", after="done")
            for place in range(min(PER_PROCEDURE, items - number * PER_PROCEDURE))
        )
        procedure = Procedure(id=f"work-{number}", goal=f"Work {number}", steps=steps)
        traces.append(Trace(procedure=procedure, changes=changes))
    jsonl.write(traces, folder / "work.jsonl")
    _fluents("new", "soak", str(folder / "work.jsonl"), "--stages", "vet", "--store", store)


def _fluents(*arguments: str) -> Any:
    command = [sys.executable, "-m", "fluents", "annotate", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def server(store: str) -> Started:
    """A server of its own: its address and its process."""
    found: Started = WEB["started"]("annotate", "serve", "--store", store)
    return found


def invitation(store: str, role: str, uses: int) -> str:
    link = _fluents("invite", "soak", "--role", role, "--uses", str(uses), "--store", store)["link"]
    return str(link).partition("#")[2]


# Annotators


class Annotator:
    """One who works through items over HTTP."""

    def __init__(self, token: str, name: str, found: Findings) -> None:
        self.token, self.name, self._found = token, name, found
        self.unsent: list[dict[str, Any]] = []
        """Decisions that were not acknowledged."""
        self._chance = random.Random(name)

    @asynccontextmanager
    async def client(self, address: str) -> AsyncIterator[httpx.AsyncClient]:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx.AsyncClient(base_url=address, timeout=60, headers=headers, verify=HTTPS) as found:
            yield found

    async def work(self, address: str, end: float, pause: float) -> None:
        """Decide until the time is over, or the server is gone."""
        async with self.client(address) as client:
            await asyncio.sleep(pause * self._chance.random())
            for decision in list(self.unsent):
                await self._send(client, decision)
            item: str | None = None
            while time.monotonic() < end:
                if item is None:
                    item = await self._next(client)
                    if item is None:
                        return
                if pause:
                    await asyncio.sleep(pause * self._chance.uniform(0.5, 1.5))
                item = await self._decide(client, item)

    async def _next(self, client: httpx.AsyncClient, release: str | None = None) -> str | None:
        if release is not None:
            self._found.holders[release].discard(self.name)  # before: from then on another may have it
        answer = await self._request(
            client, "next", "POST", "/next", json={} if release is None else {"release": release}
        )
        return None if answer.status_code == 204 else self._taken(answer.json())

    def _taken(self, given: Any) -> str:
        item = str(given["item"]["id"])
        self._found.hold(item, self.name)
        return item

    async def _decide(self, client: httpx.AsyncClient, item: str) -> str | None:
        """What one does with an item; the next one."""
        chance = self._chance.random()
        if chance < 0.03:
            return await self._next(client, release=item)
        if chance < 0.06:
            await self._request(client, "me", "GET", "/me")
        decision = {"id": uuid4().hex, "item": item, "answer": {"valid": self._chance.random() < 0.8}, "seconds": 1.0}
        self.unsent.append(decision)
        kept = await self._send(client, decision, following=True)
        if 0.06 < chance < 0.1:  # the answer was lost on its way, so to speak
            await self._send(client, decision)
        following = self._taken(kept["next"]) if kept["next"] else None
        if 0.1 < chance < 0.14:
            await self._undo(client, decision)
        return following

    async def _send(self, client: httpx.AsyncClient, decision: dict[str, Any], following: bool = False) -> Any:
        self._found.sent[decision["id"]] = (self.name, decision["item"])
        path = "/decisions?next=1" if following else "/decisions"
        answer = await self._request(client, "decision", "POST", path, json=decision)
        self._found.acknowledged.add(decision["id"])
        self.unsent = [one for one in self.unsent if one["id"] != decision["id"]]
        return answer.json()

    async def _undo(self, client: httpx.AsyncClient, decision: dict[str, Any]) -> None:
        """Take a decision back, and decide again."""
        undoing = uuid4().hex
        self._found.sent[undoing] = (self.name, decision["item"])
        await self._request(client, "undo", "POST", f"/decisions/{decision['id']}/undo", json={"id": undoing})
        self._found.acknowledged.add(undoing)
        again = decision | {"id": uuid4().hex, "answer": {"valid": False, "reason": "factual"}}
        self.unsent.append(again)
        await self._send(client, again)

    async def _request(
        self, client: httpx.AsyncClient, name: str, method: str, path: str, **more: Any
    ) -> httpx.Response:
        began = time.perf_counter()
        answer = await client.request(method, API + path, **more)
        self._found.times.setdefault(name, []).append(time.perf_counter() - began)
        if answer.status_code >= 400:
            self._found.errors.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            raise ValueError(answer.text[:200])
        return answer


async def joined(address: str, code: str, count: int, found: Findings) -> list[Annotator]:
    """So many new members."""
    people = []
    async with httpx.AsyncClient(base_url=address, timeout=60, verify=HTTPS) as client:
        for number in range(count):
            answer = await client.post(f"{API}/join", json={"invitation": code, "name": f"P{number}"})
            answer.raise_for_status()
            client.cookies.clear()
            people.append(Annotator(answer.json()["token"], answer.json()["member"]["pseudonym"], found))
    return people


async def owner(address: str, code: str, end: float, found: Findings) -> None:
    """Somebody who looks at the progress page, which asks again every ten seconds."""
    [member] = await joined(address, code, 1, found)
    async with member.client(address) as client:
        while time.monotonic() < end:
            for path in ("/progress", "/people", "/agreement"):
                began = time.perf_counter()
                (await client.get(API + path)).raise_for_status()
                found.times.setdefault(f"owner's {path[1:]}", []).append(time.perf_counter() - began)
            await asyncio.sleep(min(10.0, max(0.0, end - time.monotonic())))


async def annotate(address: str, store: str, annotators: int, seconds: float, found: Findings) -> None:
    """People work for some time."""
    people = await joined(address, invitation(store, "annotator", annotators), annotators, found)
    looks = invitation(store, "owner", 1)
    end = time.monotonic() + seconds
    tasks = [one.work(address, end, 1.0) for one in people]
    for result in await asyncio.gather(owner(address, looks, end, found), *tasks, return_exceptions=True):
        if isinstance(result, BaseException):
            found.errors.append(f"{type(result).__name__}: {result}"[:300])


# Killing servers


async def write_until_killed(
    address: str, process: subprocess.Popen[str], people: list[Annotator], delay: float, found: Findings
) -> None:
    """All write as fast as they can, until the server is killed some time after the first decision was kept."""
    before, end = len(found.acknowledged), time.monotonic() + 60
    tasks = [asyncio.create_task(one.work(address, end, 0.0)) for one in people]
    while len(found.acknowledged) == before and time.monotonic() < end:
        await asyncio.sleep(0.01)
    await asyncio.sleep(delay)
    process.kill()
    await asyncio.gather(*tasks, return_exceptions=True)


def kill_again_and_again(store: str, kills: int, found: Findings) -> None:
    chance = random.Random(kills)
    people: list[Annotator] = []
    measured, found.times = found.times, {}  # what a killed server takes is not measured
    for _ in range(kills):
        with server(store) as (address, process):
            if not people:
                people = asyncio.run(joined(address, invitation(store, "annotator", WRITERS), WRITERS, found))
            asyncio.run(write_until_killed(address, process, people, chance.uniform(0.1, 1.0), found))
            process.wait()
        found.kills += 1
        found.cut_off += sum(len(one.unsent) for one in people)
    with server(store) as (address, _):  # what was not acknowledged is sent again
        for one in people:
            asyncio.run(one.work(address, 0.0, 0.0))
    found.times = measured


# The count


def count(store: str, folder: Path, found: Findings) -> None:
    """Compare what was acknowledged with what the history has."""
    command = [sys.executable, "-m", "fluents", "annotate", "export", "soak", "--format", "history"]
    subprocess.run([*command, "--store", store, "-o", str(folder / "history.jsonl")], check=True, capture_output=True)
    kept: Counter[str] = Counter()
    standing: dict[str, set[str]] = {}
    for _, line in jsonl.read_lines(folder / "history.jsonl"):
        value = json.loads(line)
        if value["kind"] != "decision":
            continue
        decision = value["decision"]
        kept[decision["id"]] += 1
        found.strange += found.sent.get(decision["id"]) != (decision["author"], decision["item"])
        standing.setdefault(decision["item"], set()).add(decision["author"])
    found.decisions = kept.total()
    found.lost = len(found.acknowledged - kept.keys())
    found.doubled = sum(number > 1 for number in kept.values())
    # Whoever undid an item decided it again, so each author in the history holds a place.
    found.crowded += sum(len(authors) > JUDGES for authors in standing.values())


def call_by_schema(store: str, calls: int, found: Findings) -> None:
    """Requests made from the API's own schema must not find an error of the server."""
    with server(store) as (address, _):
        [owner] = asyncio.run(joined(address, invitation(store, "owner", 1), 1, found))
        headers = {"Authorization": f"Bearer {owner.token}"}
        with httpx.Client(base_url=address, headers=headers, timeout=60) as client:
            item = client.post(f"{API}/next", json={}).json()["item"]["id"]
        WEB["call_by_schema"](address, calls, found, {"item_id": item}, headers)


def soak(store: str, *, annotators: int, seconds: float, items: int, kills: int, calls: int) -> Findings:
    """All of it on one store, which must be empty."""
    found = Findings()
    with tempfile.TemporaryDirectory(prefix="fluents-soak-") as folder:
        create(store, Path(folder), items)
        with server(store) as (address, _):
            asyncio.run(annotate(address, store, annotators, seconds, found))
        kill_again_and_again(store, kills, found)
        count(store, Path(folder), found)
        call_by_schema(store, calls, found)
    return found


def report(name: str, found: Findings) -> None:
    for kind, times in sorted(found.times.items()):
        figures = (
            f"median {percentile(times, 0.5):.3f} s, 95 % {percentile(times, 0.95):.3f} s, most {max(times):.3f} s"
        )
        print(f"{name} {kind:18} {len(times):6,} times, {figures}")
    print(f"{name}: 95 % of all requests within {found.p95:.3f} s")
    print(f"{name}: {len(found.acknowledged):,} decisions acknowledged, {found.decisions:,} in the history")
    print(f"{name}: {found.kills} kills, which cut off {found.cut_off:,} answers")
    print(
        f"{name}: lost {found.lost}, doubled {found.doubled}, strange {found.strange}, items with too many holders "
        f"{found.crowded}, errors {len(found.errors)}"
    )
    print(f"{name}: {found.statuses.total():,} calls by the schema: {dict(sorted(found.statuses.items()))}")
    for bound in found.missed():
        print(f"{name} missed: {bound}")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--annotators", type=int, default=50)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--items", type=int, default=100_000)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--calls", type=int, default=1000)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    given = vars(options.parse_args())
    with tempfile.TemporaryDirectory(prefix="fluents-soak-") as folder:
        found = {"SQLite": soak(str(Path(folder) / "annotation.sqlite"), **given)}
        report("SQLite", found["SQLite"])
    sys.path.append(str(ROOT / "tests" / "web"))
    from postgres_cluster import fresh_database, postgres_cluster

    try:
        with postgres_cluster() as cluster, fresh_database(cluster, "soak") as address:
            found["PostgreSQL"] = soak(address, **given)
        report("PostgreSQL", found["PostgreSQL"])
    except pytest.skip.Exception as missing:
        print(f"PostgreSQL was left out: {missing}")
    return 1 if any(one.missed() for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
