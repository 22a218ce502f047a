"""Expressions → lists of names, conditions and effects, repaired where they need it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fluents.planning.expressions import Expression, Symbol
from fluents.planning.model import EQUALS, OBJECT, TRUE, Atom, Condition, Connective, Effect, Typed

UNSUPPORTED = frozenset(
    {":functions", ":derived", ":durative-action", ":constraints", ":metric", "preference", "oneof", "probabilistic"}
    | {"increase", "decrease", "assign", "scale-up", "scale-down", "<", ">", "<=", ">=", "always", "sometime"}
)
"""What fluents does not support; as the name of a predicate, only where that is declared."""
RESERVED = frozenset({"define", "and", "or", "not", "imply", "forall", "exists", "when", "either"})
KEYWORDS = (
    (RESERVED | {word for word in UNSUPPORTED if word[0] not in ":<>"})
    | {OBJECT, "number", "at", "over", "all", "within", "at-most-once", "sometime-after", "sometime-before"}
    | {"always-within", "hold-during", "hold-after", "minimize", "maximize", "total-time", "total-cost", "is-violated"}
)
"""What means something to one reader of PDDL or another: names that fluents makes up avoid all of these."""
_NO_NAME = "?:-<=>"
"""What no name of an object, a type or a predicate begins with."""
MAX_EITHER = 50
"""Types that a name may have."""


def wrapped(symbol: Symbol) -> Expression:
    made = Expression(symbol.text, symbol.offset)
    made.append(symbol)
    return made


def name_in(expression: Expression, default: str, place: int = 1) -> Symbol:
    found = expression[place] if len(expression) > place else None
    if isinstance(found, Symbol) and found[0] not in _NO_NAME and found not in RESERVED:
        return found
    if not default:
        expression.text.fail(expression.offset, "a name is missing")
    expression.text.repair(expression.offset, f"the {default} has no name: named {default}")
    return expression.text.symbol(default, expression.offset)


def typed_list(items: Iterable[Any], types: Mapping[str, Any] | None = None) -> list[tuple[Symbol, tuple[str, ...]]]:
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


def _atom(item: Expression) -> Atom:
    arguments: list[Symbol] = []
    if item.head in RESERVED or (item.head != EQUALS and item.head[:1] in _NO_NAME):
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


class ConditionReader:
    """Conditions and effects. `declared` are the predicates of the domain: one of them may be called like a keyword."""

    def __init__(self, declared: Container[str] = ()) -> None:
        self._declared = declared

    def _is_unsupported(self, item: Expression) -> bool:
        """(assign ?x) is a fact where assign is declared as a predicate; (assign (level) 3) is still a number."""
        is_fact = item.head in self._declared and all(isinstance(part, Symbol) for part in item)
        return item.head in UNSUPPORTED and not is_fact

    def conditions(self, items: Sequence[Any], section: Expression) -> Iterator[Condition]:
        for item in items:
            if isinstance(item, Symbol) and item[0] == ":":
                section.text.repair(item.offset, f"{item} is not supported here: ignored")
            else:
                yield self.condition(item)

    def condition(self, item: Any) -> Condition:
        if isinstance(item, Symbol):
            item.text.repair(item.offset, f"no parentheses around {item}: added")
            item = wrapped(item)
        head, parts, text = item.head, item[1:], item.text
        if not item:
            return TRUE
        if head == "when" or self._is_unsupported(item):
            text.fail(item.offset, f"{head} is not supported in a condition")
        if isinstance(item[0], Expression):
            text.repair(
                item.offset, "extra parentheses: removed" if len(item) == 1 else "list without `and`: `and` added"
            )
            inner = tuple(self.condition(part) for part in item)
            return inner[0] if len(inner) == 1 else Connective("and", inner)
        if head in ("and", "or"):
            return Connective("and" if head == "and" else "or", tuple(self.condition(part) for part in parts))
        if head == "not":
            inner = tuple(Connective("not", (self.condition(part),)) for part in parts)
            if len(inner) != 1:
                text.repair(item.offset, f"`not` takes one condition, but has {len(inner)}: each is negated")
            return inner[0] if len(inner) == 1 else Connective("and", inner)
        if head == "imply" and len(parts) == 2:
            return Connective("or", (Connective("not", (self.condition(parts[0]),)), self.condition(parts[1])))
        if head in ("forall", "exists") and len(parts) == 2 and isinstance(parts[0], Expression):
            variables = tuple(Typed(*one) for one in typed_list(parts[0], {}))
            inner = (self.condition(parts[1]),)
            return Connective("forall" if head == "forall" else "exists", inner, variables) if variables else inner[0]
        return _atom(item)

    def effects(self, item: Any, condition: Condition = TRUE, variables: tuple[Typed, ...] = ()) -> Iterator[Effect]:
        if isinstance(item, Symbol):
            item.text.repair(item.offset, f"no parentheses around {item}: added")
            item = wrapped(item)
        head, parts, text = item.head, item[1:], item.text
        if not item:
            return
        if isinstance(item[0], Expression):
            text.repair(
                item.offset, "extra parentheses: removed" if len(item) == 1 else "list without `and`: `and` added"
            )
            parts, head = item, "and"
        if head in ("or", "imply", "exists", EQUALS) or self._is_unsupported(item):
            text.fail(item.offset, f"{head} is not supported in an effect")
        if head == "and":
            for part in parts:
                yield from self.effects(part, condition, variables)
        elif head == "when" and len(parts) == 2:
            inner = self.condition(parts[0])
            yield from self.effects(
                parts[1], inner if condition == TRUE else Connective("and", (condition, inner)), variables
            )
        elif head == "forall" and len(parts) == 2 and isinstance(parts[0], Expression):
            more = tuple(Typed(*one) for one in typed_list(parts[0], {}))
            yield from self.effects(parts[1], condition, variables + more)
        elif head == "not":
            denied = list(self._denied(parts, item))
            if len(parts) != 1 or len(denied) != 1:
                text.repair(
                    item.offset, "`not` in an effect must contain exactly one fact: each fact in it is made false"
                )
            yield from (Effect(atom, False, condition, variables) for atom in denied)
        else:
            yield Effect(_atom(item), True, condition, variables)

    def _denied(self, parts: Sequence[Any], item: Expression) -> Iterator[Atom]:
        for part in parts:
            condition = self.condition(part)
            parts_of = (
                condition.parts if isinstance(condition, Connective) and condition.word == "and" else (condition,)
            )
            for one in parts_of:
                if not isinstance(one, Atom) or one.predicate == EQUALS:
                    item.text.fail(item.offset, "in an effect, `not` must contain a fact")
                yield one
