"""SQL over results: the ready views, what they count, what is refused."""

from __future__ import annotations

import csv
import errno
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="needs the extra batch")

import fluents as fl
from fluents.batches.query import VIEWS, QueryError, plot_of, query, rows_of, write
from fluents.batches.store import Manifest, ShardFormat, ShardStore
from fluents.errors import InputError
from fluents.records import StateChange, Trace
from kitchen import dish


def change(step: int, entity: str, attribute: str, before: str, after: str) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


SOUP = Trace(
    procedure=dish(0),
    changes=(change(1, "Pan", "heat", "cold", "hot"), change(2, "soup", "Heat", "cold", "boiling hot")),
)
BREAD = Trace(procedure=dish(1).replace(topic=None), changes=(change(1, "pan", "place", "shelf", "hotplate"),))
BURNT = Trace(procedure=dish(2), error="track: it burnt")


@pytest.fixture(params=["parquet", "jsonl"])
def results(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    format: ShardFormat = request.param
    return made(tmp_path / "it's here", format)


def made(folder: Path, format: ShardFormat = "parquet") -> Path:
    store = ShardStore(folder)
    store.create()
    shards = [store.write_shard(f"a-1.{format}", [SOUP, BREAD]), store.write_shard(f"b-1.{format}", [BURNT])]
    store.write_shard(f"old-1.{format}", [SOUP])
    store.write_manifest(Manifest({"format": format}, tuple(shards), True))
    return folder


def test_the_views_hold_what_the_manifest_lists(results: Path) -> None:
    assert query(results, "changes").fetchall()[0][:7] == ("dish-0", "cooking", 1, "Pan", "heat", "cold", "hot")
    assert query(results, "entities").fetchall() == [("pan", 2, 2, 2), ("soup", 1, 1, 1)]
    assert query(results, "transitions").fetchall()[0] == ("heat", "cold", "boiling hot", 1, 1)
    assert query(results, "attributes").fetchall() == [("heat", 2, 2), ("place", 1, 1)]
    assert query(results, "topics").fetchall() == [("(none)", "place", 1), ("cooking", "heat", 2)]
    assert query(results, "failures").fetchall() == [("dish-2", "track: it burnt")]
    assert [row[3:] for row in query(results, "procedures").fetchall()] == [
        (2, 2, None), (2, 1, None), (2, 0, "track: it burnt"),
    ]  # fmt: skip


def test_becomes_finds_words_not_parts_of_words(results: Path) -> None:
    assert {row[2] for row in query(results, "becomes hot").fetchall()} == {"Pan", "soup"}
    assert {row[2] for row in query(results, "BECOMES 'Boiling'").fetchall()} == {"soup"}
    assert query(results, "becomes '; DROP VIEW changes").fetchall() == []


def test_becomes_finds_words_next_to_each_other(results: Path) -> None:
    assert [row[2] for row in query(results, "becomes Boiling,  HOT").fetchall()] == ["soup"]
    assert [row[2] for row in query(results, "FROM becomes('boiling hot')").fetchall()] == ["soup"]
    for nobody in ("becomes hot boiling", "becomes boiling ho", "FROM becomes('')", "FROM becomes('!')"):
        assert query(results, nobody).fetchall() == []
    with pytest.raises(QueryError, match="no word"):
        query(results, "becomes '!'")


@pytest.mark.parametrize(
    "statement",
    [
        "DROP VIEW changes",
        "SELECT 1; DROP VIEW changes",
        "CREATE TABLE mine AS SELECT 1",
        "CREATE TABLE mine AS PIVOT changes ON step USING count(*)",
        "COPY changes TO '{folder}/a-1.parquet'",
        "EXPLAIN ANALYZE COPY changes TO '{folder}/a-1.parquet'",
        "CHECKPOINT",
        "EXPLAIN SELECT 1",  # reads, but is of no kind that is accepted
        "PRAGMA version",
        "SELECT 1; -- done\nDROP VIEW changes",
        "SELECT 1; SELECT 2",
        "-- done",
    ],
)
def test_sql_that_does_more_than_read_is_refused(tmp_path: Path, statement: str) -> None:
    folder = made(tmp_path / "out")
    before = (folder / "a-1.parquet").read_bytes()
    with pytest.raises(QueryError, match="must be a single statement of one of these kinds: SELECT, "):
        query(folder, statement.format(folder=folder))
    assert (folder / "a-1.parquet").read_bytes() == before


@pytest.mark.parametrize(
    "question",
    [
        "FROM changes -- all of them",
        "DESCRIBE changes",
        "SHOW TABLES",
        "PIVOT changes ON step USING count(*)",
        "WITH hot AS (FROM becomes('hot')) SELECT entity FROM hot ORDER BY 1 LIMIT 1;",
        "SUMMARIZE changes",
        "SELECT 1; -- done",
        "PIVOT changes ON step USING count(*); /* done; */ ;",
        "changes ;",
    ],
)
def test_sql_that_reads_is_answered(results: Path, question: str) -> None:
    assert query(results, question).fetchall()


def test_only_the_semicolon_at_the_end_of_sql_ends_it(results: Path) -> None:
    question = "SELECT ';' AS a -- b;c\n, 2 AS d /* ; */; -- e;f"
    assert query(results, question).fetchall() == [(";", 2)]


def test_a_folder_on_a_read_only_disk_is_queried_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There even the removal of a file that does not exist is an error."""
    folder = made(tmp_path / "out")

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("replace", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    assert len(query(folder).fetchall()) == 3


def test_results_that_are_not_complete_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    folder = made(tmp_path / "out")
    query(folder, "changes", told.append)
    assert told == []
    store = ShardStore(folder)
    manifest = store.read_manifest()
    assert manifest is not None
    store.write_manifest(Manifest(manifest.settings, manifest.shards[:1], False))
    query(folder, "changes", told.append)
    [notice] = told
    assert f"{folder} is not complete: the folder contains only 2 procedures" in notice


def test_sql_and_relations_from_the_front_door(results: Path) -> None:
    found = fl.query(results, "SELECT entity, count(*) AS n FROM becomes('hot') GROUP BY 1 ORDER BY 1;")
    assert found.filter("entity = 'Pan'").fetchall() == [("Pan", 1)]
    assert rows_of(found, 1) == (["entity", "n"], [("Pan", 1)])


def test_a_new_manifest_is_seen(results: Path) -> None:
    assert len(query(results).fetchall()) == 3
    store = ShardStore(results)
    manifest = store.read_manifest()
    assert manifest is not None
    store.write_manifest(Manifest(manifest.settings, manifest.shards[1:], True))
    assert len(query(results).fetchall()) == 0
    assert len(list(results.glob(".changes-*.parquet"))) == 1, "the old table is gone"


@pytest.mark.parametrize(
    "question",
    [
        "selec 1",
        "nothing",
        "SELECT nothing FROM changes",
        "SELECT * FROM read_csv('/etc/passwd')",
        "",
        "COPY changes TO 'x.csv'",
        "SELECT 1) ; DROP VIEW changes; SELECT * FROM (SELECT 1",
    ],
)
def test_what_is_no_question_about_the_results_is_told(results: Path, question: str) -> None:
    with pytest.raises(QueryError):
        query(results, question).fetchall()


def test_folders_without_results_and_damaged_ones_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="was not written by `fluents batch`"):
        query(tmp_path)
    folder = made(tmp_path / "out")
    (folder / "a-1.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(QueryError, match="cannot read the results") as caught:
        rows_of(query(folder, "procedures"), 5)
    assert "run the same `fluents batch` command again" in str(caught.value)


@pytest.mark.parametrize("view", ["entities", "transitions", "attributes", "topics"])
def test_common_views_can_be_drawn(results: Path, view: str) -> None:
    drawn = plot_of(query(results, view), view)
    assert drawn.startswith("<svg ")
    assert "<title>" in drawn
    assert set(VIEWS) >= {view}


def test_a_plot_needs_numbers(results: Path) -> None:
    with pytest.raises(InputError, match="nothing to plot"):
        plot_of(query(results, "failures"), "failures")


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_all_rows_go_to_a_file(results: Path, tmp_path: Path, name: str) -> None:
    write(query(results, "entities"), tmp_path / name)
    assert (tmp_path / name).stat().st_size > 20
    with pytest.raises(InputError, match="must be a Parquet or CSV file"):
        write(query(results, "entities"), tmp_path / "rows.xlsx")


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_spreadsheet_runs_no_word_of_a_csv_file(tmp_path: Path, format: ShardFormat) -> None:
    """Entities and states are words of a text that anybody may have written."""
    import pyarrow.parquet

    link = '=HYPERLINK("http://x")'
    store = ShardStore(tmp_path)
    trace = Trace(procedure=dish(0), changes=(change(1, link, "heat", "@SUM(A1)", "-18 °C"),))
    store.write_manifest(Manifest({"format": format}, (store.write_shard(f"a.{format}", [trace]),), True))
    sql = "SELECT entity, before, after, step, NULL::VARCHAR AS empty, entity::ENUM('{}') AS kind FROM changes"
    write(query(tmp_path, sql.format(link)), tmp_path / "rows.csv")
    write(query(tmp_path, "PIVOT changes ON entity USING count(*) GROUP BY step"), tmp_path / "pivot.csv")
    write(query(tmp_path, "changes"), tmp_path / "rows.parquet")
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as stream:
        [row] = csv.DictReader(stream)
    marked = f"'{link}"
    assert list(row.values()) == [marked, "'@SUM(A1)", "-18 °C", "1", "", marked]
    with (tmp_path / "pivot.csv").open(encoding="utf-8", newline="") as stream:
        assert list(csv.reader(stream)) == [["step", marked], ["1", "1"]]
    kept = pyarrow.parquet.read_table(tmp_path / "rows.parquet")["entity"].to_pylist()
    assert kept == [link], "what reads Parquet runs nothing"
