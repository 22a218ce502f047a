"""fluents: what changes, from what to what, at every step of a procedure."""

from fluents.errors import FluentsError
from fluents.records import Procedure, StateChange, Trace

__version__ = "0.1.0"

__all__ = ["FluentsError", "Procedure", "StateChange", "Trace", "__version__"]
