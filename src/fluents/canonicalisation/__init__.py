"""Canonical names: one for each entity and attribute of a procedure, its other names kept beside it."""

from fluents.canonicalisation.clusters import Method
from fluents.canonicalisation.expansion import Thesaurus, expand, open_thesaurus
from fluents.canonicalisation.methods import MethodName, canonicalise, open_method

__all__ = ["Method", "MethodName", "Thesaurus", "canonicalise", "expand", "open_method", "open_thesaurus"]
