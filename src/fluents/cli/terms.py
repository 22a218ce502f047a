"""The terms of the help: the screen of `fluents` explains them all, every other names those that it uses."""

from __future__ import annotations

import re
from typing import NamedTuple


class Term(NamedTuple):
    """A term, how to find it in a text, and what it means."""

    name: str
    pattern: str
    meaning: str


TERMS = (
    Term("Procedure", "[Pp]rocedure", "a goal and its steps, such as a recipe."),
    Term(
        "Change, entity, attribute, state",
        r"[Cc]hange|[Ee]ntit|[Aa]ttribute|[Ss]tates?\b",
        "in a change, an attribute of an entity goes from one state to another. For example, the temperature of the "
        "oil goes from cold to hot: the entity is oil, the attribute is temperature, and the states are cold and hot.",
    ),
    Term("Trace", r"[Tt]races?\b", "a procedure with its changes. `fluents track` writes traces."),
    Term("Salience", "[Ss]alien", "how much an entity matters, from 0 (not at all) to 5."),
    Term(
        "Embedded model",
        "[Ee]mbedded model",
        "a language model that runs inside fluents, on this machine. It comes in three sizes: tiny, small and base.",
    ),
    Term(
        "Adapter",
        "[Aa]dapter",
        "a small file of weights that are added to a model (LoRA), so that the model does one task better.",
    ),
    Term("GGUF", "GGUF", "a file format for models and adapters."),
    Term(
        "Endpoint",
        "[Ee]ndpoint",
        "a server that runs a language model, on this machine or elsewhere, and has the same API as OpenAI.",
    ),
    Term(
        "Dataset split",
        r"\b[Ss]plits?\b",
        "a part of a dataset. For example, openpi:dev is the split dev of the dataset openpi. For a list of "
        "all splits, run `fluents data list`.",
    ),
    Term(
        "Gold and predictions",
        r"[Gg]old\b|[Pp]redict(ion|ed)",
        "the gold is the annotation that counts as correct. Predictions are the output of a system, and are compared "
        "with the gold.",
    ),
    Term(
        "Precision, recall, F1",
        r"\bF1\b|[Pp]recision and recall",
        "precision is the share of predictions that are right, recall is the share of the gold that was found, and F1 "
        "is their harmonic mean.",
    ),
    Term(
        "OpenPI, OpenPI-C, OpenPI2.0",
        "OpenPI",
        "three papers (2020, 2023 and 2024). Each comes with a dataset of procedures in which people annotated the "
        "changes.",
    ),
    Term(
        "Annotation project",
        r"\b[Pp]rojects?\b",
        "procedures that people annotate on a web page, stage by stage. Each stage asks one kind of "
        "question, for example whether a change is right. A question is also called an item. The people "
        "and models that have joined a project are its members.",
    ),
    Term(
        "Annotator, adjudicator, owner",
        r"annotators? (of|in) (a|the) project|[Aa]djudicator|\b[Oo]wners?\b|--role",
        "the roles of the members of a project. Annotators answer questions. Adjudicators can also settle "
        "disagreements. Owners can also invite people, start the next stage and export the results.",
    ),
    Term(
        "History",
        r"\b[Hh]istory\b",
        "a file with all answers of an annotation project. It says who gave each answer, and when.",
    ),
    Term("Few-shot examples", "few-shot", "solved examples in a prompt. They show the model how to answer."),
    Term(
        "PDDL",
        r"\bPDDL",
        "a language for planning problems. A domain defines the actions; a problem defines the initial state and the "
        "goal.",
    ),
    Term("JSONL", "JSONL", "a text format with one JSON object per line."),
    Term(
        "Extra",
        r"\bextra\b",
        "a set of optional packages. For example, `pip install 'fluents[web]'` installs the extra web.",
    ),
)


def glossary(heading: str) -> str:
    """All terms and what they mean, as a list in Markdown."""
    # A blank line between items keeps each on its own line.
    return "\n\n".join([heading, *(f"- **{term.name}**: {term.meaning}" for term in TERMS)])


def pointer(text: str) -> str:
    """A line that names the terms of a text and says where they are explained; empty where there are none."""
    used = [term.name for term in TERMS if re.search(term.pattern, text)]
    return f"Explained in `fluents --help`: {'; '.join(used)}." if used else ""
