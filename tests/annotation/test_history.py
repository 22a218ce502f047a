"""Histories: they come back without loss, damaged ones are refused, and `fluents eval` reads their agreement."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from decided import BOILED, SOAKED, TEA_TRACE, change, one_stage, run, shown
from hypothesis import given
from hypothesis import strategies as st

import fluents as fl
from command_run import Run
from fluents.annotation import Decision, Item, StageOutcome, items
from fluents.annotation.agreement import history_agreement
from fluents.annotation.design import STAGE_KINDS, Pay, ProjectDesign, StageDesign
from fluents.annotation.export import SUFFIXES, written
from fluents.annotation.history import (
    HistoryBlindPass,
    HistoryDecision,
    HistoryEnd,
    HistoryGuideline,
    HistoryHead,
    HistoryItem,
    HistoryLine,
    HistoryMember,
    HistoryStage,
    HistoryTrace,
    history_line,
    history_records,
)
from fluents.errors import InputError
from fluents.metrics import score
from fluents.records import EntityCluster, Trace


def history_file(path: Path, *outcomes: StageOutcome) -> Path:
    """The history of a project with these stages."""
    design = ProjectDesign(name="tea", stages=tuple(StageDesign(kind=one.items[0].kind) for one in outcomes))
    records: list[HistoryLine] = [HistoryHead(version=1, created=1.0, design=design)]
    for number, one in enumerate(outcomes, start=1):
        records.append(HistoryStage(number=number, opened=1.0))
        records += [HistoryItem(item=item) for item in one.items]
    records += [HistoryDecision(decision=decision) for one in outcomes for decision in one.decisions]
    records.append(HistoryEnd(lines=len(records)))
    path.write_bytes(b"".join(map(history_line, records)))
    return path


def numbered(lines: list[bytes]) -> list[tuple[str, bytes]]:
    return [(f"file:{number}", line) for number, line in enumerate(lines, start=1)]


CLUSTER = EntityCluster(name="water", mentions=("water",), expansions=("liquid",))
RICH = TEA_TRACE.replace(clusters=(CLUSTER,))
"""Every kind of stage has an item on it."""

text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(str.strip)
times = st.floats(0, 2**32)
designs = st.builds(
    ProjectDesign,
    name=text,
    stages=st.lists(
        st.builds(StageDesign, kind=st.sampled_from(STAGE_KINDS), pay=st.none() | st.builds(Pay)), min_size=1
    ).map(tuple),
    guideline=text,
    consent=st.none() | text,
    seed=st.integers(0, 2**53 - 1),
)
decisions = st.builds(
    Decision,
    id=st.from_regex(r"[A-Za-z0-9_-]{8,64}", fullmatch=True),
    item=text,
    author=text,
    answer=st.dictionaries(
        text, st.none() | st.booleans() | st.integers(-5, 5) | st.lists(text, max_size=3), max_size=3
    ),
    time=times,
    seconds=st.none() | st.floats(0, 1e6),
    undoes=st.none() | text,
    adjudicates=st.booleans(),
    checks=st.booleans(),
    guideline=st.integers(1, 9),
)
records: st.SearchStrategy[HistoryLine] = st.one_of(
    st.builds(HistoryHead, version=st.just(1), created=times, design=designs),
    st.builds(HistoryGuideline, version=st.integers(1, 99), text=text, created=times),
    st.builds(
        HistoryMember,
        number=st.integers(1, 99),
        name=text,
        role=st.sampled_from(["annotator", "adjudicator", "owner"]),
        joined=times,
        consented=st.none() | times,
    ),
    st.builds(HistoryTrace, role=st.sampled_from(["stage", "draft", "system"]), name=text, trace=st.just(TEA_TRACE)),
    st.builds(HistoryDecision, decision=decisions),
    st.builds(HistoryBlindPass, item=text, author=text, changes=st.just(({"step": 1, "entity": "water"},)), time=times),
    st.sampled_from(STAGE_KINDS).map(lambda kind: HistoryItem(item=next(items(one_stage(kind), 1, [RICH])))),
)


@given(st.lists(records, max_size=6))
def test_whatever_is_in_a_history_comes_back_byte_for_byte(records: list[HistoryLine]) -> None:
    lines = [history_line(record) for record in [*records, HistoryEnd(lines=len(records))]]
    again = list(history_records(numbered(lines)))
    assert again == records
    assert [history_line(record) for record in again] == lines[:-1]


@pytest.fixture
def vetted() -> StageOutcome:
    said = {"A": "yyyyn", "B": "yyynn", "C": "yynyn"}
    return run(one_stage("vet"), [TEA_TRACE], lambda item, who: {"valid": said[who][item.payload["position"]] == "y"})


def test_a_history_that_was_cut_or_changed_is_refused(vetted: StageOutcome, tmp_path: Path) -> None:
    lines = history_file(tmp_path / "history.jsonl", vetted).read_bytes().splitlines(keepends=True)
    for damaged in (lines[:-1], lines[1:], [*lines, lines[0]], [b"{}\n"], [b"nonsense\n"], []):
        with pytest.raises(InputError):
            list(history_records(numbered(damaged)))
    with pytest.raises(InputError, match="not the complete history"):  # another kind of file
        list(history_records(numbered([b'{"fluents": 1, "kind": "trace"}\n'])))
    hostile = json.loads(lines[2])
    hostile["item"]["more"] = 1
    with pytest.raises(InputError, match="more"):
        list(history_records(numbered([*lines[:2], json.dumps(hostile).encode(), *lines[3:]])))


def test_an_answer_that_no_form_takes_is_refused(vetted: StageOutcome, tmp_path: Path) -> None:
    hostile = vetted.decisions[0].replace(answer={"valid": "perhaps"})
    path = history_file(tmp_path / "history.jsonl", replace(vetted, decisions=[hostile]))
    with pytest.raises(InputError, match="valid"):
        history_agreement(path, 1)


# Agreement of a history


def test_eval_gives_the_agreement_of_the_stage(vetted: StageOutcome, tmp_path: Path) -> None:
    """The numbers computed by hand in test_stage_agreement: alpha 0.44, three of five."""
    path = history_file(tmp_path / "history.jsonl", vetted)
    found = history_agreement(path, 1).score
    assert found["alpha"]["nominal"] == vetted.agreement.overall.alpha == pytest.approx(0.44)
    assert found["agreement"]["share"] == vetted.agreement.overall.full == 0.6
    assert "|stage:vet|" in str(found.signature)


def test_salience_of_a_history_and_of_the_exported_traces_agree(tmp_path: Path) -> None:
    def say(item: Item, author: str) -> dict[str, Any]:
        step = item.payload.get("step", 0)
        return {
            "scores": {name: (n + step * (1 + (author == "B"))) % 6 for n, name in enumerate(item.payload["entities"])}
        }

    rated = run(one_stage("salience"), [TEA_TRACE], say)
    path = history_file(tmp_path / "history.jsonl", rated)
    fl.save(rated.traces, tmp_path / "rated.jsonl")
    for scope in ("global", "local"):
        of_history = history_agreement(path, 1, scope="global" if scope == "global" else "local").score
        assert of_history.rows == score("agreement", tmp_path / "rated.jsonl", None, scope=scope).rows


def test_authors_are_compared_modulo_paraphrase(tmp_path: Path) -> None:
    said = {"A": [BOILED, SOAKED], "B": [change(1, "the water", "temperature", "cool", "hot")]}
    found = run(one_stage("author"), [TEA_TRACE], lambda _, who: {"changes": [shown(one) for one in said[who]]})
    path = history_file(tmp_path / "history.jsonl", found)
    assert found.agreement.paraphrase is not None
    assert history_agreement(path, 1).score["alpha"]["nominal"] == found.agreement.paraphrase.alpha


def test_the_command_reads_a_history(vetted: StageOutcome, tmp_path: Path, run: Run) -> None:
    path = history_file(tmp_path / "history.jsonl", vetted)
    done = run("eval", "agreement", "--gold", path, "--stage", "1", "--raters", "A,B", "--json")
    assert done.json["scores"]["agreement"]["share"] == 0.8
    for arguments, message in (
        (("--stage", "2"), "no questions of stage 2"),
        (("--stage", "1", "--raters", "D"), "the annotator 'D' answered no question"),
        (("--stage", "1", "--pred", path), "--pred and --stage cannot be combined"),
    ):
        done = run("eval", "agreement", "--gold", path, *arguments)
        assert done.status == 2
        assert message in done.err


# Results in the formats of the datasets, as they stream


@pytest.mark.parametrize("format", ["fluents", "openpi-c", "openpi2"])
def test_a_stream_is_a_file_that_loads(format: Any, tmp_path: Path) -> None:
    path = tmp_path / f"result{SUFFIXES[format]}"
    path.write_bytes(b"".join(written(lambda: iter([TEA_TRACE]), format)))
    [again] = fl.load(path)
    assert [one.sentence for one in again.changes] == [one.sentence for one in _by_entity(TEA_TRACE, format)]


def _by_entity(trace: Trace, format: str) -> list[Any]:
    """OpenPI2.0 has the changes of each entity together."""
    order = {name: place for place, name in enumerate(dict.fromkeys(one.entity for one in trace.changes))}
    return sorted(trace.changes, key=lambda one: order[one.entity]) if format == "openpi2" else list(trace.changes)


def test_openpi_streams_as_an_archive_of_its_four_files(tmp_path: Path) -> None:
    data = b"".join(written(lambda: iter([TEA_TRACE]), "openpi"))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path / "openpi")
    [again] = fl.load(tmp_path / "openpi")
    assert [one.templated for one in again.changes] == [one.templated for one in TEA_TRACE.changes]


def test_nothing_streams_as_an_empty_document() -> None:
    assert b"".join(written(lambda: iter([]), "openpi2")) == b"{}\n"
    assert b"".join(written(lambda: iter([]), "fluents")) == b""
