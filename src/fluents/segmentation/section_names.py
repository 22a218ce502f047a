"""What the sections of a procedure are called, in the languages most procedures are written in."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["steps", "needs", "remarks"]
"""What a section holds: steps, what they need (ingredients, tools), or remarks (notes, servings, nutrition)."""

_NAMES: dict[str, dict[Role, str]] = {
    "en": {
        "steps": "steps, step by step, method, directions, instructions, procedure, preparation, protocol",
        "needs": "ingredients, ingredient list, materials, equipment, tools, supplies, reagents, requirements, "
        "you need, you will need, you'll need, what you need, what you will need, what you'll need, "
        "things you need, things you will need, things you'll need",
        "remarks": "note, notes, n.b., nb, tip, tips, pro tip, hint, hints, warning, warnings, caution, cautions, "
        "safety, introduction, overview, about, background, nutrition, nutrition facts, references, sources, "
        "related articles, serves, servings, yield, yields, makes, prep time, preparation time, cook time, "
        "cooking time, total time, difficulty, comments, reviews, related posts, related recipes, leave a comment, "
        "leave a reply, share this, you may also like, you might also like",
    },
    "es": {
        "steps": "pasos, paso a paso, preparación, elaboración, instrucciones, procedimiento, modo de preparación, "
        "método, cómo se hace",
        "needs": "ingredientes, materiales, utensilios, herramientas, equipo, necesitas, qué necesitas, "
        "lo que necesitas",
        "remarks": "nota, notas, consejo, consejos, truco, trucos, advertencia, advertencias, aviso, atención, "
        "precaución, introducción, información nutricional, raciones, porciones, comensales, rinde, "
        "tiempo de preparación, tiempo de cocción, tiempo total, tiempo, dificultad",
    },
    "pt": {
        "steps": "passos, passo a passo, preparo, preparação, instruções, procedimento, modo de preparo, "
        "modo de fazer, como fazer, método",
        "needs": "ingredientes, materiais, utensílios, ferramentas, equipamento, equipamentos, você vai precisar",
        "remarks": "nota, notas, dica, dicas, aviso, avisos, atenção, cuidado, advertência, observação, observações, "
        "introdução, informação nutricional, porções, rendimento, rende, tempo de preparo, tempo de preparação, "
        "tempo total, dificuldade",
    },
    "fr": {
        "steps": "étapes, étape par étape, préparation, instructions, réalisation, procédure, protocole, "
        "mode opératoire, méthode, marche à suivre",
        "needs": "ingrédients, matériel, ustensiles, outils, équipement, fournitures, il vous faut",
        "remarks": "note, notes, remarque, remarques, astuce, astuces, conseil, conseils, attention, avertissement, "
        "avertissements, introduction, valeurs nutritionnelles, portions, parts, temps de préparation, "
        "temps de cuisson, temps total, temps de repos, difficulté",
    },
    "de": {
        "steps": "schritte, schritt für schritt, zubereitung, anleitung, arbeitsschritte, durchführung, vorgehen, "
        "vorgehensweise, so geht's, so wird's gemacht, herstellung",
        "needs": "zutaten, zutatenliste, material, materialien, werkzeug, werkzeuge, zubehör, ausrüstung, geräte, "
        "du brauchst, sie brauchen, das brauchst du, das wird benötigt",
        "remarks": "hinweis, hinweise, anmerkung, anmerkungen, notiz, notizen, tipp, tipps, achtung, warnung, "
        "warnungen, vorsicht, einleitung, nährwerte, portionen, personen, zubereitungszeit, arbeitszeit, backzeit, "
        "kochzeit, garzeit, ruhezeit, gesamtzeit, schwierigkeit, quellen",
    },
    "it": {
        "steps": "passaggi, passo dopo passo, passo passo, preparazione, procedimento, istruzioni, esecuzione, metodo",
        "needs": "ingredienti, materiali, materiale, utensili, attrezzi, attrezzatura, occorrente, cosa serve",
        "remarks": "nota, note, consiglio, consigli, suggerimento, suggerimenti, avvertenza, avvertenze, attenzione, "
        "introduzione, valori nutrizionali, dosi, porzioni, tempo di preparazione, tempo di cottura, tempo totale, "
        "difficoltà",
    },
    "nl": {
        "steps": "stappen, stap voor stap, bereiding, bereidingswijze, instructies, werkwijze, zo maak je het",
        "needs": "ingrediënten, materialen, benodigdheden, gereedschap, dit heb je nodig",
        "remarks": "opmerking, opmerkingen, let op, waarschuwing, inleiding, voedingswaarden, porties, "
        "bereidingstijd, oventijd, moeilijkheid",
    },
    "pl": {
        "steps": "kroki, krok po kroku, przygotowanie, sposób przygotowania, wykonanie, instrukcje",
        "needs": "składniki, materiały, narzędzia, przybory",
        "remarks": "uwaga, uwagi, wskazówka, wskazówki, rada, rady, ostrzeżenie, wstęp, porcje, czas przygotowania",
    },
    "ru": {
        "steps": "шаги, пошагово, приготовление, способ приготовления, инструкция, инструкции, порядок действий, "
        "как готовить, ход работы, пошаговый рецепт",
        "needs": "ингредиенты, состав, продукты, материалы, инструменты, оборудование, вам понадобится, понадобится",
        "remarks": "примечание, примечания, заметка, заметки, совет, советы, внимание, предупреждение, осторожно, "
        "введение, пищевая ценность, порции, количество порций, время приготовления, сложность",
    },
    "tr": {
        "steps": "adımlar, adım adım, hazırlanışı, yapılışı, yapılış, hazırlama, talimatlar",
        "needs": "malzemeler, malzeme, gereçler, araçlar, gerekli malzemeler",
        "remarks": "not, notlar, ipucu, ipuçları, püf noktası, uyarı, uyarılar, dikkat, giriş, porsiyon, "
        "hazırlama süresi, pişirme süresi",
    },
    "zh": {
        "steps": "步骤, 步驟, 做法, 制作步骤, 製作步驟, 制作方法, 作法, 方法, 操作步骤, 烹饪步骤, 流程",
        "needs": "材料, 食材, 原料, 配料, 用料, 主料, 辅料, 调料, 調味料, 工具, 用具, 设备, 准备材料",
        "remarks": "注意, 注意事项, 注意事項, 小贴士, 小貼士, 贴士, 提示, 温馨提示, 备注, 備註, 警告, 简介, "
        "份量, 分量, 人份, 时间, 烹饪时间, 难度",
    },
    "ja": {
        "steps": "作り方, つくり方, 手順, 方法, 工程, 調理手順, やり方",
        "needs": "材料, 道具, 用意するもの, 準備するもの, 必要なもの, 調味料, 器具",
        "remarks": "注意, 注意点, 備考, メモ, コツ, ポイント, コツ・ポイント, ヒント, 警告, はじめに, 栄養成分, 人数, "
        "調理時間, 所要時間",
    },
    "ko": {
        "steps": "만드는 법, 만드는 방법, 조리법, 조리 순서, 조리순서, 순서, 단계, 방법",
        "needs": "재료, 준비물, 도구, 양념, 필요한 것",
        "remarks": "주의, 주의사항, 참고, 메모, 팁, 요리 팁, 경고, 소개, 인분, 조리 시간, 조리시간",
    },
    "ar": {
        "steps": "الخطوات, طريقة التحضير, طريقة العمل, طريقة الإعداد, طريقة الطبخ, التحضير, التعليمات, الطريقة",
        "needs": "المكونات, المقادير, المواد, الأدوات, الأدوات المطلوبة",
        "remarks": "ملاحظة, ملاحظات, نصيحة, نصائح, تحذير, تحذيرات, تنبيه, مقدمة, القيمة الغذائية, الحصص, "
        "عدد الحصص, وقت التحضير, وقت الطهي",
    },
    "hi": {
        "steps": "विधि, बनाने की विधि, बनाने का तरीका, तरीका, चरण, निर्देश",
        "needs": "सामग्री, आवश्यक सामग्री, उपकरण, औज़ार",
        "remarks": "नोट, टिप, टिप्स, सुझाव, ध्यान दें, चेतावनी, सावधानी, परिचय, समय, तैयारी का समय",
    },
}

SECTION_ROLES: dict[str, Role] = {
    name: role for names in _NAMES.values() for role, words in names.items() for name in words.split(", ")
}
"""What a section of this name holds, whatever its language."""

STEP_WORDS = "step|paso|passo|étape|etape|schritt|stap|krok|шаг|adım|步骤|步驟|手順|ステップ|단계|الخطوة|خطوة|चरण"
"""What is written before the number of a step, as alternatives of a regular expression."""

GOAL_WORDS = (
    "title|goal|task|recipe|título|objetivo|receta|receita|titre|recette|titel|ziel|rezept|titolo|ricetta|рецепт"
)
"""What is written before the goal of a procedure, likewise."""

_TAIL = re.compile(r"[(（]| (?:for|para|pour|per|für|voor|dla|для) ")
_MARKS = re.compile(r"^(?:[*_]{1,3}(?=\S)|#{1,6}\s*|-{2,}\s*|[【\[])")  # not those of a list: "- Tip"
_AND = re.compile(r" (?:and|y|e|et|und|en|i|и|ve) |[&/,、，]")


def section_role(title: str) -> Role | None:
    """What a section of this title holds, if it is one of the names known: "Ingredients for 4" holds needs."""
    name = _TAIL.split(title.lower().replace("’", "'"), maxsplit=1)[0].rstrip(" :：*_#-】]")
    name = _MARKS.sub("", name, count=1)
    name = name.removesuffix(" needed").removesuffix(" required")
    if name in SECTION_ROLES:
        return SECTION_ROLES[name]
    roles = {SECTION_ROLES.get(part.strip()) for part in _AND.split(name)}
    return roles.pop() if len(roles) == 1 else None
