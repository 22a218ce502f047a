"""What matters: how much each entity counts for the goal and for each step."""
