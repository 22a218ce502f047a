"""What a run used."""

from __future__ import annotations

import threading

import pytest

from fluents.llm.usage import Meter, Prices, Usage


def test_cost_is_by_the_million_and_by_the_prices_given() -> None:
    usage = Usage(requests=2, tokens_in=1_000_000, tokens_out=500_000)
    assert usage.cost(Prices(0.15, 0.6)) == pytest.approx(0.45)
    assert usage.as_dict(Prices(0.15, 0.6))["cost"] == pytest.approx(0.45)
    assert "cost 0.4500" in usage.summary(Prices(0.15, 0.6))


def test_without_prices_no_cost_is_invented() -> None:
    assert "cost" not in Usage().as_dict()
    assert "cost" not in Usage().summary()


def test_nothing_is_lost_when_threads_count() -> None:
    meter = Meter()

    def count() -> None:
        for _ in range(500):
            meter.add(requests=1, tokens_in=2)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.usage == Usage(requests=2000, tokens_in=4000)


def test_counts_agree_with_their_nouns_and_what_did_not_happen_is_not_told() -> None:
    one = Usage(requests=1, cached=1, failed=1, tokens_in=1, tokens_out=1)
    assert one.summary() == (
        "1 request, 1 answer from the cache, 1 prompt without an answer, 1 input token, 1 output token"
    )
    assert (
        Usage(requests=2, retried=1, tokens_in=5).summary()
        == "2 requests (1 retried), 5 input tokens, no output tokens"
    )
    assert Usage(cached=3).summary() == "no requests, 3 answers from the cache"
