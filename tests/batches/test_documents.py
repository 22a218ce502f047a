"""What a batch run reads: every kind of file, and what is wrong with some; and how it is cut into shards."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="needs the extra batch")
pytest.importorskip("pyarrow", reason="needs the extra batch")

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from fluents import jsonl
from fluents.batches.documents import InputDocument, InputFile, cut, find_files, read_documents
from fluents.data import parquet
from fluents.errors import InputError
from fluents.records import StateChange, Trace
from kitchen import dish, lines, menu

SOUP = "# Soup\n\n1. Boil the water.\n2. Add the salt.\n"


def documents(*sources: Path | str) -> list[InputDocument]:
    return [document for file in find_files(sources) for document in read_documents(file)]


def test_a_folder_is_read_with_all_below_it_and_without_hidden_and_foreign_files(tmp_path: Path) -> None:
    inside = tmp_path / "recipes" / "soups"
    inside.mkdir(parents=True)
    (inside / "soup.md").write_text(SOUP)
    (inside / "photo.jpg").write_bytes(b"\xff")
    (inside / ".soup.md.swp").write_text("x")
    (tmp_path / "recipes" / "tea.txt").write_text("Boil the water.\nPour it over the leaves.\n")
    found = documents(tmp_path / "recipes")
    assert [document.where for document in found] == ["recipes/soups/soup.md", "recipes/tea.txt"]
    soup = found[0].content().procedure
    assert (soup.id, soup.goal, len(soup.steps)) == ("recipes/soups/soup.md", "Soup", 2)


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


COMPRESSORS = [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstd)]


@pytest.mark.parametrize(("suffix", "pack"), COMPRESSORS)
def test_compressed_files_are_read_as_the_plain_one(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    plain = menu(tmp_path, 3)
    (tmp_path / "packed").mkdir()
    packed = tmp_path / "packed" / f"menu.jsonl{suffix}"
    packed.write_bytes(pack(plain.read_bytes()))
    assert [one.text for one in documents(packed)] == [one.text for one in documents(plain)]


def test_a_file_that_is_cut_off_in_compression_gives_what_it_has_and_an_error(tmp_path: Path) -> None:
    packed = tmp_path / "menu.jsonl.gz"
    packed.write_bytes(gzip.compress(menu(tmp_path, 2000).read_bytes())[:-200])
    *good, last = documents(packed)
    assert len(good) > 100
    assert last.kind == "unreadable"
    with pytest.raises(InputError, match="cannot read the file"):
        last.content()


@pytest.mark.parametrize(("suffix", "pack"), COMPRESSORS)
def test_a_file_that_is_damaged_in_compression_is_an_error_and_ends_no_run(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    whole = bytearray(pack(menu(tmp_path, 2000).read_bytes()))
    middle = len(whole) // 2
    whole[middle : middle + 64] = bytes(64)
    (tmp_path / f"menu.jsonl{suffix}").write_bytes(whole)
    *_, last = documents(tmp_path / f"menu.jsonl{suffix}")
    with pytest.raises(InputError, match="cannot read the file"):
        last.content()


def test_an_address_of_fsspec_is_read_like_a_file(tmp_path: Path) -> None:
    plain = menu(tmp_path, 3)
    assert documents(f"file://{plain}") == documents(plain)
    import fsspec

    with fsspec.open("memory://kitchen/menu.jsonl", "wb") as stream:
        stream.write(plain.read_bytes())
    assert documents("memory://kitchen/menu.jsonl") == documents(plain)
    assert [one.where for one in documents("memory://kitchen")] == [f"kitchen/menu.jsonl:{n}" for n in (1, 2, 3)]


def test_procedures_come_from_our_records_from_steps_and_from_texts(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "mixed.jsonl",
        json.loads(jsonl.dumps(dish(1))),
        {"id": 7, "title": "Fry eggs", "steps": ["Heat oil.", " ", "Add eggs."], "topic": "eggs", "likes": 3},
        {"text": SOUP},
        {"text": "Boil water.\nAdd pasta.", "id": "pasta", "goal": "Cook pasta"},
    )
    found = [document.content().procedure for document in documents(path)]
    assert found[0] == dish(1)
    assert (found[1].id, found[1].goal, found[1].topic, found[1].steps) == (
        "7", "Fry eggs", "eggs", ("Heat oil.", "Add eggs."),
    )  # fmt: skip
    assert (found[2].id, found[2].goal) == ("mixed.jsonl:3", "Soup")
    assert (found[3].id, found[3].goal, len(found[3].steps)) == ("pasta", "Cook pasta", 2)


def test_a_first_line_that_is_nested_too_deep_is_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "menu.jsonl"
    path.write_bytes(b"[" * 100_000 + b"\n" + jsonl.dumps(dish(1)) + b"\n")
    bad, last = documents(path)
    with pytest.raises(InputError, match=r"menu\.jsonl:1"):
        bad.content()
    assert last.content().id == "dish-1"


@pytest.mark.parametrize(
    "line",
    [b"{", b"[1]", b'"text"', b"null", b'{"steps": "Stir."}', b'{"steps": [1]}', b'{"text": 3}', b'{"text": ""}',
     b'{"fluents": 1, "kind": "crepe", "id": "x"}', b'{"text": "a", "text": "b"}', b"\xff\xfe{", b'{"steps": null}',
     b"[" * 100_000],
)  # fmt: skip
def test_a_bad_line_is_an_error_of_its_own(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "menu.jsonl"
    path.write_bytes(jsonl.dumps(dish(0)) + b"\n" + line + b"\n" + jsonl.dumps(dish(1)) + b"\n")
    first, bad, last = documents(path)
    assert (first.content().id, last.content().id) == ("dish-0", "dish-1")
    with pytest.raises(InputError) as caught:
        bad.content()
    assert "menu.jsonl:2" in str(caught.value)


def test_parquet_of_ours_keeps_its_changes_and_any_other_table_its_columns(tmp_path: Path) -> None:
    change = StateChange(step=1, entity="soup", attribute="heat", before="cold", after="hot")
    with (tmp_path / "ours.parquet").open("wb") as stream:
        parquet.write([Trace(procedure=dish(0), changes=(change,))], stream)
    assert documents(tmp_path / "ours.parquet")[0].content().changes == (change,)
    table = pa.table({"id": ["a"], "title": ["Fry eggs"], "steps": [["Heat oil.", "Add eggs."]], "rating": [4.5]})
    pq.write_table(table, tmp_path / "theirs.parquet")
    assert documents(tmp_path / "theirs.parquet")[0].content().procedure.steps == ("Heat oil.", "Add eggs.")
    damaged = bytearray((tmp_path / "theirs.parquet").read_bytes())
    (tmp_path / "damaged.parquet").write_bytes(damaged[: len(damaged) // 2])
    [bad] = documents(tmp_path / "damaged.parquet")
    assert bad.kind == "unreadable"


def test_sources_that_cannot_be_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    menu(tmp_path, 1)
    (tmp_path / "more").mkdir()
    menu(tmp_path / "more", 1)
    for sources, what in (
        (["-"], "standard input"),
        ([tmp_path / "nowhere"], "no such file"),
        ([tmp_path / "empty"], "no readable files"),
        (["nosuch://x"], "cannot read this path or URL"),
        ([tmp_path / "menu.jsonl", tmp_path / "more" / "menu.jsonl"], "two input files have the same name"),
    ):
        with pytest.raises(InputError, match=what):
            find_files(sources)


def shards(*sources: Path, size: int = 4) -> list[tuple[str, list[str]]]:
    return [(shard.name, [one.where for one in shard.documents]) for shard in cut(find_files(sources), size)]


def test_a_change_in_one_file_leaves_the_shards_of_others(tmp_path: Path) -> None:
    folder = tmp_path / "menus"
    folder.mkdir()
    for name in "abc":
        menu(folder, 10, f"{name}.jsonl")
    before = dict(shards(folder))
    menu(folder, 7, "b.jsonl")
    after = dict(shards(folder))
    kept = before.keys() & after.keys()
    assert sum(len(before[name]) for name in kept) >= 24


def test_the_same_documents_twice_make_two_shards(tmp_path: Path) -> None:
    path = lines(tmp_path / "twice.jsonl", *[{"text": SOUP, "id": "soup"}] * 2)
    one = InputDocument("x", "y", "text")
    assert len({name for name, _ in shards(path, size=1)}) == 2
    assert one.where == "x"


def test_a_shard_of_long_documents_is_closed_early(tmp_path: Path) -> None:
    path = lines(tmp_path / "long.jsonl", *[{"text": "Stir. " * 200_000}] * 10)
    assert max(len(held) for _, held in shards(path, size=100)) <= 4


@given(st.lists(st.integers(0, 9), max_size=5), st.integers(1, 7))
def test_every_document_is_in_one_shard_in_order(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], size: int
) -> None:
    folder = tmp_path_factory.mktemp("menus")
    found = []
    for number, count in enumerate(counts):
        path = folder / f"{number}.jsonl"
        path.write_text("".join(f'{{"text": "{n}"}}\n' for n in range(count)) or "\n")
        found.append(InputFile(str(path), path.name))
    every = [document for file in found for document in read_documents(file)]
    made = list(cut(found, size))
    assert [document for shard in made for document in shard.documents] == every
    assert all(len(shard.documents) <= size for shard in made)
    assert len({shard.name for shard in made}) == len(made)
