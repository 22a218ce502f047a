"""Proc2PDDL (Zhang et al. 2024): wikiHow texts with the planning domains and problems written for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from fluents.data.file_catalogue import files as catalogued
from fluents.data.file_catalogue import local_path
from fluents.segmentation import segment
from fluents.task_records import PddlTask


def load(split: str) -> Iterator[PddlTask]:  # noqa: ARG001 - every reader takes a split; here there is one
    """Proc2PDDL: all texts with their planning domains and problems."""
    return tasks((file.path, local_path(file).read_text(encoding="utf-8")) for file in catalogued("proc2pddl"))


def tasks(texts: Iterable[tuple[str, str]]) -> Iterator[PddlTask]:
    """One task for each domain folder, from the (path, text) of all files."""
    folders: dict[str, dict[str, str]] = defaultdict(dict)
    for path, text in texts:
        parts = PurePosixPath(path).parts
        if parts[0] == "pddl_data":
            folders[parts[1]]["/".join(parts[2:])] = text
    for folder, files in sorted(folders.items()):
        article = next(name for name in files if name.startswith("wikihow-"))
        goal = article.removeprefix("wikihow-").removesuffix(".txt").removesuffix("_text").replace("_", " ")
        yield PddlTask(
            procedure=segment(files[article], goal=goal, id=folder, source=article),
            text=files[article],
            domain=files["domain.pddl"],
            domain_header=files["domain_header.pddl"],
            actions=files["actions.txt"],
            action_step_map=files["action_step_map.txt"],
            problems={
                name.removeprefix("problems/").removesuffix(".pddl"): text
                for name, text in sorted(files.items())
                if name.startswith("problems/")
            },
        )
