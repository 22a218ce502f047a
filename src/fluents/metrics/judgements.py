"""Scores of what people judged: OpenPI2.0's error analysis and expansions, OpenPI-C's hallucinations.

For hallucinations nothing was released: `write_form` makes a table that a person fills in, and `hallucinations` scores
it.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from fluents.data import file_catalogue
from fluents.data.change_tables import as_cell, from_cell
from fluents.errors import InputError
from fluents.jsonl import atomic_output, open_input, wrong_shape_is_input_error
from fluents.records import Trace
from fluents.scoring.alignment import first_three, steps_of
from fluents.scoring.score import Figures, Score, ShareOf, Signature, Statistics, Total
from fluents.text.names import counted

VERDICTS = ("correct", "no change", "nonsense")
"""On a predicted (entity, attribute): it changes, it does not change, it makes no sense."""
MISSING, UNJUDGED = "missing", "unjudged"

_VERDICTS = {"1": "correct", "2": "no change", "3": "nonsense", "": UNJUDGED, 100: MISSING}
"""As the released files write them."""

Judgement: TypeAlias = tuple[str, int, str]
"""Procedure id, step, and the verdict on a predicted (entity, attribute) or UNJUDGED; MISSING for a pair that the judge
added."""

ExpansionJudgement: TypeAlias = tuple[str, str, int, int]
"""Procedure id, "entities" or "attributes", and of one cluster the number of paraphrases and of wrong ones."""

MODELS = {"davinci": "davinci", "gpt-3.5": "chatgpt"}
"""Names of the models here → in the files."""

EXPANSIONS = "expansions"


def judgements(source: str | Path) -> Score:
    """The score of released judgements ("davinci", "gpt-3.5" or "expansions"), or of a form that was filled in."""
    if str(source) == EXPANSIONS:
        return expansion_quality(released_expansion_judgements())
    if str(source) in MODELS:
        return error_analysis(released_judgements(str(source)))
    if str(source) != "-" and not Path(source).exists():
        known = ", ".join((*MODELS, EXPANSIONS))
        raise InputError(
            "there is neither a file nor a set of released judgements with this name",
            where=source,
            fix=f"give the path of a form that you filled in, or one of: {known}",
        )
    return hallucinations(source)


def released_judgements(model: str) -> Iterator[Judgement]:
    """On each (entity, attribute) one of MODELS predicted for about twenty procedures, and on missing ones."""
    document, where = file_catalogue.document("openpi2", f"v2.0/error_analysis/{MODELS[model]}_schema_analysis.json")
    with wrong_shape_is_input_error("this file does not contain the error analysis of OpenPI2.0", where):
        for procedure, steps in document.items():
            if steps[-1] != "annotated":
                raise InputError(f"the judgements on procedure {procedure!r} are incomplete", where=where)
            for number, step in enumerate(steps[:-1], start=1):
                for attribute, code in (pair for attributes in step.values() for pair in attributes):
                    if attribute.strip():  # a judge with nothing to add left an empty line
                        yield procedure, number, _VERDICTS[code]


def released_expansion_judgements() -> Iterator[ExpansionJudgement]:
    """On the paraphrases of each entity and attribute cluster of twenty procedures."""
    for kind, added in (("entity", "overgenerate_cluster"), ("attribute", "attribute_overgenerate")):
        path = f"v2.0/data/over_generate_relevance_annotation/v4-{kind}-annotation.json"
        document, where = file_catalogue.document("openpi2", path)
        with wrong_shape_is_input_error("this file does not contain the judgements on expansions of OpenPI2.0", where):
            for procedure, value in document.items():
                for entity in value["annotation"].values():
                    for cluster in [entity] if kind == "entity" else entity["attribute_annotation"]:
                        level = "entities" if kind == "entity" else "attributes"
                        yield procedure, level, len(cluster[added]), len(cluster["bad_overgenerate"])


def error_analysis(judgements: Iterable[Judgement]) -> Score:
    """OpenPI2.0's table 5: counts, and shares of the judged predictions. What is missing is set against them too.

    The released files give gpt-3.5-turbo 302 / 171 / 33, missing 218 (the paper prints 303 / 173 / 34 / 218), and
    text-davinci-003 317 / 106 / 14, missing 143 (the paper prints 585 / 106 / 14 / 383, and 20.3 % missing). That file
    has 585 lines marked correct or added for missing pairs, 125 of them left empty; 143 of 585 + 106 + 14 are 20.3 %;
    and 383 is the number of added lines in the other model's file.
    """
    counts: dict[tuple[str, int], Counter[str]] = {}
    for procedure, step, verdict in judgements:
        counts.setdefault((procedure, step), Counter())[verdict] += 1
    columns = (*VERDICTS, MISSING, UNJUDGED, "judged")
    rows = (
        (procedure, step, [*(found[name] for name in columns[:-1]), sum(found[name] for name in VERDICTS)])
        for (procedure, step), found in counts.items()
    )
    statistics = Statistics.collect(columns, rows)
    figures: Figures = {name: {"count": Total(name), "share": ShareOf(name, "judged")} for name in (*VERDICTS, MISSING)}
    unjudged = int(statistics.sums()[UNJUDGED])
    warnings = (f"{counted(unjudged, 'prediction')} without a verdict: not counted",) if unjudged else ()
    return Score("error analysis", statistics, figures, Signature.of("error analysis", "human"), warnings, scale=1.0)


def expansion_quality(judgements: Iterable[ExpansionJudgement]) -> Score:
    """The share of generated paraphrases that are right, and of clusters without a wrong one."""
    kinds = ("entities", "attributes")
    parts = ("right", "paraphrases", "faultless", "clusters")
    rows = []
    for procedure, kind, paraphrases, wrong in judgements:
        values = [paraphrases - wrong, paraphrases, wrong == 0, 1]
        rows.append((procedure, 0, [value * (kind == one) for one in kinds for value in values]))
    figures: Figures = {
        kind: {
            "correct": ShareOf(f"{kind}.right", f"{kind}.paraphrases"),
            "faultless": ShareOf(f"{kind}.faultless", f"{kind}.clusters"),
        }
        for kind in kinds
    }
    columns = [f"{kind}.{part}" for kind in kinds for part in parts]
    signature = Signature.of("expansion quality", "human")
    return Score("expansion quality", Statistics.collect(columns, rows), figures, signature)


FORM_COLUMNS = ("procedure", "step", "answer", "step text", "state change", "hallucinated")
_AS_CSV = "save the table as comma-separated values (CSV) in UTF-8, with its header"
_SHOWN = 2000
"""Characters of a text that the form shows: a cell must stay readable, for people and for CSV readers."""
_YES, _NO = {"yes", "y", "1", "true", "x"}, {"no", "n", "0", "false"}


def write_form(traces: Iterable[Trace], path: str | Path) -> int:
    """A CSV table of every predicted change, with an empty column "hallucinated" to answer yes or no in."""
    count = 0
    with atomic_output(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        table = csv.writer(text)
        table.writerow(FORM_COLUMNS)
        for trace in traces:
            for step in steps_of([trace]):
                for number, sentence in enumerate(step.sentences, start=1):
                    told = [as_cell(text[:_SHOWN]) for text in (trace.procedure.steps[step.step - 1], sentence)]
                    table.writerow((as_cell(trace.id), step.step, number, *told, ""))
                    count += 1
        text.flush()
        text.detach()
    return count


def hallucinations(path: str | Path) -> Score:
    """How many changes a filled-in form calls hallucinated. Lines without an answer are not counted, and told of."""
    judged: dict[tuple[str, int], list[int]] = {}
    seen: set[tuple[str, int, str]] = set()
    empty: list[str] = []
    for where, line in _form_lines(path):
        if not (line["step"].isdecimal() and len(line["step"]) < 10):
            fix = "restore the column `step` of the form"
            raise InputError(f"the step must be a number, not {line['step']!r}", where=where, fix=fix)
        procedure, step = from_cell(line["procedure"]), int(line["step"])
        if (procedure, step, line["answer"]) in seen:
            raise InputError("this change is listed twice in the form", where=where, fix="delete one of the two lines")
        seen.add((procedure, step, line["answer"]))
        verdict = line["hallucinated"].strip().lower()
        if verdict and verdict not in _YES | _NO:
            what = f"the column `hallucinated` must contain yes or no, not {line['hallucinated']!r}"
            raise InputError(what, where=where, fix="write yes or no")
        if not verdict:
            empty.append(where)
            continue
        count = judged.setdefault((procedure, step), [0, 0])
        count[0] += verdict in _YES
        count[1] += 1
    if not judged and not empty:
        fix = "make a form from predictions that have changes"
        raise InputError("the form contains no changes to judge", where=path, fix=fix)
    if not judged:
        raise InputError("the form is not filled in", where=path, fix='write yes or no under "hallucinated"')
    warnings = (f"{counted(len(empty), 'line')} not filled in, and not counted: {first_three(empty)}",) if empty else ()
    return hallucination_score(judged, warnings)


def hallucination_score(judged: Mapping[tuple[str, int], Sequence[int]], warnings: tuple[str, ...] = ()) -> Score:
    """The score of judged changes: of each step of a procedure the number hallucinated and the number judged."""
    statistics = Statistics.collect(("hallucinated", "judged"), ((*key, count) for key, count in judged.items()))
    figures: Figures = {"hallucinated": {"count": Total("hallucinated"), "share": ShareOf("hallucinated", "judged")}}
    return Score("hallucinations", statistics, figures, Signature.of("hallucinations", "human"), warnings, scale=1.0)


def _form_lines(path: str | Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    with open_input(path) as stream:
        try:
            table = csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), strict=True)
            if not set(FORM_COLUMNS) <= set(table.fieldnames or ()):
                raise InputError(
                    f"this file is not a form: a form is a CSV table with the columns {', '.join(FORM_COLUMNS)}",
                    where=path,
                    fix="to make a form, run: fluents eval judgements PREDICTIONS --form form.csv. If this is a form "
                    "that you edited, " + _AS_CSV,
                )
            for line in table:
                where = f"{path}:{table.line_num}"
                if any(line[column] is None for column in FORM_COLUMNS):
                    fix = f"fill in all columns of this line: {', '.join(FORM_COLUMNS)}"
                    raise InputError("this line has too few columns", where=where, fix=fix)
                yield where, line
        except UnicodeDecodeError:
            raise InputError("the file is not UTF-8", where=path, fix=_AS_CSV) from None
        except csv.Error as error:
            raise InputError(f"this is not a CSV table: {error}", where=path, fix=_AS_CSV) from None
