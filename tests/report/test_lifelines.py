"""Lifelines: which value holds when, and in which colour."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from fluents.records import AttributeCluster, EntityCluster, Procedure, StateChange, Trace
from fluents.report.lifelines import COLOURS, Lifeline, Track, lifelines_of
from fluents.report.trace_layout import matrix_of
from fluents.text.names import fold
from strategies import traces


def change(step: int, entity: str, attribute: str, before: str, after: str) -> StateChange:
    return StateChange(step=step, entity=entity, attribute=attribute, before=before, after=after)


def drawn(
    *changes: StateChange, steps: int = 6, gold: tuple[StateChange, ...] = (), **fields: object
) -> list[Lifeline]:
    procedure = Procedure(id="p", steps=tuple(f"Do {n}." for n in range(1, steps + 1)))
    trace = Trace.model_validate({"procedure": procedure, "changes": changes} | fields)
    return lifelines_of(matrix_of(trace, Trace(procedure=procedure, changes=gold) if gold else None))


def words(track: Track) -> list[tuple[str, int, int]]:
    return [(band.words, band.start, band.stop) for band in track.bands]


@given(traces())
def test_the_bands_of_a_track_fill_all_columns_and_every_change_begins_one(trace: Trace) -> None:
    for gold in (None, trace):
        lines = lifelines_of(matrix_of(trace, gold))
        begun = 0
        for track in (track for line in lines for track in line.tracks):
            assert (track.bands[0].start, track.bands[-1].stop) == (0, len(trace.procedure.steps) + 1)
            assert all(left.stop == right.start for left, right in pairwise(track.bands))
            for band in track.bands:
                assert sum(band.spans()) == band.stop - band.start
                begun += 0 if band.assumed else len(band.entries)
        assert begun == len(trace.changes) * (1 if gold is None else 2)


@given(traces())
def test_the_same_words_have_the_same_colour_and_neighbours_have_different_ones(trace: Trace) -> None:
    tracks = [track for line in lifelines_of(matrix_of(trace)) for track in line.tracks]
    colours: dict[str, int | None] = {}
    for band in (band for track in tracks for band in track.bands):
        assert colours.setdefault(fold(band.words), band.colour) == band.colour
        assert band.colour is None or 0 <= band.colour < COLOURS
    for left, right in (pair for track in tracks for pair in pairwise(track.bands)):
        assert left.colour is None or left.colour != right.colour or fold(left.words) == fold(right.words)


def test_a_value_holds_from_its_step_until_the_next_change() -> None:
    [pot] = drawn(change(2, "pot", "heat", "cold", "hot"), change(5, "pot", "heat", "hot", "cold"))
    [heat] = pot.tracks
    assert words(heat) == [("cold", 0, 2), ("hot", 2, 5), ("cold", 5, 7)]
    assert [band.when for band in heat.bands] == ["before step 2", "after steps 2 to 4", "after steps 5 to 6"]
    assert not pot.is_broken


def test_a_change_that_starts_from_another_value_says_so() -> None:
    [pot] = drawn(change(1, "pot", "heat", "cold", "hot"), change(3, "pot", "heat", "warm", "cold"))
    assert [band.broken for band in pot.tracks[0].bands] == ["", "", "warm"]
    assert pot.is_broken


def test_what_is_not_said_is_not_invented() -> None:
    [sky] = drawn(change(1, "sky", "colour", "", ""), change(3, "sky", "colour", "", "red"))
    assert words(sky.tracks[0]) == [("", 0, 1), ("—", 1, 3), ("red", 3, 7)]


def test_attributes_with_one_canonical_name_share_a_track_and_the_busiest_comes_first() -> None:
    place = AttributeCluster(name="location", mentions=("location", "place"))
    [egg] = drawn(
        change(1, "egg", "shell", "whole", "cracked"),
        change(2, "egg", "place", "in shell", "in bowl"),
        change(3, "egg", "Location", "in bowl", "in pan"),
        clusters=(EntityCluster(name="egg", mentions=("egg",), attributes=(place,)),),
    )
    assert [track.attribute for track in egg.tracks] == ["location", "shell"]
    assert words(egg.tracks[0]) == [("in shell", 0, 2), ("in bowl", 2, 3), ("in pan", 3, 7)]


def test_gold_stands_under_the_prediction_and_two_values_of_a_step_side_by_side() -> None:
    hot, clean = change(1, "pot", "state", "cold", "hot"), change(1, "pot", "state", "dirty", "clean")
    [pot] = drawn(hot, clean, gold=(hot,))
    assert [(track.is_gold, words(track)[1][0]) for track in pot.tracks] == [(False, "hot · clean"), (True, "hot")]


def test_a_trace_with_many_tracks_starts_closed() -> None:
    few, many = ([change(1, f"thing {n}", "state", "a", "b") for n in range(count)] for count in (40, 41))
    assert all(line.opened for line in drawn(*few))
    assert not any(line.opened for line in drawn(*many))


def test_a_band_is_as_wide_as_html_reads_in_pieces() -> None:
    [pot] = drawn(change(1, "pot", "heat", "cold", "hot"), steps=2500)
    assert list(pot.tracks[0].bands[1].spans()) == [1000, 1000, 500]
