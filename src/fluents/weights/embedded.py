"""Which models are embedded: the sizes by name, and any GGUF file. All other names are of models at an endpoint."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fluents.download import sha256_once
from fluents.errors import DataMissingError, FluentsWarning, InputError, UnknownNameError
from fluents.weights.adapters import ADAPTERS, Adapter, open_adapter
from fluents.weights.base_weights import BASES, DEFAULT, find, is_checked
from fluents.weights.fetch import ensure

if TYPE_CHECKING:
    from rich.console import Console


def is_embedded(model: str) -> bool:
    """Whether a model runs in this process.

    >>> is_embedded("tiny"), is_embedded("my/model.gguf"), is_embedded("gpt-4o")
    (True, True, False)
    """
    return model in BASES or model.lower().endswith(".gguf")


def default_model() -> str:
    """The embedded model that is used where none is named: FLUENTS_MODEL, or DEFAULT."""
    model = os.environ.get("FLUENTS_MODEL") or DEFAULT
    if not is_embedded(model):
        raise UnknownNameError(
            f"FLUENTS_MODEL names {model!r}, which is not embedded", fix=f"one of {', '.join(BASES)}, or a GGUF file"
        )
    return model


class EmbeddedModel(NamedTuple):
    """An adapter, and what it is added to."""

    adapter: Adapter
    file: Path | None = None
    """A GGUF file in place of the base weights that the adapter names."""

    @property
    def base(self) -> str:
        """What the base weights are called in the provenance of a trace."""
        return self.adapter.base if self.file is None else f"{self.file.stem}@{sha256_once(self.file)[:12]}"

    def base_path(self, console: Console | None = None) -> Path:
        """The file of the base weights, fetched if need be, with a progress bar in a terminal."""
        return self.file or ensure_shown(self.adapter.base, console)


def open_embedded(model: str | Path | None = None, adapter: str | Path | None = None) -> EmbeddedModel:
    """An embedded model with an adapter: a size by name, a GGUF file, or the base weights the adapter belongs to.

    A size has an adapter of its own, which ships with fluents.
    """
    if model is None or model in BASES:
        if model is None and adapter is None:
            raise InputError("`model` or `adapter` is required", fix=f"one of: {', '.join(BASES)}")
        opened = open_adapter(adapter if adapter is not None else shipped_adapter(str(model)))
        if model is not None and opened.facts.base_sha256 != find(str(model)).sha256:
            raise InputError(
                f"the adapter {opened.name} belongs to {opened.base}, not to {model}",
                fix="leave out `model` or `adapter`",
            )
        return EmbeddedModel(opened)
    file = Path(model).expanduser()
    if not file.is_file():
        raise _no_file(file)
    if adapter is None:
        known = next((name for name, base in BASES.items() if base.sha256 == sha256_once(file)), None)
        if known is None:
            what = "this model needs an adapter that was trained for it"
            raise InputError(what, where=file, fix="give an `adapter`; `fluents train adapter` trains one")
        adapter = shipped_adapter(known)
    return EmbeddedModel(open_adapter(adapter, any_base=True), file)


def base_file(model: str | Path | None = None, console: Console | None = None) -> tuple[Path, str]:
    """The file of a model without an adapter, fetched if need be, and the name to serve it under.

    The name is not the size: that always means the embedded model, and a served one is asked at its endpoint.
    """
    if model is None:
        model = default_model()
    if model in BASES:
        return ensure_shown(str(model), console), find(str(model)).release
    file = Path(model).expanduser()
    if not file.is_file():
        raise _no_file(file)
    return file, file.stem


def _no_file(file: Path) -> DataMissingError:
    return DataMissingError(
        "there is no such model file", where=file, fix=f"a GGUF file, or one of: {', '.join(BASES)}"
    )


def shipped_adapter(model: str) -> str:
    """The name of the adapter that ships for a size."""
    name = f"transcript-{model}"
    if name not in ADAPTERS:
        raise InputError(f"no adapter ships for the `model` {model}", fix="give an `adapter`")
    return name


def ensure_shown(name: str, console: Console | None = None, *, source: str | None = None) -> Path:
    """The base weights on this machine; where they must be fetched, a terminal shows what, why and how long."""
    base = find(name)
    if is_checked(base):
        return base.path
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = console or Console(stderr=True, highlight=False)
    size = f"{base.size / 1e9:.1f} GB" if base.size >= 1e9 else f"{base.size / 1e6:.0f} MB"
    what = f"downloading the model {base.name} ({base.about}; {size}, once: then it runs offline)"
    if not console.is_terminal:
        return ensure(name, source=source)
    console.print(what, markup=False, soft_wrap=True)
    columns = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(TextColumn(base.name), *columns, console=console, transient=True) as progress:
        task = progress.add_task(base.name, total=base.size)
        return ensure(name, lambda done, total: progress.update(task, completed=done, total=total), source=source)


def warn_if_memory_is_short(name: str) -> None:
    """Issue a FluentsWarning if this machine has less free memory than the base weights take."""
    base, free = find(name), free_memory()
    if free is not None and free < base.memory:
        smaller = [other.name for other in BASES.values() if other.memory < base.memory]
        advice = f"; the model {smaller[-1]} needs less" if smaller else ""
        warnings.warn(
            f"the model {base.name} takes about {base.memory / 1e9:.1f} GB of memory and only {free / 1e9:.1f} GB "
            f"are free: it may be very slow{advice}",
            FluentsWarning,
            stacklevel=2,
        )


MEMORY = Path("/proc/meminfo")


def free_memory() -> int | None:
    """Bytes of memory that are free, or could be; None where the system does not tell."""
    try:
        for line in MEMORY.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
