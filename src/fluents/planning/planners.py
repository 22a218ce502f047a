"""Planners, each in a process of its own with limits on time and memory; plans are checked here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

from fluents.errors import FluentsError, MissingExtraError
from fluents.planning.fast_downward import second_opinion
from fluents.planning.grounding import Unreachable
from fluents.planning.model import Domain, Problem
from fluents.planning.states import PlanStep, World
from fluents.scoring import check_choice

Planner: TypeAlias = Literal["auto", "built-in", "fast-downward"]
PATIENCE = 10.0
"""Seconds that `auto` gives the built-in planner before it asks Fast Downward."""


@dataclass(frozen=True)
class Solution:
    """What a planner found: a plan that was checked, a proof that there is none, or nothing within its limits."""

    status: Literal["solved", "unsolvable", "gave-up"]
    planner: str
    plan: tuple[PlanStep, ...] = ()
    unreachable: tuple[Unreachable, ...] = ()
    reason: str = ""
    """Why it gave up, or why no fact is named as unreachable."""


def solve(
    domain: Domain, problem: Problem, *, planner: Planner = "auto", time_limit: float = 60.0, memory_limit: int = 2048
) -> Solution:
    """Find a plan within `time_limit` seconds and `memory_limit` MiB.

    "auto" asks the built-in planner, which finds the shortest plans of small problems, and then, where it gives up and
    the extra `plan` is installed, Fast Downward.
    """
    check_choice("planner", planner, Planner)
    has_extra = find_spec("up_fast_downward") is not None
    if planner == "fast-downward" and not has_extra:
        raise MissingExtraError("up_fast_downward", "plan")
    if planner != "auto" or not has_extra:
        return _run(domain, problem, "built-in" if planner == "auto" else planner, time_limit, memory_limit)
    started = time.monotonic()
    found = _run(domain, problem, "built-in", min(time_limit, PATIENCE), memory_limit)
    left = time_limit - (time.monotonic() - started)
    return (
        found if found.status != "gave-up" or left < 1 else _run(domain, problem, "fast-downward", left, memory_limit)
    )


def _run(domain: Domain, problem: Problem, planner: str, time_limit: float, memory_limit: int) -> Solution:
    order: dict[str, Any] = {
        "domain": str(domain),
        "problem": str(problem),
        "planner": planner,
        "memory": memory_limit << 20,
    }
    with (
        tempfile.TemporaryDirectory(prefix="fluents-plan-") as folder,
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryFile() as noise,
    ):
        order |= {"answer_to": said.fileno(), "folder": folder}
        worker = subprocess.Popen(
            [sys.executable, "-m", "fluents.planning.worker"],
            stdin=subprocess.PIPE,
            stdout=noise,
            stderr=noise,
            pass_fds=[said.fileno()],
            start_new_session=True,  # a group of its own, which ends as a whole
        )
        try:
            assert worker.stdin is not None
            with suppress(BrokenPipeError):
                worker.stdin.write(json.dumps(order).encode() + b"\n")
                worker.stdin.flush()
            worker.wait(time_limit)
        except subprocess.TimeoutExpired:
            return Solution("gave-up", planner, reason=f"the time limit of {time_limit:.3g} seconds was reached")
        finally:
            _end(worker)
        said.seek(0)
        noise.seek(0)
        return _solution(said.read(), noise.read(), planner, World(domain, problem), memory_limit)


def _solution(said: bytes, noise: bytes, planner: str, world: World, memory_limit: int) -> Solution:
    if not said:
        lines = noise.decode(errors="replace").strip().splitlines()
        out = any(word in line.lower() for line in lines for word in ("memory", "bad_alloc", "map segment"))
        why = (
            f"the memory limit of {memory_limit:,} MiB was reached"
            if out
            else lines[-1]
            if lines
            else "the planner ended early"
        )
        return Solution("gave-up", planner, reason=why)
    values: dict[str, Any] = json.loads(said)
    plan = tuple(PlanStep(name, tuple(arguments)) for name, *arguments in values.get("plan", ()))
    if values["status"] == "solved":
        check_plan(world, plan)  # a planner's word is not taken for it
    unreachable = tuple(Unreachable(*one) for one in values.get("unreachable", ()))
    return Solution(values["status"], planner, plan, unreachable, values.get("reason", ""))


class ValidatorsDisagreeError(FluentsError):
    """Our replay takes a plan that unified-planning's validator refuses: one of the two is wrong."""


def check_plan(world: World, plan: Sequence[PlanStep]) -> None:
    """An error unless this is a plan for our replay and, where it is installed, for unified-planning's validator."""
    world.replay(plan)
    if second_opinion(world, plan) is False:
        raise ValidatorsDisagreeError(
            "this is an error in fluents: it takes a plan to be valid that the library unified-planning does not",
            where=world.problem.name,
            fix=f"report it, with the PDDL and this plan: {' '.join(map(str, plan))}",
        )


def _end(worker: subprocess.Popen[bytes]) -> None:
    """End the worker and all it started, also those that it left behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.kill()
    if worker.stdin is not None:
        with suppress(BrokenPipeError):
            worker.stdin.close()
    worker.wait()
