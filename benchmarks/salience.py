"""How the offline salience is learnt, and how well it agrees with people.

    python benchmarks/salience.py            # the tables of docs/salience.md
    python benchmarks/salience.py --write    # writes the shipped weights as well

It learns from what models said of OpenPI2.0's procedures, never from people's ratings. Two tests against annotator A1:

- cross-validated: each frozen fold of the 20 procedures people rated is tested with weights learnt from all other
  procedures. Whose ratings to learn from and the penalty are chosen in the other folds alone, by the raw correlation.
- held out: learnt from the procedures 21 to 55, tested on 1 to 20, with what was chosen most often. These are shipped.

What was decided once A1's numbers had been seen is shown with its alternatives: each penalty and teacher on offer, not
chosen but fixed, and the method without the rule that learns 0.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from fluents.data.datasets import load_traces
from fluents.data.openpi2_labels import SALIENCE_FOLDS, held_out
from fluents.errors import DataMissingError
from fluents.metrics.salience import others, salience
from fluents.records import Trace
from fluents.salience.feature_rater import RATER, WEIGHTS, LabelledFeatures, fit, labelled_features, predict
from fluents.salience.features import TraceMeasurements
from fluents.salience.rater import SCOPES
from fluents.salience.ridge import Ridge
from fluents.scoring import Scope
from fluents.scoring.bootstrap import intervals
from fluents.scoring.score import Score
from fluents.text.embedders import StaticEmbedder

MODELS = ("gpt-4", "gpt-3.5-turbo", "llama2-13", "llama2-70")
ROWS = {"global": ("global smoothed", "global raw"), "local": ("local smoothed", "local raw")}


class Recipe(NamedTuple):
    raters: tuple[str, ...]
    penalty: float


RECIPES = [Recipe(raters, penalty) for raters in (MODELS[:1], MODELS) for penalty in (30, 100, 300, 1000, 3000)]


class Study:
    """All procedures, measured once."""

    def __init__(self, traces: Iterable[Trace]) -> None:
        embedder = StaticEmbedder()
        self.measured = {trace.id: TraceMeasurements(trace, embedder) for trace in traces}
        self.people = [id_ for fold in SALIENCE_FOLDS for id_ in fold]
        self.others = [id_ for id_ in self.measured if id_ not in self.people]
        self._data: dict[tuple[Scope, tuple[str, ...]], dict[str, LabelledFeatures]] = {
            (scope, raters): {
                id_: labelled_features(measured, scope, raters) for id_, measured in self.measured.items()
            }
            for scope in SCOPES["both"]
            for raters in (MODELS[:1], MODELS)
        }

    def learnt(self, scope: Scope, recipe: Recipe, procedures: Iterable[str], without: str = "") -> Ridge:
        data = self._data[scope, recipe.raters]
        return fit([_less(data[id_], without) for id_ in procedures], recipe.penalty)

    def fixed(self, scope: Scope, recipe: Recipe, without: str = "") -> Score:
        """Each fold rated by what all other procedures teach by one recipe."""
        rated: list[Trace] = []
        for fold in SALIENCE_FOLDS:
            weights = self.learnt(scope, recipe, [id_ for id_ in self.measured if id_ not in fold], without)
            rated += self.rated(scope, weights, fold)
        return self.score(rated)

    def rated(self, scope: Scope, weights: Ridge, procedures: Iterable[str]) -> list[Trace]:
        measured = [self.measured[id_] for id_ in procedures]
        return [one.trace.replace(salience=tuple(predict(one, scope, weights))) for one in measured]

    def score(self, rated: Sequence[Trace]) -> Score:
        return salience([self.measured[trace.id].trace for trace in rated], rated, rater=RATER)

    def chosen(self, scope: Scope, fold: Sequence[str]) -> Recipe:
        """The recipe that agrees best with A1 on the other folds, each rated by what the rest taught."""

        def agreement(recipe: Recipe) -> float:
            rated: list[Trace] = []
            for inner in SALIENCE_FOLDS:
                if inner != fold:
                    weights = self.learnt(scope, recipe, [i for i in self.measured if i not in (*fold, *inner)])
                    rated += self.rated(scope, weights, inner)
            return self.score(rated)[f"{scope} raw"]["r"]

        return max(RECIPES, key=agreement)

    def cross_validated(self, scope: Scope) -> tuple[list[Trace], list[Recipe]]:
        rated, recipes = [], []
        for _, fold in held_out(SALIENCE_FOLDS):
            recipes.append(self.chosen(scope, fold))
            weights = self.learnt(scope, recipes[-1], [id_ for id_ in self.measured if id_ not in fold])
            rated += self.rated(scope, weights, fold)
        return rated, recipes


ZEROS = "the rule that learns 0"


def _less(one: LabelledFeatures, group: str) -> LabelledFeatures:
    """Training data without the features of a group, there and here; or without zeros, which no model could say."""
    if group == ZEROS:
        return LabelledFeatures(one.columns, np.maximum(one.labels, 1.0))
    left = {name: column for name, column in one.columns.items() if name.split(":")[0].removesuffix(" here") != group}
    return LabelledFeatures(left, one.labels)


def main() -> None:
    try:
        study = Study(load_traces("openpi2:dev"))
    except DataMissingError as error:
        sys.exit(f"needs OpenPI2.0: {error}")
    for scope in SCOPES["both"]:
        print(f"\n{scope}: {' / '.join(ROWS[scope])}")
        rated, recipes = study.cross_validated(scope)
        for recipe, times in Counter(recipes).most_common():
            print(f"  chosen in {times} fold(s): {', '.join(recipe.raters)}; penalty {recipe.penalty}")
        _show("cross-validated", study.score(rated), scope)
        recipe = Counter(recipes).most_common(1)[0][0]
        for group in ("", "changes", "text", "vectors", "kind"):
            weights = study.learnt(scope, recipe, study.others, group)
            name = f"held out, without {group}" if group else "held out"
            _show(name, study.score(study.rated(scope, weights, study.people)), scope)
            if not group and "--write" in sys.argv:
                (WEIGHTS / f"{RATER}-{scope}.tsv").write_text(weights.table(), encoding="utf-8")
        for other in RECIPES:
            who = "all four" if len(other.raters) > 1 else other.raters[0]
            _show(f"fixed: {who}, {other.penalty:g}", study.fixed(scope, other), scope)
        if scope == "local":
            _show("fixed, without learnt 0", study.fixed(scope, recipe, ZEROS), scope)
        _show("all the same", study.score(_all_the_same(study)), scope)
        for rater, score in others([study.measured[id_].trace for id_ in study.people]).items():
            _show(rater, score, scope)


def _all_the_same(study: Study) -> list[Trace]:
    """The procedures people rated, with 3 in the places of A1's ratings: what the appended 0 is worth."""
    found = []
    for trace in (study.measured[id_].trace for id_ in study.people):
        places = [one for one in trace.salience if one.rater == "A1"]
        found.append(trace.replace(salience=tuple(place.replace(rater=RATER, value=3) for place in places)))
    return found


def _show(name: str, score: Score, scope: Scope) -> None:
    between = intervals(score)
    shown = []
    for row in ROWS[scope]:
        low, high = between[row]["r"]
        shown.append(f"{score[row]['r']:.3f} [{low:.3f}, {high:.3f}]")
    print(f"  {name:28} {'   '.join(shown)}")


if __name__ == "__main__":
    main()
