"""fluents annotate new | serve | invite | revoke | status | export | import | model | simulate"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import typer

from fluents import jsonl
from fluents.cli import annotate_simulate
from fluents.cli.annotate_model import DesignFile, Seed, StageList, model, project_design
from fluents.cli.annotate_people import (
    ADDRESS,
    PORT,
    AddressOption,
    ProjectArgument,
    StoreOption,
    invitation_link,
    invite,
    opened_beside,
    revoke,
    status,
)
from fluents.cli.command import AsJson, download_progress, show_json, step_progress, tell
from fluents.errors import InputError, needs_extra
from fluents.text.names import counted

if TYPE_CHECKING:
    from fluents.records import Trace

app = typer.Typer(
    help="Let people annotate procedures in the browser, and export the result as a dataset. Needs the extra `web`.",
    no_args_is_help=True,
)
app.command()(model)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the project.")],
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Procedures to annotate: texts, web pages, folders, files of traces, or datasets such as openpi:dev."
        ),
    ],
    stages: StageList = None,
    design: DesignFile = None,
    guideline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Text file with the guideline that annotators see beside every item."),
    ] = None,
    consent: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Text file with the terms that annotators must agree to before they begin."),
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Traces with draft changes. People correct them in the stage `correct`. In `author` and `audit`, the "
            "page lists entities of the draft that nobody has mentioned.",
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Predictions of a system, which people judge in the stages `judge` and `hallucinations`. Repeat for "
            "several systems.",
        ),
    ] = None,
    seed: Seed = None,
    address: AddressOption = ADDRESS,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a project, open its first stage, and print a link with which you join as its owner.

    The link works while `fluents annotate serve` runs. As the owner, you invite annotators, open the next stages and
    export the results in the browser. You can also invite and export with the other commands.

    People write changes in the stages author, audit (what is missing?) and correct (what is wrong in a draft?). They
    remove wrong procedures, steps and changes in select, vet and the three clean stages. They group and expand names in
    entities, attributes and expansions, rate entities in salience, and judge predictions in judge and hallucinations.

    Example: `fluents annotate new soups recipes/ --stages author,vet --guideline guide.md`

    Example: `fluents annotate new check openpi:dev --stages judge --system mine=mine.jsonl`
    """
    from fluents.data.inputs import traces

    chosen = project_design(name, stages, design, guideline, consent, seed)
    drafts = list(_read_traces(draft)) if draft else []
    systems = {one: list(_read_traces(file)) for one, file in map(_system, system or ())}
    with opened_beside(store) as opened:
        from fluents.web.annotation_members import Members
        from fluents.web.annotation_projects import Projects
        from fluents.web.annotation_stages import ProjectStages

        with step_progress("making items", 0) as progress:
            project = Projects(opened).create(
                chosen, list(traces(sources)), drafts=drafts, systems=systems, progress=progress
            )
        link = invitation_link(address, Members(opened).invite(project.id, "owner"))
        [stage] = ProjectStages(opened).progress(project.id)
    if as_json:
        show_json({"project": project.name, "id": project.id, "items": stage.items, "link": link, "store": opened.name})
        return
    print(f"created the project {project.name}: {counted(stage.items, 'item')} in stage 1")
    port = urlsplit(address).port if address.startswith(("http://127.0.0.1:", "http://localhost:")) else PORT
    options = [] if port == PORT else [f" --port {port}"]
    options += [] if store is None else [f" --store {store}"]
    print(f"start the server: fluents annotate serve{''.join(options)}")
    print(f"then open this link to join as owner: {link}")


def _system(given: str) -> tuple[str, str]:
    name, found, file = given.partition("=")
    if not (found and name and file):
        raise InputError(
            f"`system` must have the form NAME=FILE, not {given!r:.100}", fix="for example: --system mine=mine.jsonl"
        )
    return name, file


def _read_traces(source: str) -> Iterator[Trace]:
    from fluents.data.file_formats import read_traces

    return read_traces(source)


@app.command()
def serve(
    project: Annotated[
        str | None,
        typer.Argument(metavar="PROJECT", help="Serve only this project. Default: all projects in the store."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = PORT,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. The connection is not encrypted, so use an HTTPS proxy for other machines."
        ),
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also accept requests to the host NAME, such as the name of a proxy. Repeat for several.",
        ),
    ] = None,
    lease: Annotated[
        float,
        typer.Option(
            metavar="MINUTES",
            min=0.05,
            help="If an annotator leaves the page without deciding, give the item to others after MINUTES.",
        ),
    ] = 15.0,
    open_page: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page in the browser, or do not. Default: open it if started from a terminal.",
        ),
    ] = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address and the owners' links as JSON.")] = False,
) -> None:
    """Serve the annotation page and its API until you press Ctrl-C.

    People can join only with a link. If a project has no owner yet, the command prints a link to join as its owner.
    The page shows a decision as saved when the server has stored it.

    Example: `fluents annotate serve`

    Example: `fluents annotate serve soups --port 9000 --store postgresql://me@db/annotation`
    """
    with needs_extra("web"):
        from fluents.web.annotation_application import AnnotationSettings, create_annotation_app
        from fluents.web.annotation_members import Members
        from fluents.web.annotation_projects import Projects
        from fluents.web.guard import GuardRules, is_loopback_host
        from fluents.web.server import GuardedServer, listening_socket
        from fluents.web.store import Store, default_url

    names = frozenset(name.lower() for name in (host, *(allow_host or ())))
    rules = GuardRules(hosts=names, any_address=not is_loopback_host(host))
    with listening_socket(host, port) as listening, Store(store or default_url("annotation.sqlite")) as opened:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        only = None if project is None else Projects(opened).named(project)
        served = [only] if only else Projects(opened).all()
        if not served:
            tell("there are no projects yet; create one with `fluents annotate new`")
        members = Members(opened)
        links = {
            one.name: invitation_link(address, members.invite(one.id, "owner"))
            for one in served
            if not any(member.role == "owner" and member.has_access for member in members.all(one.id))
        }

        def announce() -> None:
            if as_json:
                show_json({"address": address, "store": opened.name, "owner_links": links})
            else:
                print(f"serving at {address}")
                for name, link in links.items():
                    print(f"to join {name} as its owner, open {link}")
                print(f"decisions are stored in {opened.name}\npress Ctrl-C to stop")
            sys.stdout.flush()
            if open_page or (open_page is None and sys.stdout.isatty()):
                import webbrowser

                webbrowser.open(next(iter(links.values()), address))

        settings = AnnotationSettings(rules, lease * 60, None if only is None else only.id)
        try:
            GuardedServer(create_annotation_app(opened, settings), announce).run(sockets=[listening])
        except KeyboardInterrupt:
            tell("stopped; all decisions are stored")


app.command()(invite)
app.command()(revoke)
app.command()(status)


@app.command()
def export(
    project: ProjectArgument = None,
    format: Annotated[
        Literal["fluents", "openpi", "openpi-c", "openpi2", "history"],
        typer.Option(
            help="Format of the file. openpi (a zip archive of four files), openpi-c and openpi2 are the formats of "
            "these datasets. fluents is JSONL. history is every decision, with its author and time."
        ),
    ] = "fluents",
    pseudonymous: Annotated[
        bool,
        typer.Option("--pseudonymous", help="With --format history, write pseudonyms such as A3 instead of names."),
    ] = False,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to FILE. Default: standard output.", show_default=False
        ),
    ] = "-",
    store: StoreOption = None,
) -> None:
    """Write the results of a project so far. With `--format history`, write all its decisions instead.

    `fluents annotate import` creates a new project from a history.

    Example: `fluents annotate export soups --format openpi-c -o soups.jsonl`
    """
    with opened_beside(store) as opened:
        from fluents.web.annotation_export import exported
        from fluents.web.annotation_projects import Projects

        found = Projects(opened).named(project)
        with jsonl.atomic_output(output) as stream, download_progress(f"exporting {found.name}") as progress:
            size = 0
            for part in exported(opened, found, format, pseudonymous=pseudonymous):
                stream.write(part)
                progress(size := size + len(part), None)
    if output != "-":
        tell(f"wrote {found.name} to {output}")


def _counted(
    lines: Iterator[tuple[str, bytes]], progress: Callable[[int, int | None], None]
) -> Iterator[tuple[str, bytes]]:
    size = 0
    for where, line in lines:
        progress(size := size + len(line), None)
        yield where, line


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(help="File that `fluents annotate export --format history` wrote.")],
    name: Annotated[str | None, typer.Option(help="Name of the new project. Default: the name in the file.")] = None,
    address: AddressOption = ADDRESS,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a project from an exported history, with all its decisions, and print a link for its owner.

    The members of the old project cannot sign in to the new one yet. To let a member in, send them the link that
    `fluents annotate invite --member ID` prints. `fluents annotate status` shows the ids of the members.

    Example: `fluents annotate import soups.history.jsonl --store postgresql://me@db/annotation`
    """
    with needs_extra("web"):
        from fluents.web.annotation_history import read_history
        from fluents.web.annotation_members import Members
        from fluents.web.store import Store, default_url

    # Alone: a long history is one long transaction, for which a server on an SQLite store would have to wait.
    with Store(store or default_url("annotation.sqlite")) as opened:
        with download_progress("importing") as progress:
            found = read_history(opened, _counted(jsonl.read_lines(file), progress), name)
        members = Members(opened)
        owner = next((one for one in members.all(found.id) if one.role == "owner"), None)
        link = invitation_link(
            address, members.invite(found.id, "owner", member=None if owner is None else owner.pseudonym)
        )
    if as_json:
        show_json({"project": found.name, "id": found.id, "link": link, "store": opened.name})
    else:
        print(f"imported the project {found.name}\nto join as its owner, open {link}")


app.command()(annotate_simulate.simulate)
