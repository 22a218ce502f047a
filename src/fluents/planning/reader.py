"""A lenient reader of PDDL: what models and people write, repaired; every repair is listed with its place and reason.

A file that is valid is read as it is. `strict` refuses what would need a repair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fluents.planning.conditions import UNSUPPORTED, ConditionReader, name_in, typed_list, wrapped
from fluents.planning.draft import ActionDraft, PddlDraft
from fluents.planning.expressions import FIELDS, Expression, PddlError, PddlText, Repair, Symbol
from fluents.planning.model import EQUALS, OBJECT, Atom, Condition, Connective, Domain, Problem, Typed
from fluents.text.names import counted


@dataclass(frozen=True)
class PddlReading:
    """A domain and a problem as they were understood."""

    domain: Domain
    problem: Problem | None
    repairs: tuple[Repair, ...] = ()


def read_pddl(
    domain: str, problem: str | None = None, *, strict: bool = False, sources: Sequence[str] | None = None
) -> PddlReading:
    """Read a domain, and a problem of it; both may stand in one text. `sources` says where each text comes from.

    Raises a PddlError where the text makes no sense, where it uses what fluents does not support (numbers, durations,
    derived predicates), and with `strict` where anything would have to be repaired.
    """
    repairs: list[Repair] = []
    given = [domain] if problem is None else [domain, problem]
    names = sources or (["text"] if problem is None else ["domain", "problem"])
    found = _definitions([PddlText(name, text, repairs) for name, text in zip(names, given, strict=True)])
    for kind, wanted in (("domain", True), ("problem", problem is not None)):
        if wanted and kind not in found:
            place = names[kind == "problem"] if sources else None
            raise PddlError(
                f"the PDDL text contains no {kind}", where=place, fix=f"begin the {kind} with (define ({kind} NAME)"
            )
    draft = PddlDraft()
    _read_domain(draft, found["domain"])
    if "problem" in found:
        _read_problem(draft, found["problem"])
    draft.complete()
    if strict and repairs:
        shown = "".join(f"\n  {repair}" for repair in repairs[:5])
        raise PddlError(
            f"this PDDL has {counted(len(repairs), 'error')}. Without `strict`, fluents makes these repairs"
            f"{' (the first five are listed)' * (len(repairs) > 5)}:{shown}",
            fix="leave out `strict` to apply the repairs",
        )
    return PddlReading(draft.domain(), draft.problem() if "problem" in found else None, tuple(repairs))


def _definitions(texts: Iterable[PddlText]) -> dict[str, Expression]:
    """The first domain and the first problem. Actions outside the domain are moved there: nobody writes one in vain."""
    found: dict[str, Expression] = {}
    strays: list[Expression] = []
    for text in texts:
        for one in text.definitions():
            if one.head == ":action":
                strays.append(one)
            elif (kind := _kind(one)) in found:
                text.repair(one.offset, f"second {kind}: ignored")
            else:
                found[kind] = one
    strays += (one for one in found.get("problem", ()) if isinstance(one, Expression) and one.head == ":action")
    for one in strays if "domain" in found else ():
        one.text.repair(one.offset, "action outside the domain: added to the domain")
        found["domain"].append(one)
    return found


def _kind(definition: Expression) -> str:
    """What is defined; a name without parentheses around it gets them."""
    second = definition[1] if len(definition) > 1 else None
    if isinstance(second, Symbol) and second in ("domain", "problem") and len(definition) > 2:
        definition.text.repair(second.offset, f"no parentheses around {second} and its name: added")
        named = Expression(definition.text, second.offset)
        named += definition[1:3]
        definition[1:3] = [named]
        second = named
    if not isinstance(second, Expression) or second.head not in ("domain", "problem"):
        definition.text.fail(definition.offset, "expected (define (domain NAME) …) or (define (problem NAME) …)")
    return str(second.head)


def _read_domain(draft: PddlDraft, definition: Expression) -> None:
    draft.name = name_in(definition[1], "domain")
    # Actions come last, wherever they stand: what they mean depends on the types and predicates.
    for section in sorted(_sections(definition), key=lambda section: section.head == ":action"):
        head, rest = section.head, section[1:]
        if head == ":requirements":
            draft.requirements += [word for word in rest if isinstance(word, Symbol)]
        elif head == ":types":
            _declare("type", draft.types, typed_list(rest))
        elif head == ":constants":
            _declare("constant", draft.constants, typed_list(rest))
        elif head == ":predicates":
            _read_predicates(draft, rest)
        elif head == ":action":
            _read_action(draft, section)
        else:
            section.text.repair(section.offset, f"{head or 'this'} does not belong in a domain: ignored")
    draft.types.pop(OBJECT, None)
    draft.requirements = draft.requirements or [":strips"]  # what PDDL assumes


def _read_problem(draft: PddlDraft, definition: Expression) -> None:
    draft.problem_name = name_in(definition[1], "problem")
    goals: list[Condition] = []
    seen = set()
    for section in _sections(definition):
        head, rest = section.head, section[1:]
        seen.add(head)
        if head == ":domain":
            if not rest or rest[0] != draft.name:
                section.text.repair(section.offset, f"the problem names another domain: read as {draft.name}")
        elif head == ":objects":
            _declare("object", draft.objects, typed_list(rest))
        elif head == ":init":
            _read_init(draft, rest)
        elif head == ":goal":
            goals += ConditionReader(draft.predicates).conditions(rest, section)
            if len(goals) > 1:
                section.text.repair(section.offset, "more than one goal: joined with `and`")
        elif head not in (":requirements", ":action"):
            section.text.repair(section.offset, f"{head or 'this'} does not belong in a problem: ignored")
    for needed in [name for name in (":domain", ":init") if name not in seen]:
        definition.text.repair(definition.offset, f"{needed} is missing: added")
    if not goals:
        definition.text.fail(definition.offset, "the problem has no goal: add (:goal …)")
    draft.goal = goals[0] if len(goals) == 1 else Connective("and", tuple(goals))


def _declare(kind: str, known: dict[str, tuple[str, ...]], items: Iterable[tuple[Symbol, Any]]) -> None:
    for name, types in items:
        if name not in known:
            known[name] = types
        elif kind != "type" or name != OBJECT:
            name.text.repair(name.offset, f"{kind} {name} is declared twice: merged")
            known[name] = types if known[name] == (OBJECT,) else known[name]


def _read_predicates(draft: PddlDraft, items: Iterable[Any]) -> None:
    for item in items:
        if isinstance(item, Symbol):
            item.text.repair(item.offset, f"no parentheses around predicate {item}: added")
            item = wrapped(item)
        name = name_in(item, "", 0)
        slots = [Typed(*one) for one in typed_list(item[1:], draft.types)]
        if name not in draft.predicates:
            draft.predicates[name] = slots
        else:
            name.text.repair(name.offset, f"predicate {name} is declared twice: the second is ignored")


def _read_action(draft: PddlDraft, section: Expression) -> None:
    action = ActionDraft(name := name_in(section, "action"))
    fields: dict[str, list[Any]] = {}
    current: list[Any] | None = None
    for item in section[2:]:
        if isinstance(item, Symbol) and item in FIELDS:
            if item in fields:
                item.text.repair(item.offset, f"{item} appears twice: merged")
            current = fields.setdefault(item, [])
        elif current is None:
            section.text.repair(item.offset, "text before :parameters: ignored")
        else:
            current.append(item)
    if ":parameters" not in fields:
        section.text.repair(section.offset, f"action {name} has no :parameters: added")
    lists = fields.get(":parameters", [])
    flat = [one for item in lists for one in (item if isinstance(item, Expression) else [item])]
    _declare(f"variable of action {name},", action.parameters, typed_list(flat, draft.types))
    reader = ConditionReader(draft.predicates)
    conditions = list(reader.conditions(fields.get(":precondition", []), section))
    action.precondition = conditions[0] if len(conditions) == 1 else Connective("and", tuple(conditions))
    for item in fields.get(":effect", []):
        action.effects += reader.effects(item)
    if len(fields.get(":effect", [])) > 1 or len(conditions) > 1:
        section.text.repair(section.offset, f"conditions or effects of action {name} without `and`: joined")
    key, number = str(name), 2
    while key in draft.actions:
        key, number = f"{name}-{number}", number + 1
    if key != name:
        name.text.repair(name.offset, f"second action {name}: renamed to {key}")
    draft.actions[key] = action


def _read_init(draft: PddlDraft, items: Iterable[Any]) -> None:
    for item in items:
        condition = ConditionReader(draft.predicates).condition(item)
        todo = [condition]
        while todo:
            one = todo.pop()
            if isinstance(one, Atom) and one.predicate != EQUALS:
                draft.init[one] = None
            elif isinstance(one, Atom):
                item.text.fail(item.offset, f"{EQUALS} is not allowed in :init, which lists facts")
            elif one.word == "and":
                item.text.repair(item.offset, "`and` in :init: replaced by its parts")
                todo += reversed(one.parts)
            elif one.word != "not":  # what is not listed is false anyway
                item.text.fail(item.offset, f"`{one.word}` is not allowed in :init, which lists facts")


def _sections(definition: Expression) -> Iterator[Expression]:
    for item in definition[2:]:
        if isinstance(item, Expression):
            if item.head in UNSUPPORTED:
                item.text.fail(item.offset, f"{item.head} is not supported")
            yield item
        else:
            item.text.repair(item.offset, f"{item} is not in parentheses: ignored")
