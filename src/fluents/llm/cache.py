"""Answers kept in one SQLite file, so that no question is paid for twice and an interrupted run goes on.

What is kept: the hash of the question, the answer, its tokens, the time; of a question without an answer, the reason.
Neither the question nor any key.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from fluents.download import cache_root
from fluents.errors import FluentsError
from fluents.llm.question import Question
from fluents.llm.wire_format import Reply

FORMAT = 1
_TABLES = (
    """create table if not exists answers (
    key text primary key, text text not null, cut integer not null,
    tokens_in integer not null, tokens_out integer not null, at real not null
) without rowid""",
    "create table if not exists failures (key text primary key, reason text not null) without rowid",
)


class CacheError(FluentsError):
    """The cache cannot be used."""


def default_path() -> Path:
    """The cache that is used unless the user names another file."""
    return cache_root() / "answers.sqlite"


def question_key(base_url: str, model: str, api: str, structured: str, question: Question) -> str:
    """The hash of a question to an endpoint. JSON keeps the parts apart, whatever they contain."""
    parts = {"base_url": base_url, "model": model, "api": api, "structured": structured, "question": asdict(question)}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, allow_nan=False).encode()).hexdigest()


class Cache:
    """A cache of answers. May be used by many threads and several processes at once."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()
        self._lock = threading.Lock()
        with self._told():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # answers are for their user alone
            self._connection = sqlite3.connect(self.path, timeout=60, check_same_thread=False, isolation_level=None)
        try:
            with self._told():
                self._open()
        except CacheError:
            self._connection.close()
            raise

    def _open(self) -> None:
        run = self._connection.execute
        run("begin immediate")  # another process may open the same new file now
        [version] = run("pragma user_version").fetchone()
        [tables] = run("select count(*) from sqlite_master").fetchone()
        if version != FORMAT and (version or tables):
            raise CacheError(
                "this version of fluents cannot use this file as a cache of answers",
                where=self.path,
                fix="choose another file as `cache`; if a newer version of fluents wrote this file, upgrade fluents",
            )
        for table in _TABLES:
            run(table)
        run(f"pragma user_version = {FORMAT}")
        run("commit")
        run("pragma journal_mode = wal")  # readers and a writer do not wait for each other
        run("pragma synchronous = normal")

    def get(self, key: str) -> Reply | None:
        """The answer kept under this key."""
        with self._lock, self._told():
            found = self._connection.execute(
                "select text, cut, tokens_in, tokens_out from answers where key = ?", (key,)
            ).fetchone()
        if found is None:
            return None
        text, cut, tokens_in, tokens_out = found
        return Reply(text, bool(cut), tokens_in, tokens_out)

    def put(self, key: str, reply: Reply) -> None:
        """Keep an answer; it is on disk when this returns. One that another process kept meanwhile stays."""
        row = (key, reply.text, reply.cut, reply.tokens_in, reply.tokens_out, time.time())
        with self._lock, self._told():
            self._connection.execute("insert or ignore into answers values (?, ?, ?, ?, ?, ?)", row)

    def get_failure(self, key: str) -> str | None:
        """Why the question under this key got no answer when it was last asked."""
        with self._lock, self._told():
            found = self._connection.execute("select reason from failures where key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def put_failure(self, key: str, reason: str) -> None:
        """Keep why a question got no answer. An answer that is there or comes later has precedence."""
        with self._lock, self._told():
            self._connection.execute("insert or replace into failures values (?, ?)", (key, reason))

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
            raise CacheError(
                f"cannot use the cache of answers: {error}",
                where=self.path,
                fix="choose another file as `cache`, or, if this is a damaged cache, delete the file"
                if damaged
                else "check that you may write this file and that no other program is using it, or choose another file "
                "as `cache`",
            ) from None
