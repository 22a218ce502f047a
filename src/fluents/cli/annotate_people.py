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
        help="Where projects are stored: a file, or a database such as postgresql://user@host/database. Default: "
        "$FLUENTS_STORE if set, otherwise a file in your data folder.",
    ),
]
ProjectArgument = Annotated[
    str | None,
    typer.Argument(metavar="PROJECT", help="Name of the project. You can leave it out if there is only one."),
]
AddressOption = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="URL",
        help="Address at which annotators open the page. The printed link begins with it.",
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
            help="Role of the people who join with the link. Adjudicators can also settle disagreements; owners can do "
            "everything."
        ),
    ] = "annotator",
    uses: Annotated[int, typer.Option(min=1, max=1000, help="How many people can join with the link.")] = 1,
    member: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Make the link for an existing member who can no longer sign in. ID is their id, such as A3, which "
            "`fluents annotate status` shows.",
        ),
    ] = None,
    address: AddressOption = ADDRESS,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """Print a link with which people join a project. It works for 30 days.

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
        typer.Option(metavar="ID", help="End the access of a member. ID is their id, such as A3. Repeat for several."),
    ] = None,
    invitation: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Revoke a link, so that nobody else can join with it. Repeat for several."),
    ] = None,
    store: StoreOption = None,
    as_json: AsJson = False,
) -> None:
    """End the access of members, or revoke links. This takes effect at once; decisions are kept.

    `fluents annotate status` shows the ids. Ending the access of a member does not revoke the link they joined with.
    `fluents annotate invite --member ID` lets a member in again.

    Example: `fluents annotate revoke soups --member A3`
    """
    if not member and not invitation:
        raise InputError("nothing to revoke", fix="set `member` or `invitation`")
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
        print("".join(f"revoked the invitation {one}\n" for one in invitation or ()), end="")
        print("".join(f"ended the access of {one}\n" for one in member or ()), end="")


def status(project: ProjectArgument = None, store: StoreOption = None, as_json: AsJson = False) -> None:
    """Show how many items of each stage are decided, what each member has decided, and the open invitations.

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
