"""The advice to install an extra works from where fluents came from."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import sys
from pathlib import Path

import pytest

from fluents import installation
from fluents.errors import MissingExtraError
from fluents.installation import install_command


class Installed:
    """A distribution of which only the origin is known."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.text


@pytest.fixture(autouse=True)
def own_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip` is that of the Python that runs."""
    monkeypatch.setattr(shutil, "which", lambda name: str(Path(sys.executable).with_name(name)))


@pytest.mark.parametrize(
    ("origin", "advice"),
    [
        (None, "pip install 'fluents[train]'"),
        (
            {"url": "file:///src/fluents", "dir_info": {"editable": True}},
            "pip install --editable '/src/fluents[train]'",
        ),
        ({"url": "file:///my%20src", "dir_info": {}}, "pip install '/my src[train]'"),
        ({"url": "file:///dl/fluents-1.0.whl", "archive_info": {}}, "pip install '/dl/fluents-1.0.whl[train]'"),
        (
            {"url": "https://x.org/f.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'fluents[train] @ git+https://x.org/f.git@abc'",
        ),
        ({"url": "https://x.org/f.whl", "archive_info": {}}, "pip install 'fluents[train] @ https://x.org/f.whl'"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="paths of POSIX")
def test_the_command_installs_from_the_same_origin(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, object] | None, advice: str
) -> None:
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(installation, "distribution", lambda _: Installed(text))
    assert install_command("train") == advice
    assert MissingExtraError("torch", "train").fix == advice
    assert install_command() == advice.replace("[train]", "").replace("'fluents'", "fluents").replace(
        "'/src/fluents'", "/src/fluents"
    ).replace("'/dl/fluents-1.0.whl'", "/dl/fluents-1.0.whl")


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_broken_note_of_the_origin_is_taken_for_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(installation, "distribution", lambda _: Installed(text))
    assert install_command("data") == "pip install 'fluents[data]'"


def test_a_checkout_that_was_never_installed_is_installed_from_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", missing)
    root = Path(installation.__file__).parents[2]
    assert install_command("train") == f"pip install --editable '{root}[train]'"


def test_where_pip_belongs_to_another_python_ours_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert install_command("train").startswith(f"{sys.executable} -m pip install ")
