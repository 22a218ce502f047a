"""Which published files fluents knows, and where they are on this machine.

The files belong to their authors and are never part of fluents. `catalogue.tsv` names each by repository, commit,
path and SHA-256. Only `fetch` uses the network.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fluents.download import Progress, cache_root, download, open_client, sha256_once
from fluents.errors import ChecksumError, DataMissingError, UnknownNameError
from fluents.jsonl import parse_json, read_lines

LICENCES = {
    "openpi": "MIT, (c) 2020 AI2",
    "openpi-v1.1": "MIT, (c) 2020 AI2",
    "openpi-c": "MIT, (c) 2023 shirley-wu",
    "openpi2": 'MIT, (c) 2023 Li "Harry" Zhang',
    "crepe": 'MIT, (c) 2023 Li "Harry" Zhang',
    "proc2pddl": "MIT, (c) 2023 Harry Zhang",
}
"""The licence each dataset's own LICENSE file states."""

DATASETS = tuple(LICENCES)
LICENCES["fluents"] = "CC BY 4.0, (c) 2026 the fluents authors"

BASE_URL = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class DataFile:
    """A published file. Without `size` and `sha256` it is known by name only and cannot be checked."""

    dataset: str
    repo: str
    commit: str
    path: str
    size: int | None
    sha256: str | None

    @property
    def url(self) -> str:
        return self.url_at(BASE_URL)

    def url_at(self, base_url: str) -> str:
        """Its address on a server laid out as raw.githubusercontent.com is."""
        return f"{base_url.rstrip('/')}/{self.repo}/{self.commit}/{quote(self.path)}"

    @property
    def mirror_path(self) -> str:
        """Where it is in a mirror folder, and in the cache."""
        return f"{self.repo}/{self.path}"


@cache
def _catalogue() -> dict[str, tuple[DataFile, ...]]:
    grouped: dict[str, list[DataFile]] = {dataset: [] for dataset in DATASETS}
    with (resources.files("fluents.data") / "catalogue.tsv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            size = None if row["bytes"] == "-" else int(row["bytes"])
            sha256 = None if row["sha256"] == "-" else row["sha256"]
            grouped[row["dataset"]].append(
                DataFile(row["dataset"], row["repo"], row["commit"], row["path"], size, sha256)
            )
    return {dataset: tuple(found) for dataset, found in grouped.items()}


def files(dataset: str) -> tuple[DataFile, ...]:
    """The files of a dataset, its licence among them."""
    if dataset not in _catalogue():
        raise UnknownNameError(f"unknown dataset {dataset!r}", fix=f"choose one of: {', '.join(DATASETS)}")
    return _catalogue()[dataset]


def find(dataset: str, path: str) -> DataFile:
    """The file of a dataset with this path in its repository."""
    by_path = {file.path: file for file in files(dataset)}
    if path not in by_path:
        close = get_close_matches(path[:300], by_path, n=3, cutoff=0)
        raise UnknownNameError(f"{dataset} has no file {path!r}", fix=f"did you mean one of these: {', '.join(close)}?")
    return by_path[path]


def cache_dir() -> Path:
    """The folder downloads go to: `data` in FLUENTS_CACHE, or in the place this system keeps a user's caches."""
    return cache_root() / "data"


def mirror_dir() -> Path | None:
    """The folder FLUENTS_DATA_MIRROR names, if it is set; it then stands in for the cache."""
    named = os.environ.get("FLUENTS_DATA_MIRROR")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        fix = "set it to a folder that contains the files as <owner>/<repo>/<path>, or unset it to download the files"
        raise DataMissingError(
            "the environment variable FLUENTS_DATA_MIRROR must be the path of a folder", where=folder, fix=fix
        )
    return folder


def local_path(file: DataFile) -> Path:
    """The file on this machine, with its checksum checked once per process. Never downloads."""
    if file.sha256 is None:
        raise DataMissingError(
            f"fluents does not download {file.path} of {file.repo}, because the checksum of this file is not known",
            where=file.url,
            fix="download the file yourself, and give its path instead of the dataset",
        )
    mirror = mirror_dir()
    path = (mirror or cache_dir()) / file.mirror_path
    try:
        if not path.is_file():
            place = "in the mirror (FLUENTS_DATA_MIRROR)" if mirror else "on this machine"
            raise DataMissingError(
                f"{file.path} of {file.repo} is not {place}",
                where=path,
                fix="copy the file into the mirror; or unset FLUENTS_DATA_MIRROR, and run "
                f"`fluents data get {file.dataset}` to download it"
                if mirror
                else f"run `fluents data get {file.dataset}`, or set FLUENTS_DATA_MIRROR to a folder with the file",
            )
        size = path.stat().st_size
        actual = sha256_once(path) if size == file.size else None
    except OSError as error:
        raise DataMissingError(
            f"cannot read {file.path}: {error.strerror}", where=path, fix="check the permissions of the file"
        ) from None
    if actual != file.sha256:
        raise _checksum_error(file, path, f"SHA-256 {actual}" if actual else f"{size} bytes", in_mirror=bool(mirror))
    return path


def is_here(dataset: str) -> bool:
    """Whether all files of a dataset that can be checked are on this machine, by their length alone."""
    folder = mirror_dir() or cache_dir()
    paths = ((folder / file.mirror_path, file.size) for file in files(dataset) if file.sha256 is not None)
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def _checksum_error(file: DataFile, path: Path, found: str, *, in_mirror: bool) -> ChecksumError:
    expected = f"{file.size} bytes with SHA-256 {file.sha256}"
    return ChecksumError(
        f"{file.path} differs from the published file: expected {expected}, found {found}",
        where=path,
        fix="copy the file into the mirror again, without changes"
        if in_mirror
        else f"run: fluents data get {file.dataset}",
    )


def fetch(dataset: str, *, base_url: str | None = None, progress: Progress | None = None) -> list[Path]:
    """Download what the cache lacks of a dataset; returns the paths of all its files that can be checked.

    `base_url`, or FLUENTS_DATA_URL, stands in for raw.githubusercontent.com. `progress` counts the whole dataset. Where
    FLUENTS_DATA_MIRROR is set, its files are checked and nothing is downloaded.
    """
    if mirror_dir():
        return [local_path(file) for file in files(dataset) if file.sha256 is not None]
    base_url = base_url or os.environ.get("FLUENTS_DATA_URL") or BASE_URL
    total = sum(file.size or 0 for file in files(dataset))
    done = 0

    def count(received: int, _: int | None) -> None:
        if progress:
            progress(done + received, total)

    paths = []
    with open_client() as client:
        for file in files(dataset):
            if file.sha256 is None or file.size is None:
                continue
            url, target = file.url_at(base_url), cache_dir() / file.mirror_path
            paths.append(download(url, target, sha256=file.sha256, size=file.size, progress=count, client=client))
            done += file.size
            count(0, total)  # files that were there already count as well
    return paths


def lines(dataset: str, path: str) -> Iterator[tuple[str, Any]]:
    """("file:line", value) of a JSONL file."""
    for where, line in read_lines(local_path(find(dataset, path))):
        yield where, parse_json(line, where)


def document(dataset: str, path: str) -> tuple[Any, str]:
    """A file that is one JSON document, and its path for messages."""
    local = local_path(find(dataset, path))
    return parse_json(local.read_bytes(), str(local)), str(local)
