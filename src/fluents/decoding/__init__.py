"""From what a model says to what a trace holds: grammars, consensus over samples, names kept consistent."""
