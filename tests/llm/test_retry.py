"""How long a server that says "later" is waited for."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluents.llm.wire_format import RetryPolicy, retry_after

NOW = 1_750_000_000.0


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        (" 1.5 ", 1.5),
        ("-3", 0.0),
        (formatdate(NOW + 30, usegmt=True), 30.0),
        (formatdate(NOW - 30, usegmt=True), 0.0),
        ("inf", float("inf")),
        ("nan", None),
        ("soon", None),
        ("", None),
        ("Wed, 99 Foo 20255 99:99:99 GMT", None),
    ],
)
def test_a_pause_may_be_said_as_a_number_or_a_date(said: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": said}, now=NOW) == seconds


def test_no_header_asks_for_nothing() -> None:
    assert retry_after({}) is None


@given(st.text())
def test_no_header_breaks_it(said: str) -> None:
    found = retry_after({"retry-after": said})
    assert found is None or found >= 0


@given(st.integers(0, 60), st.none() | st.floats(0, 100))
def test_pauses_double_up_to_a_bound_and_are_never_shorter_than_asked_for(attempt: int, asked: float | None) -> None:
    pauses: list[float] = []
    RetryPolicy(first_wait=1, longest_wait=8, sleep=pauses.append).wait(attempt, asked)
    full = min(2.0**attempt, 8.0)
    assert max(full / 2, asked or 0) <= pauses[0] <= max(full, asked or 0)
