"""Our own corpus: its form is read strictly, and its annotation keeps the rules it was written by."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.data.corpus import JudgedProcedure, judged_procedures, read_compact
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
        ("1. Go.\n2. Stop.\n", 1, "## Goal"),
        ("## | t\n1. Go.\n", 1, "## Goal"),
        (f"## Goal\n{'1' * 5000}. Go.\n", 2, "1. Text"),
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


JUDGED = """## Boil pasta | cooking
1. Fill the pot and light the stove.
T1 pot | fullness | empty | full
T2 stove | state | off | on
P2 burner | state | off | on
T1 pot | contents | nothing | water
F pot | color | grey | red
+ kitchen | brightness | dark | lit
2. Wait until it boils, then turn off the stove.
T1 water | temperature | cold | boiling
T2 Stove | state | lit | off
T3 stove | state | hot | cooling
+ pot | fullness | half full | full
? Somebody burns a finger. | m s
"""


def test_judged_claims_and_events_are_read(tmp_path: Path) -> None:
    (tmp_path / "pasta.txt").write_text(JUDGED)
    (tmp_path / "pasta.txt.gz").write_bytes(gzip.compress(JUDGED.encode()))
    (pasta,) = judged_procedures(tmp_path / "pasta.txt")
    assert [pasta] == list(judged_procedures(tmp_path / "pasta.txt.gz"))
    first, second = pasta.claims
    assert [(claim.verdict, claim.meaning) for claim in first] == [
        ("T", 1),
        ("T", 2),
        ("P", 2),
        ("T", 1),
        ("F", None),
        ("T", 3),
    ]
    assert [claim.meaning for claim in second] == [1, 2, 3, 4]
    assert [(event.text, event.labels) for event in pasta.events] == [
        ("Somebody burns a finger.", ("more likely", "no change"))
    ]
    assert [(c.step, c.entity, c.attribute, c.before, c.after) for c in pasta.trace.changes] == [
        (1, "pot", "fullness", "empty", "full"),
        (1, "stove", "state", "off", "on"),
        (1, "kitchen", "brightness", "dark", "lit"),
        (2, "water", "temperature", "cold", "boiling"),
        (2, "Stove", "state", "on", "off"),  # begins where it was left; the pot was full already
    ]


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("T1 a | b | c | d\n", 1, "## Goal"),
        ("## Goal\nT1 a | b | c | d\n", 2, "1. Text"),
        ("## Goal\n? It rains. | s\n", 2, "1. Text"),
        ("## Goal\n1. Go.\nT a | b | c | d\n", 3, "instead of T1"),
        ("## Goal\n1. Go.\nT0 a | b | c | d\n", 3, "instead of T1"),
        (f"## Goal\n1. Go.\nT{'1' * 5000} a | b | c | d\n", 3, "instead of T1"),
        ("## Goal\n1. Go.\nF1 a | b | c | d\n", 3, "instead of T1"),
        ("## Goal\n1. Go.\nF a | b | c\n", 3, "entity"),
        ("## Goal\n1. Go.\n? It rains. | s m\n", 3, "1 letter, one for each step"),
        ("## Goal\n1. Go.\n? It rains. | x\n", 3, "s m l"),
        ("## Goal\n1. Go.\n? | s\n", 3, "s m l"),
        ("## Goal\n1. Go.\n? It rains. | s\n2. Stop.\n", 4, "after the last step"),
        ("## Goal\n", 1, "has no steps"),
    ],
)
def test_a_judgement_out_of_place_is_an_error_that_names_its_line(
    tmp_path: Path, text: str, line: int, expected: str
) -> None:
    file = tmp_path / "bad.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=expected) as caught:
        list(judged_procedures(file))
    assert caught.value.where == f"{file}:{line}"


@pytest.mark.parametrize("data", [b"no gzip", gzip.compress(JUDGED.encode())[:-20], b"\x1f\x8b\x08\0\0\0\0\0\0\0junk"])
def test_a_damaged_gzip_file_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bad.txt.gz").write_bytes(data)
    with pytest.raises(InputError, match="not a complete gzip file"):
        list(judged_procedures(tmp_path / "bad.txt.gz"))
    with pytest.raises(InputError, match="no such file"):
        list(judged_procedures(tmp_path / "none.txt.gz"))


_PIECES = st.sampled_from(["## Goal | t", "1. Go.", "2. Stop.", "T1", "P2", "F", "+", "?", " | ", "a | b | c | d", "s"])


@given(st.lists(st.one_of(_PIECES, st.text(max_size=5), st.sampled_from(["\n", " "])), max_size=30).map("".join))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.txt"
    for content in (text, f"## Goal\n1. Go.\n{text}"):
        file.write_bytes(content.encode())
        for read in (read_compact, judged_procedures):
            try:
                assert all(list(read(file)))
            except InputError as error:
                assert str(error.where).startswith(f"{file}:")  # noqa: PT017


def test_the_judged_procedures_have_the_sizes_the_card_gives() -> None:
    procedures = list(judged_procedures())
    first, second = procedures[:192], procedures[192:]
    assert (len(first), sum(len(one.claims) for one in first)) == (192, 1432)
    assert _verdicts(first) == {"T": 4899 + 1330, "P": 2857, "F": 5192}
    assert [len(one.events) for one in first] == [3] * 192
    assert (len(second), sum(len(one.claims) for one in second)) == (118, 878)
    assert _verdicts(second) == {"T": 1994 + 760, "P": 1858, "F": 3659}
    assert not any(one.events for one in second)


def _verdicts(procedures: list[JudgedProcedure]) -> Counter[str]:
    return Counter(claim.verdict for one in procedures for step in one.claims for claim in step)


def test_no_judged_procedure_has_the_goal_of_another() -> None:
    goals = [trace.procedure.goal.lower() for trace in load_traces("fluents:judged")]
    assert len(set(goals)) == len(goals)
    for split in ("train", "dev", "test"):
        assert not {trace.procedure.goal.lower() for trace in load_traces(f"fluents:{split}")} & set(goals)


@pytest.mark.parametrize("split", ["train", "dev", "test", "judged"])
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
    return {split: embed(_texts(f"fluents:{split}")) for split in ("train", "dev", "test", "judged")}


def _texts(source: str) -> list[str]:
    return [f"{trace.procedure.goal}. {' '.join(trace.procedure.steps)}" for trace in load_traces(source)]


@pytest.mark.slow
def test_no_procedure_of_one_split_resembles_one_of_another(vectors: dict[str, Vectors]) -> None:
    for ours, theirs in (("train", "dev"), ("train", "test"), ("dev", "test"), ("judged", "dev"), ("judged", "test")):
        assert (vectors[ours] @ vectors[theirs].T).max() < 0.75


@pytest.mark.slow
@pytest.mark.usefixtures("mirror")
def test_no_procedure_resembles_one_of_openpi_dev_or_test(embed: Embedder, vectors: dict[str, Vectors]) -> None:
    published = embed([text for split in ("dev", "test") for text in _texts(f"openpi:{split}")])
    for ours in vectors.values():
        assert (ours @ published.T).max() < 0.75
