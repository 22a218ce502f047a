"""What people judged: the released judgements' numbers, and the form for hallucinations there and back."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.data import file_catalogue
from fluents.errors import InputError
from fluents.metrics.judgements import (
    FORM_COLUMNS,
    error_analysis,
    expansion_quality,
    hallucinations,
    judgements,
    released_expansion_judgements,
    released_judgements,
    write_form,
)
from fluents.records import Procedure, Reject, StateChange, Trace
from fluents.scoring.bootstrap import intervals


@pytest.mark.parametrize(
    ("model", "counts"),
    [
        # Table 5 has 585, 106, 14, 383 and 303, 173, 34, 218: `error_analysis` tells where they come from.
        ("davinci", [317, 106, 14, 143]),
        ("gpt-3.5", [302, 171, 33, 218]),
    ],
)
@pytest.mark.usefixtures("mirror")
def test_error_analysis_of_the_released_judgements(model: str, counts: list[int]) -> None:
    score = judgements(model)
    rows = ("correct", "no change", "nonsense", "missing")
    assert [score[row]["count"] for row in rows] == counts
    assert sum(score[row]["share"] for row in rows[:3]) == pytest.approx(1)
    low, high = intervals(score, resamples=100)["correct"]["share"]
    assert low < score["correct"]["share"] < high


@pytest.mark.usefixtures("mirror")
def test_quality_of_the_released_expansions() -> None:
    score = judgements("expansions")
    assert [f"{score[kind]['correct']:.1f}" for kind in ("entities", "attributes")] == ["83.3", "59.4"]


def test_shares_are_of_what_was_judged() -> None:
    verdicts = ["correct", "correct", "no change", "nonsense", "missing", "missing", "unjudged"]
    score = error_analysis(("tea", 1, verdict) for verdict in verdicts)
    assert {name: row["share"] for name, row in score.rows.items()} == {
        "correct": 0.5,
        "no change": 0.25,
        "nonsense": 0.25,
        "missing": 0.5,
    }
    assert score.warnings == ("1 prediction without a verdict: not counted",)


def test_expansions_are_judged_one_by_one_and_by_cluster() -> None:
    score = expansion_quality([("tea", "entities", 3, 0), ("tea", "entities", 1, 1), ("tea", "attributes", 2, 1)])
    assert score["entities"] == {"correct": 75, "faultless": 50}
    assert score["attributes"] == {"correct": 50, "faultless": 0}


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stands in for the published files, one after the other."""

    def serve(*values: object) -> None:
        given = iter(values)
        monkeypatch.setattr(file_catalogue, "document", lambda *_: (next(given), "judgements.json"))

    return serve


def test_codes_become_verdicts(document: Any) -> None:
    """Lines a judge left empty under "missing" are nothing; a prediction left without a verdict is told of."""
    cup = [["heat", "1"], ["size", "2"], ["mood", "3"], ["age", ""], [" place", 100], ["", 100]]
    document({"7": [{"cup": cup}, {}, "annotated"]})
    verdicts = ["correct", "no change", "nonsense", "unjudged", "missing"]
    assert list(released_judgements("davinci")) == [("7", 1, verdict) for verdict in verdicts]


def test_expansions_are_counted_by_cluster(document: Any) -> None:
    entity = {"overgenerate_cluster": ["mug", "bowl"], "bad_overgenerate": ["bowl"]}
    attribute = {"attribute_overgenerate": ["warmth"], "bad_overgenerate": []}
    document(
        {"7": {"annotation": {"cup": entity}}}, {"7": {"annotation": {"cup": {"attribute_annotation": [attribute]}}}}
    )
    assert list(released_expansion_judgements()) == [("7", "entities", 2, 1), ("7", "attributes", 1, 0)]


@pytest.mark.parametrize(
    "value", [[], {"7": []}, {"7": [{"cup": [["heat", "9"]]}, "annotated"]}, {"7": [{"cup": "heat"}, "annotated"]}]
)
def test_another_shape_is_an_input_error(document: Any, value: object) -> None:
    document(value)
    with pytest.raises(InputError):
        list(released_judgements("davinci"))


def test_a_procedure_not_judged_to_the_end_is_refused(document: Any) -> None:
    document({"7": [{"cup": [["heat", "1"]]}]})
    with pytest.raises(InputError, match="'7' are incomplete"):
        list(released_judgements("gpt-3.5"))


@pytest.mark.usefixtures("mirror")
def test_every_released_judgement_is_read() -> None:
    for model, procedures, judged in (("davinci", 20, 439), ("gpt-3.5", 22, 506)):
        read = list(released_judgements(model))
        assert len({procedure for procedure, *_ in read}) == procedures
        assert sum(verdict != "missing" for *_, verdict in read) == judged
    read_expansions = list(released_expansion_judgements())
    assert Counter(level for _, level, *_ in read_expansions) == {"entities": 104, "attributes": 250}


def traces(*sentences: str, name: str = "tea") -> list[Trace]:
    rejects = tuple(Reject(step=1, text=text, reason="as said", position=n) for n, text in enumerate(sentences))
    change = StateChange(step=2, entity="cup", attribute="place", before="shelf", after="table")
    return [Trace(procedure=Procedure(id=name, steps=("Boil.", "Pour.")), changes=(change,), rejects=rejects)]


def fill(path: Path, *verdicts: str) -> None:
    with path.open(encoding="utf-8", newline="") as stream:
        header, *lines = csv.reader(stream)
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *([*line[:-1], v] for line, v in zip(lines, verdicts, strict=True))])


def test_a_form_is_written_filled_in_and_scored(tmp_path: Path) -> None:
    form = tmp_path / "form.csv"
    assert write_form(traces("a, b", 'say "c"\nd'), form) == 3
    fill(form, "yes", "NO", " x ")
    score = hallucinations(form)
    assert score["hallucinated"] == {"count": 2, "share": pytest.approx(2 / 3)}
    assert (score.n_procedures, score.n_steps, score.warnings) == (1, 2, ())


def test_lines_without_an_answer_are_told_of_and_not_counted(tmp_path: Path) -> None:
    form = tmp_path / "form.csv"
    write_form(traces("a"), form)
    fill(form, "", "no")
    score = hallucinations(form)
    assert score["hallucinated"] == {"count": 0, "share": 0}
    assert score.warnings == (f"1 line not filled in, and not counted: {form}:2",)


def test_an_empty_form_has_no_score(tmp_path: Path) -> None:
    form = tmp_path / "form.csv"
    write_form(traces("a"), form)
    with pytest.raises(InputError, match="the form is not filled in"):
        hallucinations(form)
    write_form([], form)
    with pytest.raises(InputError, match="the form contains no changes"):
        hallucinations(form)


@pytest.mark.parametrize("text", ["=1+1", "+1+A2", "-cmd|'x'!A1", "@x", "'=1", "\t=1"])
def test_a_spreadsheet_runs_nothing_a_model_said(tmp_path: Path, text: str) -> None:
    form = tmp_path / "form.csv"
    write_form(traces(text, name=text), form)
    with form.open(encoding="utf-8", newline="") as stream:
        line = next(csv.DictReader(stream))
    assert line["procedure"] == line["state change"] == f"'{text}"


@given(st.text(min_size=1).filter(str.strip))
def test_a_procedure_keeps_its_id_through_the_form(name: str) -> None:
    with TemporaryDirectory() as folder:
        form = Path(folder, "form.csv")
        write_form(traces("a", name=name), form)
        fill(form, "yes", "no")
        assert set(hallucinations(form).statistics.procedures) == {name}


HEADER = ",".join(FORM_COLUMNS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a form"),
        (HEADER.replace(",", ";").encode() + b"\n", "not a form"),
        (HEADER.encode() + b"\ntea,1,1,Boil.,a,perhaps\n", "must contain yes or no"),
        (HEADER.encode() + b"\ntea,one,1,Boil.,a,yes\n", "the step must be a number"),
        (HEADER.encode() + b"\ntea,1,1,Boil.\n", "too few columns"),
        (HEADER.encode() + b"\ntea,1,1,Boil.,a,yes\ntea,1,1,Boil.,a,no\n", "listed twice in the form"),
        (HEADER.encode() + b"\nt\xe9,1,1,Boil.,a,yes\n", "not UTF-8"),
        (HEADER.encode() + b'\ntea,1,1,"' + b"x" * 200_000 + b'",a,yes\n', "not a CSV table"),
    ],
)
def test_what_is_not_the_form_is_an_input_error(tmp_path: Path, content: bytes, message: str) -> None:
    form = tmp_path / "form.csv"
    form.write_bytes(content)
    with pytest.raises(InputError, match=message):
        hallucinations(form)


def test_a_form_saved_by_a_spreadsheet_is_read(tmp_path: Path) -> None:
    """With a byte-order mark, Windows line ends, and one more column."""
    form = tmp_path / "form.csv"
    form.write_bytes(b"\xef\xbb\xbf" + f"{HEADER},notes\r\ntea,1,1,Boil.,a,yes,sure\r\n".encode())
    assert hallucinations(form)["hallucinated"]["count"] == 1


def test_a_huge_text_is_shown_in_part_and_the_form_still_reads(tmp_path: Path) -> None:
    form = tmp_path / "form.csv"
    write_form(traces("x" * 300_000), form)
    fill(form, "yes", "yes")
    assert hallucinations(form)["hallucinated"]["count"] == 2
