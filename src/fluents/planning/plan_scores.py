"""Proc2PDDL's task scored: actions against the gold's, and problems solved by plans that the gold domain allows.

Actions are compared by name; hyphens and underscores do not count. Of all ways to match an action's variables with the
gold's, the one with most facts in common counts. A problem counts as solved if a planner finds a plan with the
predicted domain, and our replay takes it for a plan of the gold domain too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, permutations

from fluents.errors import InputError
from fluents.planning.expressions import PddlError
from fluents.planning.grounding import as_literal, bind, conjuncts
from fluents.planning.model import Action, Condition, Domain, condition_pddl
from fluents.planning.planners import Planner, solve
from fluents.planning.reader import read_pddl
from fluents.planning.states import InvalidPlanError, World
from fluents.scoring.score import Figures, Ratio, Score, ShareOf, Signature, Statistics, StepRow, micro
from fluents.task_records import PddlTask
from fluents.text.names import counted

PARTS = ("preconditions", "effects")
COLUMNS = (
    *(f"{part}.{count}" for part in PARTS for count in ("right", "predicted", "gold")),
    *("actions.right", "actions", "problems.planned", "problems.solved", "problems"),
)
MAX_MATCHINGS = 5_040
"""Ways to match variables that are tried: all of those of seven."""


def plan_score(
    gold: Iterable[PddlTask],
    pred: Iterable[PddlTask],
    *,
    planner: Planner = "auto",
    time_limit: float = 60.0,
    memory_limit: int = 2048,
    on_problem: Callable[[int, int], None] | None = None,
) -> Score:
    """Score predicted domains: F1 of preconditions and effects, actions that are right, problems that are solved.

    Of `pred` only ids and domains count. A domain that is missing, or cannot be read, has no action.
    """
    tasks, predicted = list(gold), {task.id: task.domain for task in pred}
    if unknown := predicted.keys() - {task.id for task in tasks}:
        raise InputError(
            f"the predictions contain the task {min(unknown)}, which is not in the gold",
            fix="check that the predictions are for the same dataset",
        )
    limits = {"time_limit": time_limit, "memory_limit": memory_limit}
    total = sum(len(task.problems) for task in tasks)
    warnings: list[str] = []
    done = 0

    def plans(task: PddlTask, text: str) -> Iterator[tuple[bool, bool]]:
        nonlocal done
        for problem in task.problems.values():
            yield _solved(task.domain, text, problem, planner, limits)
            done += 1
            if on_problem:
                on_problem(done, total)

    def rows() -> Iterator[StepRow]:
        for task in tasks:
            text = predicted.get(task.id, "")
            said = _domain(text)
            if said is None:
                warnings.append(
                    f"{task.id}: {'no prediction' if task.id not in predicted else 'the domain cannot be read'}"
                )
            meant = _domain(task.domain)
            assert meant is not None
            named = {_key(action.name): action for action in said.actions} if said else {}
            for number, action in enumerate(meant.actions, start=1):
                yield task.id, number, [*_compared(action, named.get(_key(action.name))), 1, 0, 0, 0]
            found = list(plans(task, text))
            values = [sum(one[0] for one in found), sum(one[1] for one in found), len(found)]
            yield task.id, 0, [*[0] * 8, *values]

    statistics = Statistics.collect(COLUMNS, rows())
    if len(warnings) > 3:
        warnings = [f"no readable domain for {counted(len(warnings), 'task')}"]
    return Score("plan", statistics, _figures(), Signature.of("plan", "strict", planner=planner), tuple(warnings))


def planning_tasks(records: Iterable[object], where: str) -> Iterator[PddlTask]:
    """The records, which must be planning tasks."""
    for record in records:
        if not isinstance(record, PddlTask):
            raise InputError(
                "this is not a planning task: a record has no domain",
                where=where,
                fix="give planning tasks, such as proc2pddl:all",
            )
        yield record


def _figures() -> Figures:
    found: Figures = {
        part: micro(Ratio(f"{part}.right", f"{part}.predicted"), Ratio(f"{part}.right", f"{part}.gold"))
        for part in PARTS
    }
    found["actions right"] = {"share": ShareOf("actions.right", "actions")}
    found["problems planned"] = {"share": ShareOf("problems.planned", "problems")}
    found["problems solved"] = {"share": ShareOf("problems.solved", "problems")}
    return found


def _domain(text: str) -> Domain | None:
    try:
        return read_pddl(text).domain
    except PddlError:
        return None


def _solved(
    gold: str, predicted: str, problem: str, planner: Planner, limits: Mapping[str, float]
) -> tuple[bool, bool]:
    """Whether there is a plan with the predicted domain, and whether it is one with the gold domain."""
    try:
        reading = read_pddl(predicted, problem)
        meant = read_pddl(gold, problem)
    except PddlError:
        return False, False
    if reading.problem is None or meant.problem is None:
        return False, False
    found = solve(
        reading.domain,
        reading.problem,
        planner=planner,
        time_limit=limits["time_limit"],
        memory_limit=int(limits["memory_limit"]),
    )
    if found.status != "solved":
        return False, False
    try:
        World(meant.domain, meant.problem).replay(found.plan)
    except InvalidPlanError:
        return True, False
    return True, True


def _compared(gold: Action, said: Action | None) -> list[float]:
    """Right, predicted and gold facts of the preconditions and of the effects; and whether all is right."""
    meant = [_facts(gold, {}, part) for part in PARTS]
    if said is None:
        return [0, 0, len(meant[0]), 0, 0, len(meant[1]), 0]
    best: list[set[str]] = [set(), set()]
    size = [len(_facts(said, {}, part)) for part in PARTS]
    for matching in _matchings([one.name for one in said.parameters], [one.name for one in gold.parameters]):
        shared = [meant[place] & _facts(said, matching, part) for place, part in enumerate(PARTS)]
        if sum(map(len, shared)) > sum(map(len, best)):
            best = shared
        if best == meant:
            break
    right = best == meant and size == [len(one) for one in meant]
    return [len(best[0]), size[0], len(meant[0]), len(best[1]), size[1], len(meant[1]), float(right)]


def _matchings(said: Sequence[str], gold: Sequence[str]) -> Iterator[dict[str, str]]:
    """Ways to call the variables of one action as the other does; equal names first."""
    yield {}
    wanted = [*gold, *(f"?no-match-{number}" for number in range(len(said) - len(gold)))]
    for chosen in islice(permutations(wanted, len(said)), MAX_MATCHINGS):
        yield dict(zip(said, chosen, strict=True))


def _facts(action: Action, matching: Mapping[str, str], part: str) -> set[str]:
    if part == "effects":
        return {f"{effect.positive} {effect.atom.bind(matching)}" for effect in action.effects}
    return {_shown(bind(one, matching)) for one in conjuncts(action.precondition)}


def _shown(condition: Condition) -> str:
    literal = as_literal(condition)
    return condition_pddl(condition) if literal is None else f"{literal[1]} {literal[0]}"


def _key(name: str) -> str:
    return name.replace("_", "-")
