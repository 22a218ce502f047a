"""Our own corpus: its form is read strictly, and its annotation keeps the rules it was written by."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluents.data.corpus import read_compact
from fluents.data.datasets import load_traces
from fluents.errors import InputError
from fluents.text.embedders import Embedder, Vectors, load_embedder

HOSE = """## Seal a leaking garden hose | home repair
1. Turn off the tap.
+ tap | state | open | closed

2. Cut out the damaged section.
+ hose | number of pieces | one | two
"""


def test_the_compact_form_is_read(tmp_path: Path) -> None:
    file = tmp_path / "hose.txt"
    file.write_text(HOSE + HOSE)
    first, second = read_compact(file)
    assert (first.id, second.id) == ("seal-a-leaking-garden-hose", "seal-a-leaking-garden-hose-2")
    assert first.procedure.topic == "home repair"
    assert first.procedure.steps == ("Turn off the tap.", "Cut out the damaged section.")
    assert [(c.step, c.entity, c.after) for c in first.changes] == [(1, "tap", "closed"), (2, "hose", "two")]


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("1. Go.\n", 1, "## Goal"),
        ("## Goal | t\n2. Go.\n", 2, "1. Text"),
        ("## Goal | t\n+ a | b | c | d\n", 2, "1. Text"),
        ("## Goal | t\n1. Go.\n+ a | b | c\n", 3, "entity"),
        ("## Goal | t\n1. Go.\n+ a | b |  | d\n", 3, "entity"),
        ("## Goal | t\n", 1, "has no steps"),
    ],
)
def test_a_line_out_of_place_is_an_error_that_names_it(tmp_path: Path, text: str, line: int, expected: str) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=expected) as caught:
        list(read_compact(file))
    assert caught.value.where == f"{file}:{line}"


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_states_begin_where_they_were_left_and_nothing_is_said_twice(split: str) -> None:
    for trace in load_traces(f"fluents:{split}"):
        left: dict[tuple[str, str], str] = {}
        for _, _, changes in trace.by_step():
            pairs = [(change.entity.lower(), change.attribute.lower()) for change in changes]
            assert len(set(pairs)) == len(pairs), trace.id
            for pair, change in zip(pairs, changes, strict=True):
                assert change.before.lower() != change.after.lower(), (trace.id, pair)
                assert left.get(pair, change.before).lower() == change.before.lower(), (trace.id, pair)
                left[pair] = change.after


def test_the_splits_have_the_sizes_the_card_gives() -> None:
    sizes = {split: len(list(load_traces(f"fluents:{split}"))) for split in ("train", "dev", "test")}
    assert sizes["train"] >= 1000
    assert (sizes["dev"], sizes["test"]) == (28, 28)


@pytest.fixture(scope="module")
def embed() -> Embedder:
    pytest.importorskip("sentence_transformers", reason="needs the extra embed")
    return load_embedder("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def vectors(embed: Embedder) -> dict[str, Vectors]:
    """Of every split, once: two thousand texts take a minute."""
    return {split: embed(_texts(f"fluents:{split}")) for split in ("train", "dev", "test")}


def _texts(source: str) -> list[str]:
    return [f"{trace.procedure.goal}. {' '.join(trace.procedure.steps)}" for trace in load_traces(source)]


@pytest.mark.slow
def test_no_procedure_of_one_split_resembles_one_of_another(vectors: dict[str, Vectors]) -> None:
    for ours, theirs in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert (vectors[ours] @ vectors[theirs].T).max() < 0.75


@pytest.mark.slow
@pytest.mark.usefixtures("mirror")
def test_no_procedure_resembles_one_of_openpi_dev_or_test(embed: Embedder, vectors: dict[str, Vectors]) -> None:
    published = embed([text for split in ("dev", "test") for text in _texts(f"openpi:{split}")])
    for ours in vectors.values():
        assert (ours @ published.T).max() < 0.75
