"""What the options of the embedded tracker mean together. No model runs."""

from __future__ import annotations

import pytest

from fluents.cli.track_local import LocalChoice, local_tracker
from fluents.cli.track_run import SamplingOptions
from fluents.errors import InputError


@pytest.mark.parametrize(
    ("choice", "drawing", "what"),
    [
        (LocalChoice(fast=True, setting="openpi"), SamplingOptions(), "--fast is a setting itself"),
        (LocalChoice(fast=True), SamplingOptions(samples=4), "always the same"),
        (LocalChoice(setting="fast"), SamplingOptions(samples=4), "always the same"),
    ],
)
def test_options_that_would_be_ignored_or_mislead_are_refused(
    choice: LocalChoice, drawing: SamplingOptions, what: str
) -> None:
    """Four times the likeliest answer would agree with itself: a support of 1 that means nothing."""
    with pytest.raises(InputError, match=what):
        local_tracker(choice, drawing)


def test_fast_is_short_for_its_setting() -> None:
    names = [LocalChoice(**given).named for given in ({}, {"fast": True}, {"setting": "fast"}, {"setting": "openpi"})]
    assert names == ["default", "fast", "fast", "openpi"]
