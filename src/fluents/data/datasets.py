"""The datasets by name: `load("openpi:dev")` reads the published files from the mirror or the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

from fluents.data.crepe import trace_of
from fluents.errors import InputError, UnknownNameError
from fluents.jsonl import AnyRecord
from fluents.records import Trace
from fluents.task_records import CrepeCase, PddlTask


@dataclass(frozen=True)
class Dataset:
    """What `fluents data list` shows of a dataset, and how to read it."""

    about: str
    paper: str
    splits: tuple[str, ...]
    reader: str
    """Import path of a function from a split's name to its records."""
    files: str | None = None
    """The catalogue's name for its files, where that is another."""
    shipped: bool = False
    """Whether its files come with fluents."""


DATASETS: dict[str, Dataset] = {
    "fluents": Dataset(
        "our own procedures of all domains with complete, consistent annotation",
        "",
        ("train", "dev", "test", "judged"),
        "fluents.data.corpus:load",
        shipped=True,
    ),
    "openpi": Dataset(
        "state changes crowd workers wrote for the steps of wikiHow articles",
        "Tandon et al. 2020",
        ("train", "dev", "test", "formatted-train", "formatted-dev", "formatted-test", "gpt2-dev", "gpt2-test"),
        "fluents.data.openpi:load",
    ),
    "openpi-v1.1": Dataset(
        "the same with small corrections, and similar answers paired",
        "Tandon et al. 2020",
        ("train", "dev", "test"),
        "fluents.data.openpi:load_v1_1",
    ),
    "openpi-c": Dataset(
        "OpenPI cleaned in three stages; test with gold clusters",
        "Wu et al. 2023",
        ("train", "dev", "test"),
        "fluents.data.openpi_c:load",
    ),
    "openpi2": Dataset(
        "OpenPI dev with canonical names, paraphrases, votes and salience",
        "Zhang et al. 2024",
        ("dev", "dev-draft", "ranked-dev", "ranked-test"),
        "fluents.data.openpi2:load",
    ),
    "openpi2-outputs": Dataset(
        "what two language models answered on OpenPI2.0 dev",
        "Zhang et al. 2024",
        tuple(f"{model}-{kind}" for model in ("davinci", "gpt-3.5") for kind in ("schemata", "states", "sentences")),
        "fluents.data.openpi2_outputs:load",
        files="openpi2",
    ),
    "crepe": Dataset(
        "how likely events become along a procedure; Codex's answers",
        "Zhang et al. 2023",
        ("dev", "test", "codex-events", "codex-entities"),
        "fluents.data.crepe:load",
    ),
    "proc2pddl": Dataset(
        "wikiHow texts with planning domains and problems", "Zhang et al. 2024", ("all",), "fluents.data.proc2pddl:load"
    ),
}


def find(name: str) -> Dataset:
    """The dataset of this name; an UnknownNameError says which there are."""
    if name not in DATASETS:
        raise UnknownNameError(f"unknown dataset {name!r}", fix=f"choose one of: {', '.join(DATASETS)}")
    return DATASETS[name]


def no_such_source(name: str) -> InputError:
    if name.lower().startswith(("http://", "https://")):
        fix = "download the page or file, and give the path of the download"
        return InputError("expected a file or a dataset, found a URL", where=name, fix=fix)
    return InputError(
        "no such file or dataset", where=name, fix="check the path; `fluents data list` lists the datasets"
    )


def load(name: str) -> Iterator[AnyRecord]:
    """The records of a dataset's split, named "dataset:split"."""
    dataset, _, split = name.partition(":")
    known = find(dataset)
    if split not in known.splits:
        what = (
            f"the dataset {dataset} has no split {split!r}"
            if split
            else f"the dataset {dataset} is given without a split"
        )
        raise UnknownNameError(what, fix=f"choose one of: {', '.join(f'{dataset}:{s}' for s in known.splits)}")
    module, _, function = known.reader.partition(":")
    reader: Callable[[str], Iterator[AnyRecord]] = getattr(import_module(module), function)
    return reader(split)


def load_traces(name: str) -> Iterator[Trace]:
    """The records of a split as traces: CREPE's entity states become changes, Proc2PDDL's procedures have none."""
    for record in load(name):
        yield to_trace(record)


def to_trace(record: AnyRecord) -> Trace:
    """A record as a trace, without what a trace cannot hold."""
    if isinstance(record, Trace):
        return record
    if isinstance(record, CrepeCase):
        return trace_of(record)
    if isinstance(record, PddlTask):
        return Trace(procedure=record.procedure)
    return Trace(procedure=record)
