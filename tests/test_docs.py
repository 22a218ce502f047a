"""What the docs show of the program is what the program has."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fluents.trackers.model_server import Server, serve
from fluents.weights.adapters import ADAPTERS

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize(("name", "function"), [("cli.md", "cli_reference"), ("schema.json", "schema")])
def test_generated_docs_are_up_to_date(name: str, function: str) -> None:
    made = runpy.run_path(str(DOCS / "generate.py"))[function]()
    assert (DOCS / name).read_text(encoding="utf-8") == made, "run `make docs`"


def test_links_between_the_docs_lead_somewhere() -> None:
    root = DOCS.parent
    cards = root.glob("src/**/README.md")  # of the adapters and the corpus
    for page in [*root.glob("*.md"), *DOCS.glob("*.md"), *cards]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


PYTHON = [page for page in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))) if "```python" in page.read_text()]
"""The pages with Python to run. After ```python may stand the extra that a block needs."""

EXTRAS = {"train": "peft", "embed": "sentence_transformers", "batch": "duckdb"}

SHORTER = {
    'data=["openpi"], out="runs/mine"': 'data=["fluents"], out="runs/mine", limit=2, epochs=1',
    "microsoft/deberta-xlarge-mnli": "all-MiniLM-L6-v2",
}
"""What would take hours, or a large download: the same call on less."""


@pytest.fixture(scope="module")
def local_endpoint(real_weights: Path) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLUENTS_CACHE", str(real_weights.parents[1]))
        with serve(0, None, 1) as server:
            yield server


@pytest.mark.slow
@pytest.mark.usefixtures("mirror", "model_cache")
@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.name)
def test_every_python_block_runs_as_it_stands(
    page: Path, local_endpoint: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the embedded model, a local endpoint and the published data; one page is one session."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    shutil.copy(ADAPTERS["both"].path, tmp_path / "runs" / "mine" / "adapter.gguf")
    shutil.copy(DOCS.parent / "examples" / "tomato_soup.md", tmp_path / "soup.md")
    shorter = SHORTER | {"http://127.0.0.1:8080/v1": local_endpoint.base_url, '"NAME"': f'"{local_endpoint.model}"'}
    shorter |= {"qwen2.5-coder-1.5b-instruct": local_endpoint.model}  # the tests serve a smaller model
    session: dict[str, Any] = {"__name__": "__main__"}
    for extra, code in re.findall(r"^```python ?(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
        if extra:
            pytest.importorskip(EXTRAS[extra], reason=f"a block of {page.name} needs the extra {extra}")
        for written, run in shorter.items():
            code = code.replace(written, run)
        exec(compile(code, page.name, "exec"), session)


PROFILER = """
import inspect, sys, threading
import fluents
root = fluents.__file__.removesuffix("__init__.py")  # a clone may lie in a folder of the same name
calls = []
def profile(frame, event, _):
    code = frame.f_code
    is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
    if event == "call" and is_function and code.co_filename.startswith(root):
        calls.append((code.co_filename.removeprefix(root), code.co_name))
from fluents.cli import main
threading.setprofile(profile)
sys.setprofile(profile)
try:
    main()
finally:
    sys.setprofile(None)
    print("\\n".join(f"{file} {name}" for file, name in dict.fromkeys(calls)), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("mirror", "model_cache")
@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("fluents track", ["track", str(DOCS.parent / "examples" / "tomato_soup.md"), "--table"]),
        ("fluents eval original", ["eval", "original", "--gold", "openpi:dev", "--pred", "openpi:gpt2-dev"]),
    ],
)
def test_the_paths_in_internals_are_true(command: str, arguments: list[str]) -> None:
    page = (DOCS / "internals.md").read_text(encoding="utf-8")
    [block] = re.findall(rf"^`{command}[^`]*`:\n\n```\n(.*?)^```", page, re.M | re.S)
    told = [tuple(line.split()[:2]) for line in block.splitlines()]
    called = _called(arguments)
    places = [called.index(step) for step in told]
    assert places == sorted(places)


def _called(arguments: list[str]) -> list[tuple[str, ...]]:
    """(file, function) of all that runs during a command, in the order of their first calls."""
    done = subprocess.run([sys.executable, "-c", PROFILER, *arguments], capture_output=True, text=True, check=True)
    return [tuple(line.split()) for line in done.stderr.splitlines()]


PROSE = "Crack two eggs into a bowl. Whisk them. Pour them into a hot pan and wait until they set."


@pytest.mark.slow
@pytest.mark.usefixtures("model_cache")
@pytest.mark.parametrize("text", [(DOCS.parent / "examples" / "tomato_soup.md").read_text(encoding="utf-8"), PROSE])
@pytest.mark.parametrize("shown", ["--json", "--table"])
def test_tracking_passes_through_at_most_20_files(text: str, shown: str, tmp_path: Path) -> None:
    """Whoever reads the program along one command must be able to read it all."""
    (tmp_path / "text.md").write_text(text, encoding="utf-8")
    files = {file for file, _ in _called(["track", str(tmp_path / "text.md"), "--model", "tiny", shown])}
    assert len(files) <= 20, sorted(files)
