"""Opening a store: what it takes, what it refuses, and that its schema is the one the code expects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("sqlalchemy", reason="the web application: pip install 'fluents[web]'")

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from fluents.web.store import Store, StoreError, default_url
from fluents.web.tables import Base


def test_migrations_make_the_tables_that_the_code_has(store: Store) -> None:
    with store.writing() as session:
        assert compare_metadata(MigrationContext.configure(session.connection()), Base.metadata) == []


def test_a_second_server_on_the_same_store_is_refused_until_the_first_ends(store_address: str) -> None:
    with Store(store_address), pytest.raises(StoreError, match="another"):
        Store(store_address)
    Store(store_address).close()


def test_a_store_of_a_newer_fluents_is_refused(store_address: str) -> None:
    with Store(store_address) as store, store.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer"):
        Store(store_address)
    if not store_address.startswith("postgresql"):  # and let go: others may open it once they are upgraded
        with pytest.raises(StoreError, match="newer"):
            Store(store_address)


def test_sqlite_is_in_wal_mode_and_keeps_references_whole(tmp_path: Path) -> None:
    with Store(tmp_path / "a" / "web.sqlite") as store, store.reading() as session:
        assert session.scalar(text("PRAGMA journal_mode")) == "wal"
        assert session.scalar(text("PRAGMA foreign_keys")) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mysql://a@b/c", "address: mysql"),
        ("postgresql://a b:c:d/e", "invalid store address"),
        ("sqlite://", "address: sqlite"),
        ("postgresql://me:secret@127.0.0.1:1/x", "cannot open the store"),
    ],
)
def test_what_is_no_store_is_an_error_that_shows_no_password(given: str, said: str) -> None:
    with pytest.raises(StoreError) as found:
        Store(given)
    assert said in str(found.value)
    assert "secret" not in str(found.value)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("my notes, which are long enough to be taken for the head of a database, if need be" * 20)
    with pytest.raises(StoreError, match="cannot use this database as a store"):
        Store(file)
    assert file.read_text().startswith("my notes")


def test_the_default_is_the_variable_or_a_file_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUENTS_STORE", "postgresql://me@db/x")
    assert default_url() == "postgresql://me@db/x"
    monkeypatch.delenv("FLUENTS_STORE")
    assert Path(default_url()).name == "web.sqlite"
