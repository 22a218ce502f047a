"""Agreement on a stage: alpha as computed by hand, and the same numbers as `fluents eval agreement`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from decided import BARE, TEA_TRACE, Notebook, change, one_stage, run, shown

from fluents import jsonl
from fluents.annotation import Item, items, outcome
from fluents.annotation.agreement import stage_agreement
from fluents.annotation.items import standing
from fluents.annotation.labels import majority_answer
from fluents.annotation.paraphrase import change_clusters
from fluents.metrics import score


def by_change(**said: str) -> Any:
    """From a string for each judge: y or n for each change."""
    return lambda item, author: {"valid": said[author][item.payload["position"]] == "y"}


def test_alpha_of_three_judges_by_hand() -> None:
    """Five changes, three judges: A yyyyn, B yyynn, C yynyn.

    Units: yyy yyy yyn ynn+y → (y,n,y), nnn. So: 1 yyy, 2 yyy, 3 y y n, 4 y n y, 5 nnn. Each ordered pair of a unit of
    three weighs 1/2. Coincidences: yy = 3 + 3 + 1 + 1 = 8, nn = 3, yn = ny = 1 + 1 = 2. n_y = 10, n_n = 5, n = 15.
    alpha = 1 - (n - 1) · (yn + ny) / (2 · n_y · n_n) = 1 - 14 · 4 / 100 = 0.44. All three agree on 3 of 5.
    """
    found = run(one_stage("vet"), [TEA_TRACE], by_change(A="yyyyn", B="yyynn", C="yynyn")).agreement
    assert found.overall.alpha == pytest.approx(0.44)
    assert found.overall.full == pytest.approx(3 / 5)
    assert found.overall.units == 5


def test_a_person_is_compared_with_the_majority_of_the_others() -> None:
    """A against B and C: they agree with each other on 1, 2 and 5, where A says the same. B: A and C agree on 1, 2, 4,
    5, and B differs on 4. C: A and B agree on 1, 2, 3, 5, and C differs on 3."""
    found = run(one_stage("vet"), [TEA_TRACE], by_change(A="yyyyn", B="yyynn", C="yynyn")).agreement
    assert [(one.author, one.items, one.units, one.share) for one in found.by_person] == [
        ("A", 5, 3, 1.0),
        ("B", 5, 4, 0.75),
        ("C", 5, 4, 0.75),
    ]
    assert sorted(round(share, 2) for share in found.by_item.values()) == [0.67, 0.67, 1.0, 1.0, 1.0]


def test_alpha_of_steps_by_hand() -> None:
    """Two judges on four steps: A ynyy, B yyyn. Units: yy, ny, yy, yn. Coincidences: yy = 4, yn = ny = 2; n_y = 6,
    n_n = 2, n = 8. alpha = 1 - 7 · 4 / (2 · 12) = -1/6."""
    valid = {"A": [True, False, True, True], "B": [True, True, True, False]}
    found = run(one_stage("clean-steps", judges=2), [TEA_TRACE], lambda _, author: {"valid": valid[author]}).agreement
    assert found.overall.alpha == pytest.approx(-1 / 6)
    assert found.overall.full == 0.5


def test_ordinal_alpha_of_salience_by_hand() -> None:
    """Ratings of three entities by two: (5, 5), (3, 1), (1, 1). n_1 = 3, n_3 = 1, n_5 = 2, n = 6.

    Ordinal distances: of 1 and 3: (3/2 + 1/2)² = 4; of 3 and 5: (1/2 + 2/2)² = 2.25; of 1 and 5: (3/2 + 1 + 1)² =
    12.25. Observed: the pair (3, 1) twice: 2 · 4 = 8. Expected: 2 · (3·1·4 + 1·2·2.25 + 3·2·12.25) = 2 · 90 = 180.
    alpha = 1 - 5 · 8 / 180 = 7/9.
    """
    scores = {"A": {"water": 5, "cup": 3, "bag": 1}, "B": {"water": 5, "cup": 1, "bag": 1}}
    design = one_stage("salience", scope="global")
    found = run(design, [TEA_TRACE], lambda _, author: {"scores": scores[author]}).agreement
    assert found.level == "ordinal"
    assert found.overall.alpha == pytest.approx(7 / 9)
    assert found.by_scope["global"] == found.overall


def test_salience_agrees_with_fluents_eval_on_the_exported_file(tmp_path: Path) -> None:
    """Full agreement and alpha of both scopes, to the last digit."""

    def say(item: Item, author: str) -> dict[str, Any]:
        step = item.payload.get("step", 0)
        by_name = enumerate(item.payload["entities"])
        return {"scores": {name: (place + step * (1 + (author == "B" and place == 1))) % 6 for place, name in by_name}}

    found = run(one_stage("salience"), [TEA_TRACE], say)
    path = tmp_path / "rated.jsonl"
    jsonl.write(found.traces, path)
    for scope in ("global", "local"):
        evaluated = score("agreement", path, None, scope=scope)
        ours = found.agreement.by_scope[scope]
        assert ours.full == evaluated["agreement"]["share"]
        assert ours.alpha == evaluated["alpha"]["ordinal"]
    assert found.agreement.by_scope["local"].full != found.agreement.by_scope["global"].full


def test_two_names_are_a_question_in_clusters() -> None:
    """Of water, cup and bag, both hold the bag apart, and one joins water and cup: two of three pairs agree."""
    said = {"A": [["water", "cup"], ["bag"]], "B": [["water"], ["cup"], ["bag"]]}
    found = run(one_stage("entities", judges=2), [TEA_TRACE], lambda _, author: {"clusters": said[author]}).agreement
    assert found.overall.full == pytest.approx(2 / 3)


def test_what_adjudicators_and_experts_say_is_no_part_of_agreement() -> None:
    design = one_stage("clean-procedures", judges=2)
    [item] = items(design, 1, [TEA_TRACE])
    notebook = Notebook()
    for author in "AB":
        notebook.note(item, author, {"procedure": True})
    notebook.note(item, "E", {"procedure": False}, checks=True)
    notebook.note(item, "J", {"procedure": False}, adjudicates=True)
    found = stage_agreement([item], notebook.decisions)
    assert found.overall.full == 1
    assert found.overall.alpha is None
    assert [one.author for one in found.by_person] == ["A", "B"]
    assert found.expert is not None
    assert (found.expert.items, found.expert.matching, found.expert.share) == (1, 0, 0.0)


def test_nothing_is_said_where_nobody_decided() -> None:
    found = stage_agreement([], [])
    assert found.to_dict() == {
        "units": 0,
        "full": None,
        "alpha": None,
        "level": "nominal",
        "by_person": [],
        "by_item": {},
        "by_scope": {},
        "paraphrase": None,
        "expert": None,
    }


# Modulo paraphrase

PAN = change(1, "pan", "temperature", "cold", "hot")
SKILLET = change(1, "skillet", "temperature", "cool", "heated")


def test_other_words_for_the_same_change_agree_and_its_contrary_does_not() -> None:
    cooled = change(1, "pan", "temperature", "hot", "cold")
    one, other, contrary, unlike = change_clusters([PAN, SKILLET, cooled, change(1, "stove", "power", "off", "on")])
    assert one == other
    assert len({one, contrary, unlike}) == 3
    assert change_clusters([]) == []


def test_authors_who_use_other_words_agree_modulo_paraphrase() -> None:
    """A: pan hot (1), stove on (1); B: skillet heated (1). In the same words they share nothing; by meaning one of two:
    F1 = 2 · 1 / (2 + 1). Alpha over 2 clusters × 4 steps: (1, pan) yy, (1, stove) yn, six nn. Coincidences: yy = 2,
    yn = ny = 1, nn = 12; n_y = 3, n_n = 13, n = 16; alpha = 1 - 15 · 2 / (2 · 39) = 24/39."""
    stove = change(1, "stove", "power", "off", "on")
    said = {"A": [shown(PAN), shown(stove)], "B": [shown(SKILLET)]}
    found = run(one_stage("author"), [BARE], lambda _, author: {"changes": said[author]}).agreement
    assert found.overall.full == 0
    # In the same words: 3 changes × 4 steps, (yn) three times and (nn) nine times; n_y = 3, n_n = 21, n = 24.
    assert found.overall.alpha == pytest.approx(1 - 23 * 6 / (2 * 63))
    assert found.paraphrase is not None
    assert found.paraphrase.f1 == pytest.approx(2 / 3)
    assert found.paraphrase.alpha == pytest.approx(24 / 39)
    assert [one.f1 for one in found.by_person] == pytest.approx([2 / 3, 2 / 3])


def test_authors_who_find_nothing_agree() -> None:
    found = run(one_stage("author"), [BARE], lambda *_: {"changes": []}).agreement
    assert found.paraphrase is not None
    assert found.paraphrase.f1 == 1


# What most say


@pytest.mark.parametrize(
    ("kind", "said", "most"),
    [
        ("vet", [{"valid": True}, {"valid": False}, {"valid": True}], {"valid": True, "reason": None}),
        ("vet", [{"valid": True}, {"valid": False}], None),
        (
            "clean-steps",
            [{"valid": [True, True, False, True]}, {"valid": [True, False, False, True]}, {"valid": [False] * 4}],
            {"valid": [True, False, False, True]},
        ),
        (
            "salience",
            [{"scores": {"water": one, "cup": 0, "bag": 1}} for one in (5, 1, 3)],
            {"scores": {"water": 3, "cup": 0, "bag": 1}},
        ),
        ("judge", [{"verdicts": ["right"]}] * 2, {"verdicts": ["right"], "missing": []}),
        ("author", [{"changes": []}], None),
        ("entities", [{"clusters": [["water", "cup", "bag"]]}], {"clusters": [["water", "cup", "bag"]]}),
    ],
)
def test_the_answer_of_the_majority(kind: str, said: list[dict[str, Any]], most: Any) -> None:
    design = one_stage(kind, judges=3)
    item = next(items(design, 1, [TEA_TRACE]))
    notebook = Notebook()
    for author, answer in zip("ABC", said, strict=False):
        notebook.note(item, author, answer)
    [found] = standing([item], notebook.decisions)
    assert majority_answer(found) == most


def test_an_expert_who_judges_like_the_majority_matches() -> None:
    design = one_stage("vet")
    made = list(items(design, 1, [TEA_TRACE]))
    notebook = Notebook()
    for number, item in enumerate(made):
        for author in "ABC":
            notebook.note(item, author, {"valid": True})
        notebook.note(item, "E", {"valid": number > 0}, checks=True)
    found = outcome(design, 1, [TEA_TRACE], made, notebook.decisions)
    assert found.agreement.expert is not None
    assert found.agreement.expert.share == 0.8
    assert found.after.changes == 5
