"""The lenient reader: valid PDDL is read as it is, anything else is repaired with a reason or refused with a place."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pddl_strategies import tasks

from fluents.data.datasets import load
from fluents.planning.expressions import PddlError
from fluents.planning.grounding import TooLargeError
from fluents.planning.model import Domain, Problem
from fluents.planning.reader import PddlReading, read_pddl
from fluents.planning.search import search
from fluents.planning.states import World
from fluents.task_records import PddlTask

DOMAIN = """(define (domain kettle)
  (:requirements :strips :typing)
  (:types kettle place)
  (:predicates (at ?k - kettle ?p - place) (hot ?k - kettle))
  (:action carry
    :parameters (?k - kettle ?from - place ?to - place)
    :precondition (at ?k ?from)
    :effect (and (at ?k ?to) (not (at ?k ?from))))
  (:action boil
    :parameters (?k - kettle ?p - place)
    :precondition (and (at ?k ?p))
    :effect (hot ?k)))
"""
PROBLEM = """(define (problem tea)
  (:domain kettle)
  (:objects pot - kettle hob sink - place)
  (:init (at pot sink))
  (:goal (and (at pot hob) (hot pot))))
"""


def repaired(domain: str, problem: str = PROBLEM) -> tuple[PddlReading, list[str]]:
    found = read_pddl(domain, problem)
    again = read_pddl(str(found.domain), str(found.problem), strict=True)
    assert (again.domain, again.problem) == (found.domain, found.problem)
    return found, [repair.message for repair in found.repairs]


def test_valid_pddl_needs_no_repair_and_prints_as_what_it_is() -> None:
    found = read_pddl(DOMAIN, PROBLEM, strict=True)
    assert found.repairs == ()
    assert read_pddl(str(found.domain), str(found.problem), strict=True) == found


def test_a_variable_may_be_called_like_an_object() -> None:
    goal = "(:goal (forall (?pot - kettle) (exists (?hob - place) (or (hot pot) (at ?pot hob) (at ?pot ?hob)))))"
    problem = PROBLEM.replace("(:goal (and (at pot hob) (hot pot)))", goal)
    assert goal in problem
    found = read_pddl(DOMAIN.replace(":strips", ":adl"), problem, strict=True)
    assert goal in str(found.problem)


@given(tasks())
def test_whatever_is_valid_comes_back_as_it_was(task: tuple[Domain, Problem]) -> None:
    domain, problem = task
    found = read_pddl(str(domain), str(problem))
    assert found.repairs == ()
    assert found.domain == domain
    assert found.problem == problem


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("?k - kettle ?from", "?k -kettle ?from", "no space after the hyphen of -kettle: added"),
        ("?k - kettle ?from", "?k- kettle ?from", "no space before the hyphen of ?k-: added"),
        ("?k - kettle ?from", "?k kettle ?from", "no hyphen before the type kettle: added"),
        ("(hot ?k - kettle)", "(hot ? k - kettle)", "space after the question mark of ?k: removed"),
        ("(:types kettle place)", "(:types kettle)", "type place is not declared: added"),
        ("(:types kettle place)", "(:types kettle place place)", "type place is declared twice: merged"),
        ("(:types kettle place)", "(:types kettle - pot place)", "type pot is not declared: added"),
        ("(hot ?k - kettle)", "", "predicate hot is not declared: added"),
        ("(hot ?k - kettle)", "(hot)", "hot is declared with 0 arguments, but used with 1: declaration changed"),
        ("(at ?k ?from)\n", "(at ?from)\n", "used with 1: (at ?from) is read as (at ?k ?from)"),
        ("(at ?k ?to)", "(at ?k sink)", "sink is not declared in the domain: added as a constant"),
        ("(at ?k ?from)\n", "(at k ?from)\n", "k has no question mark: read as ?k"),
        ("?from - place ?to - place", "?from - place", "?to is not a parameter of carry: added"),
        (" :typing", "", ":typing is used but not required: added to :requirements"),
        ("(:requirements :strips :typing)", "", ":typing is used but not required: added to :requirements"),
        ("(at ?k ?from)\n", "(not (hot ?k))\n", " is used but not required: added to :requirements"),
        (":effect (hot ?k)))", ":effect (hot ?k)", "missing closing parenthesis: added at the end"),
        (":effect (hot ?k)))", ":effect (hot ?k))))", "extra closing parenthesis: ignored"),
        ("(not (at ?k ?from))))", "(not (at ?k ?from)))", "missing closing parenthesis before :action: added there"),
        (":precondition (and (at ?k ?p))", ":precondition (and (at ?k ?p)", "parenthesis before :effect: added there"),
        ("(at ?k ?from)\n", "(at ?k ?from))\n", ":action is closed before :effect: extra parenthesis ignored"),
        (":precondition (at", ":preconditions (at", ":preconditions is not a PDDL keyword: read as :precondition"),
        ("(domain kettle)", "domain kettle", "no parentheses around domain and its name: added"),
        ("(:action boil", "(:action carry", "second action carry: renamed to carry-2"),
        ("(define", "Here is the domain:\n(define", "text outside a definition: ignored"),
        (":effect (hot ?k)", ":effect ((hot ?k))", "extra parentheses: removed"),
        ("(hot ?k - kettle)", "(hot ?k - place)", "but hot takes place: hot changed to take object"),
    ],
)  # fmt: skip
def test_what_people_and_models_write_is_repaired(old: str, new: str, message: str) -> None:
    broken = DOMAIN.replace(old, new, 1)
    assert broken != DOMAIN
    found, messages = repaired(broken)
    assert any(said.endswith(message) for said in messages)
    with pytest.raises(PddlError, match="this PDDL has"):
        read_pddl(broken, PROBLEM, strict=True)
    if "typ" not in message and "carry-2" not in message and "sink" not in new:
        assert [action.effects for action in found.domain.actions] == [
            action.effects for action in read_pddl(DOMAIN).domain.actions
        ]


COOL = "(:action cool :parameters (?k - kettle) :precondition (hot ?k) :effect (not (hot ?k)))\n"


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            f"Here is it:\n{DOMAIN}I forgot one more action:\n{COOL}{PROBLEM}",
            [
                "line 1, column 1: text outside a definition: ignored",
                "line 14, column 1: text outside a definition: ignored",
                "line 15, column 1: action outside the domain: added to the domain",
            ],
        ),
        (f"{COOL}{DOMAIN}{PROBLEM}", ["line 1, column 1: action outside the domain: added to the domain"]),
        (
            f"{DOMAIN}{PROBLEM}{COOL}",
            [
                "line 18, column 1: define is closed before :action: extra parenthesis ignored",
                "line 13, column 1: missing closing parenthesis: added at the end",
                "line 18, column 1: action outside the domain: added to the domain",
            ],
        ),
        (
            f"{DOMAIN}And (see above) \n (:init (hot pot)) so\n on\n{COOL}{PROBLEM}",
            [
                "line 13, column 1: text outside a definition: ignored",
                "line 14, column 2: (:init …) outside a definition: ignored",
                "line 14, column 20: text outside a definition: ignored",
                "line 16, column 1: action outside the domain: added to the domain",
            ],
        ),
    ],
)
def test_what_stands_outside_is_added_or_reported(text: str, messages: list[str]) -> None:
    """A language model forgets an action, and adds it after some words: it was dropped, and nothing said so."""
    found = read_pddl(text)
    assert [str(repair).removeprefix("text, ") for repair in found.repairs] == messages
    assert [action.name for action in found.domain.actions] == ["carry", "boil", "cool"]
    assert read_pddl(str(found.domain), str(found.problem), strict=True).domain == found.domain


@pytest.mark.parametrize("name", ["assign", "increase", "scale-up", "always", "sometime", "preference", "oneof"])
def test_a_declared_predicate_may_be_called_like_a_keyword(name: str) -> None:
    domain, problem = (re.sub(r"\bhot\b", name, text) for text in (DOMAIN, PROBLEM))
    found = read_pddl(domain, problem, strict=True)
    assert str(read_pddl(DOMAIN, PROBLEM).domain).replace("(hot ", f"({name} ") == str(found.domain)
    with pytest.raises(PddlError, match=f"{name} is not supported"):
        read_pddl(domain.replace(f":effect ({name} ?k)", f":effect ({name} (at ?k) 3)"), problem)
    with pytest.raises(PddlError, match=f"{name} is not supported"):
        read_pddl(domain.replace(f" ({name} ?k - kettle)", ""), problem)


@pytest.mark.parametrize("other", ["", " (ho-t ?k - kettle)"])
def test_a_declaration_that_is_changed_is_one_repair(other: str) -> None:
    """It was followed by "not declared" and "added", or even read as another predicate."""
    found, messages = repaired(DOMAIN.replace("(hot ?k - kettle)", f"(hot){other}"))
    assert messages == ["hot is declared with 0 arguments, but used with 1: declaration changed"]
    assert str(found.problem) == str(read_pddl(DOMAIN, PROBLEM).problem)


def test_a_predicate_may_be_declared_after_the_actions() -> None:
    [predicates] = re.findall(r"  \(:predicates.*\n", DOMAIN)
    later = DOMAIN.replace(predicates, "").rstrip()[:-1] + f"\n{predicates})"
    assert read_pddl(later.replace("hot", "always"), PROBLEM.replace("hot", "always"), strict=True).repairs == ()


def test_a_byte_order_mark_is_no_error() -> None:
    assert read_pddl(f"\ufeff{DOMAIN}", f"\ufeff{PROBLEM}", strict=True) == read_pddl(DOMAIN, PROBLEM)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hob sink - place", "hob - place", "object sink is not declared: added with type place"),
        ("hob sink - place", "hob sink sink - place", "object sink is declared twice: merged"),
        ("(:domain kettle)", "(:domain kettles)", "the problem names another domain: read as kettle"),
        ("(hot pot)", "(hot ?k)", "variable ?k outside an action: read as pot, the only object that fits"),
        (
            "(:goal (and (at pot hob) (hot pot)))",
            "(:goal (at pot hob) (hot pot))",
            "more than one goal: joined with `and`",
        ),
        ("(:init (at pot sink))", "", ":init is missing: added"),
        ("(at pot sink)", "(and (at pot sink) (hot pot))", "`and` in :init: replaced by its parts"),
        ("sink", "the%sink", "the%sink is not a valid PDDL name: read as the_sink"),
    ],
)
def test_problems_are_repaired_too(old: str, new: str, message: str) -> None:
    assert message in repaired(DOMAIN, PROBLEM.replace(old, new))[1]


def test_a_repair_says_where() -> None:
    [repair] = read_pddl(DOMAIN.replace("(hot ?k - kettle)", "(hot ?k -kettle)")).repairs
    assert str(repair) == "text, line 4, column 52: no space after the hyphen of -kettle: added"


@pytest.mark.parametrize(
    ("domain", "problem", "message"),
    [
        ("", PROBLEM, "contains no domain"),
        (DOMAIN, "nothing here", "contains no problem"),
        (DOMAIN, "(define (problem tea) (:domain kettle))", "the problem has no goal"),
        (DOMAIN.replace("(:types", "(:functions (cost)) (:types"), PROBLEM, ":functions is not supported"),
        (DOMAIN.replace("(hot ?k)))", "(increase (cost) 1)))"), PROBLEM, "increase is not supported in an effect"),
        (DOMAIN.replace("(hot ?k)))", "(or (hot ?k))))"), PROBLEM, "or is not supported in an effect"),
        (
            DOMAIN,
            PROBLEM.replace("(at pot sink)", "(= (cost) 0)"),
            "the arguments of = must be names: expressions are not supported here",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(domain: str, problem: str, message: str) -> None:
    with pytest.raises(PddlError, match=re.escape(message)):
        read_pddl(domain, problem)


words = st.sampled_from([*re.findall(r"[()]|[^\s()]+", DOMAIN + PROBLEM), *"()()?-:é%", "either", "forall", "when"])


@settings(max_examples=300)
@given(st.one_of(st.text(), st.lists(words, max_size=80).map(" ".join)), st.lists(words, max_size=40).map(" ".join))
def test_any_text_is_read_or_refused(first: str, second: str) -> None:
    """And what was read is valid once it is printed, and can be planned with."""
    for text in (first, DOMAIN[: len(first) * 3] + first + DOMAIN[len(first) * 3 :]):
        try:
            found = read_pddl(text, PROBLEM + second)
        except PddlError:
            continue
        again = read_pddl(str(found.domain), str(found.problem), strict=True)
        assert (again.domain, again.problem) == (found.domain, found.problem)
        assert found.problem is not None
        with suppress(TooLargeError):
            search(World(found.domain, found.problem))


MANY = " ".join(f"?x{n}" for n in range(100_000))
FACTS = "".join(f"(p ?x{n})" for n in range(100_000))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000_000,
        "(define (domain d) (:action a :effect " + "(and " * 1_000_000,
        "a " * 5_000_000,
        "(define (domain d) (:predicates " + "(p ?x)" * 1_000_000,
        "(define (domain d) (:types " + " ".join(f"t{n} - t{n + 1}" for n in range(400_000)),
        "(define (domain d) (:action a :parameters () :effect (and " + "(p ?x)" * 600_000 + ")))",
        f"(define (domain d) (:predicates (p ?x)) (:action a :parameters ({MANY}) :effect (and {FACTS})))",
        ")" * 5_000_000,
        "é " * 3_000_000,
    ],
    ids=["open", "nested", "words", "predicates", "types", "facts", "parameters", "close", "letters"],
)  # fmt: skip
def test_ten_megabytes_neither_crash_nor_hang(text: str) -> None:
    started = time.process_time()
    with suppress(PddlError):
        read_pddl(text)
    assert time.process_time() - started < 120  # seconds of this process: a hang, not a slow machine


@pytest.mark.usefixtures("mirror")
def test_all_problems_of_proc2pddl_are_read() -> None:
    """Strict readers read 3 of the 95."""
    count = 0
    for task in load("proc2pddl:all"):
        assert isinstance(task, PddlTask)
        for problem in task.problems.values():
            repaired(task.domain, problem)
            count += 1
    assert count == 95


def strictly_read(*texts: str) -> Any:
    """What unified-planning reads; None where it does not, for which it has no error of its own."""
    from unified_planning.io import PDDLReader

    try:
        return PDDLReader().parse_problem_string(*texts)
    except Exception:
        return None


@pytest.mark.slow
@pytest.mark.usefixtures("mirror")
@pytest.mark.filterwarnings("ignore")  # of unified-planning's own
@pytest.mark.skipif(find_spec("unified_planning") is None, reason="needs the extra plan")
@pytest.mark.no_cover  # the library's reader takes a second for every text
def test_what_a_strict_reader_reads_means_the_same_after_our_repair() -> None:
    """Of Proc2PDDL's problems, unified-planning reads three as they are: to those we may only add requirements."""
    same = 0
    for task in load("proc2pddl:all"):
        assert isinstance(task, PddlTask)
        for problem in task.problems.values() if strictly_read(task.domain) else ():
            if (before := strictly_read(task.domain, problem)) is not None:
                found = read_pddl(task.domain, problem)
                assert all("added to :requirements" in repair.message for repair in found.repairs)
                assert before == strictly_read(str(found.domain), str(found.problem))
                same += 1
    assert same == 3
