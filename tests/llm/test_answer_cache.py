"""The cache of answers: one question one place, and no surprise from a file that is not as it should be."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluents.llm import Question
from fluents.llm.cache import Cache, CacheError, default_path, question_key
from fluents.llm.wire_format import Reply

TEXT = st.text(max_size=20)
QUESTIONS = st.builds(
    Question,
    prompt=TEXT,
    system=TEXT,
    schema=st.none() | st.dictionaries(TEXT, TEXT, max_size=2),
    name=TEXT,
    max_tokens=st.integers(1, 9),
    temperature=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 9),
)
PLACES = st.tuples(TEXT, TEXT, TEXT, TEXT)


@given(PLACES, QUESTIONS, PLACES, QUESTIONS)
def test_keys_are_equal_exactly_when_all_that_decides_the_answer_is(
    place: tuple[str, str, str, str], question: Question, other: tuple[str, str, str, str], another: Question
) -> None:
    same = (place, asdict(question)) == (other, asdict(another))
    assert (question_key(*place, question) == question_key(*other, another)) == same


@given(st.text(min_size=1), st.text(min_size=1))
def test_no_text_can_pass_for_another_field(first: str, second: str) -> None:
    """A step written to look like the end of a prompt and the begin of the system text gets no other's answer."""
    forged = Question(f'{first}", "system": "{second}', system="")
    moved = [forged, Question(first, system=second), Question(first + second), Question("", system=first + second)]
    keys = {question_key("u", "m", "chat", "auto", question) for question in moved}
    assert len(keys) == len({(question.prompt, question.system) for question in moved})


@settings(max_examples=25)
@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans())
def test_an_answer_comes_back_as_it_was(text: str, cut: bool) -> None:
    with TemporaryDirectory() as folder:
        cache = Cache(Path(folder) / "answers.sqlite")
        reply = Reply(text, cut, 3, 4)
        cache.put("key", reply)
        assert cache.get("key") == reply
        assert cache.get("other") is None
        cache.close()


def test_the_first_answer_stays(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "answers.sqlite")
    cache.put("key", Reply("first"))
    cache.put("key", Reply("second"))
    cache.close()
    cache = Cache(tmp_path / "deep" / "answers.sqlite")
    assert cache.get("key") == Reply("first")
    cache.close()


def test_the_place_is_that_of_all_our_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLUENTS_CACHE", str(tmp_path))
    assert default_path() == tmp_path / "answers.sqlite"


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_others_cannot_read_it(tmp_path: Path) -> None:
    Cache(tmp_path / "answers.sqlite").close()
    assert stat.S_IMODE((tmp_path / "answers.sqlite").stat().st_mode) == 0o600


def test_many_threads_share_it(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "answers.sqlite")

    def fill(name: int) -> None:
        for number in range(20):
            cache.put(f"{name}-{number}", Reply("x"))
            assert cache.get(f"{name}-{number}") == Reply("x")

    threads = [threading.Thread(target=fill, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(cache.get(f"{name}-{number}") for name in range(8) for number in range(20))
    cache.close()


FILL = """
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from fluents.llm.cache import Cache
from fluents.llm.wire_format import Reply
cache = Cache(Path(sys.argv[1]))
for number in range(100):
    cache.put(f"{sys.argv[2]}-{number}", Reply("x"))
"""


def test_two_processes_share_it(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    runs = [subprocess.Popen([sys.executable, "-c", FILL, str(path), name]) for name in "ab"]
    assert [run.wait(60) for run in runs] == [0, 0]
    cache = Cache(path)
    assert all(cache.get(f"{name}-{number}") for name in "ab" for number in range(100))
    cache.close()


@pytest.mark.parametrize("content", [b"this is no database, but a long text" * 50, b"SQLite format 3\0" * 99])
def test_a_damaged_file_is_told_with_the_way_out_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(content)
    with pytest.raises(CacheError) as caught:
        Cache(path)
    assert caught.value.where == str(path)
    assert "delete the file" in str(caught.value.fix)
    assert path.read_bytes() == content


def test_damage_in_the_middle_is_told_when_it_is_met(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    cache = Cache(path)
    for number in range(2000):
        cache.put(f"key {number}", Reply("an answer " * 20))
    cache.close()
    content = bytearray(path.read_bytes())
    content[4096:-4096] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(CacheError, match="cannot use the cache"):  # noqa: PT012 - whichever of the two meets it
        cache = Cache(path)
        for number in range(2000):
            cache.get(f"key {number}")
    cache.close()


def test_another_programs_database_is_not_written_into(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("create table songs (title text)")
    other.close()
    content = path.read_bytes()
    with pytest.raises(CacheError, match="cannot use this file as a cache of answers"):
        Cache(path)
    assert path.read_bytes() == content


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="directory"):
        Cache(tmp_path)
