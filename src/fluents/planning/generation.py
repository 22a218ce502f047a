"""A language model writes the domain, then the problem; what the reader and the planner say of them goes back to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from fluents.llm import LanguageModel, Question
from fluents.llm.answers import THOUGHT_ENDS, Unreadable, UnreadableAnswer, answered, ask_all
from fluents.planning.expressions import PddlError, Repair
from fluents.planning.model import Domain, Problem
from fluents.planning.planners import Solution
from fluents.planning.reader import PddlReading, read_pddl
from fluents.prompts.llm import quoted_name, render, system, whole_scene
from fluents.records import Trace
from fluents.salience import Keep, keep_salient
from fluents.task_records import PddlTask

DOMAIN, PROBLEM, REPAIR, ACTIONS = "plan-domain-1", "plan-problem-1", "plan-repair-1", "plan-actions-1"
ROUNDS = 2
"""How often the planner's words go back to the model."""
MAX_TOKENS = 4_096
MAX_MESSAGES = 10

Solve: TypeAlias = Callable[[Domain, Problem], Solution]


@dataclass(frozen=True)
class GeneratedPlan:
    """What a language model wrote, as it was understood, and what the planner made of it."""

    domain: Domain | None
    problem: Problem | None
    solution: Solution
    repairs: tuple[Repair, ...] = ()
    attempts: tuple[str, ...] = ()
    """What was wrong with earlier answers."""


def generate(
    trace: Trace,
    model: LanguageModel,
    *,
    goal: str | None = None,
    shown: Keep | None = None,
    solve: Solve,
    rounds: int = ROUNDS,
) -> GeneratedPlan:
    """Ask for a domain and a problem; where there is no plan, ask for both again, with what the planner said.

    `shown` says which states the model is shown; None shows it the text alone.
    """
    scene = whole_scene(trace.procedure)
    states = [] if shown is None else _states(trace, shown)
    attempts: list[str] = []

    def ask(prompt: str, name: str, read: Callable[[str], PddlReading]) -> PddlReading | None:
        question = Question(prompt, system=system(), name=name, max_tokens=model.max_tokens or MAX_TOKENS)
        [found] = answered(model.answerer, question, read)
        if model.on_answer:
            model.on_answer(len(attempts) + 1, rounds + 2)
        if isinstance(found, Unreadable):
            attempts.append(f"{name}: {found.reason}")
            return None
        return found

    failed = Solution("gave-up", "none", reason="the answers of the language model could not be read")
    asked = render(DOMAIN, scene=scene, states=states)
    domain = ask(asked, DOMAIN, _read)
    if domain is None:
        return GeneratedPlan(None, None, failed, attempts=tuple(attempts))
    wanted = quoted_name(goal or trace.procedure.goal)
    asked = render(PROBLEM, scene=scene, domain=str(domain.domain).strip(), goal=wanted)
    reading = ask(asked, PROBLEM, lambda text: _read(str(domain.domain), text))
    if reading is None or reading.problem is None:
        return GeneratedPlan(domain.domain, None, failed, domain.repairs, tuple(attempts))
    reading = replace(reading, repairs=(*domain.repairs, *reading.repairs))
    for left in range(rounds, -1, -1):
        assert reading.problem is not None
        solution = solve(reading.domain, reading.problem)
        found = GeneratedPlan(reading.domain, reading.problem, solution, reading.repairs, tuple(attempts))
        if solution.status == "solved" or not left:
            break
        messages = [*map(str, solution.unreachable), *([solution.reason] if solution.reason else [])][:MAX_MESSAGES]
        attempts.append(f"no plan: {'; '.join(messages) or solution.status}")
        written = {"domain": str(reading.domain).strip(), "problem": str(reading.problem).strip(), "messages": messages}
        better = ask(render(REPAIR, scene=scene, states=states, **written), REPAIR, _read_both)
        if better is None:
            break
        reading = better
    return replace(found, attempts=tuple(attempts))


def predict_domains(tasks: Sequence[PddlTask], model: LanguageModel) -> list[PddlTask]:
    """Proc2PDDL's task: the text, types, predicates and names of actions in, domains with actions out.

    An answer that cannot be read stands as the domain: scoring counts it as one without actions.
    """
    questions = [
        Question(
            render(
                ACTIONS,
                scene=whole_scene(task.procedure),
                header=task.domain_header.strip(),
                actions=task.actions.strip(),
            ),
            system=system(),
            name=ACTIONS,
            max_tokens=MAX_TOKENS,
        )
        for task in tasks
    ]
    found = ask_all(model, questions, _action_definitions)
    return [
        task.replace(domain=said.text if isinstance(said, Unreadable) else f"{task.domain_header.strip()}\n{said}\n)\n")
        for task, said in zip(tasks, found, strict=True)
    ]


def _action_definitions(text: str) -> str:
    """The actions in an answer, from the first to the end; a code fence ends them."""
    start = (said := _without_thought(text)).lower().find("(:action")
    if start < 0:
        raise UnreadableAnswer("the answer defines no action: `(:action` is missing")
    return said[start:].partition("```")[0].rstrip()


def _states(trace: Trace, shown: Keep) -> list[tuple[int, str, str, str, str]]:
    return [
        (one.step, quoted_name(one.entity), quoted_name(one.attribute), quoted_name(one.before), quoted_name(one.after))
        for one in keep_salient(trace, shown).changes
    ]


def _read(domain: str, problem: str | None = None) -> PddlReading:
    try:
        if problem is None:
            return read_pddl(_without_thought(domain))
        return read_pddl(domain, _without_thought(problem))
    except PddlError as error:
        where = f" ({error.where})" if error.where else ""
        raise UnreadableAnswer(error.what + where) from None


def _read_both(text: str) -> PddlReading:
    found = _read(text)
    if found.problem is None:
        raise UnreadableAnswer("the answer contains a PDDL domain, but no PDDL problem")
    return found


def _without_thought(text: str) -> str:
    return text.rpartition(THOUGHT_ENDS)[2]
