"""The file `fluents track -o` grows: what --resume keeps of it, and what an interruption says. No model runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fluents import jsonl
from fluents.cli.track import _into_file
from fluents.errors import InputError
from fluents.records import Procedure, Provenance, Trace

TEA = Procedure(id="tea", goal="Make tea", steps=("Boil the water.",))
TOAST = Procedure(id="toast", goal="Make toast", steps=("Slice the bread.",))
FAST = Provenance(tracker="local", decoding={"samples": 1, "removed": 0})


def tracked(wanted: Iterable[Procedure]) -> Iterator[Trace]:
    for procedure in wanted:
        if "wait" in procedure.goal:
            raise KeyboardInterrupt
        yield Trace(procedure=procedure, provenance=FAST)


def test_a_procedure_with_another_text_by_now_is_not_taken_for_done(tmp_path: Path) -> None:
    """Two texts with one title have one id; so has a text before and after it was edited."""
    out = tmp_path / "out.jsonl"
    jsonl.write([Trace(procedure=TEA.replace(source="old/tea.md"))], out)
    assert [trace.id for trace in _into_file(iter([TEA, TOAST]), tracked, out, resume=True)] == ["tea", "toast"]
    before = out.read_bytes()
    for edited in (TEA.replace(steps=("Fry an egg.",)), TEA.replace(goal="Make coffee")):
        with pytest.raises(InputError, match="tea is there with another text"):
            _into_file(iter([edited]), tracked, out, resume=True)
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("before", "warns"),
    [
        (FAST.replace(decoding={"samples": 16}), True),
        (FAST.replace(seed=2), True),
        (FAST.replace(decoding={"samples": 1, "removed": 3}), False),
    ],
)
def test_resuming_with_other_settings_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: Provenance, warns: bool
) -> None:
    out = tmp_path / "out.jsonl"
    jsonl.write([Trace(procedure=TEA, provenance=before)], out)
    _into_file(iter([TEA, TOAST, TOAST.replace(id="more")]), tracked, out, resume=True)
    assert capsys.readouterr().err.count("made with other settings") == warns


def test_ctrl_c_says_where_the_work_is_and_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        _into_file(iter([TEA, TOAST.replace(goal="wait")]), tracked, out, resume=False)
    assert f"what is done is in {out}; --resume goes on" in capsys.readouterr().err
    assert [record.id for record in jsonl.read(out)] == ["tea"]
