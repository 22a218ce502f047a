"""SQL over the results of a batch run: ready views on its shards, with DuckDB."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluents import jsonl
from fluents.batches.documents import OnNotice
from fluents.batches.store import MANIFEST, Manifest, ShardStore
from fluents.errors import FluentsError, InputError, needs_extra

with needs_extra("batch"):
    import duckdb

if TYPE_CHECKING:
    import pyarrow


class QueryError(FluentsError):
    """DuckDB cannot answer this."""


VIEWS: dict[str, str] = {
    "changes": """
        SELECT procedure.id AS procedure, procedure.topic AS topic, change.step AS step, change.entity AS entity,
               change.attribute AS attribute, change.before AS before, change.after AS after,
               change.confidence AS confidence, change.support AS support, change.mentioned AS mentioned
        FROM (SELECT procedure, unnest(changes) AS change FROM traces)""",
    "procedures": """
        SELECT procedure.id AS procedure, procedure.goal AS goal, procedure.topic AS topic,
               coalesce(len(procedure.steps), 0) AS steps, coalesce(len(changes), 0) AS changes, error
        FROM traces""",
    "failures": "SELECT procedure.id AS procedure, error FROM traces WHERE error IS NOT NULL",
    "entities": """
        SELECT lower(entity) AS entity, count(*) AS changes, count(DISTINCT procedure) AS procedures,
               count(DISTINCT lower(attribute)) AS attributes
        FROM changes GROUP BY 1 ORDER BY changes DESC, 1""",
    "transitions": """
        SELECT lower(attribute) AS attribute, lower(before) AS before, lower(after) AS after, count(*) AS changes,
               count(DISTINCT lower(entity)) AS entities
        FROM changes GROUP BY 1, 2, 3 ORDER BY changes DESC, 1, 2, 3""",
    "attributes": """
        SELECT lower(attribute) AS attribute, count(*) AS changes, count(DISTINCT lower(entity)) AS entities
        FROM changes GROUP BY 1 ORDER BY changes DESC, 1""",
    "topics": """
        SELECT * FROM (
            SELECT coalesce(topic, '(none)') AS topic, lower(attribute) AS attribute, count(*) AS changes
            FROM changes GROUP BY 1, 2)
        QUALIFY row_number() OVER (PARTITION BY topic ORDER BY changes DESC, attribute) <= 10
        ORDER BY topic, changes DESC, attribute""",
}
"""The ready views. `topics` are the ten attributes that change most in each topic."""

MOST_BARS = 20
_QUOTES = "'\""


ACCEPTED = ("SELECT", "FROM", "WITH", "DESCRIBE", "SHOW", "SUMMARIZE", "PIVOT")
"""How statements that only read begin, as they are told to users."""
READING = ("SELECT", "MULTI")
"""Types of the statements that are queries. DuckDB makes several statements of a PIVOT."""


def query(
    folder: str | Path, question: str = "changes", on_notice: OnNotice = lambda _: None
) -> duckdb.DuckDBPyRelation:
    """The answer of a batch run's results as a DuckDB relation: `.df()`, `.fetchall()`, `.filter(…)`, `.show()`.

    `question` is a view (changes, entities, transitions, attributes, topics, procedures, failures), "becomes WORDS" for
    whatever ends in a state with these words next to each other, or SQL over these tables and becomes('WORDS').
    `on_notice` is told if the run is not complete.

    >>> fl.query("out", "becomes hot").df()
    >>> fl.query("out", "SELECT entity, count(*) FROM changes GROUP BY 1")
    """
    connection = open_views(folder, on_notice)
    words = question.strip().rstrip(";").rstrip()
    if words in VIEWS:
        words = f"SELECT * FROM {words}"
    elif found := re.fullmatch(r"becomes\s+(.+)", words, re.IGNORECASE):
        if not any(map(str.isalnum, found[1])):
            raise QueryError("`becomes` is given no word", fix="give a word of a state, such as `becomes hot`")
        words = f"SELECT * FROM becomes('{_quoted(found[1].strip(_QUOTES))}')"
    try:
        return connection.sql(_reading(connection, words))
    except duckdb.Error as error:
        raise _query_error(error) from None


def _reading(connection: duckdb.DuckDBPyConnection, words: str) -> str:
    """The statement without the semicolon at its end. Refuses what changes the views or writes a file, and all but the
    last of several statements: nobody would see their answers."""
    found = connection.extract_statements(words)
    if len(found) == 1 and found[0].type.name in READING:
        # A comment may stand behind the semicolon, or contain one.
        ends = [len(words), *(end for end in reversed(range(len(words))) if words[end] == ";")]
        for end in ends:
            with suppress(duckdb.ParserException):  # what can stand in a SELECT does nothing but read
                within = connection.extract_statements(f"SELECT * FROM (\n{words[:end]}\n)")
                if len(within) == 1 and not connection.extract_statements(words[end:]):
                    return words[:end]
    raise QueryError(
        f"the SQL must be a single statement of one of these kinds: {', '.join(ACCEPTED)}",
        fix=f"give such a statement, or the name of a view: {', '.join(VIEWS)}",
    )


def open_views(folder: str | Path, on_notice: OnNotice = lambda _: None) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection in which the views are tables, over the shards that the manifest lists."""
    store = ShardStore(folder)
    if store.is_local and not Path(store.path).is_dir():
        raise InputError("no such folder", where=folder, fix="give the output folder of a `fluents batch` run")
    manifest = store.read_manifest()
    if manifest is None:
        raise InputError(
            f"this folder was not written by `fluents batch`: it contains no {MANIFEST}",
            where=folder,
            fix="give the output folder of a `fluents batch` run",
        )
    if not manifest.shards:
        raise InputError(
            "this batch run has no results yet",
            where=folder,
            fix="wait until the run ends. If it has already ended, run the same `fluents batch` command again; if you "
            "used `--part`, leave it out",
        )
    if notice := manifest.incomplete(folder):
        on_notice(notice)
    connection = duckdb.connect(":memory:")
    paths = [store.of(shard.file) for shard in manifest.shards]
    if not store.is_local:
        connection.register_filesystem(store.system)
        paths = [store.system.unstrip_protocol(path) for path in paths]
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    format = manifest.settings["format"]
    try:
        if format == "parquet":
            connection.execute(f"CREATE VIEW traces AS SELECT * FROM read_parquet([{listed}])")
        else:
            read = f"read_json([{listed}], columns={_JSON}, format='newline_delimited')"
            connection.execute(f"CREATE VIEW traces AS SELECT * FROM {read}")
        for name, text in VIEWS.items():
            if name == "changes" and store.is_local:
                text = _flat(connection, store, manifest, text)
            connection.execute(f"CREATE VIEW {name} AS {text}")
        connection.execute(
            "CREATE MACRO becomes(words) AS TABLE "
            "SELECT procedure, step, entity, attribute, before, after FROM changes "
            f"WHERE {_words('words')} <> '' "
            f"AND contains(' ' || {_words('after')} || ' ', ' ' || {_words('words')} || ' ')"
        )
    except duckdb.Error as error:
        raise _query_error(error, folder) from None
    # Whoever asks may ask about the results, and nothing else on this machine.
    if store.is_local:
        connection.execute(f"SET allowed_directories = ['{_quoted(store.path)}']")
        connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _flat(connection: duckdb.DuckDBPyConnection, store: ShardStore, manifest: Manifest, text: str) -> str:
    """The changes as a table of their own, made once for each manifest: DuckDB would read all fields of the nested ones
    for every query. Where the folder cannot be written to, the query that makes them."""
    flat = Path(store.of(f".changes-{sha256(manifest.as_json()).hexdigest()[:16]}.parquet"))
    if not flat.exists():
        made = flat.with_name(f"{flat.name}.{os.getpid()}.tmp")
        try:
            connection.execute(f"COPY ({text}) TO '{_quoted(str(made))}' (FORMAT parquet, COMPRESSION zstd)")
            made.replace(flat)
        except (duckdb.IOException, OSError):
            _remove(made)
            return text
        for old in flat.parent.glob(".changes-*.parquet"):
            if old != flat:
                _remove(old)
    return f"SELECT * FROM read_parquet('{_quoted(str(flat))}')"


def _remove(file: Path) -> None:
    with suppress(OSError):  # of a read-only file system even where there is no such file
        file.unlink()


def _words(column: str) -> str:
    """SQL for the words of a text in lower case, with a space between them."""
    return rf"trim(regexp_replace(lower({column}), '[^\p{{L}}\p{{N}}]+', ' ', 'g'))"


_CHANGE = (
    "STRUCT(step BIGINT, entity VARCHAR, attribute VARCHAR, before VARCHAR, after VARCHAR, confidence DOUBLE, "
    "support DOUBLE, mentioned BOOLEAN)"
)
_JSON = (
    "{procedure: 'STRUCT(id VARCHAR, goal VARCHAR, topic VARCHAR, steps VARCHAR[])', "
    f"changes: '{_CHANGE}[]', error: 'VARCHAR'}}"
)


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _query_error(error: duckdb.Error, folder: str | Path | None = None) -> QueryError:
    said = str(error).strip()
    first = said.splitlines()[0] if said else type(error).__name__
    repair = "run the same `fluents batch` command again: it repairs damaged files"
    is_full = isinstance(error, duckdb.OutOfMemoryException)
    if folder is not None:
        fix = "free some memory, then run this command again" if is_full else repair
        return QueryError(f"cannot read the results: {first}", where=folder, fix=fix)
    if is_full:
        return QueryError(first, fix="free some memory, or run a query that needs less memory")
    if isinstance(error, duckdb.IOException | duckdb.InvalidInputException):  # of the SQL, or of a damaged file
        return QueryError(first, fix=f"correct the SQL; if a file of the results is damaged, {repair}")
    return QueryError(first, fix=f"correct the SQL, or give the name of a view: {', '.join(VIEWS)}")


def rows_of(relation: duckdb.DuckDBPyRelation, limit: int) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    """The names of the columns, and the first rows."""
    try:
        return relation.columns, relation.limit(limit).fetchall()
    except duckdb.Error as error:
        raise _query_error(error) from None


def write(relation: duckdb.DuckDBPyRelation, path: str | Path) -> None:
    """Write all rows to a Parquet or CSV file, which is whole or not there."""
    kind = Path(path).suffix.lower()
    if kind not in (".parquet", ".csv"):
        raise InputError(
            "the output file must be a Parquet or CSV file", where=path, fix="give a name that ends in .parquet or .csv"
        )
    import pyarrow.csv
    import pyarrow.parquet

    try:
        table = relation.to_arrow_table()
    except duckdb.Error as error:
        raise _query_error(error) from None
    with jsonl.atomic_output(path) as stream:
        if kind == ".parquet":
            pyarrow.parquet.write_table(table, stream)
        else:
            pyarrow.csv.write_csv(_as_cells(table), stream)


def _as_cells(table: pyarrow.Table) -> pyarrow.Table:
    """A table with words that no spreadsheet runs: see `as_cell`. Of a PIVOT, the names of columns are found words."""
    import pyarrow

    from fluents.data.change_tables import as_cell

    columns = []
    for column in table.columns:
        words = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
        if pyarrow.types.is_string(words) or pyarrow.types.is_large_string(words):
            column = pyarrow.chunked_array(
                [pyarrow.array(map(as_cell, chunk.to_pylist()), words) for chunk in column.chunks], words
            )
        columns.append(column)
    return pyarrow.table(columns, names=[as_cell(name) for name in table.column_names])


def plot_of(relation: duckdb.DuckDBPyRelation, question: str) -> str:
    """An SVG with a bar for each of the first rows: its words and its last number."""
    from fluents.report.plots import count_bars

    columns, rows = rows_of(relation, MOST_BARS)
    numbers = [place for place, value in enumerate(rows[0] if rows else ()) if _is_number(value)]
    if not rows or not numbers:
        raise InputError(
            f"nothing to plot: the query returns no {'column of numbers' if rows else 'rows'}",
            fix="give a query that returns rows with a column of numbers, such as the view entities, transitions, "
            "attributes or topics, or SQL such as `SELECT topic, count(*) FROM changes GROUP BY topic`",
        )
    place = columns.index("changes") if "changes" in columns else numbers[0]
    found: dict[str, float] = {}
    for row in rows:
        words = [str(value) for value in row if value is not None and not _is_number(value)]
        found.setdefault(_label(words), float(row[place]))
    return count_bars(f"{columns[place]} by {question}" if question in VIEWS else question, found)


def _label(words: Sequence[str]) -> str:
    if len(words) == 3:  # a transition
        return f"{words[0]}: {words[1]} → {words[2]}"
    return " · ".join(words) or "(all)"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
