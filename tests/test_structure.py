"""The shape of the source: what the import contracts and the type checker do not see."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import fluents
from fluents.errors import MissingExtraError

SRC = Path(fluents.__file__).parent
FILES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SRC.rglob("*.py")}


def _module(path: Path) -> str:
    parts = ("fluents", *path.relative_to(SRC).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_two_public_classes_share_a_name() -> None:
    names = Counter(
        node.name
        for tree in FILES.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_every_module_is_used_by_another() -> None:
    """By an import, or by its name in a registry such as `METRICS`; Alembic finds migrations by their folder."""
    modules = {_module(path) for path in FILES if "migrations" not in path.parts}
    used: set[str] = {"fluents", "fluents.__main__"}
    for path, tree in FILES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                used |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)} - {_module(path)}
            elif isinstance(node, ast.Import):
                used |= {name.name for name in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = node.value.partition(":")[0]
                used |= {named, f"{_module(path)}.{named}"}
    packages = {_module(path) for path in FILES if path.name == "__init__.py"}
    assert modules - packages - used == set()


def test_at_most_five_errors_of_the_type_checker_are_ignored() -> None:
    root = SRC.parents[1]
    files = [path for folder in ("src", "tests", "benchmarks") for path in (root / folder).rglob("*.py")]
    marker = "# type: " + "ignore"
    assert sum(path.read_text(encoding="utf-8").count(marker) for path in files) <= 5


def test_the_import_is_light() -> None:
    heavy = [
        "torch",
        "numpy",
        "scipy",
        "rich",
        "typer",
        "openai",
        "xllamacpp",
        "jinja2",
        "httpx",
        "fastapi",
        "sqlalchemy",
    ]
    code = f"import sys, fluents; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [name for name in fluents.__all__ if not name.startswith("__")])
def test_every_name_of_the_front_door_is_there_and_explains_itself(name: str) -> None:
    try:
        assert getattr(fluents, name).__doc__
    except MissingExtraError as error:
        pytest.skip(str(error))
