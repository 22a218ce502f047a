"""Making data: people decide on items, stage by stage, and what goes on follows from their decisions alone.

A project has a design, procedures, and a list of decisions that only grows. A stage makes items from the traces of the
stage before it; `outcome` computes from items and decisions the traces that go on. The server, the simulation and the
exports call the same functions.
"""

from fluents.annotation.design import ProjectDesign, StageDesign, design_of, read_design
from fluents.annotation.items import Decision, Item
from fluents.annotation.outcomes import StageOutcome
from fluents.annotation.pay import pay_of
from fluents.annotation.scripted_people import ErrorRates
from fluents.annotation.simulation import simulate
from fluents.annotation.stages import check_answer, expert_sample, is_decided, items, outcome

__all__ = [
    "Decision",
    "ErrorRates",
    "Item",
    "ProjectDesign",
    "StageDesign",
    "StageOutcome",
    "check_answer",
    "design_of",
    "expert_sample",
    "is_decided",
    "items",
    "outcome",
    "pay_of",
    "read_design",
    "simulate",
]
