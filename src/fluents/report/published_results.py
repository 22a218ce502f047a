"""What was published on the datasets, as data: who, on what, by which metric, and where it is printed.

Numbers are in percent as `fluents eval` prints them (correlations as they are). Only what is printed in a paper or
comes out of released files is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TANDON = "Tandon et al. 2020"
WU = "Wu et al. 2023"
ZHANG = "Zhang et al. 2024"
ZHANG_CREPE = "Zhang et al. 2023"
KIEST = "KIEST (SIGIR 2023)"
RERUN = "; its released predictions, scored by fluents"


@dataclass(frozen=True)
class Published:
    """One system's numbers: row of the score → column → number."""

    system: str
    data: str
    """The gold's name, such as openpi:test."""
    metric: str
    numbers: Mapping[str, Mapping[str, float]]
    source: str
    mode: str = "compat"
    variant: str = ""
    """What the score depends on besides metric and data: the level of clustering, say."""


def published(metric: str, data: str, *, mode: str = "compat", variant: str = "") -> list[Published]:
    """The systems of which something is known by this metric, in this mode, on this data."""
    wanted = metric, data, mode, variant
    return [one for one in PUBLISHED if (one.metric, one.data, one.mode, one.variant) == wanted]


def _f1(exact: float, bleu: float, rouge: float) -> dict[str, dict[str, float]]:
    return {name: {"f1": value} for name, value in (("exact", exact), ("bleu", bleu), ("rouge", rouge))}


def _rouge(value: float) -> dict[str, dict[str, float]]:
    return {"rouge": {"f1": value}}


_GPT2_RERUN = {
    "exact": {"precision": 10.44, "recall": 6.53, "f1": 4.24},
    "bleu": {"precision": 24.43, "recall": 17.67, "f1": 16.07},
    "rouge": {"precision": 41.10, "recall": 33.78, "f1": 32.38},
}
_OPENPI_TEST = "openpi:test"
_OPENPI_C = "openpi-c:test"
_TABLE_2, _TABLE_3 = f"{WU}, table 2", f"{WU}, table 3"

_ORIGINAL = (
    Published("GPT-2 medium", _OPENPI_TEST, "original", _GPT2_RERUN, TANDON + RERUN),
    Published("GPT-2 medium (of OpenPI-C)", _OPENPI_TEST, "original", _f1(5.35, 19.57, 36.26), _TABLE_3),
    Published("BART large", _OPENPI_TEST, "original", _f1(5.51, 23.19, 40.45), _TABLE_3),
    Published("BART + concat states", _OPENPI_TEST, "original", _f1(4.65, 19.58, 36.82), _TABLE_3),
    Published("BART + EMem", _OPENPI_TEST, "original", _f1(6.15, 23.63, 40.60), _TABLE_3),
    Published("BART + ECond", _OPENPI_TEST, "original", _f1(6.88, 23.50, 40.22), _TABLE_3),
    Published("BART + EMem + ECond", _OPENPI_TEST, "original", _f1(7.38, 23.71, 40.33), _TABLE_3),
    Published("KIEST (T5-large, ConceptNet)", _OPENPI_TEST, "original", _f1(7.71, 23.91, 39.17), KIEST),
    Published("GPT-2 medium (of OpenPI-C)", _OPENPI_C, "original", _rouge(39.73), _TABLE_2),
    Published("BART large", _OPENPI_C, "original", _rouge(41.88), _TABLE_2),
    Published("BART + concat states", _OPENPI_C, "original", _f1(4.73, 21.96, 40.38), _TABLE_2),
    Published("BART + EMem", _OPENPI_C, "original", _rouge(42.71), _TABLE_2),
    Published("BART + ECond", _OPENPI_C, "original", _rouge(42.14), _TABLE_2),
    Published("BART + EMem + ECond", _OPENPI_C, "original", _f1(5.65, 23.73, 42.15), _TABLE_2),
)

# Another embedder gives other clusters, and other scores: the tables say whose these are.
_ENCODER = "; clusters of stsb-distilroberta-base-v2 at 0.7: compare with no other embedder's"
_CLUSTER = (
    Published("GPT-2 medium (of OpenPI-C)", _OPENPI_TEST, "cluster", _f1(6.16, 18.24, 29.95), _TABLE_3 + _ENCODER),
    Published("BART large", _OPENPI_TEST, "cluster", _f1(7.40, 21.44, 33.22), _TABLE_3 + _ENCODER),
    Published("BART + concat states", _OPENPI_TEST, "cluster", _f1(6.22, 18.20, 29.99), _TABLE_3 + _ENCODER),
    Published("BART + EMem", _OPENPI_TEST, "cluster", _f1(7.81, 21.69, 33.30), _TABLE_3 + _ENCODER),
    Published("BART + ECond", _OPENPI_TEST, "cluster", _f1(9.16, 22.29, 33.15), _TABLE_3 + _ENCODER),
    Published("BART + EMem + ECond", _OPENPI_TEST, "cluster", _f1(9.69, 22.38, 33.02), _TABLE_3 + _ENCODER),
    Published("BART + concat states", _OPENPI_C, "cluster", _f1(6.69, 20.61, 32.88), _TABLE_2 + _ENCODER),
    Published("BART + EMem + ECond", _OPENPI_C, "cluster", _f1(8.26, 22.96, 35.34), _TABLE_2 + _ENCODER),
)

_DEV = "openpi2:dev"


def _schemata(system: str, numbers: tuple[float, float, float, float]) -> Published:
    rows = ("global", "global +exp", "local", "local +exp")
    scores = {row: {"f1": number} for row, number in zip(rows, numbers, strict=True)}
    return Published(system, _DEV, "schemata", scores, ZHANG)


def _states(system: str, accuracy: float, row: str) -> Published:
    return Published(system, "openpi2:ranked-dev", "states", {row: {"accuracy": accuracy}}, ZHANG)


def _complete(system: str, f1: float) -> Published:
    return Published(system, _DEV, "complete", {"sentences": {"f1": f1}}, ZHANG)


# The paper's states of text-davinci-003 count any wording as right, those of gpt-3.5-turbo the first alone. Which it
# was for LLaMA is not known, so it is not here.
_OPENPI2 = (
    _schemata("gpt-3.5-turbo", (15.1, 24.9, 2.5, 3.9)),
    _schemata("text-davinci-003", (36.2, 45.0, 13.0, 15.5)),
    _schemata("LLaMA 65B", (12.9, 17.4, 4.5, 6.0)),
    _states("gpt-3.5-turbo", 7.4, "first wording"),
    _states("text-davinci-003", 22.5, "any wording"),
    _complete("gpt-3.5-turbo", 1.6),
    _complete("text-davinci-003", 3.4),
    _complete("LLaMA 65B", 11.7),
)


def _exact(recall: float, precision: float, f1: float) -> dict[str, dict[str, float]]:
    return {"exact": {"precision": precision, "recall": recall, "f1": f1}}


_LABELS = "openpi2:labels"
_CLUSTERING = (
    Published("gpt-3.5-turbo", _LABELS, "clustering", _exact(42.5, 59.3, 49.5), ZHANG, variant="entities"),
    Published("gpt-3.5-turbo", _LABELS, "clustering", _exact(88.1, 90.6, 89.3), ZHANG, variant="attributes"),
)


def _salience(system: str, whole: float, local: float, source: str) -> Published:
    scores = {"global smoothed": {"r": whole}, "local smoothed": {"r": local}}
    return Published(system, _DEV, "salience", scores, source)


# What comes out of the released ratings, `fluents eval salience` computes itself.
_SALIENCE = (
    _salience("annotator A2", 0.759, 0.578, ZHANG),
    _salience("the paper's language model", 0.719, 0.400, ZHANG),
)

# Majority: nothing ever changes, as the paper prints it for dev. Of the human score it does not say on which split.
_CREPE_SYSTEMS = {
    "gpt-3.5-turbo": (34.8, 36.2, ZHANG),
    "gpt-3.5-turbo + all entity changes": (39.2, 36.9, ZHANG),
    "gpt-3.5-turbo + salient entities": (40.2, 37.0, ZHANG),
    "Codex, events only": (58.5, 59.1, ZHANG_CREPE),
    "Codex, entities then events": (66.7, 60.9, ZHANG_CREPE),
    "Codex, gold entities": (71.5, 72.2, ZHANG_CREPE),
}
_CREPE_OTHERS = (
    Published("majority", "crepe:dev", "crepe", {"macro": {"f1": 29.7}}, ZHANG_CREPE),
    Published("human", "crepe:dev", "crepe", {"macro": {"f1": 87.0}}, ZHANG_CREPE),
    Published("human", "crepe:test", "crepe", {"macro": {"f1": 87.0}}, ZHANG_CREPE),
)
_CREPE = _CREPE_OTHERS + tuple(
    Published(system, f"crepe:{split}", "crepe", {"macro": {"f1": score}}, source)
    for system, (dev, test, source) in _CREPE_SYSTEMS.items()
    for split, score in (("dev", dev), ("test", test))
)

_PROC2PDDL_SOURCE = (
    "Proc2PDDL's repository; given the article, types, predicates and names of actions; "
    "solved with the predicted actions, by another reader and planner than ours"
)
_PROC2PDDL = tuple(
    Published(system, "proc2pddl:all", "plan", {"problems solved": {"share": solved}}, _PROC2PDDL_SOURCE)
    for system, solved in (("GPT-4o", 38.0), ("GPT-4o, ZPD prompt", 45.0))
)

PUBLISHED: tuple[Published, ...] = (*_ORIGINAL, *_CLUSTER, *_OPENPI2, *_CLUSTERING, *_SALIENCE, *_CREPE, *_PROC2PDDL)
