"""A PostgreSQL of our own, in a temporary folder, reached by a socket in it, and gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def _program(name: str) -> Path | None:
    """On the path, or where Debian keeps it."""
    found = shutil.which(name)
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return Path(found) if found else places[-1] if places else None


@contextmanager
def postgres_cluster() -> Iterator[str]:
    """The address of a database server, without the name of a database. Skips where there is none, but not in CI."""
    if given := os.environ.get("FLUENTS_TEST_POSTGRES"):
        yield given
        return
    initdb, postgres = _program("initdb"), _program("postgres")
    if initdb is None or postgres is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must run the tests on PostgreSQL: install it, or set FLUENTS_TEST_POSTGRES to its address")
        pytest.skip("test on PostgreSQL, which is not installed; FLUENTS_TEST_POSTGRES may name one")
    folder = Path(tempfile.mkdtemp(prefix="fluents-pg-", dir="/tmp"))  # short: a socket's path has 107 bytes at most
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # whom PostgreSQL refuses
        nobody = pwd.getpwnam("nobody")
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    data = folder / "data"
    try:
        settings = ["--auth=trust", "--username=fluents", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run([initdb, *settings, "-D", data], check=True, capture_output=True, cwd=folder, **user)
        options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}", "-c", "fsync=off"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen([postgres, "-D", data, *options], stdout=log, stderr=log, cwd=folder, **user)
        try:
            _wait_for(folder / ".s.PGSQL.5432", server)
            yield f"postgresql://fluents@/{{name}}?host={folder}"
        finally:
            server.terminate()
            server.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(socket: Path, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(600):
        assert server.poll() is None, "PostgreSQL ended at once"
        try:
            psycopg.connect(host=str(socket.parent), user="fluents", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise AssertionError("PostgreSQL did not start")


@contextmanager
def fresh_database(cluster: str, name: str) -> Iterator[str]:
    """The address of an empty database."""
    import psycopg

    with psycopg.connect(cluster.format(name="postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield cluster.format(name=name)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
