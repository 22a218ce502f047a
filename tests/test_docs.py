"""What the docs show of the program is what the program has."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize(("name", "function"), [("cli.md", "cli_reference"), ("schema.json", "schema")])
def test_generated_docs_are_up_to_date(name: str, function: str) -> None:
    made = runpy.run_path(str(DOCS / "generate.py"))[function]()
    assert (DOCS / name).read_text(encoding="utf-8") == made, "run `make docs`"


def test_links_between_the_docs_lead_somewhere() -> None:
    root = DOCS.parent
    for page in [*root.glob("*.md"), *DOCS.glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
