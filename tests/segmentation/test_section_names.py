"""Section names in many languages: ingredients never become steps, whatever they are called."""

from __future__ import annotations

import pytest

from fluents.segmentation import segment
from fluents.segmentation.layout import Role, section_role

RECIPES = {
    "German": (
        "# Kartoffelsuppe\n\nPortionen: 4\n\n## Zutaten für 4 Personen\n\n- 500 g Kartoffeln\n- 1 Zwiebel\n\n"
        "## Zubereitung\n\nDie Kartoffeln schälen und würfeln. Die Zwiebel in Butter anschwitzen.\n\n"
        "Tipp: Mit Schnittlauch bestreuen.\n\n## Hinweise\n\nDie Suppe hält drei Tage.",
        ["Die Kartoffeln schälen und würfeln.", "Die Zwiebel in Butter anschwitzen."],
    ),
    "German without Markdown": (
        "Kartoffelsuppe\n\nZutaten:\n500 g Kartoffeln\n1 Zwiebel\n\nZubereitung:\nSchritt 1: Kartoffeln schälen.\n"
        "Schritt 2: Zwiebel anschwitzen.",
        ["Kartoffeln schälen.", "Zwiebel anschwitzen."],
    ),
    "Spanish": (
        "Tortilla\n\nIngredientes (4 personas)\n- 4 huevos\n- 3 patatas\n\nPreparación\n1. Pelar las patatas.\n"
        "2. Batir los huevos.\n\nConsejos\n- Servir fría.",
        ["Pelar las patatas.", "Batir los huevos."],
    ),
    "Portuguese": (
        "Pão de queijo\n\nIngredientes\n- 500 g de polvilho\n\nModo de preparo\n1. Ferva o leite.\n2. Misture o queijo."
        "\n\nDicas\n- Congele as bolinhas.",
        ["Ferva o leite.", "Misture o queijo."],
    ),
    "French": (
        "Crêpes\n\nPréparation : 15 min\n\nIngrédients :\n- 250 g de farine\n- 4 œufs\n\nPréparation :\n"
        "Mélanger la farine et les œufs. Laisser reposer une heure.\n\nAstuce : ajouter un peu de rhum.",
        ["Mélanger la farine et les œufs.", "Laisser reposer une heure."],
    ),
    "Italian": (
        "Pesto\n\nIngredienti\n- basilico\n- pinoli\n\nProcedimento\n1. Lavare il basilico.\n2. Pestare i pinoli.\n\n"
        "Note\nSi conserva una settimana.",
        ["Lavare il basilico.", "Pestare i pinoli."],
    ),
    "Russian": (
        "Борщ\n\nИнгредиенты:\n- свёкла\n- капуста\n\nПриготовление:\nШаг 1. Нарезать свёклу.\nШаг 2. Обжарить её.\n\n"
        "Советы\n- Подавать со сметаной.",
        ["Нарезать свёклу.", "Обжарить её."],
    ),
    "Chinese": (
        "番茄炒蛋\n\n材料：\n- 番茄两个\n- 鸡蛋三个\n\n"
        "做法：\n第1步：把番茄切块。\n第2步：把鸡蛋打散。\n\n小贴士：\n- 加一点糖。",
        ["把番茄切块。", "把鸡蛋打散。"],
    ),
    "Japanese": (
        "味噌汁\n\n材料（2人分）\n・豆腐\n・わかめ\n\n"
        "作り方\n1. 豆腐を切る。\n2. 味噌を溶く。\n\nコツ・ポイント\n沸騰させない。",
        ["豆腐を切る。", "味噌を溶く。"],
    ),
    "Arabic": (
        "شاي\n\nالمكونات:\n- ماء\n- نعناع\n\n"
        "طريقة التحضير:\n1. اغلي الماء.\n2. أضيفي النعناع.\n\nملاحظات:\n- يقدم ساخنا.",
        ["اغلي الماء.", "أضيفي النعناع."],
    ),
    "Hindi": (
        "चाय\n\nसामग्री:\n- पानी\n- दूध\n\nविधि:\n1. पानी उबालें।\n2. दूध डालें।\n\nसुझाव:\n- अदरक डालें।",
        ["पानी उबालें।", "दूध डालें।"],
    ),
    "Dutch": (
        "Pannenkoeken\n\nIngrediënten\n- 250 g bloem\n\nBereiding\n1. Klop de eieren.\n2. Bak de pannenkoeken.",
        ["Klop de eieren.", "Bak de pannenkoeken."],
    ),
}


@pytest.mark.parametrize("language", RECIPES)
def test_only_the_steps_of_a_recipe_are_steps(language: str) -> None:
    text, steps = RECIPES[language]
    assert list(segment(text).steps) == steps


@pytest.mark.parametrize(
    ("title", "role"),
    [
        ("ZUTATEN", "needs"),
        ("Zutaten und Zubehör", "needs"),
        ("**Ingredientes** para la masa", "needs"),
        ("Outils et matériel", "needs"),
        ("【材料】", "needs"),
        ("So geht’s", "steps"),
        ("Nährwerte (pro Portion)", "remarks"),
        ("Zutaten und Zubereitung", None),
        ("- Tip", None),  # an item of a list
        ("Für den Teig", None),
    ],
)
def test_names_with_what_people_write_around_them(title: str, role: Role | None) -> None:
    assert section_role(title) == role
