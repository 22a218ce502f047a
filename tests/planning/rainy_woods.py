"""Rain that fills a pot nobody speaks of: OpenPI2.0's example of what salient states are good for, in our own words."""

from __future__ import annotations

from fluents.records import Procedure, Salience, StateChange, Trace

CHANGES = (
    (1, "camper", "location", "on the trail", "under the overhang"),
    (2, "pot", "location", "in the backpack", "on the grass"),
    (3, "camper", "wetness", "in danger of rain", "still dry"),
    (3, "pot", "content", "empty", "full of rainwater"),
    (4, "pot", "content", "full of rainwater", "half empty"),
    (4, "camper", "thirst", "thirsty", "quenched"),
)
TRACE = Trace(
    procedure=Procedure(
        id="rainy-woods",
        goal="Get water to drink in rainy woods",
        steps=(
            "Look for a dry place under a rock overhang.",
            "Put an open pot out on the grass.",
            "Wait under the overhang while the shower passes.",
            "Drink from the pot.",
        ),
    ),
    changes=tuple(StateChange(step=s, entity=e, attribute=a, before=b, after=c) for s, e, a, b, c in CHANGES),
    salience=(
        Salience(entity="camper", rater="A1", value=5),
        Salience(entity="pot", rater="A1", value=5),
    ),
)
WANTED = "camper quenched"
