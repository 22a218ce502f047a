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
    help="Let people annotate procedures on a web page, and export the results as a dataset. Needs the "
    "extra `fluents[web]`.",
    no_args_is_help=True,
)
app.command()(model)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the project.")],
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Procedures to annotate: texts, web pages, folders, files of traces, or dataset splits such as "
            "openpi:dev."
        ),
    ],
    stages: StageList = None,
    design: DesignFile = None,
    guideline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Text file with instructions. The page shows them beside every question."),
    ] = None,
    consent: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Text file with terms that people must agree to before they start."),
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File of traces that serve as a first draft, for example from `fluents track`. In the stage "
            "correct, people correct this draft. In the stages author and audit, the page points out entities "
            "of the draft that people have not mentioned yet.",
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Predictions of a system: a name for the system, and a file of traces. People judge these "
            "predictions in the stages judge and hallucinations. Repeat for several systems.",
        ),
    ] = None,
    seed: Seed = None,
    address: AddressOption = ADDRESS,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a project, and print a link with which you join it as its owner.

    Before you open the link, run `fluents annotate serve`. As the owner, you invite people, start one stage after
    another and export the results.

    Each stage of a project asks one kind of question:

    - select: Is this text worth annotating?

    - author: What changes at each step?

    - audit: Which changes are missing?

    - vet: Is this change right?

    - clean-procedures: Is this a procedure?

    - clean-steps: Which lines are steps?

    - clean-changes: Is this change certain, uncertain or impossible?

    - entities: Which names mean the same entity?

    - attributes: Which names mean the same attribute?

    - expansions: Which paraphrases of a name fit?

    - salience: How much does each entity matter, from 0 to 5?

    - judge: Which predictions of a system are right, and what is missing?

    - hallucinations: Did a system make this change up?

    - correct: What is wrong in a draft?

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

        with step_progress("preparing questions", 0) as progress:
            project = Projects(opened).create(
                chosen, list(traces(sources)), drafts=drafts, systems=systems, progress=progress
            )
        link = invitation_link(address, Members(opened).invite(project.id, "owner"))
        [stage] = ProjectStages(opened).progress(project.id)
    if as_json:
        show_json({"project": project.name, "id": project.id, "items": stage.items, "link": link, "store": opened.name})
        return
    print(f"created the project {project.name}: its first stage has {counted(stage.items, 'question')}")
    port = urlsplit(address).port if address.startswith(("http://127.0.0.1:", "http://localhost:")) else PORT
    options = [] if port == PORT else [f" --port {port}"]
    options += [] if store is None else [f" --store {store}"]
    print(f"to start the server, run: fluents annotate serve{''.join(options)}")
    print(f"then open this link to join as the project's owner: {link}")


def _system(given: str) -> tuple[str, str]:
    name, found, file = given.partition("=")
    if not (found and name and file):
        raise InputError(
            f"`system` must have the form NAME=FILE, but is {given!r:.100}", fix="for example: --system mine=mine.jsonl"
        )
    return name, file


def _read_traces(source: str) -> Iterator[Trace]:
    from fluents.data.file_formats import read_traces

    return read_traces(source)


@app.command()
def serve(
    project: Annotated[
        str | None,
        typer.Argument(metavar="PROJECT", help="Serve only this project. Default: all projects in --store."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = PORT,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on. Other machines should connect through an HTTPS proxy, because the server "
            "itself does not encrypt connections.",
        ),
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also accept requests that were sent to the host NAME, such as annotate.example.org. Needed behind a "
            "proxy. Repeat for several names.",
        ),
    ] = None,
    lease: Annotated[
        float,
        typer.Option(
            metavar="MINUTES",
            min=0.05,
            help="A question is reserved for the person who has it open. If they leave the page without answering, "
            "other people get the question after this many minutes.",
        ),
    ] = 15.0,
    open_page: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page in the browser, or do not. Default: open it if you run the command in a terminal.",
        ),
    ] = None,
    store: StoreOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the address of the page and the links for owners as JSON.")
    ] = False,
) -> None:
    """Start a server with the page on which people annotate. It runs until you press Ctrl-C.

    People need a link to join a project. If a project has no owner, the command prints a link to join it as its
    owner. You can stop the server at any time: every answer that the page shows as saved is stored.

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
                print(f"answers are stored in {opened.name}\npress Ctrl-C to stop")
            sys.stdout.flush()
            if open_page or (open_page is None and sys.stdout.isatty()):
                import webbrowser

                webbrowser.open(next(iter(links.values()), address))

        settings = AnnotationSettings(rules, lease * 60, None if only is None else only.id)
        try:
            GuardedServer(create_annotation_app(opened, settings), announce).run(sockets=[listening])
        except KeyboardInterrupt:
            tell("stopped; all answers are stored")


app.command()(invite)
app.command()(revoke)
app.command()(status)


@app.command()
def export(
    project: ProjectArgument = None,
    format: Annotated[
        Literal["fluents", "openpi", "openpi-c", "openpi2", "history"],
        typer.Option(
            help="What to write. fluents: the annotated procedures as traces, in JSONL. openpi, openpi-c, openpi2: "
            "the same, in the format of the dataset with this name (for openpi, a zip archive of four files). "
            "history: every answer, with its author and time."
        ),
    ] = "fluents",
    pseudonymous: Annotated[
        bool,
        typer.Option("--pseudonymous", help="With --format history: write ids (A1, A2, …) instead of people's names."),
    ] = False,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to FILE. Default: standard output.", show_default=False
        ),
    ] = "-",
    store: StoreOption = None,
) -> None:
    """Export the current results of a project.

    With `--format history`, export every answer instead. `fluents annotate import` creates a new project from such a
    file.

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
    name: Annotated[
        str | None, typer.Option(help="Name of the new project. Default: the name of the exported project.")
    ] = None,
    address: AddressOption = ADDRESS,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Create a project from the history of another project, and print a link for the owner of the new project.

    The new project contains all answers and all people of the exported project, but these people need new links to sign
    in. For each person except the owner of the new project, run `fluents annotate invite NAME --member ID`, and send
    them the link that `invite` prints. Here, NAME is the name of the new project. `fluents annotate status NAME` shows
    each person's ID. Run both commands with the --store of the new project.

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
