"""What the planning room reaches: Proc2PDDL read and solved, and traces compiled and replayed.

    python benchmarks/plans.py proc2pddl
    python benchmarks/plans.py proc2pddl-unrepaired
    python benchmarks/plans.py openpi-c:dev fluents:test mine.jsonl

Needs the extra `plan`. `proc2pddl-unrepaired` gives Fast Downward the files as they are, as a program of its own.
For each source of traces: problems that strict readers take (ours and unified-planning's),
problems solved, plans in the order of the text (the built-in planner's, Fast Downward's as it gives them, and with
order facts), and the share of steps that the plans take.
The goal is the final states of entities with salience 4 or more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from unified_planning.io import PDDLReader

from fluents.canonicalisation import canonicalise
from fluents.data.datasets import load
from fluents.data.file_formats import read_traces
from fluents.errors import FluentsError, MissingExtraError
from fluents.planning.compilation import CompiledTrace, compile_trace
from fluents.planning.fast_downward import UnifiedProblem
from fluents.planning.planners import solve
from fluents.planning.reader import read_pddl
from fluents.planning.states import InvalidPlanError, PlanStep, World
from fluents.task_records import PddlTask

OUTCOMES = {0: "solved", 30: "not read: crash", 31: "not read: input error"}
"""By Fast Downward's exit status."""


def problems() -> Iterator[tuple[str, str]]:
    """The gold domains and problems of Proc2PDDL."""
    for task in load("proc2pddl:all"):
        assert isinstance(task, PddlTask)
        for text in task.problems.values():
            yield task.domain, text


def fast_downward() -> str:
    """The program itself."""
    package = find_spec("up_fast_downward")
    if package is None or package.origin is None:
        raise MissingExtraError("up_fast_downward", "plan")
    return str(Path(package.origin).parent / "downward" / "fast-downward.py")


def unrepaired() -> Counter[str]:
    """What Fast Downward alone makes of Proc2PDDL's files, and whether its plans are valid as we read the files."""
    found: Counter[str] = Counter()
    for domain, text in problems():
        found["problems"] += 1
        Path("domain.pddl").write_text(domain, encoding="utf-8")
        Path("problem.pddl").write_text(text, encoding="utf-8")
        plan = Path("sas_plan")
        plan.unlink(missing_ok=True)
        limits = ("--search-time-limit", "60", "--overall-memory-limit", "2G")
        command = [sys.executable, fast_downward(), "--alias", "lama-first", *limits, "domain.pddl", "problem.pddl"]
        status = subprocess.run(command, capture_output=True, check=False).returncode
        found[OUTCOMES.get(status, f"exit status {status}")] += 1
        if plan.exists():
            lines = [line.strip("()").split() for line in plan.read_text().splitlines() if line.startswith("(")]
            reading = read_pddl(domain, text)
            assert reading.problem is not None
            try:
                World(reading.domain, reading.problem).replay(PlanStep(name, tuple(rest)) for name, *rest in lines)
            except InvalidPlanError:
                continue
            found["solved, and the plan is valid as we read the file"] += 1
    return found


def proc2pddl() -> Counter[str]:
    """How many of Proc2PDDL's gold problems are read and solved, and whether the planners and validators agree."""
    found: Counter[str] = Counter()
    for domain, text in problems():
        found["problems"] += 1
        try:
            reading = read_pddl(domain, text)
        except FluentsError:
            continue
        assert reading.problem is not None
        found["read"] += 1
        found["repairs"] += len(reading.repairs)
        ours = solve(reading.domain, reading.problem, planner="built-in", time_limit=15)
        theirs = solve(reading.domain, reading.problem, planner="fast-downward")
        unified = UnifiedProblem(World(reading.domain, reading.problem))
        plans = [one.plan for one in (ours, theirs) if one.status == "solved"]
        found[f"built-in: {ours.status}"] += 1
        found[f"fast downward: {theirs.status}"] += 1
        found["solved, valid for our replay and for unified-planning"] += bool(plans) and all(
            map(unified.is_valid, plans)
        )
        found["without a plan, unreachable facts named"] += bool(theirs.unreachable)
        found["planners disagree"] += {ours.status, theirs.status} == {"solved", "unsolvable"}
    return found


def compiled(source: str) -> Counter[str]:
    """What becomes of the traces of a dataset or a file."""
    found: Counter[str] = Counter()
    for trace in read_traces(source):
        if not trace.changes:
            found["without changes, left out"] += 1
            continue
        trace = trace if trace.clusters else canonicalise(trace)
        made, ordered = compile_trace(trace), compile_trace(trace, order=True)
        found["problems"] += 1
        found["strict for us"] += not read_pddl(str(made.domain), str(made.problem), strict=True).repairs
        parsed = PDDLReader().parse_problem_string(str(made.domain), str(made.problem))
        found["strict for unified-planning"] += len(parsed.actions) == len(made.domain.actions)
        built_in = solve(made.domain, made.problem, planner="built-in").plan
        fast_downward, _ = UnifiedProblem(World(made.domain, made.problem)).solve()
        with_order = solve(ordered.domain, ordered.problem, planner="built-in").plan
        found["solved"] += built_in != () and fast_downward is not None
        found["in order, built-in planner"] += in_order(made, built_in)
        found["in order, Fast Downward as it is"] += in_order(made, fast_downward or ())
        found["in order, Fast Downward sorted"] += in_order(made, made.in_text_order(fast_downward or ()))
        found["in order and complete, with order facts"] += in_order(ordered, with_order) and len(with_order) == len(
            ordered.steps
        )
        found["complete without them"] += len(built_in) == len(made.steps)
        found["steps that can be taken"] += len(made.steps)
        found["steps taken"] += len(built_in)
    return found


def in_order(made: CompiledTrace, plan: Sequence[PlanStep]) -> bool:
    numbers = [made.steps[step.action] for step in plan]
    return bool(numbers) and all(first < second for first, second in pairwise(numbers))


if __name__ == "__main__":
    named = {"proc2pddl": proc2pddl, "proc2pddl-unrepaired": unrepaired}
    sources = [os.path.abspath(one) if os.path.exists(one) else one for one in sys.argv[1:]] or ["proc2pddl"]  # noqa: PTH100, PTH110
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # Fast Downward writes where it stands
        for name in sources:
            print(name)
            for what, count in (named[name]() if name in named else compiled(name)).items():
                print(f"  {count:6}  {what}")
