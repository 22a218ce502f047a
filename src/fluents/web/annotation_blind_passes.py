"""Blind passes: what people write about an item before they see its draft. The first that is saved counts."""

from __future__ import annotations

import json
import time
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fluents.annotation.forms import after_blind_pass, check_blind_pass, is_blind_first
from fluents.annotation.items import Item
from fluents.web.annotation_members import Member
from fluents.web.annotation_records import item_of
from fluents.web.annotation_tables import BlindPassRow, DecisionRow
from fluents.web.store import Store


def keep_blind_pass(store: Store, member: Member, item_id: str, changes: Any) -> None:
    """Save a blind pass. Once there is one, the member may have seen the draft, so a second one changes nothing."""
    try:
        with store.writing() as session:
            item = item_of(session, member.project, item_id)
            checked = check_blind_pass(item, changes)
            if blind_pass_of(session, member, item) is None:
                key = {"project_id": member.project, "item_id": item_id, "author_id": member.id}
                session.add(BlindPassRow(**key, changes=json.dumps(checked), time=time.time()))
    except IntegrityError:  # the same request, twice at once
        pass


def seen_by(session: Session, member: Member, item: Item) -> Item:
    """An item with what this member may see of it."""
    return after_blind_pass(item, blind_pass_of(session, member, item)) if is_blind_first(item) else item


def blind_pass_of(session: Session, member: Member, item: Item) -> list[dict[str, Any]] | None:
    """What a member wrote before they saw the draft of an item."""
    kept = session.get(BlindPassRow, (member.project, item.id, member.id))
    if kept is not None:
        return list(json.loads(kept.changes))
    answers = session.scalars(  # of a history from before blind passes were kept by themselves
        select(DecisionRow.answer).where(
            DecisionRow.project_id == member.project,
            DecisionRow.item_id == item.id,
            DecisionRow.author_id == member.id,
            ~DecisionRow.adjudicates,
        )
    )
    return next((said["blind"] for said in map(json.loads, answers) if said.get("blind") is not None), None)
