"""The database: SQLite in a file, or PostgreSQL by its address; one server at a time."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from filelock import FileLock, Timeout
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError
from sqlalchemy.orm import Session

from fluents.errors import FluentsError

LOCK = 0x666C75656E7473
"""The number of PostgreSQL's advisory lock that a server holds: "fluents" in ASCII."""
CONNECTIONS = 40
"""To the database at once: as many as the server has threads for requests. They stay open, since opening one takes
longer than most queries."""
BUSY = 30.0
"""Seconds that SQLite waits for another process, a backup for instance."""


class StoreError(FluentsError):
    """A store that cannot be opened."""


def new_id() -> str:
    """An id that nobody can guess."""
    return secrets.token_hex(8)


def storable(text: str) -> str:
    """Without what one of the databases cannot hold."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def default_url(name: str = "web.sqlite") -> str:
    """FLUENTS_STORE, or a file of this name in the user's data folder."""
    if address := os.environ.get("FLUENTS_STORE"):
        return address
    from platformdirs import user_data_path

    return str(user_data_path("fluents", appauthor=False) / name)


class Store:
    """An open store, brought up to the newest schema. Close it, or use it in a `with` block.

    `address` is a file, or the address of a PostgreSQL database: postgresql://user@host/database. A server holds its
    store, and no other server can open it then; commands that look something up open it `beside` the server.

    >>> with Store("web.sqlite") as store, store.writing() as session:
    ...     session.add(row)
    """

    def __init__(self, address: str | Path, *, beside: bool = False) -> None:
        self._url = _url(str(address))
        self.kind: Literal["sqlite", "postgresql"] = (
            "sqlite" if self._url.get_backend_name() == "sqlite" else "postgresql"
        )
        self._alone = threading.Lock()
        self._file_lock: FileLock | None = None
        self._held: Connection | None = None
        self._engine = self._open()
        try:
            if not beside:
                self._hold()
            self._upgrade()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """For people, without a password."""
        return str(self._url.database) if self.kind == "sqlite" else self._url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that sees one state of the store."""
        with Session(self._engine.execution_options(**self._snapshot)) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that is kept when the block ends well, and only then."""
        # SQLite lets one write at a time: waiting here is fair, waiting there is a loop of naps.
        alone = self._alone if self.kind == "sqlite" else nullcontext()
        with alone, Session(self._engine.execution_options(writes=True)) as session, session.begin():
            yield session

    def close(self) -> None:
        """Let others have it."""
        if self._held is not None:
            self._held.close()
        self._engine.dispose()
        if self._file_lock is not None:
            self._file_lock.release()

    @property
    def _snapshot(self) -> dict[str, Any]:
        return {} if self.kind == "sqlite" else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}

    def _open(self) -> Engine:
        if self.kind == "sqlite":
            file = Path(str(self._url.database))
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                fix = "choose another `store`"
                raise StoreError(f"cannot create the folder: {error.strerror}", where=file.parent, fix=fix) from None
            engine = create_engine(
                self._url, connect_args={"timeout": BUSY, "check_same_thread": False}, pool_size=CONNECTIONS
            )
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        return create_engine(self._url, pool_pre_ping=True, pool_size=CONNECTIONS)

    def _hold(self) -> None:
        """Two servers would run the same jobs. The lock goes with the process, however it ends."""
        fix = "stop the other server, or choose another `store`"
        if self.kind == "sqlite":
            self._file_lock = FileLock(f"{self._url.database}.lock")
            try:
                self._file_lock.acquire(timeout=0)
            except Timeout:
                raise StoreError("another server is using this store", where=self.name, fix=fix) from None
            except OSError as error:
                fix = "check that you may write to this folder, or choose another `store`"
                raise StoreError(f"cannot open the store: {error.strerror}", where=self.name, fix=fix) from None
            return
        try:
            self._held = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            if not self._held.scalar(text("SELECT pg_try_advisory_lock(:n)"), {"n": LOCK}):
                raise StoreError("another server is using this store", where=self.name, fix=fix)
        except OperationalError as error:
            raise self._unreachable(error) from None

    def _upgrade(self) -> None:
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
        try:
            with self._engine.execution_options(writes=True).begin() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except CommandError:
            raise StoreError(
                "this store was written by a newer version of fluents",
                where=self.name,
                fix="upgrade fluents, or choose another `store`",
            ) from None
        except OperationalError as error:
            raise self._unreachable(error) from None
        except DatabaseError as error:
            check = "" if self.kind == "sqlite" else "check that you may create tables in this database, or "
            raise StoreError(
                f"cannot use this database as a store: {_first_line(error, 'no reason given')}",
                where=self.name,
                fix=f"{check}choose another `store`",
            ) from None

    def _unreachable(self, error: OperationalError) -> StoreError:
        if self.kind == "sqlite":
            fix = (
                "check that you may read and write this file and that no other program uses it, or choose another "
                "`store`"
            )
        else:
            fix = "check that the database is running, and that the address of the `store` is right"
        return StoreError(f"cannot open the store: {_first_line(error, 'no answer')}", where=self.name, fix=fix)


def _first_line(error: DatabaseError, otherwise: str) -> str:
    return next(iter(str(error.orig or "").strip().splitlines()), otherwise)


def _url(address: str) -> URL:
    """The address as SQLAlchemy wants it; a plain path is a file."""
    if "://" not in address:
        try:
            return URL.create("sqlite", database=str(Path(address).expanduser().resolve()))
        except (OSError, ValueError, RuntimeError) as error:  # a loop of links, a NUL byte, ~ of nobody
            what = f"cannot open the store: {getattr(error, 'strerror', None) or error}"
            raise StoreError(what, where=address[:300], fix="choose another `store`") from None
    fix = "give the path of a file, or postgresql://user@host/database"
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):
        raise StoreError("invalid store address", fix=fix) from None
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database and url.database != ":memory:":
        return url
    raise StoreError(f"unsupported store address: {url.drivername[:40]}://", fix=fix)


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says so
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # One that begins as a reader and writes later may find that another wrote in between, and fail.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class NotFoundError(FluentsError):
    """Something that is not in the store, or not any more."""
