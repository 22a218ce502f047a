"""PDDL read leniently, solved, validated and replayed; traces and texts made into domains and problems."""
