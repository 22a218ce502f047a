"""Planning: PDDL read leniently and written strictly."""

from fluents.planning.expressions import PddlError, Repair
from fluents.planning.model import Domain, Problem
from fluents.planning.reader import PddlReading, read_pddl

__all__ = ["Domain", "PddlError", "PddlReading", "Problem", "Repair", "read_pddl"]
