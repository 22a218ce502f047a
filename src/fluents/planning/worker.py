"""The process in which a planner runs: one line of JSON in, one out. It ends with whoever started it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from fluents.planning.fast_downward import UnifiedProblem, unified_planning
from fluents.planning.grounding import Reachability, TooLargeError, Unreachable
from fluents.planning.reader import read_pddl
from fluents.planning.search import search
from fluents.planning.states import World

NO_FACT = "Fast Downward proved this, but does not say why, and no single fact was found that cannot be reached"


def answer(order: dict[str, Any]) -> dict[str, Any]:
    """Solve what the order describes."""
    reading = read_pddl(order["domain"], order["problem"], strict=True)
    assert reading.problem is not None
    world = World(reading.domain, reading.problem)
    try:
        if order["planner"] == "built-in":
            found = search(world)
            plan, without = found.plan, _unsolvable(found.unreachable)
        else:
            plan, said = UnifiedProblem(world).solve()
            without = {} if plan is not None else _without_plan(world, said)
    except (TooLargeError, MemoryError) as error:
        reached = f"the memory limit of {order['memory'] >> 20:,} MiB was reached"
        return {"status": "gave-up", "reason": str(error) or reached}
    if plan is None:
        return without
    return {"status": "solved", "plan": [[step.action, *step.arguments] for step in plan]}


def _unsolvable(unreachable: Sequence[Unreachable], reason: str = "") -> dict[str, Any]:
    return {"status": "unsolvable", "unreachable": [[one.fact, one.reason] for one in unreachable], "reason": reason}


def _without_plan(world: World, said: str) -> dict[str, Any]:
    """What it means that Fast Downward has no plan: a proof only where it says so, or where no fact can be reached."""
    try:
        unreachable = Reachability(world).explain()
    except TooLargeError:
        unreachable = []
    if unreachable:
        return _unsolvable(unreachable)
    if said == "unsolvable proven":
        return _unsolvable(unreachable, NO_FACT)
    reasons = {"unsolvable incompletely": "Fast Downward found no plan, but did not prove that there is none"}
    return {"status": "gave-up", "reason": reasons.get(said, f"Fast Downward ended with: {said}")}


def main() -> None:
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if order["planner"] != "built-in":
        unified_planning()  # before the limit, which is for planning
    limit_memory(order["memory"])
    os.chdir(order["folder"])  # Fast Downward writes where it stands; two of them would read each other's files
    setattr(subprocess, "Popen", _InOurGroup)  # noqa: B010 - mypy takes no class for another
    answered = json.dumps(answer(order))
    os.write(order["answer_to"], answered.encode())


class _InOurGroup(subprocess.Popen[Any]):
    """unified-planning starts the planner in a session of its own, where nobody could end it with us: not here."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"start_new_session": False})


def limit_memory(limit: int) -> None:
    """Set for this process and all it starts; where the system knows no such limit, there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _end_with_parent() -> None:
    """Nothing more is ever written to the pipe: it ends when the parent does."""
    sys.stdin.read()
    if hasattr(os, "killpg"):
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
