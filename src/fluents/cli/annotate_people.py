"""fluents annotate invite | revoke | status: who works on a project, and what all its commands share"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fluents.cli.command import AsJson, show, show_json
from fluents.errors import InputError, needs_extra

if TYPE_CHECKING:
    from fluents.web.store import Store

PORT = 8766
ADDRESS = f"http://127.0.0.1:{PORT}"

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where projects are stored: an SQLite file, or a database such as "
        "postgresql://user@host/database. Default: $FLUENTS_STORE if set, otherwise annotation.sqlite in "
        "your data folder (on Linux, ~/.local/share/fluents).",
    ),
]
ProjectArgument = Annotated[
    str | None,
    typer.Argument(metavar="PROJECT", help="Name of the project. You can leave it out if you have only one."),
]
AddressOption = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="URL",
        help="Address of the server, as people enter it in their browser. The printed link begins with it.",
    ),
]


def invitation_link(address: str, code: str) -> str:
    """In the fragment, the code does not travel to any server but ours."""
    return f"{address.rstrip('/')}/?join#{code}"


@contextmanager
def opened_beside(address: str | None) -> Iterator[Store]:
    """The store, also while a server has it open."""
    with needs_extra("web"):
        from fluents.web.store import Store, default_url
    with Store(address or default_url("annotation.sqlite"), beside=True) as opened:
        yield opened


def invite(
    project: ProjectArgument = None,
    role: Annotated[
        Literal["annotator", "adjudicator", "owner"],
        typer.Option(
            help="Role of the people who join with the link. Annotators answer questions. Adjudicators can also settle "
            "disagreements. Owners can do everything."
        ),
    ] = "annotator",
    uses: Annotated[int, typer.Option(min=1, max=1000, help="How many people can join with the link.")] = 1,
    member: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Make a link for a person who joined before but can no longer sign in. ID is A1 for the first person "
            "who joined, A2 for the second, and so on: see `fluents annotate status`.",
        ),
    ] = None,
    address: AddressOption = ADDRESS,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Print a link with which people can join a project. The link works for 30 days.

    Example: `fluents annotate invite soups --uses 20 --address https://annotate.example.org`
    """
    with opened_beside(store) as opened:
        from fluents.web.annotation_members import Members
        from fluents.web.annotation_projects import Projects

        found = Projects(opened).named(project)
        link = invitation_link(address, Members(opened).invite(found.id, role, uses, member))
    if as_json:
        show_json({"project": found.name, "link": link, "role": role, "uses": uses, "member": member})
    else:
        print(link)


def revoke(
    project: ProjectArgument = None,
    member: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Person who loses access. ID is A1, A2 and so on. Repeat for several people."),
    ] = None,
    invitation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Link to revoke, so that nobody else can join with it. ID has 16 hexadecimal digits. Repeat for "
            "several links.",
        ),
    ] = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """End people's access to a project, or revoke links. This takes effect at once.

    `fluents annotate status` shows the ids of people and links. When you end a person's access, their answers stay in
    the project. Also revoke the links that the person knows: with a link that still works, they could join again under
    a new name. To let a person in again, run `fluents annotate invite --member ID`.

    Example: `fluents annotate revoke soups --member A3`
    """
    if not member and not invitation:
        raise InputError(
            "no person and no link is given",
            fix="give the id of a person as `member`, or the id of a link as `invitation`; to see the ids, run "
            "`fluents annotate status`",
        )
    with opened_beside(store) as opened:
        from fluents.web.annotation_members import Members
        from fluents.web.annotation_places import Places
        from fluents.web.annotation_projects import Projects

        found = Projects(opened).named(project)
        members, places = Members(opened), Places(opened)
        for one in invitation or ():
            members.revoke(found.id, one)
        for one in member or ():
            places.release_all(members.end_access(found.id, one))
    if as_json:
        show_json({"project": found.name, "members": member or [], "invitations": invitation or []})
    else:
        print("".join(f"revoked the link {one}\n" for one in invitation or ()), end="")
        print("".join(f"ended the access of {one}\n" for one in member or ()), end="")


def status(project: ProjectArgument = None, store: StoreOption = None, as_json: AsJson = False) -> None:
    """Show how far along a project is, who has joined it, and which links people can still join with.

    The first table has a row for each stage. “items” is the number of questions, and “decided” is the number of
    questions that enough people have answered.

    The second table has a row for each person. “done” is the number of questions that the person has answered, and
    “access” says whether the person can sign in.

    The third table has a row for each link. “uses” is the number of people who can still join with the link.

    Example: `fluents annotate status soups`
    """
    with opened_beside(store) as opened:
        from fluents.web.annotation_decisions import Decisions
        from fluents.web.annotation_members import Members
        from fluents.web.annotation_places import Places
        from fluents.web.annotation_projects import Projects
        from fluents.web.annotation_stages import ProjectStages, stage_rows

        found = Projects(opened).named(project)
        stages = stage_rows(found, ProjectStages(opened).progress(found.id))
        tallies = Decisions(opened, Places(opened)).tallies(found.id)
        people = [
            {
                "id": one.pseudonym,
                "name": one.name,
                "role": one.role,
                "done": tallies[one.id].done,
                "access": one.has_access,
            }
            for one in Members(opened).all(found.id)
        ]
        invitations = [
            {
                "invitation": one.id,
                "role": one.role,
                "member": one.member.pseudonym if one.member else "",
                "uses": one.uses,
                "expires": date.fromtimestamp(one.expires).isoformat(),
            }
            for one in Members(opened).invitations(found.id)
        ]
    if as_json:
        show_json({"project": found.name, "stages": stages, "people": people, "invitations": invitations})
        return
    from fluents.report.terminal import table_of

    for rows in (stages, people, invitations):
        if rows:
            show(table_of(tuple(rows[0]), ([_cell(value) for value in row.values()] for row in rows), words=3))


def _cell(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
