"""The files researchers have their predictions in: each is read, or the error shows what would be."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fluents.data.change_tables import csv_text
from fluents.data.file_catalogue import find, local_path
from fluents.data.file_formats import read_traces, write
from fluents.errors import FluentsError, FluentsWarning, InputError
from fluents.records import UNKNOWN_STEP, Procedure, Provenance, StateChange, Trace

HOT = ("water", "temperature", "cold", "hot")
FULL = ("cup", "fullness", "empty", "full")
SENTENCES = [
    "temperature of water was cold before and hot afterwards",
    "fullness of cup was empty before and full afterwards",
]
OBJECTS = [dict(zip(("entity", "attribute", "before", "after"), change, strict=True)) for change in (HOT, FULL)]


def traces_of(path: Path, text: str | bytes) -> list[Trace]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_traces(path))


def facts(trace: Trace) -> list[tuple[Any, ...]]:
    return [(change.step, change.entity, change.attribute, change.before, change.after) for change in trace.changes]


BOTH = [(1, *HOT), (2, *FULL)]
ROWS = [{"id": "tea||1", "answers": SENTENCES[:1]}, {"id": "tea||2", "answers": SENTENCES[1:]}]

FILES = {
    "a JSON list of OpenPI rows": json.dumps(ROWS),
    "the same, indented": json.dumps(ROWS, indent=2),
    "answers as objects": "\n".join(
        json.dumps({"id": f"tea||{number}", "answers": [answer]}) for number, answer in enumerate(OBJECTS, 1)
    ),
    "answers as lists": json.dumps(
        [{"id": "tea||1", "answers": [list(HOT)]}, {"id": "tea||2", "answers": [list(FULL)]}]
    ),
    "answers by id": json.dumps({"tea||1": SENTENCES[:1], "tea||2": SENTENCES[1:]}),
    "a JSON list of OpenPI-C lines": json.dumps(
        [{"id": ["tea", n], "query": "Do.", "answers": [list(change)]} for n, change in enumerate((HOT, FULL), 1)]
    ),
    "OpenPI-C with objects": json.dumps(
        [{"id": ["tea", n], "query": "Do.", "answers": [change]} for n, change in enumerate(OBJECTS, 1)]
    ),
    "states of OpenPI2.0's code": json.dumps({"tea": [[list(HOT)], [list(FULL)]]}, indent=4),
    "sentences of OpenPI2.0's code": json.dumps({"tea": [SENTENCES[:1], SENTENCES[1:]]}),
    "CSV": "id,step,entity,attribute,before,after\ntea,1,water,temperature,cold,hot\ntea,2,cup,fullness,empty,full\n",
    "CSV of a spreadsheet": "\ufeffID;Step;Entity;Attribute;Before;After\r\ntea;1;water;temperature;cold;hot\r\n"
    "tea;2;cup;fullness;empty;full;;\r\n",
    "TSV in another order": "after\tbefore\tattr\tentity\tstep\tprocedure\nhot\tcold\ttemperature\twater\t1.0\ttea\n"
    "full\tempty\tfullness\tcup\t2\ttea\n",
    "rows as JSON": json.dumps([{"id": "tea", "step": step} | row for step, row in enumerate(OBJECTS, 1)]),
    "rows as JSONL": "\n".join(json.dumps({"id": "tea", "step": step} | row) for step, row in enumerate(OBJECTS, 1)),
}


@pytest.mark.parametrize("name", FILES)
def test_what_researchers_have_is_read(tmp_path: Path, name: str) -> None:
    (trace,) = traces_of(tmp_path / "pred", FILES[name])
    assert (trace.id, facts(trace)) == ("tea", BOTH)


def test_schemata_of_openpi2_s_code(tmp_path: Path) -> None:
    (trace,) = traces_of(tmp_path / "pred", json.dumps({"1": [{"water": ["heat", "place"]}, {}, {"cup": []}]}))
    assert facts(trace) == [(1, "water", "heat", "", ""), (1, "water", "place", "", "")]
    assert len(trace.procedure.steps) == 3
    assert [reject.step for reject in trace.rejects] == [3]


def test_a_utf16_table_as_spreadsheets_export_it(tmp_path: Path) -> None:
    (trace,) = traces_of(tmp_path / "pred.txt", FILES["TSV in another order"].encode("utf-16"))
    assert facts(trace) == BOTH


def test_a_table_with_texts_goals_and_steps_without_changes(tmp_path: Path) -> None:
    text = "id,step,goal,text,entity,attribute,before,after\ntea,3,Make tea,Wait.,,,,\n"
    text += 'tea,1,,"Boil, ""hot"".",water,heat,low,high\n'
    (trace,) = traces_of(tmp_path / "pred.csv", text)
    assert trace.procedure == Procedure(id="tea", goal="Make tea", steps=('Boil, "hot".', UNKNOWN_STEP, "Wait."))
    assert facts(trace) == [(1, "water", "heat", "low", "high")]


def test_columns_that_are_not_known_are_named(tmp_path: Path) -> None:
    with pytest.warns(FluentsWarning, match="ignored unknown columns: colour, 温度$"):
        (trace,) = traces_of(tmp_path / "pred.csv", "id,step,entity,attribute,colour,温度\ntea,1,water,heat,red,7\n")
    assert facts(trace) == [(1, "water", "heat", "", "")]


def test_rows_of_a_trace_come_back(tmp_path: Path) -> None:
    changes = (
        StateChange(step=1, entity="water", attribute="heat", before="low", after="high", support=0.5, mentioned=True),
        StateChange(step=2, entity="cup", attribute="place", before="shelf", after="table, left", mentioned=False),
    )
    trace = Trace(procedure=Procedure(id="tea", steps=("Boil.", "Pour.")), changes=changes)
    table = io.StringIO()
    writer = csv.DictWriter(table, fieldnames=list(trace.rows()[0]))
    writer.writeheader()
    writer.writerows(trace.rows())
    (again,) = traces_of(tmp_path / "pred.csv", table.getvalue())
    assert (again.changes, again.procedure.steps) == (trace.changes, trace.procedure.steps)
    longer = Trace(procedure=Procedure(id="tea", goal="Make tea", steps=("Boil.", "Pour.", "Wait.")), changes=changes)
    write([longer], "csv", tmp_path / "out.csv")
    (again,) = read_traces(tmp_path / "out.csv")
    assert again.replace(provenance=Provenance()) == longer


@pytest.mark.parametrize("words", ["=1+1", "+1+A2", "-2+3+cmd|' /C calc'!A0", "@x", "'=1", "'", "\t=1"])
def test_a_spreadsheet_runs_nothing_of_a_table(tmp_path: Path, words: str) -> None:
    change = StateChange(step=1, entity=words, attribute="place", before="shelf", after=words)
    trace = Trace(procedure=Procedure(id="tea", goal=words, steps=(words,)), changes=(change,))
    write([trace], "csv", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert {row[name][0] for name in ("goal", "text", "entity", "after")} == {"'"}
    (again,) = read_traces(tmp_path / "out.csv")
    assert [one.after for one in again.changes] == [words.strip()]


@pytest.mark.parametrize("words", ["-18 °C", "+5", "-0.5 mm"])
def test_quantities_stay_as_they_are_in_a_table(words: str) -> None:
    change = StateChange(step=1, entity="ice", attribute="temperature", before="0 °C", after=words)
    rows = csv_text([Trace(procedure=Procedure(id="ice", steps=("Freeze.",)), changes=(change,))]).splitlines()
    assert words in rows[1].split(",")


@pytest.mark.usefixtures("mirror")
def test_the_released_outputs_by_path_and_by_name() -> None:
    """What OpenPI2.0's code wrote is read alike, whether fluents knows the file or not."""
    for name, split in (
        ("schema_davinci_1", "schemata"),
        ("states_davinci", "states"),
        ("schema_davinci_2", "sentences"),
    ):
        file = local_path(find("openpi2", f"v2.0/output/dev_{name}.json"))
        known = read_traces(f"openpi2-outputs:davinci-{split}")
        assert [(trace.id, trace.changes) for trace in read_traces(file)] == [(gold.id, gold.changes) for gold in known]


@pytest.mark.parametrize(
    ("given_rating", "value"), [(4, 4), ("4", 4), (4.5, 4.5), ("4.5", 4.5), ("n/a", None), (None, None)]
)
def test_salience_of_another_rater(tmp_path: Path, given_rating: Any, value: float | None) -> None:
    """Only the publishers put a number where they could not read a text."""
    cell = {"states": [], "local_salience_pred": given_rating}
    states = [{"entity": "water", "answers": {"step1": cell}, "global_salience_pred": given_rating}]
    (trace,) = traces_of(tmp_path / "pred", json.dumps({"1": {"goal": "Tea", "steps": ["Boil."], "states": states}}))
    assert [(rating.step, rating.value) for rating in trace.salience] == [(None, value), (1, value)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"predictions": {"tea": 1}}', "unknown format"),
        ('{"procedure": "tea"}\n{"procedure": "soup"}\n', "unknown format"),
        ('{"id": "tea", "answers": []}', "'tea' is not of the form procedure||step"),
        ('{"id": "tea||1", "answers": [{"entity": "water"}]}', "'attribute' is missing"),
        ('{"id": "tea||1", "answers": [["water", "heat"]]}', "a sentence or [entity, attribute, before, after]"),
        ('{"id": "tea||1", "answers": [7]}', "a sentence or [entity, attribute, before, after]"),
        ("entity,attribute\nwater,heat\n", "the column 'id' is missing"),
        ("water is hot\n", "neither JSON nor a table of changes"),
    ],
)
def test_what_is_not_read_shows_the_lines_that_would_be(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        traces_of(tmp_path / "pred", text)
    assert what in caught.value.what
    assert '{"id": "tea||1", "answers": ["temperature of' in str(caught.value) or "tea,1,water" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("id,step,entity,attribute\ntea,one,water,heat\n", "the step must be a whole number"),
        ("id,step,entity,attribute\ntea,0,water,heat\n", "the step must be a whole number"),
        ("id,step,entity,attribute\ntea,1,water\n", "3 cells, but the header has 4"),
        ("id,step,entity,attribute\ntea,1,water,heat,more\n", "5 cells, but the header has 4"),
        ("id,step,entity,attribute\n,1,water,heat\n", "the column 'id' is empty"),
        ('id,step,entity,attribute\ntea,1,water,"' + "a" * 200_000 + "\n", "this row cannot be read as CSV"),
        (b"id,step,entity,attribute\ntea,1,caf\xe9,heat\n", "invalid UTF-8"),
        (
            '[{"id": "tea", "step": 1, "entity": ["water"], "attribute": "heat"}]',
            "'entity' must be a string or a number",
        ),
        ('{"1": [7]}', "answers must be a list, found 7"),
        ('{"1": [{"water": "heat"}]}', "the attributes of an entity must be a list"),
        ('{"1": [[["water", "heat"]]]}', "a state must be [entity, attribute, before, after]"),
    ],
)
def test_what_is_wrong_with_a_row_and_where(tmp_path: Path, text: str | bytes, what: str) -> None:
    with pytest.raises(InputError) as caught:
        traces_of(tmp_path / "pred", text)
    assert what in caught.value.what
    assert str(tmp_path / "pred") in str(caught.value.where)


WORDS = [
    "id",
    "answers",
    "answer",
    "steps",
    "goal",
    "states",
    "entity",
    "attribute",
    "step",
    "input",
    "fluents",
    "kind",
]
WORDS += [
    "question",
    "question_metadata",
    "query",
    "tea||1",
    "1",
    "trace",
    "global_salience_pred",
    "clusters",
    "entities",
]
words = st.sampled_from(WORDS) | st.text(max_size=4)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=5),
    max_leaves=25,
)


def only_fluents_errors(path: Path, text: str | bytes) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    what = ""
    try:
        list(read_traces(path))
    except FluentsError as error:
        what = error.what
    assert not any(name in what for name in ("KeyError", "AttributeError", "TypeError", "ValueError", "NoneType"))


anything_goes = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@anything_goes
@pytest.mark.filterwarnings("ignore::fluents.errors.FluentsWarning")
@given(json_values)
def test_any_json_is_read_or_a_fluents_error(tmp_path: Path, value: Any) -> None:
    only_fluents_errors(tmp_path / "any", json.dumps(value))
    if isinstance(value, list):
        only_fluents_errors(tmp_path / "any", "\n".join(map(json.dumps, value)))


@anything_goes
@pytest.mark.filterwarnings("ignore::fluents.errors.FluentsWarning")
@given(
    st.sampled_from(["id,step,entity,attribute", "entity\tattribute\tid\tstep", "id;step;entity;attribute;support"]),
    st.text(),
)
def test_any_table_is_read_or_a_fluents_error(tmp_path: Path, header: str, text: str) -> None:
    only_fluents_errors(tmp_path / "any", f"{header}\n{text}")


@anything_goes
@given(st.binary())
def test_any_bytes_are_read_or_a_fluents_error(tmp_path: Path, data: bytes) -> None:
    only_fluents_errors(tmp_path / "any", data)
