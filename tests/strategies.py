"""Hypothesis strategies for the records."""

from __future__ import annotations

from hypothesis import strategies as st

from fluents.records import Alternatives, Procedure, Reject, Salience, StateChange, Trace

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(str.strip)
maybe_words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@st.composite
def procedures(draw: st.DrawFn) -> Procedure:
    steps = draw(st.lists(words, min_size=1, max_size=5))
    return Procedure(
        id=draw(words),
        goal=draw(maybe_words),
        steps=tuple(steps),
        topic=draw(st.none() | maybe_words),
        source=draw(st.none() | maybe_words),
        images=tuple(draw(maybe_words) for _ in steps) if draw(st.booleans()) else (),
    )


@st.composite
def changes(draw: st.DrawFn, steps: int = 1) -> StateChange:
    return StateChange(
        step=draw(st.integers(1, steps)),
        entity=draw(words),
        attribute=draw(words),
        before=draw(maybe_words),
        after=draw(maybe_words),
        raw=draw(st.none() | maybe_words),
        alternatives=Alternatives(before=tuple(draw(st.lists(words, max_size=2)))),
        votes=draw(st.none() | st.integers(0, 50)),
        support=draw(st.none() | st.floats(0, 1)),
        mentioned=draw(st.none() | st.booleans()),
        cluster=draw(st.none() | st.integers(0, 9)),
    )


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    procedure = draw(procedures())
    count = len(procedure.steps)
    return Trace(
        procedure=procedure,
        changes=tuple(draw(st.lists(changes(count), max_size=4))),
        rejects=tuple(draw(st.lists(st.builds(Reject, text=maybe_words, reason=words), max_size=2))),
        salience=tuple(
            draw(
                st.lists(
                    st.builds(Salience, entity=words, rater=words, value=st.none() | st.integers(0, 5)), max_size=2
                )
            )
        ),
        covered=draw(st.none() | st.just((1,))),
    )
