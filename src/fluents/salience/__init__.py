"""How much an entity matters, to the goal and in each step; and traces filtered by it."""

from fluents.salience.filter import Keep, keep, keep_salient
from fluents.salience.rater import Rater, RaterName, open_rater, rate_salience

__all__ = ["Keep", "Rater", "RaterName", "keep", "keep_salient", "open_rater", "rate_salience"]
