"""Who is who: one name for each entity and attribute of a procedure, its other names kept beside it."""
