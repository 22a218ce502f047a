"""A lenient reader of PDDL: what models and people write, repaired; every repair is listed with its place and reason.

A file that is valid is read as it is. `strict` refuses what would need a repair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fluents.planning.draft import ActionDraft, PddlDraft
from fluents.planning.expressions import FIELDS, Expression, PddlError, PddlText, Repair, Symbol
from fluents.planning.model import EQUALS, OBJECT, TRUE, Atom, Condition, Connective, Domain, Effect, Problem, Typed
from fluents.text.names import counted

_UNSUPPORTED = frozenset(
    {":functions", ":derived", ":durative-action", ":constraints", ":metric", "preference", "oneof", "probabilistic"}
    | {"increase", "decrease", "assign", "scale-up", "scale-down", "<", ">", "<=", ">=", "always", "sometime"}
)
_RESERVED = frozenset({"define", "and", "or", "not", "imply", "forall", "exists", "when", "either"})
_NO_NAME = "?:-<=>"
"""What no name of an object, a type or a predicate begins with."""
MAX_EITHER = 50
"""Types that a name may have."""


@dataclass(frozen=True)
class PddlReading:
    """A domain and a problem as they were understood."""

    domain: Domain
    problem: Problem | None
    repairs: tuple[Repair, ...] = ()


def read_pddl(domain: str, problem: str | None = None, *, strict: bool = False) -> PddlReading:
    """Read a domain, and a problem of it; both may stand in one text.

    Raises a PddlError where the text makes no sense, where it uses what fluents does not support (numbers, durations,
    derived predicates), and with `strict` where anything would have to be repaired.
    """
    repairs: list[Repair] = []
    found: dict[str, Expression] = {}
    texts = [PddlText("domain" if problem is not None else "text", domain, repairs)]
    texts += [PddlText("problem", problem, repairs)] if problem is not None else []
    for text in texts:
        for one in text.definitions():
            kind = _kind(one)
            if kind in found:
                text.repair(one.offset, f"second {kind}: ignored")
            else:
                found[kind] = one
    if "domain" not in found:
        raise PddlError("the PDDL text contains no domain", fix="begin the domain with (define (domain NAME)")
    if problem is not None and "problem" not in found:
        raise PddlError("the PDDL text contains no problem", fix="begin the problem with (define (problem NAME)")
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
    draft.name = _name(definition[1], "domain")
    for section in _sections(definition):
        head, rest = section.head, section[1:]
        if head == ":requirements":
            draft.requirements += [word for word in rest if isinstance(word, Symbol)]
        elif head == ":types":
            _declare("type", draft.types, _typed_list(rest))
        elif head == ":constants":
            _declare("constant", draft.constants, _typed_list(rest))
        elif head == ":predicates":
            _read_predicates(draft, rest)
        elif head == ":action":
            _read_action(draft, section)
        else:
            section.text.repair(section.offset, f"{head or 'this'} does not belong in a domain: ignored")
    draft.types.pop(OBJECT, None)
    draft.requirements = draft.requirements or [":strips"]  # what PDDL assumes


def _read_problem(draft: PddlDraft, definition: Expression) -> None:
    draft.problem_name = _name(definition[1], "problem")
    goals: list[Condition] = []
    seen = set()
    for section in _sections(definition):
        head, rest = section.head, section[1:]
        seen.add(head)
        if head == ":domain":
            if not rest or rest[0] != draft.name:
                section.text.repair(section.offset, f"the problem names another domain: read as {draft.name}")
        elif head == ":objects":
            _declare("object", draft.objects, _typed_list(rest))
        elif head == ":init":
            _read_init(draft, rest)
        elif head == ":goal":
            goals += _conditions(rest, section)
            if len(goals) > 1:
                section.text.repair(section.offset, "more than one goal: joined with `and`")
        elif head != ":requirements":
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
            item = _wrapped(item)
        name = _name(item, "", 0)
        slots = [Typed(*one) for one in _typed_list(item[1:], draft.types)]
        if name not in draft.predicates:
            draft.predicates[name] = slots
        else:
            name.text.repair(name.offset, f"predicate {name} is declared twice: the second is ignored")


def _read_action(draft: PddlDraft, section: Expression) -> None:
    action = ActionDraft(name := _name(section, "action"))
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
    _declare(f"variable of action {name},", action.parameters, _typed_list(flat, draft.types))
    conditions = list(_conditions(fields.get(":precondition", []), section))
    action.precondition = conditions[0] if len(conditions) == 1 else Connective("and", tuple(conditions))
    for item in fields.get(":effect", []):
        action.effects += _effects(item)
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
        condition = _condition(item)
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


# Expressions → values


def _sections(definition: Expression) -> Iterator[Expression]:
    for item in definition[2:]:
        if isinstance(item, Expression):
            if item.head in _UNSUPPORTED:
                item.text.fail(item.offset, f"{item.head} is not supported")
            yield item
        else:
            item.text.repair(item.offset, f"{item} is not in parentheses: ignored")


def _wrapped(symbol: Symbol) -> Expression:
    made = Expression(symbol.text, symbol.offset)
    made.append(symbol)
    return made


def _name(expression: Expression, default: str, place: int = 1) -> Symbol:
    found = expression[place] if len(expression) > place else None
    if isinstance(found, Symbol) and found[0] not in _NO_NAME and found not in _RESERVED:
        return found
    if not default:
        expression.text.fail(expression.offset, "a name is missing")
    expression.text.repair(expression.offset, f"the {default} has no name: named {default}")
    return expression.text.symbol(default, expression.offset)


def _typed_list(items: Iterable[Any], types: Mapping[str, Any] | None = None) -> list[tuple[Symbol, tuple[str, ...]]]:
    """Names with their types. `types` are those known so far, where the names are variables."""
    found: list[tuple[Symbol, tuple[str, ...]]] = []
    waiting: list[Symbol] = []
    todo = list(items)[::-1]
    while todo:
        item = todo.pop()
        if isinstance(item, Expression):
            item.text.repair(item.offset, "parentheses in a list of names: ignored")
            todo += reversed(item)
            continue
        text, offset = item.text, item.offset
        following = todo[-1] if todo and isinstance(todo[-1], Symbol) else None
        if item == "?" and following and following[0] not in _NO_NAME:
            text.repair(offset, f"space after the question mark of ?{following}: removed")
            todo[-1] = text.symbol(f"?{following}", offset)
        elif item == "?" or item[0] in "<=>":
            text.repair(offset, f"{item} in a list of names: ignored")
        elif item[0] == "-" and len(item) > 1:
            text.repair(offset, f"no space after the hyphen of {item}: added")
            todo += [text.symbol(item[1:], offset + 1), text.symbol("-", offset)]
        elif item == "-":
            kinds = _kinds(todo, item)
            found += [(name, kinds) for name in waiting]
            waiting = []
        elif types is None:
            if item[0] in "?:":
                text.repair(offset, f"{item} in a list of names: read as {item[1:]}")
                item = text.symbol(item[1:], offset)
            waiting.append(item)
        elif item[0] == "?":
            if item.endswith("-") and following is not None and following[0] not in _NO_NAME:
                text.repair(offset, f"no space before the hyphen of {item}: added")
                todo.append(text.symbol("-", offset + len(item) - 1))
                item = text.symbol(item.rstrip("-"), offset)
            waiting.append(item)
        elif item in types and waiting:
            text.repair(offset, f"no hyphen before the type {item}: added")
            todo += [item, text.symbol("-", offset)]
        else:
            text.repair(offset, f"variable {item} has no question mark: added")
            waiting.append(text.symbol(f"?{item.lstrip(':')}", offset))
    return found + [(name, (OBJECT,)) for name in waiting]


def _kinds(todo: list[Any], hyphen: Symbol) -> tuple[str, ...]:
    """The type after a hyphen; taken off what is still to do."""
    if todo and isinstance(todo[-1], Expression):
        either = todo.pop()
        names = tuple(one for one in either if isinstance(one, Symbol) and one[0] not in _NO_NAME and one != "either")
        if either.head != "either":
            either.text.repair(either.offset, "parentheses around types: read as `either`")
        if len(names) > MAX_EITHER:
            either.text.fail(either.offset, f"more than {MAX_EITHER} types for one name are not supported")
        if names:
            return names
    elif todo and todo[-1][0] not in _NO_NAME:
        return (todo.pop(),)
    hyphen.text.repair(hyphen.offset, "no type after the hyphen: read as object")
    return (OBJECT,)


def _conditions(items: Sequence[Any], section: Expression) -> Iterator[Condition]:
    for item in items:
        if isinstance(item, Symbol) and item[0] == ":":
            section.text.repair(item.offset, f"{item} is not supported here: ignored")
        else:
            yield _condition(item)


def _condition(item: Any) -> Condition:
    if isinstance(item, Symbol):
        item.text.repair(item.offset, f"no parentheses around {item}: added")
        item = _wrapped(item)
    head, parts, text = item.head, item[1:], item.text
    if not item:
        return TRUE
    if head in _UNSUPPORTED or head == "when":
        text.fail(item.offset, f"{head} is not supported in a condition")
    if isinstance(item[0], Expression):
        text.repair(item.offset, "extra parentheses: removed" if len(item) == 1 else "list without `and`: `and` added")
        inner = tuple(_condition(part) for part in item)
        return inner[0] if len(inner) == 1 else Connective("and", inner)
    if head in ("and", "or"):
        return Connective("and" if head == "and" else "or", tuple(_condition(part) for part in parts))
    if head == "not":
        inner = tuple(Connective("not", (_condition(part),)) for part in parts)
        if len(inner) != 1:
            text.repair(item.offset, f"`not` takes one condition, but has {len(inner)}: each is negated")
        return inner[0] if len(inner) == 1 else Connective("and", inner)
    if head == "imply" and len(parts) == 2:
        return Connective("or", (Connective("not", (_condition(parts[0]),)), _condition(parts[1])))
    if head in ("forall", "exists") and len(parts) == 2 and isinstance(parts[0], Expression):
        variables = tuple(Typed(*one) for one in _typed_list(parts[0], {}))
        inner = (_condition(parts[1]),)
        return Connective("forall" if head == "forall" else "exists", inner, variables) if variables else inner[0]
    return _atom(item)


def _atom(item: Expression) -> Atom:
    arguments: list[Symbol] = []
    if item.head in _RESERVED or (item.head != EQUALS and item.head[:1] in _NO_NAME):
        item.text.fail(item.offset, f"{item.head or 'this'} cannot be read as a fact")
    todo = item[:0:-1]
    while todo:
        part = todo.pop()
        following = todo[-1] if todo and isinstance(todo[-1], Symbol) else None
        if isinstance(part, Expression):
            if len(part) != 1 or item.head == EQUALS:
                item.text.fail(
                    part.offset, f"the arguments of {item.head} must be names: expressions are not supported here"
                )
            item.text.repair(part.offset, "parentheses around an argument: removed")
            todo.append(part[0])
        elif part == "?" and following and following[0] not in _NO_NAME:
            item.text.repair(part.offset, f"space after the question mark of ?{following}: removed")
            todo[-1] = item.text.symbol(f"?{following}", part.offset)
        elif part == "?" or (part[0] in _NO_NAME and part[0] != "?"):
            if part == "-" and following and following[0] not in _NO_NAME:
                item.text.repair(part.offset, f"type {todo.pop()} in a fact: ignored")
            else:
                item.text.repair(part.offset, f"{part} in a fact: ignored")
        else:
            arguments.append(part)
    return Atom(item[0], tuple(arguments))


def _effects(item: Any, condition: Condition = TRUE, variables: tuple[Typed, ...] = ()) -> Iterator[Effect]:
    if isinstance(item, Symbol):
        item.text.repair(item.offset, f"no parentheses around {item}: added")
        item = _wrapped(item)
    head, parts, text = item.head, item[1:], item.text
    if not item:
        return
    if isinstance(item[0], Expression):
        text.repair(item.offset, "extra parentheses: removed" if len(item) == 1 else "list without `and`: `and` added")
        parts, head = item, "and"
    if head in _UNSUPPORTED or head in ("or", "imply", "exists", EQUALS):
        text.fail(item.offset, f"{head} is not supported in an effect")
    if head == "and":
        for part in parts:
            yield from _effects(part, condition, variables)
    elif head == "when" and len(parts) == 2:
        inner = _condition(parts[0])
        yield from _effects(parts[1], inner if condition == TRUE else Connective("and", (condition, inner)), variables)
    elif head == "forall" and len(parts) == 2 and isinstance(parts[0], Expression):
        more = tuple(Typed(*one) for one in _typed_list(parts[0], {}))
        yield from _effects(parts[1], condition, variables + more)
    elif head == "not":
        denied = list(_denied(parts, item))
        if len(parts) != 1 or len(denied) != 1:
            text.repair(item.offset, "`not` in an effect must contain exactly one fact: each fact in it is made false")
        yield from (Effect(atom, False, condition, variables) for atom in denied)
    else:
        yield Effect(_atom(item), True, condition, variables)


def _denied(parts: Sequence[Any], item: Expression) -> Iterator[Atom]:
    for part in parts:
        condition = _condition(part)
        parts_of = condition.parts if isinstance(condition, Connective) and condition.word == "and" else (condition,)
        for one in parts_of:
            if not isinstance(one, Atom) or one.predicate == EQUALS:
                item.text.fail(item.offset, "in an effect, `not` must contain a fact")
            yield one
