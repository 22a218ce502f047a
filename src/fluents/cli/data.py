"""fluents data list | get | stats | show | convert"""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Annotated

import typer

from fluents.cli.command import AsJson, download_progress, emit, show, show_json, tell
from fluents.data.file_formats import Format
from fluents.text.names import counted

app = typer.Typer(help="List, download, show and convert datasets.", no_args_is_help=True)


@app.command("list")
def list_(
    files: Annotated[
        bool,
        typer.Option(
            "--files",
            help="List the files of all datasets instead, with the repository and commit from which each file comes.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List all datasets with their splits.

    The column “here” says whether a dataset is on this machine.

    Example: `fluents data list`
    """
    from fluents.data import file_catalogue
    from fluents.data.datasets import DATASETS
    from fluents.report.terminal import table_of

    if files:
        rows = [asdict(file) for name in file_catalogue.DATASETS for file in file_catalogue.files(name)]
        columns = ("dataset", "repo", "commit", "path", "size", "sha256")
    else:
        rows = [
            {
                "name": name,
                "what": dataset.about,
                "paper": dataset.paper,
                "splits": list(dataset.splits),
                "licence": file_catalogue.LICENCES[dataset.files or name],
                "here": dataset.shipped or file_catalogue.is_here(dataset.files or name),
            }
            for name, dataset in DATASETS.items()
        ]
        columns = ("name", "what", "paper", "splits", "licence", "here")
    if as_json:
        show_json(rows)
    else:
        show(table_of(columns, ([_cell(row[column]) for column in columns] for row in rows), words=len(columns)))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(value) if isinstance(value, list) else str(value or "-")


@app.command()
def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Datasets to download, such as openpi (see `fluents data list`). Default: all."),
    ] = None,
) -> None:
    """Download datasets, and verify every file by its hash.

    The files are stored in the folder $FLUENTS_CACHE or, if that is not set, in your cache folder (on Linux,
    ~/.cache/fluents). To resume an interrupted download, run the command again.

    Example: `fluents data get openpi openpi-c`
    """
    from fluents.data import file_catalogue
    from fluents.data.datasets import DATASETS, find

    wanted = [dataset.files or name for name in names or DATASETS if not (dataset := find(name)).shipped]
    mirror = file_catalogue.mirror_dir()
    if mirror:
        tell("FLUENTS_DATA_MIRROR is set: checking the mirror, downloading nothing", "yellow")
    for name in dict.fromkeys(wanted):
        with download_progress(name) as progress:
            paths = file_catalogue.fetch(name, progress=progress)
        place = mirror or file_catalogue.cache_dir()
        tell(f"{name}: {counted(len(paths), 'file')} in {place}")


@app.command()
def stats(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of datasets, such as openpi (see `fluents data list`). Default: all."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count the procedures, steps and changes in datasets, and compare the numbers with those in the papers.

    A star (*) marks numbers that differ.

    Example: `fluents data stats openpi`
    """
    from fluents.data.datasets import DATASETS
    from fluents.data.stats import stats as count
    from fluents.report.terminal import table_of

    found = {name: count(name) for name in names or DATASETS}
    if as_json:
        show_json({name: [{**asdict(stat), "differs": stat.differs} for stat in rows] for name, rows in found.items()})
        return
    for name, rows in found.items():
        cells = (
            (
                stat.what,
                stat.split,
                f"{stat.counted:,}" if isinstance(stat.counted, int) else f"{stat.counted:.2f}",
                f"{stat.printed or ''}{' *' if stat.differs else ''}",
            )
            for stat in rows
        )
        show(table_of(("", "split", "in the files", "in the paper"), cells, title=name, words=2))
        show("")


@app.command("show")
def show_(
    source: Annotated[str, typer.Argument(help="Dataset split such as openpi2:dev, or a file of traces.")],
    id: Annotated[str | None, typer.Option(metavar="ID", help="Show only the procedure with this ID.")] = None,
    number: Annotated[int, typer.Option("-n", min=1, help="Number of procedures to show.")] = 1,
    as_json: Annotated[
        bool | None,
        typer.Option("--json/--table", help="Print JSONL or tables. Default: tables in a terminal, otherwise JSONL."),
    ] = None,
) -> None:
    """Show the first procedures of a dataset or file, with their changes.

    Example: `fluents data show openpi:dev -n 2`
    """
    from fluents.data.file_formats import read_traces
    from fluents.errors import InputError, UnknownNameError
    from fluents.report.terminal import trace_view

    found = islice((t for t in read_traces(source) if id is None or t.id == id), number if id is None else 1)
    traces = list(found)
    if not traces:
        if id is None:
            raise InputError("there is no procedure to show", where=source, fix="give a file with procedures")
        raise UnknownNameError(
            f"no procedure with the id {id!r}", where=source, fix="leave out `id` to show the first procedure"
        )
    emit(traces, trace_view, None, as_json)


@app.command()
def convert(
    source: Annotated[
        str, typer.Argument(help="Dataset split such as openpi:dev, or a file in one of the formats of --to.")
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="Write the result to FILE. With --to openpi, FILE is a folder.", metavar="FILE"
        ),
    ],
    to: Annotated[
        Format,
        typer.Option(
            help="Output format: fluents (JSONL), csv, parquet, or the format of a published dataset: openpi, "
            "openpi-v1.1, openpi-c, openpi-c-clustered or openpi2."
        ),
    ] = "fluents",
) -> None:
    """Convert a dataset or a file to another format.

    If the new format cannot store some of the data, the command names the fields that it leaves out.

    Example: `fluents data convert openpi-c:test --to parquet -o test.parquet`
    """
    from fluents.data.file_formats import lost, read, write

    if to == "fluents":
        count = write(read(source), to, output)
    else:
        records = list(read(source))
        count = write(records, to, output)
        missing = lost(records, to)
        if missing:
            tell(f"left out what the format {to} cannot store: {', '.join(missing)}", "yellow")
    if output != "-":
        tell(f"wrote {counted(count, 'record')} to {output}")
