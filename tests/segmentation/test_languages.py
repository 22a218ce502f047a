"""The language of a text: right on short recipes, silent where it cannot be told."""

from __future__ import annotations

from typing import Any

import pytest
from py3langid.langid import LanguageIdentifier

from fluents.errors import FluentsWarning
from fluents.records import Procedure
from fluents.segmentation import LANGUAGES, _identifier, language, warn_of_language
from threads import at_once

SHORT = {
    "en": "Boil the water. Pour it over the leaves.",
    "de": "Wasser kochen. Tee aufgießen.",
    "es": "Pelar las patatas. Batir los huevos.",
    "pt": "Descasque as batatas. Frite em óleo quente.",
    "fr": "Faire bouillir l'eau. Ajouter les pâtes.",
    "it": "Sbucciare le patate e tagliarle a cubetti.",
    "nl": "Snijd de uien fijn en bak ze.",
    "ru": "Нарезать лук. Обжарить на масле.",
    "tr": "Soğanları doğrayın. Tuz ekleyin.",
    "zh": "把水烧开。加入面条。",
    "ja": "お湯を沸かす。麺を入れる。",
    "ko": "물을 끓이세요. 면을 넣으세요.",
    "ar": "اغلي الماء. أضف المعكرونة.",
    "hi": "पानी उबालें। चाय पत्ती डालें।",
}


@pytest.mark.parametrize("code", SHORT)
def test_two_short_sentences_are_enough(code: str) -> None:
    assert language(SHORT[code]) == code


@pytest.mark.parametrize("text", ["", "1. 2. 3.", "☕", "Chug the Jägerbomb.", "Hire a private detective."])
def test_where_it_cannot_be_told_nothing_is_said(text: str) -> None:
    assert language(text) in (None, "en")


@pytest.mark.parametrize(
    "text",
    [
        "Add 10 µl of DNA to the PCR master mix. Spin at 13,000 rpm for 1 min.",
        "Sauté the shallots in ghee. Add paneer, garam masala and cilantro.",
        "Bake the tortillas. Garnish with jalapeños, salsa verde and queso fresco.",
        "git clone the repo; run npm install; open localhost:3000",
    ],
)
def test_english_with_foreign_words_is_english(text: str) -> None:
    assert language(text) == "en"


@pytest.mark.slow
@pytest.mark.usefixtures("mirror")
def test_no_english_procedure_is_taken_for_another_language() -> None:
    from fluents.data.datasets import load_traces

    found = [trace.procedure for trace in load_traces("openpi:test")]
    assert all(language(" ".join([procedure.goal, *procedure.steps])) == "en" for procedure in found)


def test_the_warning_names_the_language_and_the_way_out() -> None:
    tea = Procedure(id="tee", goal="Tee kochen", steps=("Wasser kochen.", "Tee aufgießen."))
    with pytest.warns(
        FluentsWarning, match="seems to be in German, but the embedded model knows only English.*`model`"
    ):
        warn_of_language(tea, ["en"])
    warn_of_language(tea, ["en", "de"])  # a warning would be an error here


def test_every_language_told_apart_is_one_the_detector_has() -> None:
    assert {code for code, _ in _identifier().rank("Tea")} == set(LANGUAGES)


def test_many_people_who_paste_a_text_at_once_load_one_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    real = LanguageIdentifier.from_model_file

    def counted(*given: Any, **more: Any) -> Any:
        loads.append(1)
        return real(*given, **more)

    monkeypatch.setattr(LanguageIdentifier, "from_model_file", counted)
    _identifier.cache_clear()
    assert set(at_once(lambda: language(SHORT["de"]))) == {"de"}
    assert len(loads) == 1
