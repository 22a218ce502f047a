"""A trace → a planning domain and a problem, by rule: entities become objects, values of attributes predicates, steps
actions.

An attribute of an entity has one value at a time. A step needs what it changes to be as the text left it, and the other
known states of the entities that take part in it; it makes the new values true and the old ones false. So the steps in
the order of the text are always a plan, and what remains to be seen is whether a planner finds that order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fluents.errors import InputError
from fluents.planning.conditions import KEYWORDS
from fluents.planning.goals import Fluent, worded_goal
from fluents.planning.model import Action, Atom, Connective, Domain, Effect, Predicate, Problem, Typed, atoms_of
from fluents.planning.states import PlanStep, Wording, World
from fluents.records import StateChange, Trace
from fluents.salience import Keep, keep_salient
from fluents.salience.entities import canonical_names
from fluents.text.names import named_in, plain_name

MIN_SALIENCE = 4.0
MAX_WORDS = 6
"""Of a name made from a text."""


@dataclass(frozen=True)
class CompiledTrace:
    """A domain and a problem, and what their names stand for."""

    domain: Domain
    problem: Problem
    wording: Wording
    steps: Mapping[str, int]
    """Action → the step it comes from."""

    @property
    def goal_states(self) -> tuple[str, ...]:
        """The states in the goal, each as a sentence."""
        named = (self.wording[atom] for atom, _ in atoms_of(self.problem.goal) if atom in self.wording)
        return tuple(f"{attribute} of {entity} is {value}" for entity, attribute, value in named)

    def in_text_order(self, plan: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
        """The plan with its steps in the order of the text, where that is a plan too."""
        ordered = tuple(sorted(plan, key=lambda step: self.steps[step.action]))
        try:
            World(self.domain, self.problem).replay(ordered)
        except InputError:
            return tuple(plan)
        return ordered

    def text_plan(self) -> tuple[PlanStep, ...] | None:
        """The steps of the text that the goal depends on, from the last to the first; None where that is no plan.

        Every planner may give up on a long text with loosely connected steps; this needs a single pass.
        """
        objects = {one.types: one.name for one in self.problem.objects}
        wanted = {atom for atom, _ in atoms_of(self.problem.goal)}
        taken: list[PlanStep] = []
        for action in reversed(self.domain.actions):
            binding = {one.name: objects[one.types] for one in action.parameters}
            made = {effect.atom.bind(binding) for effect in action.effects if effect.positive}
            if made & wanted:
                taken.append(PlanStep(action.name, tuple(binding.values())))
                wanted = (wanted - made) | {atom.bind(binding) for atom, _ in atoms_of(action.precondition)}
        plan = tuple(reversed(taken))
        try:
            World(self.domain, self.problem).replay(plan)
        except InputError:
            return None
        return plan


@dataclass(frozen=True)
class _Transition:
    """What a step does: the values it needs, and the old and the new one of each fluent that it changes."""

    step: int
    needs: Mapping[Fluent, str]
    changes: Mapping[Fluent, tuple[str, str]]


def compile_trace(
    trace: Trace,
    *,
    goal: str | None = None,
    min_salience: float = MIN_SALIENCE,
    salience_rater: str | None = None,
    side_effects: bool = True,
    order: bool = False,
) -> CompiledTrace:
    """A domain whose actions are the steps of a trace, and the problem of getting from its first states to its last.

    `goal` is what to reach, in words ("rice cooked, pot clean"); without it, the final states of entities of at least
    `min_salience` (by `salience_rater`, where there are several), or of the most salient one. Without `side_effects` a
    step changes, of the entities that the text names, only those named in the step itself. `order` adds facts that name
    the steps, so that they can only be taken as the text has them.
    """
    if not trace.changes:
        fix = "give a trace with changes, for example from `fluents track`"
        raise InputError("the trace has no changes, so there is nothing to plan", where=trace.id, fix=fix)
    first, transitions, last = _history(trace)
    if goal is not None:
        known = {*first.items(), *((fluent, new) for one in transitions for fluent, (_, new) in one.changes.items())}
        wanted = worded_goal(goal, {(fluent, value) for fluent, value in known if value}, trace.id)
    else:
        wanted = _salient_goal(trace, last, Keep(min_salience, rater=salience_rater))
        if all(first.get(fluent) == value for fluent, value in wanted.items()):
            wanted = last  # what matters most ends as it began: there is more to do than nothing
    return _Compiler(trace, side_effects, order).compiled(first, transitions, wanted)


def _history(trace: Trace) -> tuple[dict[Fluent, str], list[_Transition], dict[Fluent, str]]:
    """The first values, what each step does, and the last values."""
    name_of = canonical_names(trace)
    attribute_of = {
        (cluster.name, mention): attribute.name
        for cluster in trace.clusters
        for attribute in cluster.attributes
        for mention in attribute.mentions
    }
    by_step: dict[int, dict[Fluent, list[StateChange]]] = {}
    spelt: dict[Fluent, Fluent] = {}
    for change in trace.changes:
        entity = name_of.get(change.entity, change.entity)
        attribute = attribute_of.get((entity, change.attribute), change.attribute)
        fluent = spelt.setdefault((plain_name(entity), plain_name(attribute)), (entity, attribute))
        by_step.setdefault(change.step, {}).setdefault(fluent, []).append(change)
    first: dict[Fluent, str] = {}
    for step in sorted(by_step, reverse=True):  # the earliest counts
        first |= {fluent: changes[0].before for fluent, changes in by_step[step].items()}
    first = {fluent: value for fluent, value in first.items() if value}
    now = dict(first)
    transitions = []
    for step in sorted(by_step):
        text = trace.procedure.steps[step - 1]
        here = by_step[step]
        actors = {entity for entity, _ in here} | {entity for entity, _ in now if named_in(text, entity)}
        needed = {fluent: value for fluent, value in now.items() if fluent[0] in actors}
        changed = {}
        for fluent, changes in here.items():
            old, new = now.get(fluent, ""), _outcome(changes)
            if plain_name(old) != plain_name(new):
                changed[fluent] = old, new
        transitions.append(_Transition(step, needed, changed))
        now |= {fluent: new for fluent, (_, new) in changed.items()}
        now = {fluent: value for fluent, value in now.items() if value}
    return first, transitions, now


def _outcome(changes: Sequence[StateChange]) -> str:
    """What an attribute is after a step: a chain of changes is followed, of several answers the first counts."""
    value = changes[0].after
    for change in changes[1:]:
        if plain_name(change.before) == plain_name(value):
            value = change.after
    return value


def _salient_goal(trace: Trace, last: Mapping[Fluent, str], wanted: Keep) -> dict[Fluent, str]:
    salient = keep_salient(trace, wanted)
    if not salient.changes:
        salient = keep_salient(trace, replace(wanted, min_salience=None, top=1))
    name_of = canonical_names(trace)
    names = {plain_name(name_of.get(change.entity, change.entity)) for change in salient.changes}
    return {fluent: value for fluent, value in last.items() if plain_name(fluent[0]) in names} or dict(last)


class _Compiler:
    """Names for everything, each once: strict readers do not take one name for two things."""

    def __init__(self, trace: Trace, side_effects: bool, order: bool) -> None:
        self._trace, self._side_effects, self._order = trace, side_effects, order
        self._taken: set[str] = set(KEYWORDS)
        self._types: dict[str, str] = {}
        self._objects: dict[str, str] = {}
        self._predicates: dict[tuple[str, str], str] = {}
        self._wording: dict[Atom, tuple[str, str, str]] = {}

    def compiled(
        self, first: Mapping[Fluent, str], transitions: Iterable[_Transition], wanted: Mapping[Fluent, str]
    ) -> CompiledTrace:
        trace = self._trace
        name = self._name(trace.procedure.goal or trace.id, "procedure")
        problem_name = self._name(f"{trace.procedure.goal or trace.id} problem", "problem")
        actions, steps = [], {}
        done: list[str] = []
        for one in transitions:
            effects = {
                fluent: change
                for fluent, change in one.changes.items()
                if self._side_effects or self._is_plain(fluent[0], one.step)
            }
            if not effects and not self._order:
                continue
            action = self._action(one, effects)
            if self._order:
                done.append(self._name(f"step {one.step} done", "done"))
                needed = (action.precondition, *(Atom(name) for name in done[-2:-1]))
                effect = (*action.effects, Effect(Atom(done[-1])))
                action = Action(action.name, action.parameters, Connective("and", needed), effect)
            actions.append(action)
            steps[action.name] = one.step
        init = tuple(self._fact(fluent, value) for fluent, value in first.items())
        goal = [self._fact(fluent, value) for fluent, value in wanted.items()] + [Atom(name) for name in done[-1:]]
        predicates = [Predicate(one, (Typed("?x"),)) for one in self._predicates.values()]
        domain = Domain(
            name,
            (":strips", ":typing"),
            tuple(Typed(one) for one in self._types.values()),
            (),
            (*predicates, *(Predicate(one) for one in done)),
            tuple(actions),
        )
        objects = tuple(Typed(self._objects[entity], (kind,)) for entity, kind in self._types.items())
        problem = Problem(problem_name, name, objects, init, Connective("and", tuple(goal)))
        return CompiledTrace(domain, problem, self._wording, steps)

    def _is_plain(self, entity: str, step: int) -> bool:
        """Whether the text says that the step changes it, or never names it: whoever takes the steps, mostly."""
        texts = self._trace.procedure.steps
        return named_in(texts[step - 1], entity) or not any(named_in(text, entity) for text in texts)

    def _action(self, one: _Transition, effects: Mapping[Fluent, tuple[str, str]]) -> Action:
        name = self._name(self._trace.procedure.steps[one.step - 1], "step")
        entities = dict.fromkeys(entity for entity, _ in (*one.needs, *effects))
        for entity in entities:
            self._entity(entity)
        parameters = tuple(Typed(f"?{self._types[entity]}", (self._types[entity],)) for entity in entities)
        needed = tuple(self._atom(fluent, value) for fluent, value in one.needs.items())
        made = [Effect(self._atom(fluent, old), False) for fluent, (old, _) in effects.items() if old]
        made += [Effect(self._atom(fluent, new)) for fluent, (_, new) in effects.items() if new]
        return Action(name, parameters, Connective("and", needed), tuple(made))

    def _entity(self, entity: str) -> None:
        if entity not in self._types:
            self._types[entity] = self._name(entity, "thing")
            self._objects[entity] = self._name(f"{self._types[entity]}1", "thing")

    def _atom(self, fluent: Fluent, value: str) -> Atom:
        fact = self._fact(fluent, value)
        return Atom(fact.predicate, (f"?{self._types[fluent[0]]}",))

    def _fact(self, fluent: Fluent, value: str) -> Atom:
        entity, attribute = fluent
        self._entity(entity)
        key = plain_name(attribute), plain_name(value)
        if key not in self._predicates:
            self._predicates[key] = self._name(f"{attribute} {value}", "state")
        fact = Atom(self._predicates[key], (self._objects[entity],))
        self._wording.setdefault(fact, (entity, attribute, value))
        return fact

    def _name(self, text: str, default: str) -> str:
        """A name in PDDL from the first words of a text."""
        letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
        words = re.findall("[a-z0-9]+", letters.replace("'", ""))[:MAX_WORDS]
        made = "-".join(words) or default
        made = made if made[0].isalpha() else f"{default}-{made}"
        name, number = made, 2
        while name in self._taken:
            name, number = f"{made}-{number}", number + 1
        self._taken.add(name)
        return name
